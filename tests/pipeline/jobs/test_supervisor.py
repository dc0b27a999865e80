"""Jobs over blocks: killed, resumed, spread over processes, always with the same bytes."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipeline import storage
from pipeline.dump.containers import plan_blocks
from pipeline.dump.pages import read_site_info
from pipeline.jobs import supervisor
from pipeline.jobs.extract_pages import PageExtractor
from pipeline.jobs.supervisor import run_blocks
from tests.support import PATIENCE, ROOT

pytestmark = pytest.mark.slow


def arguments_for(path: Path) -> dict[str, Any]:
    return {"site": read_site_info(str(path)).to_dict(), "profile": "fixed", "allow_truncated": False}


@pytest.fixture(scope="module")
def dump(shared: Path) -> Path:
    return shared / "data/wikipedia/enwiki-2016-206.xml.bz2"


def extract(
    dump: Path, folder: Path, processes: int = 1, *, job: type[PageExtractor] = PageExtractor, **options: Any
) -> dict[int, storage.Result]:
    blocks, options = plan_blocks([str(dump)], 200_000), {"processes": processes, **options}
    return run_blocks(job, blocks, str(folder), "key", arguments_for(dump), **options)


@pytest.fixture(scope="module")
def unbroken(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, storage.Result]:
    return extract(dump, tmp_path_factory.mktemp("unbroken"))


def test_two_processes_write_the_same_bytes(dump: Path, tmp_path: Path, unbroken: dict[int, storage.Result]) -> None:
    assert extract(dump, tmp_path, processes=2) == unbroken
    assert len(unbroken) == 9
    assert sum(record.rows["pages"] for record in unbroken.values()) == 106


def test_a_module_where_the_user_stands_is_not_imported(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parent does not either; what it can import, such as these tests, the child can."""
    (tmp_path / "here").mkdir()
    for name in ("apache_beam", "regex", "pyarrow", "pipeline", "heapq"):
        (tmp_path / "here" / f"{name}.py").write_text("raise SystemExit('taken from where the user stands')")
    monkeypatch.chdir(tmp_path / "here")
    blocks = plan_blocks([str(dump)], 200_000)[:2]
    for processes in (1, 2):
        folder = str(tmp_path / str(processes))
        run_blocks(PageExtractor, blocks, folder, "key", arguments_for(dump), processes=processes)
        assert len(storage.blocks.finished_blocks(folder, "key")) == len(blocks) == 2


