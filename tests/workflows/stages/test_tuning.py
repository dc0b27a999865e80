"""The grid search: the best setting on dev wins, failures stop nothing, the next run takes the setting."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import luigi
import pytest

from tasks.finetuning import epochs
from tasks.finetuning.finetune import changed
from tasks.finetuning.paper import fine_tuning
from tasks.finetuning.registry import TASKS
from tasks.ner import task as ner
from tests.support.fine_tuned import QUICK, finetune
from tests.support.grid import experiments, run_here
from tests.support.stages import run_of
from workflows import FineTune, FineTuneGrid, Tune, TunedFineTune
from workflows.engines import workers as cells
from workflows.run.file import Run
from workflows.stages.fine_tuning import BEST, TRIALS

GRID = {"learning_rates": (1e-3, 1e-5), "batch_sizes": (8, 64), "epoch_counts": (2,)}
ONE = {"learning_rates": (1.0,), "batch_sizes": (1,), "epoch_counts": (1,)}
Tables = dict[str, Any]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return experiments(tmp_path_factory.mktemp("weights"))


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    luigi.Task.clear_instance_cache()
    monkeypatch.setattr(cells, "run", run_here)
    for task in TASKS.values():
        monkeypatch.setitem(task.PRESETS, "tiny", QUICK)


def run_with(workdir: Path, tables: Tables, **tuning: Any) -> Run:
    return run_of(workdir, **{**tables, "fine_tuning": {**tables["fine_tuning"], **GRID, **tuning}})


def tune(workdir: Path, tables: Tables, **tuning: Any) -> Tune:
    return Tune(settings=run_with(workdir, tables, **tuning), task="relation_classification")


def test_the_grid_is_the_papers(tmp_path: Path) -> None:
    rates, sizes, epochs = (1e-5, 2e-5, 3e-5), (4, 8, 16, 32, 64), (2, 3, 5)
    expected = [
        {"learning_rate": rate, "batch_size": size, "epochs": count}
        for rate, size, count in itertools.product(rates, sizes, epochs)
    ]
    assert Tune(settings=run_of(tmp_path)).grid() == expected
    for task in ("entity_typing", "relation_classification", "ner", "cloze_qa"):
        paper = fine_tuning(task)
        names = {"learning_rate": "Learning rate", "batch_size": "Batch size", "epochs": "Training epochs"}
        assert {name: paper[row] for name, row in names.items()} in expected


def test_the_best_on_dev_wins(tmp_path: Path, tables: Tables) -> None:
    """Against plain fine-tunings of each setting, one after another."""
    stage = tune(tmp_path / "work", tables)
    stage.run()
    scores = []
    for number, setting in enumerate(stage.grid()):
        given = dict.fromkeys(("weights", "tokenizer"), stage.given_weights()) | {"task": stage.task, "seed": 42}
        hyperparameters = changed(QUICK, {**setting, "patience": 2})
        metrics = finetune(tmp_path, tmp_path / str(number), hyperparameters, **given)
        scores.append(metrics["dev"]["f1"])
    rows = [json.loads(line) for line in (Path(stage.folder) / TRIALS).read_text().splitlines()]
    assert [row["setting"] for row in rows] == stage.grid()
    assert [row["dev_f1"] for row in rows] == scores
    assert len(set(scores)) > 1, "or nothing is compared"
    best = json.loads((Path(stage.folder) / BEST).read_text())
    assert best["setting"] == stage.grid()[scores.index(max(scores))]
    assert (best["metric"], best["dev"]) == ("f1", max(scores))
    assert "test" not in (Path(stage.folder) / TRIALS).read_text()
    assert not list((tmp_path / "work").glob("finetune-*/model.safetensors"))


def test_a_search_that_was_stopped_goes_on(tmp_path: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    run = FineTune.run

    def count(stage: FineTune) -> None:
        if len(done) == 3:
            raise KeyboardInterrupt
        run(stage)
        done.append(stage.folder)

    with monkeypatch.context() as patch:
        patch.setattr(FineTune, "run", count)
        with pytest.raises(KeyboardInterrupt):
            tune(tmp_path, tables).run()
    before = {folder: (Path(folder) / "manifest.json").stat().st_mtime_ns for folder in done}
    luigi.Task.clear_instance_cache()
    again = tune(tmp_path, tables)
    again.run()
    assert again.complete()
    assert {folder: (Path(folder) / "manifest.json").stat().st_mtime_ns for folder in done} == before


def fail_for(rates: tuple[float, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    train = epochs.EpochTraining.train

    def fail(training: Any) -> None:
        if training.run.hyperparameters.learning_rate in rates:
            raise ValueError("too little memory")
        train(training)

    monkeypatch.setattr(epochs.EpochTraining, "train", fail)


def test_settings_that_fail_are_listed_and_tried_again(
    tmp_path: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_for((1e-3,), patch)
        stage = tune(tmp_path, tables)
        stage.run()
        assert stage.complete(), "for this run"
    rows = [json.loads(line) for line in (Path(stage.folder) / TRIALS).read_text().splitlines()]
    assert [row.get("failed") for row in rows] == ["too little memory"] * 2 + [None] * 2
    assert json.loads((Path(stage.folder) / BEST).read_text())["setting"]["learning_rate"] == 1e-5
    assert (stage.manifest().rows, stage.manifest().drops) == ({"finished": 2}, {"failed": 2})
    luigi.Task.clear_instance_cache()
    again = tune(tmp_path, tables)
    assert not again.complete()
    again.run()
    assert again.manifest().rows == {"finished": 4}
    luigi.Task.clear_instance_cache()
    assert tune(tmp_path, tables).complete()


def test_the_next_run_takes_the_best_setting(tmp_path: Path, tables: Tables) -> None:
    asked = {"tasks": ("relation_classification", "extractive_qa"), "variants": ("luke",), "seeds": (1, 2)}
    run = run_with(tmp_path, tables, **asked, tuned=True, tuning_patience=3)
    grid = FineTuneGrid(settings=run)
    grid.run()
    search, *_ = grid.parts()
    alone = tune(tmp_path, tables, tuning_patience=3)
    assert search.folder == alone.folder, "one for both seeds, and none for SQuAD, as in the paper"
    best = json.loads((Path(search.folder) / BEST).read_text())["setting"]
    records = json.loads((Path(grid.folder) / "experiments.json").read_text())["cells"]
    for cell in records[:2]:
        assert cell["preset"] == "tuned"
        found = cell["configuration"]["hyperparameters"]
        assert {name: found[name] for name in best} == best
        assert found["patience"] == 0
    assert records[2]["preset"] == "tiny"
    tuned = TunedFineTune(settings=run, task="relation_classification", seed=1)
    assert {name: stage.folder for name, stage in tuned.requires().items()} == {"Tune": search.folder}
    assert tuned.complete()


def test_a_search_that_fails_stops_only_its_own_cells(
    tmp_path: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **keywords: Any) -> Any:
        raise ValueError("no luck")

    monkeypatch.setattr(ner.TASK, "featurize", fail)
    asked = {"tasks": ("ner", "entity_typing"), "variants": ("luke",), "seeds": (1,), "tuned": True}
    grid = FineTuneGrid(settings=run_with(tmp_path, tables, **ONE, **asked))
    grid.run()
    records = json.loads((Path(grid.folder) / "experiments.json").read_text())["cells"]
    assert [(cell["state"], cell["reason"]) for cell in records] == [
        ("failed", "Tune: all 1 fine-tunings failed, the first: no luck"),
        ("done", ""),
    ]


def test_a_search_that_finds_nothing_right_fails(
    tmp_path: Path, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is allowed, or tiny."""
    for task in TASKS.values():
        monkeypatch.setattr(task, "score", lambda *sides: {"f1": 0.0, "predicted": 0})
        monkeypatch.setitem(task.PRESETS, "base", QUICK)
    with pytest.raises(ValueError, match="no setting has any f1 on dev, and none is the best; try higher"):
        tune(tmp_path, tables, preset="base", **ONE).run()
    tune(tmp_path, tables, preset="base", allow_no_predictions=True, **ONE).run()


