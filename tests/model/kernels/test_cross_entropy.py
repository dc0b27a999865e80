"""Cross-entropy in parts of the vocabulary: torch's own in value and gradient, without its memory."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from model.kernels import cross_entropy
from model.kernels.cross_entropy import linear_cross_entropy

ROWS, WIDTH, VOCABULARY = 7, 5, 23


@pytest.fixture(params=["one part", "many parts", "rows over the limit"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many parts the vocabulary has."""
    limit = {"one part": ROWS * VOCABULARY, "many parts": ROWS * 4, "rows over the limit": 3}[request.param]
    monkeypatch.setattr(cross_entropy, "LOGITS", limit)
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
    assert len(cross_entropy.vocabulary_parts(ROWS, VOCABULARY)) == parts
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
    wanted = functional.cross_entropy(
        functional.linear(states * 1e3, table * 1e3, bias), labels, reduction="sum"
    )
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
    torch.testing.assert_close(
        found, torch.autograd.grad(wanted, (states, table, bias)), atol=0.05, rtol=0.05
    )


class Largest(TorchDispatchMode):
    """Remembers the most elements that any result had."""

    elements = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.elements = max(self.elements, result.numel())
        return result


def test_memory_does_not_grow_with_rows_times_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "LOGITS", 400)
    states, table, bias, labels = make_input(rows=100)
    with Largest() as largest:
        linear_cross_entropy(states, table, bias, labels)[0].backward()
    assert 100 * VOCABULARY > 4 * largest.elements > 0
    assert largest.elements <= max(400, states.numel())
