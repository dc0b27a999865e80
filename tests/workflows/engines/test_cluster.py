"""The cluster on loopback: the same bytes as on one machine, whoever is killed; and nobody stays behind."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support import DATA
from tests.support.cluster import HOST, QUICK_JAVA, Cluster
from tests.support.killed import family
from tests.support.stages import IN_BLOCKS, LUIGI, manifests, run_of, wait_for
from workflows import ExtractPages, ResolveRedirects

pytestmark = pytest.mark.slow

Event = dict[str, Any]  # of Spark's event log
CORPUS_STAGES = {"dump", "pages", "titles", "links", "entity_vocab", "mentions", "tokenizer", "sequences"}
# Stages in one process, so that one Spark session serves them.
RUN = """
import sys
import luigi, workflows

run = workflows.Run.from_json(sys.argv[1])
stages = [getattr(workflows, name)(settings=run) for name in sys.argv[2:]]
sys.exit(not luigi.build(stages, local_scheduler=True, log_level="WARNING"))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch, Cluster(tmp_path_factory.mktemp("cluster")) as started:
        for name, value in QUICK_JAVA.items():  # for drivers, too
            patch.setenv(name, value)
        started.start_all()
        yield started


def beam_options(cluster: Cluster) -> list[str]:
    return ["--runner=DaskRunner", f"--dask_client_address={cluster.dask}"]


def run_command(workdir: Path, *stages: str, **others: Any) -> list[str]:
    """A run of stages, to be started beside the work directory, whose name is relative: workers stand elsewhere."""
    run = run_of(workdir.name, corpus=IN_BLOCKS, machine=others)
    return [sys.executable, "-c", RUN, run.json, *stages]


