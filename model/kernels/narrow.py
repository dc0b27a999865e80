"""A layer in a narrow type, bf16, on a GPU: few launches, and few bytes between its products.

Weights lie side by side in bf16, made once a step. Their gradients come from products in float32, as they themselves
are. What stands between products is one kernel of Triton's (`model.kernels.triton_kernels`) where Triton is installed.
Elsewhere, and where torch compiles a layer, torch's own operations do it, against which the tests hold the kernels.
"""

import functools
import importlib.util
import logging
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional
from torch.optim.optimizer import register_optimizer_step_post_hook

logger = logging.getLogger(__name__)
_SEEDS = 2**31 - 1
_COLUMNS = 4096  # of logits at once
_PROGRAMS = 512  # that add up the gradients of a layer norm, each those of some rows


@functools.cache
def has_triton() -> bool:
    """Return whether Triton's kernels run on the GPU here; it comes with torch for CUDA, and needs a C compiler."""
    if importlib.util.find_spec("triton") is None:
        return False
    try:
        query, key, value = torch.zeros(3, 1, 1, 8, dtype=torch.bfloat16, device="cuda")
        gather([(query, key, value)], 3)
    except Exception as error:  # whatever it lacks, the layers have another way
        reason = str(error).strip().splitlines() or [type(error).__name__]
        logger.warning("Triton's kernels cannot be used (%s): steps in bf16 are slower", reason[0])
        return False
    return True


def suits(tensor: Tensor, dtype: torch.dtype | None = None) -> bool:
    """Return whether Triton's kernels take the place of torch's operations on a tensor, in its own type or `dtype`."""
    return tensor.is_cuda and (dtype or tensor.dtype) is torch.bfloat16 and has_triton()


def product_type(states: Tensor) -> torch.dtype:
    """The type of products of these states: autocast's where that is on."""
    kind = states.device.type
    is_autocast = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.get_autocast_dtype(kind) if is_autocast else states.dtype


class Copy:
    """Tensors in another type, each below the one before it; made again when one of them has changed.

    An optimiser's step counts as a change, since those that are fused raise no tensor's version.
    """

    steps = 0  # of all optimisers

    @classmethod
    def count_step(cls, *_: Any) -> None:
        """Take note of an optimiser's step."""
        cls.steps += 1

    def __init__(self) -> None:
        self.made: tuple[Any, list[Tensor], list[Tensor]] = (None, [], [])

    def of(self, dtype: torch.dtype, *groups: Sequence[Tensor]) -> list[Tensor]:
        """The rows of all tensors of each group, in that type."""
        tensors = [each for group in groups for each in group]
        now = dtype, Copy.steps, [(id(each), each._version, each.device) for each in tensors]
        made_of, _, values = self.made
        if now == made_of:
            return values
        values, parts = [], list[Tensor]()
        with torch.inference_mode(False), torch.no_grad():
            for group in groups:
                sizes = [len(each) for each in group]
                values.append(group[0].new_empty(sum(sizes), *group[0].shape[1:], dtype=dtype))
                parts += values[-1].split(sizes)
            torch._foreach_copy_(parts, tensors)
        # At once, for other threads; and with the tensors, so that no other gets the id of one of them.
        self.made = now, tensors, values
        return values


register_optimizer_step_post_hook(Copy.count_step)


class Weights:
    """Linear layers of the same states, and copies of their weights and biases in the type of products.

    Without `biases` they are products alone, and whoever takes these adds the biases.
    """

    def __init__(self, *layers: nn.Linear, biases: bool = True) -> None:
        self.layers, self.biases = layers, biases
        self.copy = Copy()

    def parameters(self) -> list[list[nn.Parameter]]:
        """The weights, and the biases where they are wanted."""
        names = ("weight", "bias") if self.biases else ("weight",)
        return [[getattr(layer, name) for layer in self.layers] for name in names]


