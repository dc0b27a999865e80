"""The grid: every cell is shown, one that fails stops no other and is tried again, a kill costs no finished work."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import luigi
import pytest
from fine_tuned_for_tests import QUICK
from grid_for_tests import experiments, run_here

from tasks import ner
from tasks.run import TASKS
from workflows import FineTuneGrid, RunExperiments, cells
from workflows.experiments import EXPERIMENTS


@pytest.fixture(scope="module")
def toml(tmp_path_factory: pytest.TempPathFactory) -> str:
    return experiments(tmp_path_factory.mktemp("weights"))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in this process, an epoch each."""
    monkeypatch.setattr(cells, "run", run_here)
    for task in TASKS.values():
        monkeypatch.setitem(task.PRESETS, "demo", replace(QUICK, epochs=1))


def grid_of(workdir: Path, toml: str, **changes: Any) -> FineTuneGrid:
    settings = {"tasks": "ner,cloze_qa", "variants": "luke,roberta", "seeds": "1,2", "device": "cpu"}
    luigi.Task.clear_instance_cache()  # as in another process
    return FineTuneGrid(workdir=str(workdir), experiments=toml, **(settings | changes))


def records(grid: FineTuneGrid) -> list[dict[str, Any]]:
    found = json.loads((Path(grid.folder) / EXPERIMENTS).read_text())["cells"]
    assert isinstance(found, list)
    return found


def times(workdir: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in workdir.glob("*/manifest.json")}


@pytest.mark.usefixtures("here")
def test_every_cell_has_a_record_of_its_own_stage(tmp_path: Path, toml: str) -> None:
    grid = grid_of(tmp_path, toml)
    grid.run()
    found = records(grid)
    order = [(task, variant, seed) for task in grid.tasks for variant in grid.variants for seed in grid.seeds]
    assert [(cell["task"], cell["variant"], cell["seed"]) for cell in found] == order
    assert len({cell["folder"] for cell in found}) == len(order)
    for cell in found:
        assert cell["state"] == "done"
        folder = tmp_path / cell["folder"]
        assert cell["metrics"] == json.loads((folder / "metrics.json").read_text())
        assert cell["configuration"] == json.loads((folder / "config.json").read_text())
        for name in ("task", "variant", "seed"):
            assert cell["metrics"][name] == cell[name]
        assert cell["data"] == {"name": cell["task"], "is_example": False}
        assert cell["weights"]["name"] == "weights"
        assert not cell["weights"]["is_own"]
    assert grid.manifest().rows == {"done": 8}


@pytest.mark.usefixtures("here")
def test_a_second_call_does_nothing(tmp_path: Path, toml: str) -> None:
    grid_of(tmp_path, toml).run()
    before = times(tmp_path)
    assert grid_of(tmp_path, toml).complete()
    grid_of(tmp_path, toml).run()
    assert times(tmp_path) == before


@pytest.mark.usefixtures("here")
def test_a_cell_that_is_gone_is_made_again_alone(tmp_path: Path, toml: str) -> None:
    grid = grid_of(tmp_path, toml)
    grid.run()
    before, content = times(tmp_path), records(grid)
    shutil.rmtree(tmp_path / content[3]["folder"])
    assert not grid_of(tmp_path, toml).complete()
    again = grid_of(tmp_path, toml)
    again.run()
    assert records(again) == content
    changed = {name for name, at in times(tmp_path).items() if before[name] != at}
    assert changed == {content[3]["folder"], os.path.basename(grid.folder)}


@pytest.mark.usefixtures("here")
def test_more_seeds_keep_what_is_done(tmp_path: Path, toml: str) -> None:
    grid_of(tmp_path, toml, seeds="1").run()
    before = times(tmp_path)
    grid_of(tmp_path, toml, seeds="1,2").run()
    assert {name: times(tmp_path)[name] for name in before} == before


@pytest.mark.usefixtures("here")
def test_a_cell_that_fails_stops_no_other_and_is_tried_again(
    tmp_path: Path, toml: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **keywords: Any) -> Any:
        raise ValueError("<b>out of</b> luck")

    with monkeypatch.context() as patch:
        patch.setattr(ner, "featurize", fail)
        grid = grid_of(tmp_path, toml)
        grid.run()
        assert grid.complete(), "for this run, so that the report is written"
    states = {(cell["task"], cell["state"], cell["reason"]) for cell in records(grid)}
    assert states == {("ner", "failed", "<b>out of</b> luck"), ("cloze_qa", "done", "")}
    assert (grid.manifest().rows, grid.manifest().drops) == ({"done": 4}, {"failed": 4})
    again = grid_of(tmp_path, toml)
    assert not again.complete()
    before = times(tmp_path)
    again.run()
    assert {cell["state"] for cell in records(again)} == {"done"}
    after = times(tmp_path)
    assert all(after[cell["folder"]] == before[cell["folder"]] for cell in records(again)[4:])