def test_early_stopping(monkeypatch: pytest.MonkeyPatch, tables: Tables, tmp_path: Path) -> None:
    """Scores on dev as given; training ends once `patience` epochs in a row were no better than the best."""

    given = [0.1, 0.3, 0.2, 0.3, 0.4, 0.2, 0.1, 0.5]
    weights, score = Path(tables["fine_tuning"]["weights"]["luke"]), ner.TASK.score
    for patience, trained, kept in ((0, 8, 8), (1, 3, 2), (2, 4, 2), (3, 8, 8)):
        scores = iter(given)
        monkeypatch.setattr(ner.TASK, "score", lambda *sides: {**score(*sides), "f1": next(scores, 0.0)})  # noqa: B023
        hyperparameters = replace(QUICK, batch_size=1000, epochs=8, patience=patience)
        start = {"weights": weights, "tokenizer": weights, "variant": "roberta"}
        metrics = finetune(tmp_path, tmp_path / str(patience), hyperparameters, **start)
        assert (len(metrics["epochs"]), metrics["kept_epoch"]) == (trained, kept), patience
        history = (tmp_path / str(patience) / "training.jsonl").read_text().splitlines()
        assert len(history) == trained
        rates = [json.loads(line)["learning_rate"] for line in history]
        assert rates == pytest.approx([QUICK.learning_rate * (8 - step) / 8 for step in range(trained)])


def test_questions_choose_by_exact_match() -> None:
    """The appendix: EM for ReCoRD, F1 for the others."""
    metrics = {name: task.DEV_METRIC for name, task in TASKS.items()}
    assert metrics.pop("cloze_qa") == "exact_match"
    assert set(metrics.values()) == {"f1"}


def test_a_learning_rate_changes_the_classifiers_in_proportion() -> None:
    preset = replace(QUICK, learning_rate=1e-4, head_learning_rate=2e-3)
    found = changed(preset, {"learning_rate": 5e-5, "batch_size": 3})
    assert found == replace(preset, learning_rate=5e-5, head_learning_rate=pytest.approx(1e-3), batch_size=3)
    same = changed(replace(preset, head_learning_rate=1e-4), {"learning_rate": 3e-5})
    assert same.head_learning_rate == same.learning_rate == 3e-5
