"""Large tables: the loss over them, and gradients that are added where they lie, beside autograd's own."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from model.kernels import tables
from model.kernels.tables import Table, linear_cross_entropy, sums_of_rows
from model.luke.batch import FlatBatch
from model.luke.heads import LukeForPretraining
from tests.support.models import TINY, flat_of, random_batch

ROWS, WIDTH, VOCABULARY = 7, 5, 23


@pytest.fixture(params=["one part", "many parts", "rows over the limit"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """The number of parts of the vocabulary."""
    limit = {"one part": ROWS * VOCABULARY, "many parts": ROWS * 4, "rows over the limit": 3}[request.param]
    monkeypatch.setattr(tables, "LOGITS", limit)
    return {"one part": 1, "many parts": 6, "rows over the limit": 23}[request.param]


def make_input(dtype: torch.dtype = torch.float64, rows: int = ROWS) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    states = torch.randn(rows, WIDTH, dtype=dtype, requires_grad=True)
    table = torch.randn(VOCABULARY, WIDTH, dtype=dtype, requires_grad=True)
    bias = torch.randn(VOCABULARY, dtype=dtype, requires_grad=True)
    labels = torch.randint(0, VOCABULARY, (rows,))
    labels[:2] = torch.tensor([0, VOCABULARY - 1])
    with torch.no_grad():
        labels[2:4] = (states @ table.T + bias).argmax(dim=1)[2:4]
    return states, table, bias, labels


def test_equals_torch_s_own(parts: int) -> None:
    states, table, bias, labels = make_input()
    assert len(tables.vocabulary_parts(ROWS, VOCABULARY)) == parts
    logits = functional.linear(states, table, bias)
    wanted = functional.cross_entropy(logits, labels, reduction="sum")
    loss, correct = linear_cross_entropy(states, table, bias, labels)
    torch.testing.assert_close(loss, wanted)
    assert correct == (logits.argmax(dim=1) == labels).sum() >= 2
    # A factor, as the division by the number of labels is one.
    found = torch.autograd.grad(loss * 0.3, (states, table, bias))
    torch.testing.assert_close(found, torch.autograd.grad(wanted * 0.3, (states, table, bias)))


@pytest.mark.usefixtures("parts")
def test_large_logits_do_not_overflow() -> None:
    states, table, bias, labels = make_input(torch.float32)
    loss, _ = linear_cross_entropy(states * 1e3, table * 1e3, bias, labels)
    wanted = functional.cross_entropy(functional.linear(states * 1e3, table * 1e3, bias), labels, reduction="sum")
    torch.testing.assert_close(loss, wanted)
    loss.backward()
    assert all(tensor.grad.isfinite().all() for tensor in (states, table, bias))


@pytest.mark.usefixtures("parts")
def test_no_rows_are_no_loss() -> None:
    states, table, bias, labels = make_input()
    loss, correct = linear_cross_entropy(states[:0], table, bias, labels[:0])
    loss.backward()
    assert (loss.item(), correct.item()) == (0, 0)
    assert table.grad.abs().sum() == bias.grad.abs().sum() == 0


@pytest.mark.usefixtures("parts")
def test_a_frozen_table_gets_no_gradient() -> None:
    states, table, bias, labels = make_input()
    full = linear_cross_entropy(states, table, bias, labels)[0]
    loss, _ = linear_cross_entropy(states, table.detach(), bias.detach(), labels)
    assert torch.equal(torch.autograd.grad(loss, states)[0], torch.autograd.grad(full, states)[0])


@pytest.mark.usefixtures("parts")
def test_autocast_keeps_the_softmax_in_float32() -> None:
    states, table, bias, labels = make_input(torch.float32)
    wanted, _ = linear_cross_entropy(states, table, bias, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss, _ = linear_cross_entropy(states, table, bias, labels)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, wanted, rtol=0.02, atol=0)
    assert loss != wanted
    found = torch.autograd.grad(loss, (states, table, bias))
    torch.testing.assert_close(found, torch.autograd.grad(wanted, (states, table, bias)), atol=0.05, rtol=0.05)


class Largest(TorchDispatchMode):
    """Remembers the most elements that any result had."""

    elements = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.elements = max(self.elements, result.numel())
        return result


def test_memory_does_not_grow_with_rows_times_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LOGITS", 400)
    states, table, bias, labels = make_input(rows=100)
    with Largest() as largest:
        linear_cross_entropy(states, table, bias, labels)[0].backward()
    assert 100 * VOCABULARY > 4 * largest.elements > 0
    assert largest.elements <= max(400, states.numel())


TABLES = ("luke.word_embeddings.token.weight", "luke.entity_embeddings.token.weight")


def gradients(module: LukeForPretraining, batches: list[FlatBatch], dtype: torch.dtype) -> dict[str, torch.Tensor]:
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
    for _, table in in_place.heads.values():
        table.adds_in_place = True
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
    monkeypatch.setattr(tables, "LOGITS", logits)
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


@pytest.mark.parametrize("tokens", [0, 1, 40])
def test_sums_of_rows_are_those_of_a_look_up(tokens: int) -> None:
    """Ids that come many times, once and never, in a table with fewer rows than there are tokens."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 9, (tokens,), generator=generator).clamp(min=3)
    gradient = torch.randn(tokens, 5, generator=generator)
    wanted = torch.zeros(9, 5).index_add_(0, ids, gradient)
    found, sums = sums_of_rows(ids, gradient, 9)
    torch.testing.assert_close(torch.zeros(9, 5).index_add_(0, found, sums), wanted)
    filled = len({*ids.tolist()})
    assert sorted({*ids.tolist()}) == found[:filled].tolist()
    assert not sums[filled:].any()
