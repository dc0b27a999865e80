"""The encoder and its embeddings: against transformers' LukeModel, and what a caller may rely on."""

from dataclasses import replace

import pytest
import torch

from model.luke.batch import FlatBatch
from model.luke.config import PRESETS, LukeConfig
from model.luke.encoder import LukeModel
from tests.support.flat_batches import random_flat
from tests.support.models import TINY, flat_of, random_batch, run_transformers, transformers_pair

VOCABULARIES = {"vocab_size": 60, "entity_vocab_size": 12}
SIZES = {
    "least": TINY,
    "relu": replace(TINY, entity_emb_size=16, hidden_act="relu", type_vocab_size=2),
    "tiny": replace(PRESETS["tiny"], **VOCABULARIES),
    "base": replace(PRESETS["base"], num_hidden_layers=2, **VOCABULARIES),
}


@pytest.mark.parametrize("entity_aware", [False, True])
@pytest.mark.parametrize("entities", [5, 0])
@pytest.mark.parametrize("size", SIZES)
def test_hidden_states_equal_transformers(entity_aware: bool, entities: int, size: str) -> None:
    check_hidden_states(replace(SIZES[size], use_entity_aware_attention=entity_aware), entities)


@pytest.mark.slow
def test_hidden_states_equal_transformers_in_full_depth() -> None:
    check_hidden_states(replace(PRESETS["base"], use_entity_aware_attention=True, **VOCABULARIES), 5)


def check_hidden_states(config: LukeConfig, entities: int) -> None:
    """Sequences of different lengths, and mentions of several words, are in every random batch."""
    ours, theirs = transformers_pair(config)
    batch = random_batch(config, entities=entities)
    with torch.no_grad():
        states, wanted = ours(flat_of(batch)), run_transformers(theirs, batch)
    torch.testing.assert_close(states, wanted, atol=1e-5, rtol=0)


def test_entity_input_is_the_paper_s_sum() -> None:
    torch.manual_seed(0)
    embeddings = LukeModel(TINY).eval().entity_embeddings
    with torch.no_grad():
        output = embeddings(torch.tensor([5, 7]), torch.tensor([2, 3, 4, 9]), torch.tensor([0, 3]))
        table, position = embeddings.token.weight, embeddings.position.weight
        for row, (entity, words) in enumerate([(5, [2, 3, 4]), (7, [9])]):
            mean = sum(position[word] for word in words) / len(words)
            summed = embeddings.projection.weight @ table[entity] + mean + embeddings.token_type.weight[0]
            normed = (summed - summed.mean()) / (summed.var(correction=0) + TINY.layer_norm_eps).sqrt()
            torch.testing.assert_close(output[row], normed, atol=1e-5, rtol=1e-5)


def test_keep_entities_takes_rows_in_order() -> None:
    torch.manual_seed(0)
    module = LukeModel(TINY).eval()
    table = module.entity_embeddings.token.weight.detach().clone()
    batch, other = (random_flat([(9, 2), (5, 3)], replace(TINY, entity_vocab_size=4)) for _ in range(2))
    batch.entity_ids[:], other.entity_ids[:] = 2, 1
    before = module(batch)
    module.keep_entities([0, 2, 2, 7])
    assert torch.equal(module.entity_embeddings.token.weight, table[[0, 2, 2, 7]])
    assert module.entity_embeddings.token.weight.requires_grad
    assert module.config.entity_vocab_size == 4
    assert torch.equal(before, module(other))


@pytest.mark.parametrize(("ids", "message"), [([2], "must begin with 0"), ([], "must begin"), ([0, 99], "has 99")])
def test_keep_entities_refuses(ids: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LukeModel(TINY).keep_entities(ids)


def test_first_weights_come_from_the_caller_s_seed() -> None:
    states = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        states.append(LukeModel(TINY).state_dict())
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    assert not torch.equal(states[0]["layers.0.output.weight"], states[2]["layers.0.output.weight"])
    assert states[0]["word_embeddings.token.weight"][TINY.pad_token_id].abs().max() == 0
    assert states[0]["entity_embeddings.token.weight"][0].abs().max() == 0
    assert abs(states[0]["layers.0.output.weight"].std().item() - TINY.initializer_range) < 0.004


@pytest.fixture(params=[False, True], ids=["original", "entity-aware"])
def module(request: pytest.FixtureRequest) -> LukeModel:
    """A random encoder in training, its dropout on."""
    torch.manual_seed(0)
    return LukeModel(replace(TINY, use_entity_aware_attention=request.param)).train()


def states_and_gradients(module: torch.nn.Module, batch: FlatBatch) -> list[torch.Tensor]:
    """Outputs and all gradients, with the dropout of a fixed seed."""
    module.zero_grad()
    torch.manual_seed(7)
    states = module(batch)
    states.float().pow(3).sum().backward()
    return [states.detach(), *(parameter.grad for parameter in module.parameters())]


def test_bf16_autocast_is_finite_and_close(module: LukeModel) -> None:
    batch = flat_of(random_batch())
    module.eval()
    wanted = states_and_gradients(module, batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = states_and_gradients(module, batch)
    assert all(tensor.isfinite().all() for tensor in found)
    assert not torch.equal(found[0], wanted[0])
    assert (found[0] - wanted[0]).abs().max() < 0.1
    module.train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert all(tensor.isfinite().all() for tensor in states_and_gradients(module, batch))


def test_deterministic_mode(module: LukeModel) -> None:
    batch = flat_of(random_batch())
    torch.use_deterministic_algorithms(True)
    try:
        first, second = (states_and_gradients(module, batch) for _ in range(2))
    finally:
        torch.use_deterministic_algorithms(False)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