def project(states: Tensor, *kinds: tuple[int, Weights]) -> tuple[Tensor, ...]:
    """The outputs of each kind's layers side by side, for as many of the `states` (tokens, width) as it has; and these.

    What takes the states themselves, too, takes them from here: the gradients of both are one product then.
    """
    dtype = product_type(states)
    groups = [weights.parameters() for _, weights in kinds]
    copies = [weights.copy.of(dtype, *each) for (_, weights), each in zip(kinds, groups, strict=True)]
    flat = [parameter for group in groups for part in group for parameter in part]
    parameters = list({id(each): each for each in flat}.values())
    numbers = {id(each): number for number, each in enumerate(parameters)}
    places = [[[numbers[id(each)] for each in part] for part in group] for group in groups]
    counts = [count for count, _ in kinds]
    found: tuple[Tensor, ...] = Project.apply(states.to(dtype), counts, copies, places, *parameters)
    return found


class Project(torch.autograd.Function):
    """Products of states with copies of parameters, whose gradients are of the parameters' own type.

    `places` say where each kind's weights, and its biases, stand among the parameters.
    """

    @staticmethod
    def forward(
        context: Any,
        states: Tensor,
        counts: list[int],
        copies: list[list[Tensor]],
        places: list[list[list[int]]],
        *parameters: Tensor,
    ) -> tuple[Tensor, ...]:
        context.save_for_backward(states, *(weight for weight, *_ in copies))
        context.set_materialize_grads(False)
        context.counts, context.places, context.sizes = counts, places, [len(each) for each in parameters]
        parts = zip(states.split(counts), copies, strict=True)
        return *(functional.linear(part, *copy) for part, copy in parts), states

    @staticmethod
    @once_differentiable
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        states, *weights = context.saved_tensors
        *of_outputs, of_rest = gradients
        needs_states, _, _, _, *needed = context.needs_input_grad
        of_states = torch.empty_like(states) if needs_states else None
        found: dict[int, Tensor] = {}
        again: dict[int, Tensor] = {}  # of parameters of two kinds
        begin = 0
        for gradient, weight, count, places in zip(of_outputs, weights, context.counts, context.places, strict=True):
            part = slice(begin, begin + count)
            begin += count
            if gradient is None:  # nobody took this product
                gradient = states.new_zeros(count, len(weight))
            if of_states is not None and of_rest is None:
                torch.mm(gradient, weight, out=of_states[part])
            elif of_states is not None:
                torch.addmm(of_rest[part], gradient, weight, out=of_states[part])
            if not any(needed[place] for group in places for place in group):
                continue
            for group, of_group in zip(places, _of_parameters(gradient, states[part], len(places)), strict=True):
                sizes = [context.sizes[place] for place in group]
                for place, value in zip(group, of_group.split(sizes), strict=True):
                    (again if place in found else found)[place] = value
        if again:
            torch._foreach_add_([found[place] for place in again], list(again.values()))
        return of_states, None, None, None, *(found.get(place) for place in range(len(needed)))


def _of_parameters(gradient: Tensor, states: Tensor, groups: int) -> Iterator[Tensor]:
    """Yield the gradient of weights, and of biases if there are two groups of parameters."""
    yield wide_product(gradient.T, states)
    if groups > 1:
        yield gradient.sum(dim=0, dtype=wide(gradient.dtype))


def wide(dtype: torch.dtype) -> torch.dtype:
    """The type of sums: float32 at least."""
    return torch.promote_types(dtype, torch.float32)


def wide_product(left: Tensor, right: Tensor) -> Tensor:
    """`left @ right` in float32 at least, which a GPU makes of narrow factors at their speed."""
    if left.is_cuda and left.dtype is not wide(left.dtype):
        return torch.mm(left, right, out_dtype=wide(left.dtype))
    return left.to(wide(left.dtype)) @ right.to(wide(left.dtype))


def add_norm(branch: Tensor, of_branch: nn.Linear, residual: Tensor, norm: nn.LayerNorm, dropout: float) -> Tensor:
    """layer_norm(residual + dropout(branch + bias)), (tokens, width), of the product that still lacks its bias."""
    parameters = of_branch.bias, norm.weight, norm.bias
    found: Tensor = AddNorm.apply(branch, residual, *parameters, norm.eps, dropout)
    return found


