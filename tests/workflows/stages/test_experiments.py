"""The grid: every cell is shown, one that fails stops no other and is tried again, a kill costs no finished work."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from itertools import chain
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
from tests.support.stages import run_forked, start_forked, started
from workflows import FineTuneGrid, RunAll, RunExperiments
from workflows.engines import workers as cells
from workflows.stages.experiments import EXPERIMENTS


@pytest.fixture(scope="module")
def toml(tmp_path_factory: pytest.TempPathFactory) -> str:
    return experiments(tmp_path_factory.mktemp("weights"))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in this process, an epoch each."""
    monkeypatch.setattr(cells, "run", run_here)
    for task in TASKS.values():
        monkeypatch.setitem(task.PRESETS, "tiny", replace(QUICK, epochs=1))


def grid_of(workdir: Path, toml: str, **changes: Any) -> FineTuneGrid:
    settings = {"tasks": "ner,cloze_qa", "variants": "luke,roberta", "seeds": "1,2", "device": "cpu"}
    settings["task_preset"] = "tiny"
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
        assert cell["weights"]["name"] == f"{cell['variant']}/weights"
        assert not cell["weights"]["is_own"]
    assert grid.manifest().rows == {"done": 8}


@pytest.mark.usefixtures("here")
def test_a_cell_that_is_gone_is_made_again_alone(tmp_path: Path, toml: str) -> None:
    grid_of(tmp_path, toml, seeds="1").run()
    first, grid = times(tmp_path), grid_of(tmp_path, toml)
    grid.run()
    before, content = times(tmp_path), records(grid)
    assert {name: before[name] for name in first} == first, "more seeds keep what is done"
    assert grid_of(tmp_path, toml).complete()
    grid_of(tmp_path, toml).run()
    assert times(tmp_path) == before, "a second call does nothing"
    shutil.rmtree(tmp_path / content[3]["folder"])
    assert not grid_of(tmp_path, toml).complete()
    again = grid_of(tmp_path, toml)
    again.run()
    assert records(again) == content
    changed = {name for name, at in times(tmp_path).items() if before[name] != at}
    assert changed == {content[3]["folder"], os.path.basename(grid.folder)}


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
        task_preset="tiny",
    )
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
        assert (state, reason) == ("no data", "experiments.toml: [data] names no folder for cloze_qa")
    assert grid.manifest().drops == {"no data": 2, "no weights": 1}
    assert grid_of(tmp_path / "work", toml, seeds="1").complete()


def test_the_pipelines_weights_are_required_where_none_are_given(tmp_path: Path) -> None:
    grid = FineTuneGrid(workdir=str(tmp_path), tasks="ner", variants="luke,roberta_extra_training,roberta")
    assert {"Pretrain", "PretrainRoberta", "TrainTokenizer"} <= set(grid.requires())
    assert [cell.missing and cell.missing.state for cell in grid.cells] == [None, None, "no weights"]


def test_plain_roberta_is_the_base_model_without_extra_training(tmp_path: Path, toml: str) -> None:
    base = str(Path(toml).parent / "roberta" / "weights")
    grid = FineTuneGrid(workdir=str(tmp_path), tasks="ner", variants="roberta", base_model=base)
    assert grid.requires() == {}
    assert [stage.weights_folder() for stage in grid.stages()] == [base]


def command(workdir: Path, toml: str, *more: str) -> list[str]:
    given = {"--experiments": toml, "--workdir": str(workdir), "--device": "cpu", "--task-preset": "tiny"}
    return [*more, *chain.from_iterable(given.items())]


TWO_CELLS = ("FineTuneGrid", "--tasks", "ner", "--variants", "roberta", "--seeds", "1,2")


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["parent", "worker"])
def test_a_kill_costs_no_finished_cell(tmp_path: Path, toml: str, victim: str) -> None:
    """Killed in the second cell: the whole command, or the process that runs the cell."""
    said = tmp_path / "said.txt"
    process = start_forked(*command(tmp_path, toml, *TWO_CELLS), cwd=tmp_path, said=said)
    first, second = grid_of(tmp_path, toml, tasks="ner", variants="roberta").stages()
    until(lambda: list(Path(second.folder).glob("checkpoints/step-*/*.json")))
    workers = worker_ids(process.pid)
    os.kill(process.pid if victim == "parent" else workers[0], signal.SIGKILL)
    status = end(process)
    until(lambda: not any(Path(f"/proc/{worker}/task").is_dir() for worker in workers))
    before = (Path(first.folder) / "manifest.json").stat().st_mtime_ns
    if victim == "worker":
        assert status == 0
        assert "its process was ended by SIGKILL; was there too little memory?" in said.read_text()
        grid = grid_of(tmp_path, toml, tasks="ner", variants="roberta")
        assert [cell["state"] for cell in records(grid)] == ["done", "failed"]
    assert not (Path(second.folder) / "manifest.json").exists()
    finished = run(tmp_path, command(tmp_path, toml, *TWO_CELLS))
    assert "resumed after step" in finished.stderr
    assert (Path(first.folder) / "manifest.json").stat().st_mtime_ns == before
    grid = grid_of(tmp_path, toml, tasks="ner", variants="roberta")
    assert [cell["state"] for cell in records(grid)] == ["done", "done"]


