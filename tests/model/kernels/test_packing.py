"""Unpadded batches: the padded result in states, losses and gradients."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from model.kernels.packing import Packed
from model.luke.batch import Batch, Unpadded
from model.luke.encoder import LukeModel
from model.luke.heads import LukeForPretraining
from tests.support import properties
from tests.support.models import STILL, TINY, random_batch, shake, still_batches
from tests.support.properties import st


@pytest.mark.parametrize("name", still_batches())
@pytest.mark.parametrize("entity_aware", [False, True])
def test_unpadded_equals_padded(name: str, entity_aware: bool) -> None:
    torch.manual_seed(1)
    config = replace(STILL, use_entity_aware_attention=entity_aware)
    module, batch = shake(LukeForPretraining(config)).double(), still_batches()[name]
    results = []
    for given in (batch, batch.unpadded()):
        module.zero_grad()
        output = module(given)
        sum(output.losses.values()).backward()
        gradients = {key: value.grad for key, value in module.named_parameters() if value.grad is not None}
        results.append((real_states(module.luke, given), output.losses, output.correct, gradients))
    torch.testing.assert_close(results[0], results[1], atol=1e-10, rtol=1e-8)
    assert results[0][3]


def real_states(module: LukeModel, batch: Batch) -> list[Tensor]:
    """The states of real words and entities."""
    words, entities = module(batch)
    if entities is None:
        return [words[batch.word_mask]]
    return [words[batch.word_mask], entities[batch.entity_mask]]


def test_padding_has_states_of_zero() -> None:
    torch.manual_seed(0)
    batch = random_batch().unpadded()
    words, entities = LukeModel(TINY).eval()(batch)
    assert words.shape == (*batch.word_ids.shape, TINY.hidden_size)
    assert entities.shape == (*batch.entity_ids.shape, TINY.hidden_size)
    assert not words[~batch.word_mask].any()
    assert not entities[~batch.entity_mask].any()
    assert words[batch.word_mask].any(dim=1).all()


def test_no_work_is_done_on_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = random_batch().unpadded()
    tokens = int(batch.word_mask.sum() + batch.entity_mask.sum())
    module = LukeModel(TINY).eval()
    rows: list[int] = []
    for layer in module.layers:
        for part in (layer.intermediate, layer.output_norm, layer.attention.key, layer.dropout):
            part.register_forward_hook(lambda *call: rows.append(call[1][0].shape[:-1].numel()))
    module(batch)
    assert set(rows) == {tokens}
    assert tokens < batch.word_ids.numel() + batch.entity_ids.numel()


def test_tokens_are_found_again() -> None:
    word_mask = torch.tensor([[True, True, False], [False, True, True]])
    entity_mask = torch.tensor([[True, False], [True, True]])
    packed = Unpadded.of(word_mask, entity_mask)
    assert packed.word_indices.tolist() == [0, 1, 4, 5]
    assert packed.entity_indices.tolist() == [0, 2, 3]
    layout = packed.layout
    assert layout.order.tolist() == [0, 1, 4, 2, 3, 5, 6]
    assert layout.order[layout.places].tolist() == list(range(7))
    assert layout.offsets.tolist() == [0, 3, 7]
    assert (layout.word_offsets.tolist(), layout.entity_offsets.tolist()) == ([0, 2, 4], [0, 1, 3])
    assert (layout.lengths, layout.word_count, layout.entity_count) == (((2, 1), (2, 2)), 4, 3)


@properties.given(lengths=st.lists(st.tuples(st.integers(1, 6), st.integers(0, 4)), min_size=1, max_size=8))
def test_order_is_sequence_after_sequence(lengths: list[tuple[int, int]]) -> None:
    layout = Packed.of(lengths)
    words = [(row, 0, number) for row, (count, _) in enumerate(lengths) for number in range(count)]
    entities = [(row, 1, number) for row, (_, count) in enumerate(lengths) for number in range(count)]
    packed = words + entities
    assert [packed[place] for place in layout.order.tolist()] == sorted(packed)
    assert layout.order[layout.places].tolist() == list(range(len(packed)))
    mixed = layout.mixed
    assert mixed.order.tolist() == mixed.places.tolist() == list(range(len(packed))), "it is in that order"
    assert mixed.offsets.tolist() == mixed.word_offsets.tolist() == layout.offsets.tolist()
    assert [words for words, _ in mixed.lengths] == layout.offsets.diff().tolist()
