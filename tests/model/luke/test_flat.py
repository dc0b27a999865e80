"""Flat batches: what lies where, and transformers' losses and gradients."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.hf.keys import from_transformers
from model.kernels import attention_cuda, narrow
from model.kernels.attention_cuda import Place
from model.kernels.packing import Packed
from model.luke import attention
from model.luke import attention as forms
from model.luke.batch import MaskedSequence, collate
from model.luke.config import PRESETS
from model.luke.heads import LukeForPretraining
from model.pretraining import recipes
from tests.model.luke import test_heads
from tests.support.models import STILL, TINY, flat_of, random_batch, run_transformers, still_batches, transformers_pair
from tests.support.plain_kernel import PlainKernel
from tests.support.shards import ENTITIES, WORDS


@pytest.fixture(params=["in turn", "jagged", "by cases"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The ways of CPUs through the sequences, and of GPUs in float32 and in bf16, on stand-ins."""
    if request.param == "jagged":
        monkeypatch.setattr(forms, "JAGGED_DEVICES", ("cpu",))
    if request.param == "by cases":
        monkeypatch.setattr(attention_cuda, "takes", lambda *of: True)
        monkeypatch.setattr(attention_cuda, "FLASH", PlainKernel())
    return str(request.param)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("name", still_batches())
@pytest.mark.parametrize("entity_aware", [False, True])
def test_losses_and_gradients_equal_transformers(name: str, entity_aware: bool) -> None:
    ours, theirs = (each.double() for each in test_heads.pretraining_pair("least", entity_aware=entity_aware))
    batch = still_batches()[name]
    wanted = test_heads.run_transformers(theirs, batch)
    wanted.loss.backward()
    losses = ours(flat_of(batch)).losses
    assert losses.keys() == ({"masked_word"} if batch.entity_ids is None else {"masked_word", "masked_entity"})
    sum(losses.values()).backward()
    torch.testing.assert_close(sum(losses.values()), wanted.loss, atol=1e-7, rtol=1e-7)
    gradients = {key: value.grad for key, value in theirs.named_parameters() if value.grad is not None}
    gradients = from_transformers(gradients, "theirs", with_heads=True)
    for key, value in ours.named_parameters():
        expected = gradients.get(key, torch.zeros_like(value))
        found = torch.zeros_like(value) if value.grad is None else value.grad
        torch.testing.assert_close(found, expected, atol=1e-7, rtol=1e-6, msg=key)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("entity_aware", [False, True])
def test_dropout_in_training(entity_aware: bool) -> None:
    torch.manual_seed(0)
    module = LukeForPretraining(replace(TINY, use_entity_aware_attention=entity_aware)).train()
    batch = flat_of(random_batch(TINY))
    losses = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(sum(module(batch).losses.values()).item())
    assert losses[0] == losses[1] != losses[2]
    sum(module(batch).losses.values()).backward()
    assert all(value.grad.isfinite().all() for value in module.parameters() if value.grad is not None)


def test_the_form_that_serves_is_the_one_that_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not attention.has_kernel(torch.zeros(1), 64), "a CPU has no such kernel"
    monkeypatch.setattr(attention_cuda, "takes", lambda *of: True)
    with mock.patch.object(attention_cuda, "FLASH", PlainKernel()) as kernel:
        LukeForPretraining(replace(STILL, use_entity_aware_attention=True))(flat_of(still_batches()["one sequence"]))
    assert kernel.calls == 4 * STILL.num_hidden_layers


@pytest.mark.parametrize("asks_for_rows", [True, False])
@pytest.mark.parametrize("entity_aware", [True, False])
def test_original_attention_has_a_sequence_s_words_and_entities_together(
    entity_aware: bool, asks_for_rows: bool
) -> None:
    """In all layers, so that no layer moves a token; what comes out lies as what went in."""
    config = replace(STILL, use_entity_aware_attention=entity_aware)
    module, theirs = (each.double() for each in transformers_pair(config))
    batch = still_batches()["different lengths"]
    flat = flat_of(batch)
    given: list[tuple[Tensor, Packed]] = []
    for layer in module.layers:
        layer.attention.register_forward_pre_hook(lambda _, states_and_layout: given.append(states_and_layout))
    states = torch.cat(
        [
            module.word_embeddings(flat.word_ids, flat.word_places),
            module.entity_embeddings(flat.entity_ids, *flat.mention_places()),
        ]
    )
    found = module(flat, flat.masked_entities if asks_for_rows else None)
    order = torch.arange(len(states)) if entity_aware else flat.layout.order
    torch.testing.assert_close(given[0][0], states[order])
    assert {layout.entities for _, layout in given} == {flat.shape.entities if entity_aware else 0}
    wanted = run_transformers(theirs, batch)
    torch.testing.assert_close(found, wanted[flat.masked_entities] if asks_for_rows else wanted)