@pytest.mark.slow
def test_experiments_are_stopped_go_on_and_end_in_the_report(tmp_path: Path, toml: str) -> None:
    """As a user runs them, with a search of the settings, and SIGTERM in the middle."""
    whole = command(
        tmp_path, toml, "RunExperiments", "--tasks", "entity_typing", "--seeds", "1", "--tuned",
        "--variants", "luke,luke_no_entities",
        "--learning-rates", "1e-3", "--batch-sizes", "8,16", "--epoch-counts", "1",
    )  # fmt: skip
    with started(*whole, cwd=tmp_path) as process:
        until(lambda: len(list(tmp_path.glob("finetune-*/manifest.json"))) >= 3)
        process.terminate()
        errors, _ = process.communicate(timeout=120)
    assert process.returncode == 143, errors
    assert "the same command goes on from here" in errors
    assert "failed" not in errors
    before = times(tmp_path)
    finished = run(tmp_path, whole)
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
    assert f"RunExperiments is complete: {page}" in run(tmp_path, whole).stderr
    assert times(tmp_path) == before


@pytest.mark.slow
def test_sigterm_leaves_a_checkpoint(tmp_path: Path, toml: str) -> None:
    words = command(tmp_path, toml, *TWO_CELLS)
    process = start_forked(*words, cwd=tmp_path, said=tmp_path / "said.txt")
    first, _ = grid_of(tmp_path, toml, tasks="ner", variants="roberta").stages()
    until(lambda: list(Path(first.folder).glob("checkpoints/step-*/*.json")))
    before = max(path.name for path in Path(first.folder).glob("checkpoints/step-*"))
    time.sleep(0.2)
    process.terminate()
    assert end(process) == 143
    assert max(path.name for path in Path(first.folder).glob("checkpoints/step-*")) > before


def test_what_changes_in_the_middle_of_a_run_is_an_error(tmp_path: Path) -> None:
    """The process that runs a cell finds other data than the one that asks for it."""
    (tmp_path / "weights").mkdir()
    toml = experiments(tmp_path / "weights", tasks=["ner"])
    grid = grid_of(tmp_path / "work", toml, tasks="ner", variants="roberta", seeds="1")
    (stage,) = grid.stages()
    _ = stage.hash8
    data = tmp_path / "other"
    shutil.copytree(stage.data_folder(), data)
    (data / "dev.txt").write_bytes((data / "train.txt").read_bytes())
    Path(toml).write_text(re.sub(r"^ner = .*", f'ner = "{data}"', Path(toml).read_text(), flags=re.MULTILINE))
    reason = "the data, the weights or --experiments have changed since the run began; run it again"
    assert cells.run([stage], ["cpu"]) == {stage: reason}


def test_one_grid_has_one_name_and_another_setting_another(tmp_path: Path, toml: str) -> None:
    """What the report says of its origin is in its name."""

    def report(**changes: Any) -> str:
        luigi.Task.clear_instance_cache()
        settings: dict[str, Any] = {"tasks": "ner", "variants": "luke", "seeds": "1", "task_preset": "tiny"}
        settings |= {"workdir": str(tmp_path), "experiments": toml}
        stage = RunExperiments(**(settings | changes))
        return stage.report().folder

    data = tmp_path / "conll2003"
    shutil.copytree(EXAMPLES / "ner", data)
    renamed = tmp_path / "renamed.toml"
    text = Path(toml).read_text().replace(str(EXAMPLES / "ner"), str(data))
    absolute = rf'\1 = "{Path(toml).parent}/'
    renamed.write_text(re.sub(r'^(luke|roberta\w*) = "', absolute, text, flags=re.MULTILINE))
    assert report() == report(dump="enwiki"), "no pretraining of ours is shown"
    names = [report(), report(task_preset="base"), report(profile="paper"), report(experiments=str(renamed))]
    assert len(set(names)) == len(names)


def test_the_preset_of_given_weights_is_for_their_width(tmp_path: Path, toml: str) -> None:
    for preset in ("tiny", "base"):
        grid = grid_of(tmp_path, toml, task_preset="auto", preset=preset)
        assert {stage.preset_name() for stage in grid.stages()} == {"small-encoder"}
    assert grid_of(tmp_path, toml, task_preset="large").stages()[0].preset_name() == "large"


def test_the_baseline_is_pretrained_where_a_fine_tuning_starts_from_it(tmp_path: Path) -> None:
    """A run of everything pretrains LUKE in any case."""
    toml = tmp_path / "given.toml"
    toml.write_text("[weights]\n" + "".join(f'{name} = "here"\n' for name in ("luke", "roberta")))
    (tmp_path / "here").mkdir()
    pretrained = {
        variants: {"Pretrain", "PretrainRoberta"}
        & {
            type(each).__name__
            for each in RunAll(workdir=str(tmp_path), variants=variants, **given).upstream()
        }
        for variants, given in (
            ("luke", {}),
            ("luke,roberta_extra_training", {}),
            ("luke,roberta", {"experiments": str(toml)}),
        )
    }
    assert pretrained == {
        "luke": {"Pretrain"},
        "luke,roberta_extra_training": {"Pretrain", "PretrainRoberta"},
        "luke,roberta": {"Pretrain"},
    }


def test_stages_below_stand_in_the_report_once(tmp_path: Path) -> None:
    stage = RunExperiments(workdir=str(tmp_path), variants="luke,roberta_extra_training", seeds="1,2")
    names = [type(each).__name__ for each in stage.report().upstream()]
    assert len(names) == len(set(names))
    assert {"FetchDump", "BuildMentionTable", "Pretrain", "PretrainRoberta", "FineTuneGrid"} <= set(names)


def run(folder: Path, words: list[str]) -> "subprocess.CompletedProcess[str]":
    finished = run_forked(*words, cwd=folder)
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
