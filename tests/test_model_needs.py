"""The README's figures of what `large` needs are the function's, and the function's are its equations."""

from dataclasses import replace

import pytest
from conftest import ROOT

from model.config import PRESETS, parameter_counts
from model.needs import checkpoint_bytes, memory_bytes, step_work, training_days
from model.recipes import PAPER_RECIPE

LARGE = PRESETS["large"]


def test_days_are_operations_by_rate() -> None:
    """24 layers of 12 hidden^2 weights: 6 FLOPs a weight and token, attention, and both vocabularies, by hand."""
    tokens, masked_words, masked_entities = 2048 * 532, 2048 * 76, 2048 * 3
    layers = 24 * (6 * tokens * 12 * 1024**2 + 12 * tokens * 532 * 1024)
    heads = 6 * (masked_words * 1024 * (1024 + 50265) + masked_entities * 256 * (1024 + 500_000))
    days = 100_000 * (layers + heads) / (0.45 * 790e12) / 86400
    first, second = training_days(LARGE, PAPER_RECIPE)
    assert second == pytest.approx(days, rel=0.001)
    assert 2 / 3 < first / second < 0.75
    assert sum(training_days(LARGE, PAPER_RECIPE, 16)) == pytest.approx((first + second) / 16)
    half = replace(PAPER_RECIPE, batch_size=1024)
    assert sum(training_days(LARGE, half)) == pytest.approx((first + second) / 2)


def test_a_step_is_of_full_sequences() -> None:
    work = step_work(PAPER_RECIPE)
    assert (work.sequences, work.words, work.entities) == (2048, 2048 * 512, 2048 * 20)
    assert (work.masked_words, work.masked_entities) == (2048 * 76, 2048 * 3)
    every = step_work(replace(PAPER_RECIPE, masked_entity_share=1.0))
    assert (every.masked_words, every.masked_entities) == (2048 * 76, 2048 * 20)


def test_bytes() -> None:
    parameters = sum(parameter_counts(LARGE).values())
    kept, again = (memory_bytes(LARGE, 100, gradient_checkpointing=is_so) for is_so in (False, True))
    assert kept["weights"] + kept["gradients"] + kept["moments"] == 16 * parameters
    assert (kept["states"], again["states"]) == (100 * 1024 * 24 * 34, 100 * 1024 * (24 * 4 + 34))
    assert checkpoint_bytes(LARGE) == 12 * parameters


def test_readme_has_these_figures() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for gpus in (1, 8, 16):
        first, second = training_days(LARGE, PAPER_RECIPE, gpus)
        assert f"| {gpus} | {first:.1f} + {second:.1f} = {first + second:.1f} days |" in text
    for is_so in (False, True):
        total = sum(memory_bytes(LARGE, 16384, gradient_checkpointing=is_so).values())
        assert f"{total / 1e9:.0f} GB" in text
    assert f"{checkpoint_bytes(LARGE) / 1e9:.1f} GB" in text
    assert f"{sum(parameter_counts(LARGE).values()) / 1e6:.0f} million" in text
