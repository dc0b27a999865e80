"""Gradients of tables that are added where they lie, beside autograd's own."""

import copy

import pytest
import torch

from model.kernels import cross_entropy as losses
from model.kernels.tied_tables import Table
from model.luke.flat import FlatBatch
from model.luke.heads import LukeForPretraining
from tests.support.models import TINY, flat_of, random_batch

TABLES = ("luke.word_embeddings.token.weight", "luke.entity_embeddings.token.weight")


def gradients(
    module: LukeForPretraining, batches: list[FlatBatch], dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    """Of the sum of the batches' losses, by parameter, added up batch by batch."""
    for batch in batches:
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            parts = module(batch).losses
        torch.stack(list(parts.values())).sum().backward()
    return {name: value.grad for name, value in module.named_parameters() if value.grad is not None}


def some_batches(count: int) -> list[FlatBatch]:
    torch.manual_seed(7)
    return [flat_of(random_batch()) for _ in range(count)]


@pytest.fixture
def pair() -> tuple[LukeForPretraining, LukeForPretraining]:
    """A model whose gradients pass through autograd, and the same one that adds those of its tables in place."""
    torch.manual_seed(3)
    plain = LukeForPretraining(TINY).eval()  # without dropout
    in_place = copy.deepcopy(plain)
    in_place.add_table_gradients_in_place()
    return plain, in_place


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("logits", [1 << 25, 60], ids=["one part", "many parts"])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_gradients_equal_autograd_s(
    pair: tuple[LukeForPretraining, LukeForPretraining],
    monkeypatch: pytest.MonkeyPatch,
    dtype: torch.dtype,
    logits: int,
    checkpointing: bool,
) -> None:
    monkeypatch.setattr(losses, "LOGITS", logits)
    for module in pair:
        module.luke.gradient_checkpointing = checkpointing
    wanted, found = (gradients(module, some_batches(3), dtype) for module in pair)
    assert wanted.keys() == found.keys() >= set(TABLES)
    torch.testing.assert_close(found, wanted, atol=1e-6, rtol=1e-5)
    assert all(found[name].abs().sum() > 0 for name in TABLES)


def test_hooks_on_what_is_kept_for_the_backward_pass_lose_no_gradient(
    pair: tuple[LukeForPretraining, LukeForPretraining],
) -> None:
    (batch,) = some_batches(1)
    for module in pair:
        with torch.autograd.graph.save_on_cpu():
            loss = torch.stack(list(module(batch).losses.values())).sum()
        loss.backward()
    for name in TABLES:
        plain, in_place = (module.get_parameter(name).grad for module in pair)
        torch.testing.assert_close(in_place, plain)


def test_the_padding_row_is_not_learnt_by_looking_it_up() -> None:
    table = Table(7, 3, padding_idx=0)
    table.adds_in_place = True
    table(torch.tensor([[4, 0, 4], [0, 2, 0]])).sum().backward()
    assert table.weight.grad[:, 0].tolist() == [0, 0, 1, 0, 2, 0, 0]


def test_a_frozen_table_gets_none(pair: tuple[LukeForPretraining, LukeForPretraining]) -> None:
    for module in pair:
        for name in TABLES:
            module.get_parameter(name).requires_grad_(False)
    wanted, found = (gradients(module, some_batches(1), torch.float32) for module in pair)
    assert not set(TABLES) & found.keys()
    torch.testing.assert_close(found, wanted)


def test_without_gradients_nothing_is_added(pair: tuple[LukeForPretraining, LukeForPretraining]) -> None:
    plain, in_place = pair
    (batch,) = some_batches(1)
    with torch.no_grad():
        found, wanted = in_place(batch).losses, plain(batch).losses
    torch.testing.assert_close(found, wanted)
    assert all(parameter.grad is None for parameter in in_place.parameters())


def test_gradients_lie_where_they_lay(pair: tuple[LukeForPretraining, LukeForPretraining]) -> None:
    module = pair[1]
    gradients(module, some_batches(1), torch.float32)
    before = [module.get_parameter(name).grad.data_ptr() for name in TABLES]
    gradients(module, some_batches(2), torch.float32)
    assert [module.get_parameter(name).grad.data_ptr() for name in TABLES] == before
