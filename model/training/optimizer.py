"""AdamW as the paper had it and as it should be, its parameter groups, and the learning rate's schedule."""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor, nn

Groups = list[dict[str, Any]]


def parameter_groups(module: nn.Module, weight_decay: float, decayed_norms: Collection[str] = ()) -> Groups:
    """The trainable parameters in two groups: with weight decay, and without (biases and layer norms).

    The layer norms' weights that are in `decayed_norms`, by their names, decay all the same.
    """
    norms = {
        id(parameter)
        for part in module.modules()
        if isinstance(part, nn.LayerNorm)
        for parameter in part.parameters()
    }
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
        self,
        groups: Groups,
        learning_rate: float,
        betas: tuple[float, float],
        epsilon: float,
        decays_old: bool = False,
    ) -> None:
        super().__init__(groups, {"lr": learning_rate, "betas": betas, "eps": epsilon, "weight_decay": 0.0})
        self.decays_old = decays_old

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update every parameter that has a gradient."""
        if closure is not None:
            raise ValueError("a closure is not supported; compute the gradients first")
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

    def _update(self, parameter: Tensor, gradient: Tensor, group: Mapping[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        first, second = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.mul_(first).add_(gradient, alpha=1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        kept = 1 - group["lr"] * group["weight_decay"]
        if self.decays_old:
            parameter.mul_(kept)
        parameter.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-group["lr"])
        if not self.decays_old:
            parameter.mul_(kept)


def linear_schedule(step: int, *, warmup_steps: int, total_steps: int) -> float:
    """The share of the peak learning rate at `step` (from 0): up over the warm-up, then down to 0."""
    if step < warmup_steps:
        return step / warmup_steps
    return max(0.0, (total_steps - step) / max(1, total_steps - warmup_steps))
