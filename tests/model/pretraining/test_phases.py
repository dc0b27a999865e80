"""Evaluation within a run: the same bits with and without it, and each step evaluated once, also when resumed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from model.data.held_out import HeldOut
from model.hf.load import read_pretrained
from model.luke.heads import LukeForPretraining
from model.pretraining.evaluation import evaluate
from model.pretraining.phases import prepare
from model.pretraining.recipes import RECIPES
from model.training.checkpoints import Checkpoints
from model.training.metrics_log import read_lines
from tests.support.models import TINY
from tests.support.pretraining import contents, run, run_up_to
from tests.support.shards import random_rows, write_sequences

pytestmark = pytest.mark.usefixtures("short")


@pytest.fixture(scope="module")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sequences")
    return write_sequences(folder, random_rows(11), held_out=random_rows(30, seed=4))


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of sequences that each evaluation of a run saw."""
    seen: list[int] = []

    def counted(*arguments: Any, sequences: int, **named: Any) -> dict[str, float]:
        seen.append(sequences)
        return evaluate(*arguments, sequences=sequences, **named)

    monkeypatch.setattr("model.pretraining.phases.evaluate", counted)
    return seen


def test_evaluation_changes_no_bit_of_the_model(sequences: Path, tmp_path: Path, evaluated: list[int]) -> None:
    figures = run(sequences, tmp_path / "with", evaluate_every=3)
    assert len(evaluated) == 5
    run(sequences, tmp_path / "without", evaluate_every=0)
    assert len(evaluated) == 5
    given, alone = contents(tmp_path / "with"), contents(tmp_path / "without")
    assert set(given) - set(alone) == {"evaluation.jsonl"}
    assert all(given[name] == content for name, content in alone.items())
    lines = read_lines(tmp_path / "with" / "evaluation.jsonl")
    assert [line["step"] for line in lines] == [3, 6, 9, 12, 13]
    assert {f"held_out_{name}": value for name, value in lines[-1].items()}.items() <= figures.items()


def test_the_last_figures_are_those_of_the_finished_model(sequences: Path, tmp_path: Path) -> None:
    run(sequences, tmp_path)
    last = read_lines(tmp_path / "evaluation.jsonl")[-1]
    module = read_pretrained(tmp_path)
    # An eighth of 13 steps of 5 sequences, 2 at a time.
    assert last == {"step": 13} | evaluate(module, HeldOut.open(sequences), sequences=8, batch_size=2)


@pytest.mark.parametrize("step", [3, pytest.param(7, marks=pytest.mark.slow)])
def test_resumed_run_evaluates_each_step_once(sequences: Path, tmp_path: Path, step: int) -> None:
    run(sequences, tmp_path / "whole", evaluate_every=2)
    run_up_to(step, sequences, tmp_path / "broken", evaluate_every=2)
    run(sequences, tmp_path / "broken", evaluate_every=2)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_killed_between_evaluation_and_checkpoint(
    sequences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evaluated: list[int]
) -> None:
    run(sequences, tmp_path / "whole")
    original = Checkpoints.save
    calls = iter(range(20))

    def fail(*arguments: object, **named: object) -> None:
        if next(calls) == 2:
            raise KeyboardInterrupt
        original(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Checkpoints, "save", fail)
    with pytest.raises(KeyboardInterrupt):
        run(sequences, tmp_path / "broken")
    assert [line["step"] for line in read_lines(tmp_path / "broken" / "evaluation.jsonl")] == [2, 4, 6]
    run(sequences, tmp_path / "broken")
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


def test_baseline_is_judged_on_the_same_words(sequences: Path, tmp_path: Path) -> None:
    run(sequences, tmp_path / "luke")
    run(sequences, tmp_path / "words", entities=False)
    luke, words = (read_lines(tmp_path / name / "evaluation.jsonl")[-1] for name in ("luke", "words"))
    assert luke["masked_word_count"] == words["masked_word_count"]
    assert "masked_entity_count" in luke
    assert not any("entity" in name for name in words)


def test_speed_is_kept_apart(sequences: Path, tmp_path: Path) -> None:
    run(sequences, tmp_path)
    first, *lines = read_lines(tmp_path / "log" / "speed.jsonl")
    assert first["step"] == 0
    assert {"device", "torch", "measured_flops_per_second", "published_flops_per_second"} <= set(first)
    assert [line["step"] for line in lines] == list(range(1, 14))
    assert all(line["words_per_second"] > 0 and line["memory_bytes"] > 0 for line in lines)
    assert {"seconds_of_evaluation", "seconds_of_checkpoint"} <= set(lines[-1])


def test_the_bar_says_how_fast_and_how_long(
    sequences: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(sequences, tmp_path, progress=True)
    text = capsys.readouterr().err
    assert "pretraining, phase 2" in text
    assert "13 of 13, masked word" in text, "of both phases"
    assert "words/s" in text
    assert "0:00 left" in text


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_tables_are_added_in_place_where_that_pays(compiled: bool) -> None:
    module = LukeForPretraining(TINY)
    prepare(module, replace(RECIPES["tiny"], compiled=compiled), torch.device("cpu"))
    assert module.luke.word_embeddings.token.adds_in_place
    assert module.luke.entity_embeddings.token.adds_in_place
