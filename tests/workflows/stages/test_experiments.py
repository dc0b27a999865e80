"""The grid: every cell is shown, one that fails stops no other and is tried again, a kill costs no finished work."""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import luigi
import pytest

from tasks.finetuning.registry import TASKS
from tasks.ner import task as ner
from tests.support import PATIENCE
from tests.support.fine_tuned import EXAMPLES, QUICK
from tests.support.forked import end
from tests.support.grid import experiments, run_here
from tests.support.stages import run_forked, run_of, start_forked, started, write_run
from workflows import FineTuneGrid, RunAll, RunExperiments
from workflows.base import outlook
from workflows.base.stage import Stage
from workflows.engines import workers as cells
from workflows.planning import watch
from workflows.run.file import Run
from workflows.stages.experiments import EXPERIMENTS

Tables = dict[str, Any]
ROBERTA: Any = {"tasks": ("ner",), "variants": ("roberta",)}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return experiments(tmp_path_factory.mktemp("weights"))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in this process, an epoch each."""
    monkeypatch.setattr(cells, "run", run_here)
    for task in TASKS.values():
        monkeypatch.setitem(task.PRESETS, "tiny", replace(QUICK, epochs=1))


def run_with(workdir: Path, tables: Tables, **tuning: Any) -> Run:
    asked = {"tasks": ("ner", "cloze_qa"), "variants": ("luke", "roberta"), "seeds": (1, 2), **tuning}
    return run_of(workdir, **{**tables, "fine_tuning": {**tables["fine_tuning"], **asked}})


def grid_of(workdir: Path, tables: Tables, **tuning: Any) -> FineTuneGrid:
    luigi.Task.clear_instance_cache()  # as in another process
    return FineTuneGrid(settings=run_with(workdir, tables, **tuning))


def records(grid: FineTuneGrid) -> list[dict[str, Any]]:
    found = json.loads((Path(grid.folder) / EXPERIMENTS).read_text())["cells"]
    assert isinstance(found, list)
    return found


def times(workdir: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in workdir.glob("*/manifest.json")}


@pytest.mark.usefixtures("here")
def test_every_cell_has_a_record_of_its_own_stage(tmp_path: Path, tables: Tables) -> None:
    grid = grid_of(tmp_path, tables)
    grid.run()
    found = records(grid)
    asked = grid.settings.fine_tuning
    order = list(itertools.product(asked.tasks, asked.variants, asked.seeds))
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
def test_a_cell_that_is_gone_is_made_again_alone(tmp_path: Path, tables: Tables) -> None:
    grid_of(tmp_path, tables, seeds=(1,)).run()
    first, grid = times(tmp_path), grid_of(tmp_path, tables)
    grid.run()
    before, content = times(tmp_path), records(grid)
    assert {name: before[name] for name in first} == first, "more seeds keep what is done"
    assert grid_of(tmp_path, tables).complete()
    grid_of(tmp_path, tables).run()
    assert times(tmp_path) == before, "a second call does nothing"
    shutil.rmtree(tmp_path / content[3]["folder"])
    assert not grid_of(tmp_path, tables).complete()
    said = outlook.to_make(grid_of(tmp_path, tables, epochs=7)).splitlines()[1:]
    assert len(said) == len(content) + 1, "each cell has a line"
    differing = [line for line in said if line.endswith("fine_tuning.epochs 7, was auto")]
    assert len(differing) == len(content) - 1, "all but the one that is gone"
    again = grid_of(tmp_path, tables)
    again.run()
    assert records(again) == content
    changed = {name for name, at in times(tmp_path).items() if before[name] != at}
    assert changed == {content[3]["folder"], os.path.basename(grid.folder)}


@pytest.mark.usefixtures("here")
def test_a_cell_that_fails_stops_no_other_and_is_tried_again(
    tmp_path: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **keywords: Any) -> Any:
        raise ValueError("<b>out of</b> luck")

    with monkeypatch.context() as patch:
        patch.setattr(ner.TASK, "featurize", fail)
        grid = grid_of(tmp_path, tables)
        grid.run()
        assert grid.complete(), "for this run, so that the report is written"
    states = {(cell["task"], cell["state"], cell["reason"]) for cell in records(grid)}
    assert states == {("ner", "failed", "<b>out of</b> luck"), ("cloze_qa", "done", "")}
    assert (grid.manifest().rows, grid.manifest().drops) == ({"done": 4}, {"failed": 4})
    again = grid_of(tmp_path, tables)
    assert not again.complete()
    assert [state for title, state, *_ in watch.rows_of(again.workdir, [again]) if title == again.title] == ["failed"]
    before = times(tmp_path)
    again.run()
    assert {cell["state"] for cell in records(again)} == {"done"}
    after = times(tmp_path)
    assert all(after[cell["folder"]] == before[cell["folder"]] for cell in records(again)[4:])


@pytest.mark.usefixtures("here")
def test_a_command_with_a_failed_cell_fails_after_its_report(
    tmp_path: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ner.TASK, "featurize", _refuse)
    stage = RunExperiments(settings=run_with(tmp_path, tables, variants=("roberta",), seeds=(1,)))
    assert not luigi.build([stage], local_scheduler=True, log_level="CRITICAL")
    page = Path(stage.where).read_text()
    assert "no such luck" in page
    with pytest.raises(ValueError, match=r"1 of the fine-tunings failed, see .*index\.html; the same"):
        stage.run()


def _refuse(*arguments: Any, **keywords: Any) -> Any:
    raise ValueError("no such luck")


@pytest.mark.usefixtures("here")
def test_what_is_missing_is_shown(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    tables = experiments(tmp_path / "weights", tasks=["ner"], weights=["luke", "roberta_extra_training"])
    grid = grid_of(tmp_path / "work", tables, seeds=(1,))
    grid.run()
    found = {(cell["task"], cell["variant"]): (cell["state"], cell["reason"]) for cell in records(grid)}
    assert found["ner", "luke"] == ("done", "")
    state, reason = found["ner", "roberta"]
    assert state == "no weights"
    assert re.search("starts from RoBERTa, and without a base model there is none", reason)
    for variant in ("luke", "roberta"):
        state, reason = found["cloze_qa", variant]
        assert (state, reason) == ("no data", "[fine_tuning] data.cloze_qa is none: the task has no data")
    assert grid.manifest().drops == {"no data": 2, "no weights": 1}
    assert grid_of(tmp_path / "work", tables, seeds=(1,)).complete()


def test_the_pipelines_weights_are_required_where_none_are_given(tmp_path: Path) -> None:
    variants = ("luke", "roberta_extra_training", "roberta")
    grid = grid_of(tmp_path, {"fine_tuning": {}}, tasks=("ner",), variants=variants, seeds=(1,))
    assert {"Pretrain", "PretrainRoberta", "TrainTokenizer"} <= set(grid.requires())
    assert [cell.missing and cell.missing.state for cell in grid.cells] == [None, None, "no weights"]


def test_plain_roberta_is_the_base_model_without_extra_training(tmp_path: Path, tables: Tables) -> None:
    base = tables["fine_tuning"]["weights"]["roberta"]
    grid = grid_of(tmp_path, {"pretraining": {"base_model": base}, "fine_tuning": {}}, **ROBERTA)
    assert grid.requires() == {}
    assert {stage.weights_folder() for stage in grid.stages()} == {base}


def written(workdir: Path, tables: Tables, **tuning: Any) -> None:
    """The run file of a grid on RoBERTa alone, unless other values are given."""
    asked = {**tables["fine_tuning"], **ROBERTA, "seeds": (1, 2), **tuning}
    write_run(workdir, **{**tables, "fine_tuning": asked})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "number"), [("parent", signal.SIGKILL), ("worker", signal.SIGKILL), ("parent", signal.SIGTERM)]
)
def test_a_kill_costs_no_finished_cell(tmp_path: Path, tables: Tables, victim: str, number: signal.Signals) -> None:
    """Killed in the second cell: the whole command, or the process that runs the cell; or the command is stopped."""
    written(tmp_path, tables)
    said = tmp_path / "said.txt"
    process = start_forked("FineTuneGrid", "--workdir", tmp_path, cwd=tmp_path, said=said)
    first, second = grid_of(tmp_path, tables, **ROBERTA).stages()
    until(lambda: list(Path(second.folder).glob("checkpoints/step-*/*.json")))
    workers = worker_ids(process.pid)
    os.kill(process.pid if victim == "parent" else workers[0], number)
    status = end(process)
    assert number == signal.SIGKILL or status == 128 + number
    until(lambda: not any(Path(f"/proc/{worker}/task").is_dir() for worker in workers))
    before = (Path(first.folder) / "manifest.json").stat().st_mtime_ns
    if victim == "worker":
        assert status == 0
        assert "its process was ended by SIGKILL; was there too little memory?" in said.read_text()
        grid = grid_of(tmp_path, tables, **ROBERTA)
        assert [cell["state"] for cell in records(grid)] == ["done", "failed"]
    assert not (Path(second.folder) / "manifest.json").exists()
    finished = run(tmp_path, "FineTuneGrid")
    assert "resumed after step" in finished.stderr
    assert (Path(first.folder) / "manifest.json").stat().st_mtime_ns == before
    grid = grid_of(tmp_path, tables, **ROBERTA)
    assert [cell["state"] for cell in records(grid)] == ["done", "done"]


@pytest.mark.slow
def test_experiments_are_stopped_go_on_and_end_in_the_report(tmp_path: Path, tables: Tables) -> None:
    """As a user runs them, with a search of the settings, and SIGTERM in the middle."""
    written(
        tmp_path, tables, tasks=("entity_typing",), seeds=(1,), tuned=True, variants=("luke", "luke_no_entities"),
        learning_rates=(1e-3,), batch_sizes=(8, 16), epoch_counts=(1,),
    )  # fmt: skip
    with started("RunExperiments", "--workdir", tmp_path, cwd=tmp_path) as process:
        until(lambda: len(list(tmp_path.glob("finetune-*/manifest.json"))) >= 3)
        process.terminate()
        errors, _ = process.communicate(timeout=120)
    assert process.returncode == 143, errors
    assert "the same command goes on from here" in errors
    assert "failed" not in errors
    before = times(tmp_path)
    finished = run(tmp_path, "RunExperiments")
    assert {name: at for name, at in times(tmp_path).items() if name in before} == before
    page = next(tmp_path.glob("report-*/index.html"))
    assert finished.stderr.strip().endswith(f"report: {page}")
    cells_of = json.loads(page.with_name("results.json").read_text())["cells"]
    assert [(cell["variant"], cell["state"], cell["preset"]) for cell in cells_of] == [
        (variant, "done", "tuned") for variant in ("luke", "luke_no_entities")
    ]
    assert all(cell["configuration"]["hyperparameters"]["epochs"] == 1 for cell in cells_of)
    assert len(list(tmp_path.glob("tune-*/best.json"))) == 2
    before = times(tmp_path)
    assert f"RunExperiments is complete: {page}" in run(tmp_path, "RunExperiments").stderr
    assert times(tmp_path) == before


def test_what_changes_in_the_middle_of_a_run_is_an_error(tmp_path: Path) -> None:
    """The process that runs a cell finds other data than the one that asks for it."""
    (tmp_path / "weights").mkdir()
    tables = experiments(tmp_path / "weights", tasks=["ner"])
    data = tmp_path / "data"
    shutil.copytree(EXAMPLES / "ner", data)
    tables["fine_tuning"]["data"]["ner"] = str(data)
    grid = grid_of(tmp_path / "work", tables, **ROBERTA, seeds=(1,))
    (stage,) = grid.stages()
    _ = stage.hash8
    (data / "dev.txt").write_bytes((data / "train.txt").read_bytes())
    reason = "the data or the weights have changed since the run began; run it again"
    assert cells.run([stage], ["cpu"]) == {stage: reason}


def test_one_grid_has_one_name_and_another_setting_another(tmp_path: Path, tables: Tables) -> None:
    """The report's name says its origin."""

    def report(corpus: Any = (), **tuning: Any) -> str:
        given = {"tasks": ("ner",), "variants": ("luke",), "seeds": (1,), **tuning}
        run = run_with(tmp_path, {**tables, "corpus": dict(corpus)}, **given)
        return RunExperiments(settings=run).report().folder

    data = tmp_path / "conll2003"
    shutil.copytree(EXAMPLES / "ner", data)
    assert report() == report({"dump": "enwiki"}), "no pretraining of ours is shown"
    names = [report(), report(preset="base"), report({"profile": "paper"}), report(data={"ner": str(data)})]
    assert len(set(names)) == len(names)


