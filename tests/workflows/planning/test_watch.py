"""The state of a run, from its files, whatever is being written, without being in anybody's way."""

import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import luigi
import pytest

from model.luke.config import PRESETS
from model.pretraining.loader import Loader
from model.pretraining.recipes import RECIPES
from pipeline import storage
from pipeline.storage import locks
from tests.support import ROOT
from tests.support.killed import ended, family
from tests.support.models import TINY
from tests.support.pretraining import SHORT, run
from tests.support.properties import given, st
from tests.support.shards import random_rows, write_sequences
from tests.support.stages import DUMP, SEVERAL_BLOCKS, run_in_process, started, wait_for, write_run
from tests.workflows.base.test_stage import Lower, Upper
from workflows import ExtractPages, FetchDump, Pretrain, Run, RunAll
from workflows.base import outlook
from workflows.base.stage import RUN_RECORD
from workflows.planning import watch


def said(workdir: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """The lines that the command prints of each stage; it writes nothing."""
    before = {path: path.lstat().st_mtime_ns for path in workdir.rglob("*")}
    assert watch.main([str(workdir), "--once"]) == 0
    assert {path: path.lstat().st_mtime_ns for path in workdir.rglob("*")} == before
    return dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())


def test_a_run_that_is_killed_in_the_middle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workdir = tmp_path / "work"
    command = ["ExtractPages", *SEVERAL_BLOCKS, "--workdir", workdir, "--processes", 1]
    with started(*command, cwd=tmp_path) as process:
        wait_for(lambda: bool(list(workdir.glob("pages-*/blocks/block-*.json"))), process)
        helpers = family(process)[1:]
        for each in (process, *helpers):
            os.kill(each.pid, signal.SIGSTOP)
        at_work = said(workdir, capsys)
        for each in (process, *helpers):
            os.kill(each.pid, signal.SIGKILL)
        process.wait()
        assert ended(helpers, 20)
    assert re.match(r"done +\d+\.\d s$", at_work["FetchDump"])
    found = len(list(workdir.glob("pages-*/blocks/block-*.json")))
    progress = re.match(rf"running +\d+\.\d s  {found} of (\d+) blocks$", at_work["ExtractPages"])
    assert progress
    assert at_work["ResolveLinks"] == "waiting"
    stopped = said(workdir, capsys)
    assert re.match(rf"stopped +\d+\.\d s  {found} of {progress[1]} blocks$", stopped["ExtractPages"])
    assert "nobody" in stopped
    run_in_process(ExtractPages(settings=Run.read(str(workdir))))
    assert said(workdir, capsys)["ExtractPages"].startswith("done ")