def wait_for(condition: Any, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def test_a_workers_death_is_survived(dump: Path, tmp_path: Path, unbroken: dict[int, storage.Result]) -> None:
    import threading

    killed: list[int] = []

    def kill_one_worker() -> None:
        wait_for(lambda: len(storage.blocks.finished_blocks(str(tmp_path), "key")) >= 1)
        for process in descendants(os.getpid()):
            with contextlib.suppress(psutil.Error):  # another may be ending, and tells nothing any more
                if process.name().startswith("python") and "sdk_worker_main" in " ".join(process.cmdline()):
                    process.kill()
                    killed.append(process.pid)
                    return

    killer = threading.Thread(target=kill_one_worker)
    killer.start()
    assert extract(dump, tmp_path, processes=2) == unbroken
    killer.join()
    assert killed


class KilledExtractor(PageExtractor):
    """Is killed by the pages that KILLERS names."""

    def page_rows(self, page: Any, *arguments: Any, fatal: str = "") -> Any:
        if page.title in os.environ["KILLERS"].split() and not fatal:
            self.meet()
        return super().page_rows(page, *arguments, fatal=fatal)

    def meet(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class StuckExtractor(KilledExtractor):
    """Never comes to the end of a pattern, which lets no other thread of its process work."""

    page_seconds = 5.0

    def meet(self) -> None:
        re.match(r"(a|aa)+$", 1000 * "a" + "b")


@pytest.fixture
def killers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages that kill; the job's processes find its class."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("KILLERS", "Anarchism Albedo")


def assert_rejected_alone(
    titles: list[str],
    records: dict[int, storage.Result],
    unbroken: dict[int, storage.Result],
    folder: Path,
    reason: str = "worker_died",
) -> None:
    rejected = [
        (row["title"], row["reason"])
        for number in sorted(records)
        for row in storage.read_rows(str(folder / f"rejected/{storage.block_name(number)}.parquet"))
    ]
    assert rejected == [(title, reason) for title in titles]
    untouched = [number for number, record in records.items() if not record.rows["rejected"]]
    assert len(untouched) >= len(unbroken) - len(titles)
    assert all(records[number] == unbroken[number] for number in untouched)
    assert sum(record.rows["pages"] for record in records.values()) == 106 - len(titles)
    assert not [path for path in (folder / "blocks").iterdir() if not path.name.startswith("block-")]


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(("job", "reason"), [(KilledExtractor, "worker_died"), (StuckExtractor, "too_slow")])
@pytest.mark.usefixtures("killers")
def test_a_page_that_kills_its_worker_or_has_no_end_is_rejected_alone(
    dump: Path, tmp_path: Path, unbroken: dict[int, storage.Result], job: Any, reason: str, processes: int
) -> None:
    folder = tmp_path / "stage"
    records = extract(dump, folder, processes, job=job)
    assert_rejected_alone(["Anarchism", "Albedo"], records, unbroken, folder, reason)


def test_a_killed_job_leaves_no_page_without_end_behind(dump: Path, tmp_path: Path, killers: None) -> None:
    """Even where the pattern is at work in the child's own process."""
    program = (
        "import sys; from pathlib import Path; from tests.pipeline.jobs.test_supervisor import *; "
        "StuckExtractor.page_seconds = 1e9; extract(*map(Path, sys.argv[1:]), job=StuckExtractor)"
    )
    command = [sys.executable, "-c", program, str(dump), str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        wait_for(lambda: bool([*tmp_path.glob("blocks/page-*")]))
        time.sleep(2)  # the first page that is met has no end
        [child, *_] = descendants(process.pid)
        process.kill()
    psutil.wait_procs([child], timeout=PATIENCE)
    assert not child.is_running()


@pytest.fixture
def dask(killers: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a cluster whose workers come again when they are killed; one death is enough for it."""
    import dask
    from distributed import LocalCluster

    monkeypatch.setenv("KILLERS", "Albedo")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        yield cluster.scheduler_address


def test_a_page_that_kills_workers_of_dask_is_rejected_alone(
    dask: str, dump: Path, tmp_path: Path, unbroken: dict[int, storage.Result]
) -> None:
    options = ["--runner=DaskRunner", f"--dask_client_address={dask}"]
    folder = tmp_path / "stage"
    records = extract(dump, folder, job=KilledExtractor, beam_options=options, patience=5)
    assert_rejected_alone(["Albedo"], records, unbroken, folder)


@pytest.mark.parametrize("happens", ["exit 0", "rm -r {}/blocks"])
def test_blocks_that_a_runner_says_are_done_are_looked_for(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, happens: str
) -> None:
    monkeypatch.setattr(supervisor, "_COMMAND", ["sh", "-c", f"read spec; {happens.format(tmp_path)}"])
    line = rf"^PageExtractor: 9 of 9 blocks are done, as Beam's runner says, but not found in {tmp_path} within 0 s: "
    with pytest.raises(ValueError, match=line + r"0, 1, 2, 3, 4, \.\.\.; the work directory has to be"):
        extract(dump, tmp_path, patience=0)


def test_a_failure_names_the_pages_that_were_at_work(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as a runner that we do not know lets us say."""
    page = f"printf 00000000000000000077 > {tmp_path}/blocks/page-00003.txt"
    monkeypatch.setattr(supervisor, "_COMMAND", ["sh", "-c", f"read spec; {page}; echo no more workers; exit 3"])
    words = "ended with exit status 3, at work on page 77 of block 3; its last words:\nno more workers"
    with pytest.raises(RuntimeError, match=words):
        extract(dump, tmp_path, beam_options=["--runner=Another"])


def test_a_full_disk_takes_no_message_and_is_told_all_the_same(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "RuntimeError: OSError: [Errno 28] No space left on device [while running 'ParDo(RunBlock)']"
    monkeypatch.setattr(supervisor, "_COMMAND", ["sh", "-c", f'read spec; echo "{words}"; exit 1'])
    line = f"^{tmp_path}: No space left on device; make room, the same command goes on from here$"
    with pytest.raises(ValueError, match=line):
        extract(dump, tmp_path)


def test_the_users_error_comes_without_a_traceback(dump: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.xml.bz2"
    cut.write_bytes(dump.read_bytes()[:-100_000])
    with pytest.raises(ValueError, match="bzip2 stream ends in the middle") as error:
        extract(cut, tmp_path / "stage")
    assert str(error.value).startswith(str(cut))
    assert "\n" not in str(error.value)


def test_another_failure_comes_with_its_last_words(dump: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"KeyError: .site"):
        run_blocks(PageExtractor, plan_blocks([str(dump)], 10**7), str(tmp_path), "key", {}, processes=1)
