"""Stages side by side in processes: shared out over devices, a failure told in a line."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.fine_tuned import EXAMPLES, pretrained
from tests.support.stages import run_of
from workflows import FineTune
from workflows.engines import workers
from workflows.run.file import Run

pytestmark = pytest.mark.slow


def run_on(folder: Path, **tuning: Any) -> Run:
    """A run of fine-tunings of the weights in a folder."""
    weights = dict.fromkeys(("luke", "roberta"), str(folder / "weights"))
    return run_of(
        folder / "work",
        sequences={"tokenizer": str(folder / "tokenizer")},
        fine_tuning={"weights": weights, "preset": "tiny", **tuning},
        machine={"device": "cpu"},
    )


def test_stages_are_shared_out_and_one_that_fails_is_told(tmp_path: Path) -> None:
    """Two processes take four stages, one of whose data cannot be read, and one that is complete already."""
    pretrained(tmp_path)
    bad = tmp_path / "bad"
    shutil.copytree(EXAMPLES / "ner", bad)
    (bad / "dev.txt").write_text("Ada B-PER\nmet\n")
    run = run_on(tmp_path, epochs=1)
    stages = [FineTune(settings=run, variant="roberta", seed=seed) for seed in (1, 2, 3)]
    stages[0].run()
    before = (Path(stages[0].folder) / "manifest.json").stat().st_mtime_ns
    broken = FineTune(settings=run_on(tmp_path, epochs=1, data={"ner": str(bad)}), variant="roberta", seed=1)
    failures = workers.run([stages[0], broken, *stages[1:]], ["cpu", "cpu"])
    assert list(failures) == [broken]
    assert "dev.txt" in failures[broken]
    assert "\n" not in failures[broken]
    assert all(stage.complete() for stage in stages)
    assert (Path(stages[0].folder) / "manifest.json").stat().st_mtime_ns == before
    assert not broken.complete()


def test_a_process_that_dies_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that ends at its start, as where Python's packages are not found."""
    pretrained(tmp_path)
    monkeypatch.setattr(workers.sys, "executable", shutil.which("false"))
    stages = [FineTune(settings=run_on(tmp_path), seed=seed) for seed in (1, 2)]
    failures = workers.run(stages, ["cpu"])
    assert failures == dict.fromkeys(stages, "its process ended with exit status 1")
