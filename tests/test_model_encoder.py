"""The encoder and its embeddings: against transformers' LukeModel, and what a caller may rely on."""

from dataclasses import replace

import pytest
import torch
from models_for_tests import TINY, random_batch, run_transformers, transformers_pair

from model.batch import Batch
from model.encoder import LukeModel
from model.hf import from_transformers


@pytest.mark.parametrize("entity_aware", [False, True])
@pytest.mark.parametrize("entities", [5, 0])
@pytest.mark.parametrize("changes", [{}, {"entity_emb_size": 16, "hidden_act": "relu", "type_vocab_size": 2}])
def test_hidden_states_equal_transformers(
    entity_aware: bool, entities: int, changes: dict[str, object]
) -> None:
    config = replace(TINY, use_entity_aware_attention=entity_aware, **changes)
    ours, theirs = transformers_pair(config)
    batch = random_batch(config, entities=entities)
    with torch.no_grad():
        words, entity_states = ours(batch)
        their_words, their_entities = run_transformers(theirs, batch)
    torch.testing.assert_close(words, their_words, atol=1e-5, rtol=0)
    assert (entity_states is None) == (entities == 0)
    if entity_states is not None:
        torch.testing.assert_close(entity_states, their_entities, atol=1e-5, rtol=0)


def test_gradients_equal_transformers() -> None:
    config = replace(TINY, use_entity_aware_attention=True)
    ours, theirs = transformers_pair(config)
    batch = random_batch(config)
    for states in (ours(batch), run_transformers(theirs, batch)):
        sum(
            (state * torch.linspace(-1, 1, state.numel()).view_as(state)).sum() for state in states
        ).backward()
    wanted = from_transformers({name: p.grad for name, p in theirs.named_parameters()}, "", with_heads=False)
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[f"luke.{name}"], atol=1e-4, rtol=1e-4)


def test_entity_input_is_the_paper_s_sum() -> None:
    torch.manual_seed(0)
    embeddings = LukeModel(TINY).eval().entity_embeddings
    with torch.no_grad():
        output = embeddings(torch.tensor([[5, 7]]), torch.tensor([[[2, 3, 4], [9, -1, -1]]]))[0]
        table, position = embeddings.token.weight, embeddings.position.weight
        for row, (entity, words) in enumerate([(5, [2, 3, 4]), (7, [9])]):
            mean = sum(position[word] for word in words) / len(words)
            summed = embeddings.projection.weight @ table[entity] + mean + embeddings.token_type.weight[0]
            normed = (summed - summed.mean()) / (summed.var(correction=0) + TINY.layer_norm_eps).sqrt()
            torch.testing.assert_close(output[row], normed, atol=1e-5, rtol=1e-5)


def test_padding_changes_nothing() -> None:
    torch.manual_seed(0)
    module = LukeModel(replace(TINY, use_entity_aware_attention=True)).eval()
    batch = random_batch()
    with torch.no_grad():
        words, entities = module(batch)
        # Row 1 is padded on its left, where entity positions count the padding: nothing to compare it with.
        for row in (0, 2, 3):
            word_mask, entity_mask = batch.word_mask[row], batch.entity_mask[row]
            alone = Batch(
                batch.word_ids[row : row + 1, word_mask],
                torch.ones(1, int(word_mask.sum()), dtype=torch.bool),
                batch.entity_ids[row : row + 1, entity_mask],
                batch.entity_positions[row : row + 1, entity_mask],
                torch.ones(1, int(entity_mask.sum()), dtype=torch.bool),
            )
            alone_words, alone_entities = module(alone)
            torch.testing.assert_close(alone_words[0], words[row, word_mask], atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(alone_entities[0], entities[row, entity_mask], atol=1e-5, rtol=1e-5)


def test_keep_entities_takes_rows_in_order() -> None:
    torch.manual_seed(0)
    module = LukeModel(TINY).eval()
    table = module.entity_embeddings.token.weight.detach().clone()
    batch = random_batch()
    before = module(replace(batch, entity_ids=torch.full_like(batch.entity_ids, 2)))
    module.keep_entities([0, 2, 2, 7])
    assert torch.equal(module.entity_embeddings.token.weight, table[[0, 2, 2, 7]])
    assert module.entity_embeddings.token.weight.requires_grad
    assert module.config.entity_vocab_size == 4
    after = module(replace(batch, entity_ids=torch.full_like(batch.entity_ids, 1)))
    assert torch.equal(before[1], after[1])


@pytest.mark.parametrize(
    ("ids", "message"), [([2], "must begin with 0"), ([], "must begin"), ([0, 99], "has 99")]
)
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


def test_too_long_input_is_refused() -> None:
    words = torch.zeros(1, TINY.max_words + 1, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"word_ids has 39 words, but the model has positions for 38"):
        LukeModel(TINY)(Batch(words, torch.ones_like(words, dtype=torch.bool)))


def test_batch_refuses_shapes_that_do_not_fit() -> None:
    ids = torch.zeros(2, 3, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"word_mask has shape \(2, 4\), but its ids want \(2, 3\)"):
        Batch(ids, torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="come together"):
        Batch(ids, torch.ones(2, 3, dtype=torch.bool), entity_ids=ids)
    with pytest.raises(ValueError, match=r"entity_positions has shape \(2, 1, 4\)"):
        Batch(
            ids, ids > -1, entity_ids=ids, entity_positions=torch.zeros(2, 1, 4).long(), entity_mask=ids > -1
        )