class AddNorm(torch.autograd.Function):
    """The kernels `add_norm`, both ways."""

    @staticmethod
    def forward(
        context: Any,
        branch: Tensor,
        residual: Tensor,
        branch_bias: Tensor,
        weight: Tensor,
        bias: Tensor,
        epsilon: float,
        dropout: float,
    ) -> Tensor:
        rows, width = branch.shape
        seed = draw_seed() if dropout else 0
        output, added = torch.empty_like(branch), torch.empty_like(branch)
        means, scales = (branch.new_empty(rows, dtype=torch.float32) for _ in range(2))
        context.rest = width, dropout, seed
        inputs = branch.contiguous(), residual.contiguous(), branch_bias, weight, bias
        kept = output, added, means, scales
        constants = {"BLOCK": block(width), "DROPS": dropout > 0}
        launch("add_norm_forward", rows, *inputs, *kept, width, epsilon, dropout, seed, **constants)
        context.save_for_backward(added, means, scales, weight)
        return output

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        added, means, scales, weight = context.saved_tensors
        width, dropout, seed = context.rest
        programs = min(_PROGRAMS, len(added))
        of_residual = torch.empty_like(added)
        of_branch = torch.empty_like(added) if dropout else of_residual
        sums = means.new_empty(3, programs, width)
        inputs = gradient.contiguous(), added, means, scales, weight
        constants = {"BLOCK": block(width), "DROPS": dropout > 0}
        outputs = of_branch, of_residual, sums
        launch("add_norm_backward", programs, *inputs, *outputs, len(added), width, dropout, seed, **constants)
        return of_branch, of_residual, *sums.sum(dim=1).to(weight.dtype), None, None


def draw_seed() -> int:
    """A seed for a kernel's noise, of torch's generator on the CPU: no device is waited for."""
    return int(torch.randint(_SEEDS, ()))


def merge(parts: Sequence[tuple[Tensor, Tensor]], target: Tensor) -> Tensor:
    """Write values (tokens, heads, size) over word and entity keys to `target`; their log-sum-exp (heads, tokens).

    `parts` are values and log-sum-exps over each kind of keys.
    """
    (by_words, word_totals), (by_entities, entity_totals) = parts
    tokens, heads, size = target.shape
    totals = torch.empty_like(word_totals)
    shape = tokens, size, heads * size
    inputs = (each.contiguous() for each in (by_words, by_entities, word_totals, entity_totals))
    launch("merge", tokens, *inputs, target, totals, *shape, BLOCK=block(heads * size))
    return totals


def gather(parts: Sequence[tuple[Tensor, Tensor, Tensor]], columns: int) -> Tensor:
    """Gradients of a projection (tokens, columns, heads, size) from those of query, key and value of each case."""
    tokens, heads, size = parts[0][0].shape
    output = parts[0][0].new_empty(tokens, columns, heads, size)
    inputs = (each.contiguous() for each in (*parts[0], *parts[-1]))
    constants = {"BLOCK": block(heads * size), "HAS_OTHER": len(parts) > 1}
    launch("gather", tokens, *inputs, output, heads * size, columns, **constants)
    return output


def cross_entropy(logits: Tensor, bias: Tensor, labels: Tensor, *, learns: bool) -> tuple[Tensor, Tensor]:
    """Losses of logits (rows, vocabulary) without their bias, and how many are before the label's, (rows) both.

    Where it `learns`, the gradients of the losses lie in the place of the logits afterwards.
    """
    losses = logits.new_empty(len(logits), dtype=torch.float32)
    vocabulary, step = logits.shape[1], logits.stride(0)
    ranks = torch.empty_like(losses, dtype=torch.int32)
    tensors = logits, bias, labels, losses, ranks
    launch("cross_entropy", len(logits), *tensors, vocabulary, step, BLOCK=_COLUMNS, LEARNS=learns, num_warps=8)
    return losses, ranks


def block(width: int) -> int:
    """The power of two that holds a row, as Triton wants it."""
    return max(4, 1 << (width - 1).bit_length())


def launch(name: str, programs: int, *arguments: Any, **constants: Any) -> None:
    """Run a kernel in so many programs, on the device of its first argument."""
    from model.kernels import triton_kernels

    with torch.cuda.device_of(arguments[0]):
        getattr(triton_kernels, name)[(programs,)](*arguments, **constants)
