"""AdamW as the paper had it and as it should be, its parameter groups, and the learning rate's schedule."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, groupby
from typing import Any

import torch
from torch import Tensor, nn

Groups = list[dict[str, Any]]
# Numbers that are updated at once; roots of as many lie in memory meanwhile. On a CPU a parameter alone stays in the
# cache from one operation to the next.
_TOGETHER = 1 << 26
_ALONE = ("cpu",)


def parameter_groups(module: nn.Module, weight_decay: float, decayed_norms: Collection[str] = ()) -> Groups:
    """The trainable parameters in two groups: with weight decay, and without (biases and layer norms).

    The layer norms' weights that are in `decayed_norms`, by their names, decay all the same.
    """
    layers = (part for part in module.modules() if isinstance(part, nn.LayerNorm))
    norms = {id(parameter) for layer in layers for parameter in layer.parameters()}
    decayed: list[nn.Parameter] = []
    exempt: list[nn.Parameter] = []
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            is_norm = id(parameter) in norms and name not in decayed_norms
            is_exempt = name.split(".")[-1] == "bias" or is_norm
            (exempt if is_exempt else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": exempt, "weight_decay": 0.0}]


def make_optimizer(
    groups: Groups,
    *,
    learning_rate: float,
    betas: tuple[float, float],
    epsilon: float,
    bias_correction: bool,
    decays_old: bool = False,
) -> torch.optim.Optimizer:
    """AdamW over `groups`; without bias correction it is that of the authors' code: `UncorrectedAdamW`."""
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise ValueError("nothing is trainable; every parameter is frozen")
    if bias_correction:
        return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=epsilon, fused=True)
    return UncorrectedAdamW(groups, learning_rate, betas, epsilon, decays_old)


class UncorrectedAdamW(torch.optim.Optimizer):
    """Adam without bias correction, with the decoupled weight decay of either of the authors' two optimisers.

    With `decays_old` it is of the parameter before the update, as in their pretraining; else of what the update left,
    as in the AdamW of transformers, which their fine-tuning used.
    """

    def __init__(
        self, groups: Groups, learning_rate: float, betas: tuple[float, float], epsilon: float, decays_old: bool = False
    ) -> None:
        super().__init__(groups, {"lr": learning_rate, "betas": betas, "eps": epsilon, "weight_decay": 0.0})
        self.decays_old = decays_old

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        if closure is not None:
            raise ValueError("a closure is not supported; compute the gradients first")
        for group in self.param_groups:
            trained = [parameter for parameter in group["params"] if parameter.grad is not None]
            for together in _parts(trained):
                self._update(together, group)

    def _update(self, parameters: list[Tensor], group: Mapping[str, Any]) -> None:
        """Update some parameters, each operation in one call for all of them: on a GPU few kernels."""
        for parameter in parameters:
            if not self.state[parameter]:
                moments = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
                self.state[parameter].update(moments)
        means, squares = (
            [self.state[parameter][name] for parameter in parameters] for name in ("exp_avg", "exp_avg_sq")
        )
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        first, second = group["betas"]
        torch._foreach_mul_(means, first)
        torch._foreach_add_(means, gradients, alpha=1 - first)
        torch._foreach_mul_(squares, second)
        torch._foreach_addcmul_(squares, gradients, gradients, value=1 - second)
        kept = 1 - group["lr"] * group["weight_decay"]
        if self.decays_old:
            torch._foreach_mul_(parameters, kept)
        roots = torch._foreach_sqrt(squares)
        torch._foreach_add_(roots, group["eps"])
        torch._foreach_addcdiv_(parameters, means, roots, value=-group["lr"])
        if not self.decays_old:
            torch._foreach_mul_(parameters, kept)


def _parts(parameters: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """The parameters in their order, about as many at a time as their device updates at once."""
    is_alone = any(parameter.device.type in _ALONE for parameter in parameters)
    ends = accumulate(map(torch.numel, parameters))
    for _, part in groupby(zip(parameters, ends, strict=True), lambda each: each[1] // (1 if is_alone else _TOGETHER)):
        yield [parameter for parameter, _ in part]


def linear_schedule(step: int, *, warmup_steps: int, total_steps: int) -> float:
    """The share of the peak learning rate at `step` (from 0): up over the warm-up, then down to 0."""
    if step < warmup_steps:
        return step / warmup_steps
    return max(0.0, (total_steps - step) / max(1, total_steps - warmup_steps))
