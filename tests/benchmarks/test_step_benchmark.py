"""What decides the meaning of the figures of `benchmarks.model.step`; nothing is measured here."""

from dataclasses import replace

import pytest

from benchmarks.model import step as script
from benchmarks.model import workloads
from tests.support.flat_batches import random_flat
from tests.support.models import TINY


def row(variant: str, number: int, seconds: float, loss: float = 3.0) -> dict[str, object]:
    kind = {"variant": variant, "round": number, "dropout": 0.0, "loss": loss, "seconds": seconds}
    cpu_seconds = 2 * seconds if variant.startswith("ours") else seconds
    return kind | {"words": 90, "entities": 10, "places": 120, "cpu_seconds": cpu_seconds}


ROWS = [
    *(row("transformers original padded", n, seconds) for n, seconds in enumerate((10.0, 20.0, 25.0))),
    *(row("ours original unpadded", n, seconds) for n, seconds in enumerate((8.0, 4.0, 5.0))),
]


def test_speeds_are_of_real_tokens_and_compared_by_fastest_and_median() -> None:
    theirs, ours = script.speed_rows(ROWS)
    assert (theirs["tokens/s, fastest"], theirs["tokens/s, median"]) == (10.0, 5.0)
    assert (ours["tokens/s, fastest"], ours["tokens/s, median"]) == (25.0, 20.0)
    assert ours["x transformers by CPU time, fastest"] == 1.25
    assert (ours["x transformers, fastest"], ours["x transformers, median"]) == (2.5, 4.0)


def test_memory_is_set_against_the_same_attention() -> None:
    sizes = [
        {"variant": "transformers original padded", "dropout": 0.0, "loaded_mb": 100.0, "peak_mb": 400.0},
        {"variant": "ours original unpadded", "dropout": 0.0, "loaded_mb": 100.0, "peak_mb": 320.0},
        {"variant": "ours entity-aware unpadded", "dropout": 0.0, "failure": "signal 9"},
    ]
    found = [line["share of transformers' peak"] for line in script.memory_rows(sizes)]
    assert found == [1.0, 0.8, None]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_variants_share_weights_and_agree(dropout: float) -> None:
    names = workloads.variants()
    config = replace(TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    models = workloads.same_weights(config, names)
    batch = workloads.Sample.of(random_flat([(9, 2), (13, 5), (4, 1)], TINY), TINY.pad_token_id)
    tables = {next(module.parameters()).data_ptr() for module, _ in models.values()}
    assert (len(models), len(tables)) == (4, 1)
    losses = {}
    for name, (module, step) in models.items():
        workloads.set_dropout(module, dropout)
        losses[name] = workloads.whole_step(module, step, batch)
        assert all(parameter.grad is None for parameter in module.parameters())
    for attention in (workloads.ORIGINAL, workloads.AWARE):
        found = {round(loss, 4) for name, loss in losses.items() if f" {attention} " in name}
        assert (len(found) == 1) == (dropout == 0)