def test_what_lies_where() -> None:
    def sequence(*columns: list[int]) -> MaskedSequence:
        return MaskedSequence(*(np.array(column, dtype=np.int64) for column in columns))

    batch = collate(
        [
            sequence([5, 6, 7], [-100, 60, -100], [9], [90], [1], [3]),
            sequence([8, 4], [80, 40], [], [], [], []),
            sequence([3, 2, 1, 0], [-100, -100, -100, 10], [11, 12], [-100, 13], [0, 3], [4, 4]),
        ],
        max_mention_words=3,
        entities=True,
    )
    numbers, shape = batch.numbers, batch.shape
    assert numbers.dtype == torch.int32
    assert len(numbers) == sum(shape.sizes)
    assert shape.lengths == ((3, 1), (2, 0), (4, 2))
    assert (shape.words, shape.entities, shape.mention_words) == (9, 3, 6)
    assert batch.word_ids.tolist() == [5, 6, 7, 8, 4, 3, 2, 1, 0]
    assert batch.word_places.tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 3]
    assert batch.masked_words.tolist() == [1, 3, 4, 8]
    assert batch.word_labels.tolist() == [60, 80, 40, 10]
    assert batch.entity_ids.tolist() == [9, 11, 12]
    places, begins = batch.mention_places()
    assert (places.tolist(), begins.tolist()) == ([1, 2, 0, 1, 2, 3], [0, 2, 5])
    assert batch.masked_entities.tolist() == [9, 11]
    assert batch.entity_labels.tolist() == [90, 13]
    assert batch.layout.word_offsets.tolist() == [0, 3, 5, 9]
    assert batch.layout.entity_offsets.tolist() == [0, 1, 1, 3]


@pytest.mark.slow
def test_twenty_shapes_are_compiled_at_most_twice_again(
    monkeypatch: pytest.MonkeyPatch, count_graphs: Callable[[], int]
) -> None:
    """Graphs are counted, which needs no compiler of the machine's."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    torch.manual_seed(0)
    module = LukeForPretraining(replace(TINY, num_hidden_layers=12)).train()
    module.luke.compile_layers()
    graphs = []
    for size in range(1, 21):
        batch = random_batch(size=4, words=14 + size % 7, entities=1 + size % 5)
        sum(module(flat_of(batch)).losses.values()).backward()
        graphs.append(count_graphs())
    assert graphs[0] >= 1, "something is compiled"
    assert graphs[-1] <= 3


class Shapes(PlainKernel):
    """The kernel's result, without its work and without what a plain one keeps."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, place: Place, dropout: float
    ) -> tuple[Tensor, Tensor, Any]:
        return torch.zeros(query.shape, dtype=query.dtype), torch.zeros(query.shape[1], len(query)), ()


KEPT_BY_KERNELS = 34  # for each token, hidden unit and layer, where Triton's kernels stand between products


def kept_bytes(layers: int) -> tuple[int, int]:
    """The bytes that a forward pass in bf16 keeps for the way back, without weights; and the tokens."""
    config = replace(PRESETS["base"], num_hidden_layers=layers, vocab_size=WORDS, entity_vocab_size=ENTITIES)
    config = replace(config, hidden_size=256, num_attention_heads=4, intermediate_size=1024)
    module = LukeForPretraining(replace(config, use_entity_aware_attention=True)).train()
    batch = flat_of(random_batch(config, words=200, entities=16))
    tokens, width = batch.shape.words + batch.shape.entities, config.hidden_size
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        is_weight = tensor.ndim == 2 and {*tensor.shape} <= {width, 4 * width}
        if not is_weight and not isinstance(tensor, nn.Parameter):
            kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        with torch.autocast("cpu", torch.bfloat16):
            asked = module.masked_states(batch)
        del asked
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values()), tokens * width


@pytest.mark.parametrize(("has_kernels", "wanted"), [(False, recipes._KEPT_BYTES["bf16"]), (True, KEPT_BY_KERNELS)])
def test_what_a_layer_keeps_is_what_the_size_of_micro_batches_counts_on(
    has_kernels: bool, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Triton's kernels, as where torch compiles; with them it is less."""
    monkeypatch.setattr(attention_cuda, "takes", lambda *of: True)
    monkeypatch.setattr(attention_cuda, "FLASH", Shapes())
    monkeypatch.setattr(narrow, "suits", lambda *of: has_kernels)
    monkeypatch.setattr(narrow, "launch", lambda *of, **constants: None)
    (one, states), (three, _) = kept_bytes(1), kept_bytes(3)
    assert (three - one) / 2 / states == pytest.approx(wanted, rel=0.05)
