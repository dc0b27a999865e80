"""Stages as a user runs them, by the command or in this process."""

import atexit
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import luigi
import pytest
import tomlkit

from pipeline.jobs import supervisor
from tests.support import DATA, PATIENCE, ROOT
from tests.support.commands import programs
from tests.support.forked import FORKS, end
from workflows import BuildContexts, BuildDocuments, BuildMentionTable, BuildSequences, LinkDocuments, TrainTokenizer
from workflows.base.stage import Stage
from workflows.engines import spark as engine
from workflows.run.document import NAME
from workflows.run.file import Run

MINILM = Path(sys.prefix) / "minilm"  # as `make install` links it
LUIGI = str(Path(sys.executable).with_name("luigi"))
DUMP = DATA / "wiki-40.xml.bz2"
BLOCK_SIZE = 4096
IN_BLOCKS = {"dump": str(DATA / "wiki-40.xml"), "block_size": BLOCK_SIZE}
SEVERAL_BLOCKS = ["--dump", str(DATA / "wiki-40.xml"), "--set", f"corpus.block_size={BLOCK_SIZE}"]


def run_of(workdir: object = "work", *, preset: str = "auto", **tables: Mapping[str, Any]) -> Run:
    """The run of a file with these tables, checked as a file is: `run_of(tmp_path, corpus={"dump": path})`."""
    return Run.of_tables({"preset": preset, **tables}, workdir=str(workdir), source="run.toml")


def changed(run: Run, **tables: Mapping[str, Any]) -> Run:
    """A run with other values in some tables."""
    return replace(run, **{name: replace(getattr(run, name), **values) for name, values in tables.items()})


def write_run(folder: Path, **tables: Any) -> Path:
    """The run file of a work directory, with these tables."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_text(tomlkit.dumps(tables))
    return folder


def run_luigi(
    *arguments: object, cwd: Path, env: dict[str, str] | None = None, timeout: float = PATIENCE
) -> subprocess.CompletedProcess[str]:
    """Run the installed command, from a folder that is not the project's."""
    command = [LUIGI, "--module", "workflows", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=env, timeout=timeout, check=False)


def run_forked(*arguments: object, cwd: Path, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    """As `run_luigi`, by a process that has imported everything before; what it prints is on its standard error."""
    with tempfile.NamedTemporaryFile() as said:
        status = end(start_forked(*arguments, cwd=cwd, said=Path(said.name)), timeout)
        text = Path(said.name).read_text()
    return subprocess.CompletedProcess(arguments, status, "", text)


def start_forked(*arguments: object, cwd: Path, said: Path) -> ForkServerProcess:
    """The command in such a process; all that it prints goes to a file."""
    process = FORKS.Process(target=_command, args=([*map(str, arguments)], cwd, said))
    process.start()
    return process


def _command(arguments: list[str], cwd: Path, said: Path) -> None:
    """Run the installed command in a process of its own; its standard output and error go to a file."""
    from luigi.cmdline import luigi_run

    from workflows.base import commandline

    with open(said, "ab", buffering=0) as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    os.chdir(cwd)
    sys.argv = [LUIGI, "--module", "workflows", *arguments]
    assert commandline.is_luigi_command()
    try:
        words = sys.argv[1:]
        commandline.prepare(words)
        status = luigi_run(words)
    finally:
        atexit._run_exitfuncs()  # which multiprocessing leaves out
    sys.exit(status)


@contextlib.contextmanager
def started(*arguments: object, cwd: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, running in the background."""
    command = [LUIGI, "--module", "workflows", *map(str, arguments)]
    process = subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def wait_for(
    condition: Callable[[], bool], process: subprocess.Popen[str] | ForkServerProcess, seconds: float = PATIENCE
) -> None:
    """Wait while a process runs."""
    latest = time.monotonic() + seconds
    while not condition():
        is_running = process.poll() is None if isinstance(process, subprocess.Popen) else process.is_alive()
        if not is_running or time.monotonic() >= latest:
            process.kill()  # or it would be waited for at the end of all tests
            said = process.stdout.read() if isinstance(process, subprocess.Popen) and process.stdout else ""
            raise AssertionError(f"{'waited in vain' if is_running else 'ended too early'}: {said}")
        time.sleep(0.01)


def run_in_process(stage: Stage) -> None:
    """Run a stage in this process."""
    for each in (stage, *stage.upstream()):
        each._is_complete = False
    with shared_engines():
        assert luigi.build([stage], local_scheduler=True, log_level="WARNING")


def make_corpus(folder: Path) -> Path:
    """A work directory with the stages before training, made by one process in one go, unless it is there."""
    workdir = folder / "corpus" / "work"
    run = run_of(workdir, corpus=IN_BLOCKS, machine={"processes": 1})
    _make(folder / "corpus.lock", [each(settings=run) for each in (BuildMentionTable, BuildContexts, BuildSequences)])
    return workdir


def make_demo(folder: Path) -> Path:
    """The same of the demo's dump, with the demo's settings; documents, linked texts and a tokenizer, too."""
    workdir, texts = folder / "demo" / "work", folder / "demo" / "texts"
    texts.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / "examples/linking/documents.jsonl", texts)
    given = {"corpus": {"held_out": 0.05}, "pretraining": {"base_model": str(MINILM)}}
    run = run_of(workdir, preset="demo", **given, linking={"documents": str(texts)})
    stages = (BuildSequences, BuildContexts, BuildMentionTable, TrainTokenizer, BuildDocuments, LinkDocuments)
    _make(folder / "demo.lock", [stage(settings=run) for stage in stages])
    return workdir


def _make(lock_path: Path, stages: Sequence[Stage]) -> None:
    with open(lock_path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for stage in stages:
            run_in_process(stage)


@contextlib.contextmanager
def shared_engines() -> Iterator[None]:
    """Stages that run here meanwhile share the Spark session of all tests, and their Beam jobs are forks.

    Java's start and its first plans take it most of the time, so that it stays when a stage would end it.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "session_of", lambda *_: spark_session())
        patch.setattr(engine, "stop_spark", lambda: None)
        patch.setattr(supervisor, "_COMMAND", [str(programs() / "python"), *supervisor._COMMAND[1:]])
        yield


def spark_session() -> Any:
    """The Spark session of this process's tests."""
    from pipeline.jobs.spark_session import session

    return session("local[2]", 1 << 30, is_short=True)


def folders(workdir: Path) -> dict[str, Path]:
    """The finished stages' folders by name."""
    return {path.parent.name.rsplit("-", 1)[0]: path.parent for path in workdir.glob("*/manifest.json")}


def manifests(workdir: Path) -> dict[str, bytes]:
    return {name: (folder / "manifest.json").read_bytes() for name, folder in folders(workdir).items()}
