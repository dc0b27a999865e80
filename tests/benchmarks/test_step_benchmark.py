"""The functions that give the figures of `benchmarks.model.step` their meaning; nothing is measured here."""

from dataclasses import replace

import pytest

from benchmarks.model import workloads
from tests.support.flat_batches import random_flat
from tests.support.models import TINY


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
