"""The embedding tables that a head is tied to, and how their gradients add up without a copy of the table.

Autograd makes a gradient as large as the table for each look-up, another one for the head, and adds both to what the
micro-batches before have left. For half a million entities that is three times 512 MB a micro-batch, most of it zeros.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional


class Table(nn.Embedding):
    """An embedding table. With `adds_in_place` the backward pass adds to `weight.grad` where it lies.

    That is for a training loop that reads `weight.grad` after `backward()`: gradients then do not pass through
    autograd, so `torch.autograd.grad` and hooks on the weight see none. Of nn.Embedding's options it knows
    `padding_idx` alone, which it needs.
    """

    adds_in_place = False

    def forward(self, ids: Tensor) -> Tensor:
        """The rows (..., width) of ids (...)."""
        if self.adds_in_place and self.weight.requires_grad and torch.is_grad_enabled():
            rows: Tensor = LookUp.apply(ids, self.weight, self.padding_idx)
            return rows
        return super().forward(ids)


class LookUp(torch.autograd.Function):
    """Rows of a table; the backward pass adds the rows' gradients to those of the table, padding's excepted."""

    @staticmethod
    def forward(context: Any, ids: Tensor, weight: Tensor, padding: int) -> Tensor:
        context.save_for_backward(ids)
        # Itself, since hooks of checkpointing would give another tensor back, whose gradient nobody reads.
        context.weight, context.padding = weight, padding
        return functional.embedding(ids, weight)

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[None, ...]:
        (ids,), weight = context.saved_tensors, context.weight
        is_learnt = ids != context.padding
        if weight.grad is None:
            weight.grad = torch.zeros_like(weight)
        weight.grad.index_add_(0, ids[is_learnt], gradient[is_learnt].to(weight.dtype))
        return None, None, None