@pytest.mark.usefixtures("here")
def test_a_command_with_a_failed_cell_fails_after_its_report(
    tmp_path: Path, toml: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ner, "featurize", _refuse)
    stage = RunExperiments(
        workdir=str(tmp_path),
        experiments=toml,
        tasks="ner,cloze_qa",
        variants="roberta",
        seeds="1",
        device="cpu",
    )
    assert not luigi.build([stage], local_scheduler=True, log_level="CRITICAL")
    page = Path(stage.where).read_text()
    assert "no such luck" in page
    with pytest.raises(
        ValueError, match=r"1 of the fine-tunings failed, see .*index\.html; the same command"
    ):
        stage.run()


def _refuse(*arguments: Any, **keywords: Any) -> Any:
    raise ValueError("no such luck")


@pytest.mark.usefixtures("here")
def test_what_is_missing_is_shown(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    toml = experiments(tmp_path / "weights", tasks=["ner"], weights=["luke", "roberta_extra_training"])
    grid = grid_of(tmp_path / "work", toml, seeds="1")
    grid.run()
    found = {(cell["task"], cell["variant"]): (cell["state"], cell["reason"]) for cell in records(grid)}
    assert found["ner", "luke"] == ("done", "")
    state, reason = found["ner", "roberta"]
    assert state == "no weights"
    assert re.search("starts from RoBERTa, and with --base-model scratch there is none", reason)
    for variant in ("luke", "roberta"):
        state, reason = found["cloze_qa", variant]
        assert (state, reason) == ("no data", f"{toml}: [data] names no folder for cloze_qa")
    assert grid.manifest().drops == {"no data": 2, "no weights": 1}
    assert grid_of(tmp_path / "work", toml, seeds="1").complete()


def test_the_pipelines_weights_are_required_where_none_are_given(tmp_path: Path) -> None:
    grid = FineTuneGrid(workdir=str(tmp_path), tasks="ner", variants="luke,roberta_extra_training,roberta")
    assert {"Pretrain", "PretrainRoberta", "TrainTokenizer"} <= set(grid.requires())
    assert [cell.missing and cell.missing.state for cell in grid.cells()] == [None, None, "no weights"]


def test_plain_roberta_is_the_base_model_without_extra_training(tmp_path: Path, toml: str) -> None:
    base = str(Path(toml).parent / "roberta" / "weights")
    grid = FineTuneGrid(workdir=str(tmp_path), tasks="ner", variants="roberta", base_model=base)
    assert grid.requires() == {}
    assert [stage.weights_folder() for stage in grid.stages()] == [base]


def command(workdir: Path, toml: str) -> list[str]:
    program = "import sys; sys.argv[0] = 'luigi'; from luigi.cmdline import luigi_run; luigi_run()"
    return [
        sys.executable, "-c", program, "--module", "workflows", "FineTuneGrid", "--experiments", toml,
        "--workdir", str(workdir), "--tasks", "ner", "--variants", "roberta", "--seeds", "1,2", "--device", "cpu",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["parent", "worker"])
def test_a_kill_costs_no_finished_cell(tmp_path: Path, toml: str, victim: str) -> None:
    """Killed in the second cell: the whole command, or the process that runs the cell."""
    process = subprocess.Popen(command(tmp_path, toml), stderr=subprocess.PIPE, text=True)
    first, second = grid_of(tmp_path, toml, tasks="ner", variants="roberta").stages()
    until(lambda: list(Path(second.folder).glob("checkpoints/step-*/*.json")))
    workers = worker_ids(process.pid)
    os.kill(process.pid if victim == "parent" else workers[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=120)
    until(lambda: not any(Path(f"/proc/{worker}/task").is_dir() for worker in workers))
    before = (Path(first.folder) / "manifest.json").stat().st_mtime_ns
    if victim == "worker":
        assert process.returncode == 0
        assert "its process was ended by SIGKILL; was there too little memory?" in errors
        grid = grid_of(tmp_path, toml, tasks="ner", variants="roberta")
        assert [cell["state"] for cell in records(grid)] == ["done", "failed"]
    assert not (Path(second.folder) / "manifest.json").exists()
    finished = subprocess.run(
        command(tmp_path, toml), capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert "resumed after step" in finished.stderr
    assert (Path(first.folder) / "manifest.json").stat().st_mtime_ns == before
    grid = grid_of(tmp_path, toml, tasks="ner", variants="roberta")
    assert [cell["state"] for cell in records(grid)] == ["done", "done"]


def worker_ids(parent: int) -> list[int]:
    import psutil

    children = psutil.Process(parent).children()
    return [child.pid for child in children if "workflows.worker" in child.cmdline()]


def until(condition: Any) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
