"""The pretraining heads: against transformers' LukeForMaskedLM and the paper's equations."""

from dataclasses import replace
from math import erf, exp, log, sqrt

import pytest
import torch
from torch import Tensor

from model.hf.keys import from_transformers
from model.hf.load import load_strictly
from model.luke.heads import LukeForPretraining
from tests.model.luke.test_encoder import SIZES
from tests.support.models import TINY, flat_of, random_batch, shake, transformers_inputs, transformers_values
from tests.support.padded import PaddedBatch


def pretraining_pair(size: str, *, entity_aware: bool) -> tuple[LukeForPretraining, torch.nn.Module]:
    """Our pretraining model and transformers' with the same random weights, its word head tied."""
    import transformers

    config = replace(SIZES[size], use_entity_aware_attention=entity_aware)
    torch.manual_seed(5)
    theirs = transformers.LukeForMaskedLM(transformers.LukeConfig(**transformers_values(config))).eval()
    shake(theirs)
    theirs.lm_head.decoder.weight = theirs.luke.embeddings.word_embeddings.weight
    ours = LukeForPretraining(config).eval()
    weights = from_transformers(theirs.state_dict(), "theirs", with_heads=True)
    load_strictly(ours, weights, source="theirs", optional=set())
    return ours, theirs


def run_transformers(theirs: torch.nn.Module, batch: PaddedBatch) -> object:
    return theirs(**transformers_inputs(batch), labels=batch.word_labels, entity_labels=batch.entity_labels)


@pytest.mark.parametrize("entity_aware", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_logits_and_losses_equal_transformers(size: str, entity_aware: bool) -> None:
    ours, theirs = pretraining_pair(size, entity_aware=entity_aware)
    batch = random_batch()
    with torch.no_grad():
        wanted = run_transformers(theirs, batch)
        flat = flat_of(batch)
        output = ours(flat)
        words, entities = ours.luke(flat).split([flat.shape.words, flat.shape.entities])
        word_logits = ours.word_head(words, ours.luke.word_embeddings.token.weight)
        entity_logits = ours.entity_head(entities, ours.luke.entity_embeddings.token.weight)
    are_words, are_entities = batch.word_mask, batch.entity_mask
    torch.testing.assert_close(word_logits, wanted.logits[are_words], atol=1e-5, rtol=0)
    torch.testing.assert_close(entity_logits, wanted.entity_logits[are_entities], atol=1e-5, rtol=0)
    torch.testing.assert_close(output.losses["masked_word"], wanted.mlm_loss, atol=1e-5, rtol=0)
    torch.testing.assert_close(output.losses["masked_entity"], wanted.mep_loss, atol=1e-5, rtol=0)
    for name, logits, labels in (
        ("masked_word", wanted.logits, batch.word_labels),
        ("masked_entity", wanted.entity_logits, batch.entity_labels),
    ):
        assert output.total[name] == int((labels != -100).sum())
        assert output.correct[name] == (logits.argmax(-1) == labels).sum()


def literal_entity_logits(module: LukeForPretraining, state: Tensor) -> list[float]:
    """The logits of one entity by sums over scalars; "released" leaves T out and has W_h of H x D."""
    weights = {key: tensor.tolist() for key, tensor in module.entity_head.state_dict().items()}
    hidden = [sum(w * x for w, x in zip(row, state.tolist(), strict=True)) for row in weights["dense.weight"]]
    hidden = [value + bias for value, bias in zip(hidden, weights["dense.bias"], strict=True)]
    hidden = [value * 0.5 * (1 + erf(value / sqrt(2))) for value in hidden]
    mean = sum(hidden) / len(hidden)
    deviation = sqrt(sum((value - mean) ** 2 for value in hidden) / len(hidden) + TINY.layer_norm_eps)
    scales, shifts = weights["norm.weight"], weights["norm.bias"]
    m = [(value - mean) / deviation * s + b for value, s, b in zip(hidden, scales, shifts, strict=True)]
    if "projection.weight" in weights:
        m = [sum(t * x for t, x in zip(row, m, strict=True)) for row in weights["projection.weight"]]
    table = module.luke.entity_embeddings.token.weight.tolist()
    logits = [sum(b * x for b, x in zip(row, m, strict=True)) for row in table]
    return [logit + bias for logit, bias in zip(logits, weights["bias"], strict=True)]


@pytest.mark.parametrize("entity_head", ["released", "paper"])
def test_entity_loss_is_the_paper_s(entity_head: str) -> None:
    """Section 3.3: softmax over all entities, cross-entropy, the mean over the masked ones."""
    torch.manual_seed(0)
    module = shake(LukeForPretraining(replace(TINY, entity_head=entity_head)).eval())
    width = 16 if entity_head == "paper" else 8
    assert module.entity_head.dense.weight.shape == (width, 16)
    batch = flat_of(random_batch())
    with torch.no_grad():
        states = module.luke(batch)
        loss = module(batch).losses["masked_entity"].item()
    losses = []
    for place, label in zip(batch.masked_entities.tolist(), batch.entity_labels.tolist(), strict=True):
        logits = literal_entity_logits(module, states[place])
        losses.append(-log(exp(logits[label]) / sum(exp(logit) for logit in logits)))
    assert len(losses) > 5
    assert loss == pytest.approx(sum(losses) / len(losses), rel=1e-5)


def test_losses_of_parts_add_up_to_the_loss_of_the_whole() -> None:
    torch.manual_seed(0)
    module = LukeForPretraining(TINY).eval()
    batch = random_batch()
    whole = module(flat_of(batch))
    columns = {name: value for name, value in vars(batch).items() if value is not None}
    parts = [
        PaddedBatch(**{name: value[rows] for name, value in columns.items()}) for rows in (slice(0, 1), slice(1, 4))
    ]
    parts = [module(flat_of(part), whole.total) for part in parts]
    for name, loss in whole.losses.items():
        torch.testing.assert_close(sum(part.losses[name] for part in parts), loss)
        assert sum(int(part.correct[name]) for part in parts) == whole.correct[name]


def test_nothing_masked_is_no_loss_and_not_a_nan() -> None:
    torch.manual_seed(0)
    batch = random_batch()
    empty = replace(batch, entity_labels=torch.full_like(batch.entity_labels, -100))
    output = LukeForPretraining(TINY)(flat_of(empty))
    assert output.losses.keys() == {"masked_word"}
    sum(output.losses.values()).backward()
