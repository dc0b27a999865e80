"""The form of a layer for a GPU in bf16 on a CPU: Triton's kernels by its interpreter, attention by a plain kernel."""

import os
from typing import Any

import pytest
import torch
from torch import Tensor

from model.kernels import attention_cuda, narrow
from model.kernels.attention_cuda import Place
from tests.support.plain_kernel import PlainKernel

# Triton reads it when it is first imported, which is after all tests have been collected.
INTERPRETS = not torch.cuda.is_available()
if INTERPRETS:
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture
def narrow_on_cpu(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have all of it take place here; the names of Triton's kernels as they are called."""
    if not INTERPRETS:
        pytest.skip("tests/gpu runs the kernels themselves")
    pytest.importorskip("triton", minversion="3.7", reason="wanted: an interpreter that knows the present numpy")
    calls: list[str] = []
    launch = narrow.launch

    def noted(name: str, *arguments: Any, **constants: Any) -> None:
        calls.append(name)
        launch(name, *arguments, **constants)

    monkeypatch.setattr(narrow, "launch", noted)
    monkeypatch.setattr(narrow, "suits", is_narrow)
    monkeypatch.setattr(attention_cuda, "takes", lambda device, dtype, head_size: dtype is torch.bfloat16)
    monkeypatch.setattr(attention_cuda, "FLASH", InFloat32())
    return calls


class InFloat32(PlainKernel):
    """A kernel of narrow tokens, whose sums are in float32, as the GPU's."""

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, place: Place, dropout: float
    ) -> tuple[Tensor, Tensor, Any]:
        attended, totals, kept = super().forward(query.float(), key.float(), value.float(), place, dropout)
        return attended.to(query.dtype), totals, kept

    def backward(
        self, gradient: Tensor, tokens: Any, whole: Any, place: Place, dropout: float, drawn: Any
    ) -> tuple[Tensor, Tensor, Tensor]:
        wide = [tuple(each.float() for each in part) for part in (tokens, whole)]
        found = super().backward(gradient.float(), *wide, place, dropout, drawn)
        query, key, value = (each.to(gradient.dtype) for each in found)
        return query, key, value


def is_narrow(tensor: Tensor, dtype: torch.dtype | None = None) -> bool:
    return (dtype or tensor.dtype) is torch.bfloat16