def run_corpus(workdir: Path, **others: Any) -> None:
    command = run_command(workdir, "BuildMentionTable", "BuildSequences", **others)
    result = subprocess.run(command, cwd=workdir.parent, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@dataclass(frozen=True)
class EventLog:
    """The events that Spark's driver writes down in a folder."""

    folder: Path

    @property
    def settings(self) -> dict[str, str]:
        """For `spark_conf`: with a file of settings in its folder Java would take no archive."""
        said = {"enabled": "true", "dir": f"file://{self.folder}", "compress": "false"}
        return {f"spark.eventLog.{name}": value for name, value in said.items()}

    def read(self) -> list[Event]:
        time.sleep(0.2)  # Spark needs the processors more than those who wait for it
        files = [path for path in self.folder.rglob("events_*") if path.is_file()]
        lines = [line for path in files for line in path.read_text().split("\n")[:-1]]  # the last may be unfinished
        return [json.loads(line) for line in lines]


@pytest.fixture
def event_log(tmp_path: Path) -> EventLog:
    (tmp_path / "events").mkdir()
    return EventLog(tmp_path / "events")


def ask_workers(address: str) -> dict[str, tuple[int, int]]:
    """Of each Dask worker: how often it loaded a job's heavy objects, and how often it found them loaded."""
    from distributed import Client

    def look() -> tuple[int, int]:  # inside, so that it travels by value
        from pipeline.jobs import beam

        info = beam._load.cache_info()
        return info.misses, info.hits

    with Client(address, set_as_default=False) as client:
        return client.run(look)


def test_the_same_bytes_from_both_clusters_and_every_worker_works(
    cluster: Cluster, corpus: Path, tmp_path: Path, event_log: EventLog
) -> None:
    before = ask_workers(cluster.dask)
    engines = {"spark_master": cluster.spark_master, "beam_options": shlex.join(beam_options(cluster))}
    run_corpus(tmp_path / "work", **engines, spark_conf=event_log.settings)
    wanted = manifests(corpus)
    assert manifests(tmp_path / "work") == {name: wanted[name] for name in CORPUS_STAGES}
    blocks = len(list((tmp_path / "work").glob("pages-*/blocks/*.json")))
    assert blocks >= 8
    loads = {name: misses - before[name][0] for name, (misses, _) in ask_workers(cluster.dask).items()}
    assert list(loads.values()) == [2, 2], "once for each of the two jobs, in each of the two workers"
    hits = sum(hits for _, hits in ask_workers(cluster.dask).values()) - sum(hits for _, hits in before.values())
    assert hits == 2 * blocks - 4
    tasks = tasks_by_executor(event_log.read())
    assert len(tasks) == 2
    assert min(tasks.values()) > 10


def test_runs_of_the_same_stages_wait_for_each_other(cluster: Cluster, tmp_path: Path) -> None:
    """luigid knows that two are the same; the third names its folder otherwise, and finds it locked."""
    big_dump(tmp_path / "big.xml")
    workdir = tmp_path / "work"
    scheduler = ["--scheduler-host", HOST, "--scheduler-port", str(cluster.luigi_port)]
    waits = {1: "waits for another run: ExtractPages", 2: r"pages-\w+: waits for another run"}
    runs: list[subprocess.Popen[str]] = []

    def text(number: int) -> str:
        return (tmp_path / f"{number}.log").read_text()

    for number, given in enumerate((workdir, workdir, tmp_path / "." / ".." / tmp_path.name / "work")):
        command = [*extract(workdir, *scheduler), "--workdir", str(given)]
        with (tmp_path / f"{number}.log").open("w") as log:
            runs.append(subprocess.Popen(command, stderr=log, text=True))
        if number == 0:
            wait_for(lambda: any(workdir.glob("pages-*/blocks/*.json")), runs[0])
            workers = family(runs[0])[1:]
            for worker in workers:  # so that there is something to wait for
                worker.suspend()
        else:
            wait_for(lambda number=number: bool(re.search(waits[number], text(number))), runs[number])
    for worker in workers:
        worker.resume()
    assert [run.wait(100) for run in runs] == [0, 0, 0], [text(number) for number in range(3)]
    said = [text(number) for number in range(3)]
    made = [re.findall(r"(?m)^ExtractPages .*\| [\d.]+ s$", each) for each in said]
    assert list(map(len, made)) == [1, 0, 0], said


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    """Each engine would look for it for half a minute or more, and then say much."""
    nowhere = "127.0.0.1:1"
    beam = f"--runner=DaskRunner --dask_client_address=tcp://{nowhere}"
    machine = {"beam_options": beam, "spark_master": f"spark://{nowhere}"}
    stage = ResolveRedirects(settings=run_of(tmp_path, machine=machine))
    with pytest.raises(ValueError, match=rf"machine.beam_options: --dask_\S+=tcp://{nowhere}: nobody"):
        stage.clone(ExtractPages).check_needs()
    with pytest.raises(ValueError, match=rf"--spark-master spark://{nowhere}: nobody .* running\?"):
        stage.check_needs()


# Kills


def big_dump(path: Path) -> None:
    """The hand-written dump with its pages many times over: a block takes a second."""
    text = (DATA / "wiki-40.xml").read_text()
    start, end = text.index("<page>"), text.rindex("</mediawiki>")
    path.write_text(text[:start] + text[start:end] * 100 + text[end:])


def extract(workdir: Path, *options: str) -> list[str]:
    words = ["--dump", str(workdir.parent / "big.xml"), "--workdir", str(workdir)]
    words += ["--set", "corpus.block_size=512KiB", "--set", "corpus.max_rejected=1"]
    return [LUIGI, "--module", "workflows", "ExtractPages", *words, *options]


def count(events: Iterable[Event], name: str) -> int:
    return sum(event["Event"] == f"SparkListener{name}" for event in events)


def tasks_by_executor(events: Iterable[Event]) -> Counter[str]:
    return Counter(event["Task Info"]["Executor ID"] for event in events if event["Event"] == "SparkListenerTaskEnd")


def executors_at_work(workers: Iterable[psutil.Process], events: list[Event]) -> list[psutil.Process]:
    """The executors that have already finished a task: others may still be starting."""
    found = []
    for worker in workers:
        for child in worker.children():
            words = child.cmdline() if child.status() != psutil.STATUS_ZOMBIE else []
            if "--executor-id" in words:
                number = words[words.index("--executor-id") + 1]
                found += [child] if tasks_by_executor(events)[number] else []
    return found


def wait_until_it_stalls(process: subprocess.Popen[str], read: Callable[[], list[Event]]) -> None:
    """Until a job of Spark is at work and nothing has happened for some time: it waits for the frozen executor."""
    size, since = -1, 0.0

    def stalls() -> bool:
        nonlocal size, since
        events = read()
        if len(events) != size or count(events, "JobStart") == count(events, "JobEnd"):
            size, since = len(events), time.monotonic()
        return time.monotonic() - since > 3

    wait_for(stalls, process)


def test_spark_executors_and_a_worker_killed_within_stages(
    cluster: Cluster, corpus: Path, tmp_path: Path, event_log: EventLog
) -> None:
    """An executor in two stages, a worker with its executor in the third: other executors do the work again."""
    workdir = tmp_path / "work"
    workdir.mkdir()
    for name in ("dump", "pages"):
        shutil.copytree(next(corpus.glob(f"{name}-*")), workdir / next(corpus.glob(f"{name}-*")).name)
    workers = [cluster.process(f"spark worker {number}") for number in (1, 2)]
    engine = {"spark_master": cluster.spark_master, "spark_conf": event_log.settings}
    command = run_command(workdir, "BuildMentionTable", **engine)
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        for name in ("titles", "entity_vocab", "mentions"):
            wait_for(lambda name=name: any(workdir.glob(f"{name}-*/key.txt")), process)
            wait_for(lambda: bool(executors_at_work(workers, event_log.read())), process)
            executor = executors_at_work(workers, event_log.read())[0]
            executor.suspend()
            wait_until_it_stalls(process, event_log.read)
            assert not any(workdir.glob(f"{name}-*/manifest.json"))
            if name == "entity_vocab":
                worker = executor.parent()
                workers.remove(worker)
                worker.kill()
            executor.kill()
        said = process.communicate(timeout=200)[0]
    assert process.returncode == 0, said
    assert set(manifests(workdir)) == {"dump", "pages", "titles", "links", "entity_vocab", "mentions"}
    assert manifests(workdir).items() <= manifests(corpus).items()
    events = event_log.read()
    assert count(events, "ExecutorRemoved") >= 3
    reasons = Counter(
        event["Task End Reason"]["Reason"] for event in events if event["Event"] == "SparkListenerTaskEnd"
    )
    assert reasons["ExecutorLostFailure"] >= 3, "each had a task in its hands"
