"""Large tables: the cross-entropy over them, in memory that does not grow with rows times vocabulary, and gradients.

Autograd makes a gradient of an embedding table as large as the table for each look-up, another one for the head that is
tied to it, and adds both to what the micro-batches before have left. For half a million entities that is three times
512 MB a micro-batch, most of it zeros. Here gradients add up without a copy of the table.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from model.kernels import narrow
from model.kernels.narrow import Copy, product_type, wide, wide_product

_ALIGNED = 64  # numbers of bf16
LOGITS, NARROW_LOGITS = 1 << 25, 1 << 30  # at most so many at once, in float32 and in bf16 on a GPU


def linear_cross_entropy(
    states: Tensor,
    table: Tensor,
    bias: Tensor,
    labels: Tensor,
    *,
    adds_in_place: bool = False,
    copy: Copy | None = None,
) -> tuple[Tensor, Tensor]:
    """The sum of cross-entropies of logits `states @ table.T + bias`, and how many labels have the top logit.

    `states` (rows, width), `table` (vocabulary, width), `bias` (vocabulary), `labels` (rows) int64. Logits are
    computed for a part of the vocabulary at a time, and once more in the backward pass where there is more
    than one part. Softmax is in float32 at least; products are in autocast's type where that is on.
    On a GPU in bf16 logits stay in that type and are computed once, if memory allows; `copy` is the table's.
    With `adds_in_place` the table must be a leaf, and the backward pass adds to `table.grad` itself
    (`Table`).

    A row with the logits (1, 3 | 2) in two parts and the label 2: the first part gives log(e^1 + e^3) = 3.13 and the
    best logit 3, the second adds its own, log(e^3.13 + e^2) = 3.41; the label's logit, 2, was in the second part. So
    the loss is 3.41 - 2 = 1.41, and the label has not the top logit.
    """
    device, dtype = states.device.type, product_type(states)
    rows = copy.of(dtype, [table])[0] if copy and narrow.suits(states, dtype) else table
    learns = torch.is_grad_enabled() and any(each.requires_grad for each in (states, table, bias))
    with torch.autocast(device, enabled=False):
        loss, correct = LinearCrossEntropy.apply(states, table, bias, labels, rows, dtype, adds_in_place, learns)
    return loss, correct


class LinearCrossEntropy(torch.autograd.Function):
    """Every row of the table's gradient is written or added to once; what needs no gradient gets none."""

    @staticmethod
    def forward(
        context: Any,
        states: Tensor,
        table: Tensor,
        bias: Tensor,
        labels: Tensor,
        rows: Tensor,
        dtype: torch.dtype,
        adds_in_place: bool,
        learns: bool,
    ) -> tuple[Tensor, Tensor]:
        # Itself, since hooks of checkpointing give another tensor back, whose gradient nobody reads.
        context.leaf = table if adds_in_place else None
        context.dtype = dtype
        if narrow.suits(states, dtype) and len(states) * len(table) <= NARROW_LOGITS:
            # Rows that begin at multiples of 128 bytes: products are slow where they do not.
            logits = states.new_empty(len(states), -(-len(table) // _ALIGNED) * _ALIGNED, dtype=dtype)[:, : len(table)]
            torch.mm(states.to(dtype), rows.to(dtype).T, out=logits)
            losses, ranks = narrow.cross_entropy(logits, bias, labels, learns=learns)
            context.save_for_backward(states, table, bias, labels, rows, None, logits)
            context.parts = [slice(0, len(table))]
            correct = (ranks == 0).sum()
            context.mark_non_differentiable(correct)
            return losses.sum(), correct
        parts = vocabulary_parts(len(states), len(table))
        total = best = states.new_full((len(states),), -torch.inf, dtype=wide(dtype))
        own, best_at = torch.zeros_like(total), torch.zeros_like(labels)
        kept = None
        for part in parts:
            logits = part_logits(states, rows, bias, part, dtype)
            top, at = logits.max(dim=1)
            best_at = torch.where(top > best, at + part.start, best_at)
            best = torch.maximum(top, best)
            places, is_here = places_in(labels, part)
            own = own + logits.gather(1, places)[:, 0] * is_here
            exponentials = logits.sub_(top[:, None]).exp_()
            sums = exponentials.sum(dim=1)
            total = torch.logaddexp(total, top + sums.log())
            if len(parts) == 1 and learns:
                # One part serves the backward pass, too.
                kept = less_one(exponentials.div_(sums[:, None]), labels, part)
        context.save_for_backward(states, table, bias, labels, rows, total, kept)
        context.parts = parts
        correct = (best_at == labels).sum()
        context.mark_non_differentiable(correct)
        return (total - own).sum(), correct

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        states, table, bias, labels, rows, total, kept = context.saved_tensors
        leaf = context.leaf
        needs_states, needs_table, needs_bias = context.needs_input_grad[:3]
        of_states = torch.zeros_like(states) if needs_states else None
        is_added = leaf is not None and leaf.grad is not None
        of_table = (leaf.grad if is_added else torch.empty_like(table)) if needs_table else None
        of_bias = torch.empty_like(bias) if needs_bias else None
        dtype = context.dtype
        scaled = (states * gradient).to(dtype)
        for part in context.parts:
            if kept is None:
                logits = part_logits(states, rows, bias, part, dtype)
                of_logits = less_one(logits.sub_(total[:, None]).exp_(), labels, part)
            else:
                of_logits = kept
            if of_bias is not None:
                of_bias[part] = of_logits.sum(dim=0, dtype=wide(dtype)) * gradient
            of_logits = of_logits.to(dtype)
            if of_states is not None:
                of_states += (of_logits @ rows[part].to(dtype)) * gradient
            if of_table is not None:
                write_product(of_logits.T, scaled, of_table[part], is_added=is_added)
        if leaf is not None and needs_table:
            leaf.grad, of_table = of_table, None
        return of_states, of_table, of_bias, None, None, None, None, None


def vocabulary_parts(rows: int, vocabulary: int) -> list[slice]:
    """The vocabulary in slices of at most LOGITS logits."""
    size = max(1, LOGITS // max(1, rows))
    return [slice(first, min(first + size, vocabulary)) for first in range(0, vocabulary, size)]


def part_logits(states: Tensor, table: Tensor, bias: Tensor, part: slice, dtype: torch.dtype) -> Tensor:
    """Logits (rows, part of the vocabulary), in float32 at least."""
    logits = states.to(dtype) @ table[part].to(dtype).T
    return logits.to(wide(dtype)).add_(bias[part])


def less_one(probabilities: Tensor, labels: Tensor, part: slice) -> Tensor:
    """The gradient of the loss by the logits: probabilities, less one at the label. In place."""
    places, is_here = places_in(labels, part)
    return probabilities.scatter_add_(1, places, -is_here[:, None].to(probabilities.dtype))


def places_in(labels: Tensor, part: slice) -> tuple[Tensor, Tensor]:
    """Columns (rows, 1) of the labels in this part, and which (rows) are in it; the others get a column, too."""
    is_here = (labels >= part.start) & (labels < part.stop)
    return (labels - part.start).clamp(0, part.stop - part.start - 1)[:, None], is_here


def write_product(left: Tensor, right: Tensor, output: Tensor, *, is_added: bool) -> None:
    """`left @ right` into `output` or added to it, without a copy where the types are the same."""
    if left.dtype == output.dtype:
        # With a beta of 0, what lies there is not read.
        torch.addmm(output, left, right, beta=int(is_added), out=output)
        return
    product = wide_product(left, right) if left.is_cuda else left @ right
    if is_added:
        output.add_(product)
    else:
        output.copy_(product)


def sums_of_rows(ids: Tensor, gradient: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """For each of the distinct `ids` (tokens), below `rows`, the sum of its rows of `gradient` (tokens, width).

    Sums are in the tokens' order. There are as many ids and sums as tokens, so that no device is waited for: the last
    ones are any ids, and zeros.
    """
    ordered, order = ids.sort(stable=True)
    runs = (ordered.diff(prepend=ordered[:1]) != 0).cumsum(0)
    found = torch.arange(len(ids), device=ids.device).remainder_(rows).scatter_(0, runs, ordered)
    return found, torch.ops.aten.embedding_dense_backward(gradient[order], runs, len(ids), -1, False)


class Table(nn.Embedding):
    """An embedding table. With `adds_in_place` the backward pass adds to `weight.grad` where it lies.

    That is for a training loop that reads `weight.grad` after `backward()`: gradients then do not pass through
    autograd, so `torch.autograd.grad` and hooks on the weight see none. Of nn.Embedding's options it knows
    `padding_idx` alone, which it needs.
    """

    adds_in_place = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.copy = Copy()

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
        if weight.is_cuda:
            learnt = (gradient * is_learnt[..., None]).to(weight.dtype).flatten(0, -2)
            weight.grad.index_add_(0, *sums_of_rows(ids.long().flatten(), learnt, len(weight)))
        else:
            weight.grad.index_add_(0, ids[is_learnt], gradient[is_learnt].to(weight.dtype))
        return None, None, None