Trained = tuple[Path, list[str]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trained]:
    """The folder of a pretraining that is alone in its work directory, and what was shown of it while it ran."""
    workdir, shown, load = tmp_path_factory.mktemp("work"), [], Loader.__call__
    write_run(workdir, preset="tiny", corpus={"dump": str(DUMP)})
    source = write_sequences(tmp_path_factory.mktemp("sequences"), random_rows(11), held_out=random_rows(5))

    def call(self: Loader, step: int) -> object:
        shown.append(progress_of(folder))
        return load(self, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", TINY)
        patch.setitem(RECIPES, "tiny", SHORT)
        patch.setattr(Loader, "__call__", call)
        folder = Path(Pretrain(settings=Run.read(str(workdir))).folder)
        with locks.hold(str(folder)):
            run(source, folder)
        (folder / storage.blocks.KEY).write_text("key")
        yield folder, shown


def progress_of(folder: Path) -> str:
    stages = outlook.stages_of(RunAll(settings=Run.read(str(folder.parent))))
    (row,) = [row for row in watch.rows_of(str(folder.parent), stages) if row[4] == str(folder)]
    return f"{row[1]} {row[3]}"


def test_a_pretraining_while_it_runs(trained: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    folder, shown = trained
    line = r"running step (\d+) of 13(?:, [\d,]+ words/s, [\d.]+ s left)?"
    steps = [int(step) for step in re.findall(line, "\n".join(shown))]
    assert len(steps) == len(shown)
    assert steps == sorted(steps)
    assert {*steps} >= {1, 6, 11}, "step by step"
    assert "step 13 of 13" in said(folder.parent, capsys)["Pretrain"]
    first, *_, last = map(json.loads, (folder / watch.METRICS).read_text().splitlines())
    curve = next(curve for curve in watch._curves(str(folder), 80, watch._BARS) if "masked_entity_loss" in curve)
    assert curve.split()[1:4] == f"{first['masked_entity_loss']:.4g} -> {last['masked_entity_loss']:.4g}".split()
    assert len(curve.split()[4]) == 13


@given(st.data())
def test_files_that_are_cut(trained: Trained, data: st.DataObject) -> None:
    folder, _ = trained
    whole = {name: (folder / name).read_bytes() for name in (watch.METRICS, watch.SPEED, watch.EVALUATION)}
    cut = {name: content[: data.draw(st.integers(0, len(content)))] for name, content in whole.items()}
    strange = b'5\n{"step": 13, "masked_word_perplexity": Infinity, "known_entity_top_1": "\\u001b"}\n'
    cut[watch.EVALUATION] = strange + cut[watch.EVALUATION]
    try:
        for name, content in cut.items():
            (folder / name).write_bytes(content)
        with locks.hold(str(folder)):
            progress = progress_of(folder)
        curves = list(watch._curves(str(folder), 80, watch._ASCII))
    finally:
        for name, content in whole.items():
            (folder / name).write_bytes(content)
    count = len({*whole[watch.METRICS].splitlines()} & {*cut[watch.METRICS].splitlines()})  # a line a step
    speeds = re.findall(r'"words_per_second": ([\d.]+)', whole[watch.SPEED].decode())
    known = "|".join(f"{float(speed):,.0f}" for speed in speeds)
    assert re.fullmatch(rf"running step {count} of 13(, ({known}) words/s, [\d.]+ s left)?", progress)
    assert sum("_loss" in curve for curve in curves) == (2 if count else 0)
    assert "\033" not in "".join(curves)
    assert "".join(curves).isascii()


@pytest.fixture
def lower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lower:
    """A run of two stages of a few lines, the first of which is done."""
    monkeypatch.setattr(watch.report, "RunAll", Lower)
    luigi.Task.clear_instance_cache()
    stage = Lower(settings=Run.read(str(write_run(tmp_path))))
    stage.clone(Upper).run()
    return stage


def test_a_terminal_is_drawn_anew_until_the_run_ends(lower: Lower, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)
    upper = lower.clone(Upper)
    events: list[Callable[[], object]] = [lambda: shutil.rmtree(upper.folder), upper.run, lower.run]
    # Only the command's own pauses: what else sleeps in this process would take events away.
    clock = SimpleNamespace(time=time.time, monotonic=time.monotonic, sleep=lambda _: events.pop(0)())
    monkeypatch.setattr(watch, "time", clock)
    assert watch.main([lower.workdir]) == 0
    *frames, last = terminal.buffer.getvalue().decode().split("\033[3F\033[J")  # type: ignore[attr-defined]
    states = [re.findall(r"^(?:Upper|Lower) +(\w+)", frame, re.M) for frame in frames]
    assert states == [["done", "waiting"], ["waiting", "waiting"], ["done", "waiting"]]
    assert last.endswith("all is done\033[?7h\n")


def test_manifests_and_records_that_are_cut(lower: Lower, capsys: pytest.CaptureFixture[str]) -> None:
    for name, shown in ((storage.MANIFEST, ["waiting", "stopped"]), (RUN_RECORD, ["done"])):
        path = Path(lower.clone(Upper).folder, name)
        whole = path.read_text()
        for end in range(len(whole.rstrip())):
            path.write_text(whole[:end])
            assert said(path.parents[1], capsys)["Upper"] in shown
        path.write_text(whole)
    assert re.match(r"done +\d", said(path.parents[1], capsys)["Upper"])


def test_what_names_hold_steers_no_terminal(
    lower: Lower, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does it where nobody goes on with a run."""
    evil = "\033[31mEvil-1\n\u202e"
    for name in ("other-12345678", evil):
        shutil.copytree(lower.clone(Upper).folder, Path(lower.workdir, name))
        Path(lower.workdir, ".locks", name).touch()
    Path(lower.workdir, evil, storage.MANIFEST).unlink()
    storage.record_finished(lower.workdir, [(f"{evil} (ner)", "other-12345678")])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(watch, "_PATIENCE", 0.0)
    assert watch.main([lower.workdir]) == 0
    lines = capsys.readouterr().out.removeprefix("\033[?7l").removesuffix("\033[?7h\n").split("\n")
    assert not re.search("[\033\u202e]", "".join(lines))
    assert lines[-1].startswith("nobody is at work")
    assert [re.split(" {2,}", line)[1] for line in lines[1:-1]] == ["done", "waiting", "stopped", "done"]


def test_ctrl_c_ends_it_and_nothing_heavy_is_imported(tmp_path: Path) -> None:
    write_run(tmp_path, corpus={"dump": str(DUMP)})
    script = (
        "import sys; from workflows import luke; status = luke.main(); "
        "sys.exit(status or [*{'torch', 'pyspark', 'apache_beam'} & {*sys.modules}] or 0)"
    )
    mine, its = pty.openpty()
    with locks.hold(FetchDump(settings=Run.read(str(tmp_path))).folder):
        command = [sys.executable, "-c", script, "watch", str(tmp_path)]
        process = subprocess.Popen(command, stdout=its, stderr=subprocess.PIPE, cwd=ROOT)
        shown = b""
        while b"Report" not in shown:
            shown += os.read(mine, 9999)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1].decode().strip()
    assert (process.returncode, errors) == (0, "")
    assert re.search(r"FetchDump +running", shown.decode())


def test_what_is_no_work_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full" / "\033[31m").mkdir(parents=True)
    (tmp_path / "file").touch()
    for name in ("nowhere", "file", "empty", "full"):
        assert watch.main([str(tmp_path / name)]) == 1
        found = "an empty folder" if name == "empty" else "no folder with a run.toml"
        line = f"error: {tmp_path / name}: {found}; wanted a work directory: give the --workdir of a run\n"
        assert capsys.readouterr().err == line