def test_the_baseline_is_pretrained_where_a_fine_tuning_starts_from_it(tmp_path: Path) -> None:
    """A run of everything pretrains LUKE in any case."""

    def of_run(weights: dict[str, str], variants: str) -> list[Stage]:
        tuning = {"weights": weights, "variants": variants.split(",")}
        return RunAll(settings=run_of(tmp_path, fine_tuning=tuning)).upstream()

    (tmp_path / "here").mkdir()
    pretrained = {
        variants: {"Pretrain", "PretrainRoberta"} & {type(each).__name__ for each in of_run(given, variants)}
        for variants, given in (
            ("luke", {}),
            ("luke,roberta_extra_training", {}),
            ("luke,roberta", dict.fromkeys(("luke", "roberta"), str(tmp_path / "here"))),
        )
    }
    assert pretrained == {
        "luke": {"Pretrain"},
        "luke,roberta_extra_training": {"Pretrain", "PretrainRoberta"},
        "luke,roberta": {"Pretrain"},
    }


def test_stages_below_stand_in_the_report_once(tmp_path: Path) -> None:
    stage = RunExperiments(settings=run_of(tmp_path, fine_tuning={"seeds": (1, 2)}))
    names = [type(each).__name__ for each in stage.report().upstream()]
    assert len(names) == len(set(names))
    assert {"FetchDump", "BuildMentionTable", "Pretrain", "PretrainRoberta", "FineTuneGrid"} <= set(names)


def run(folder: Path, stage: str) -> "subprocess.CompletedProcess[str]":
    finished = run_forked(stage, "--workdir", folder, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    return finished


def worker_ids(parent: int) -> list[int]:
    import psutil

    children = psutil.Process(parent).children()
    return [child.pid for child in children if "workflows.engines.workers" in child.cmdline()]


def until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
