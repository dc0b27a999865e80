"""The one training loop, for pretraining and fine-tuning alike: optimiser, schedule and `fit`."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from model.ranks import ALONE, Ranks

Groups = list[dict[str, Any]]
Losses = Callable[[Any], Mapping[str, Tensor]]


def parameter_groups(module: nn.Module, weight_decay: float) -> Groups:
    """The trainable parameters in two groups: with weight decay, and without (biases and layer norms)."""
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
            is_exempt = name.split(".")[-1] == "bias" or id(parameter) in norms
            (exempt if is_exempt else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": weight_decay}, {"params": exempt, "weight_decay": 0.0}]


def make_optimizer(
    groups: Groups, *, learning_rate: float, betas: tuple[float, float], epsilon: float, bias_correction: bool
) -> torch.optim.Optimizer:
    """AdamW over `groups`; without bias correction it is that of the authors' code."""
    groups = [group for group in groups if group["params"]]
    if not groups:
        raise ValueError("nothing is trainable; every parameter is frozen")
    if bias_correction:
        return torch.optim.AdamW(groups, lr=learning_rate, betas=betas, eps=epsilon, fused=True)
    return UncorrectedAdamW(groups, learning_rate, betas, epsilon)


class UncorrectedAdamW(torch.optim.Optimizer):
    """Adam without bias correction, its decoupled weight decay applied after the update."""

    def __init__(
        self, groups: Groups, learning_rate: float, betas: tuple[float, float], epsilon: float
    ) -> None:
        super().__init__(groups, {"lr": learning_rate, "betas": betas, "eps": epsilon, "weight_decay": 0.0})

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
        parameter.addcdiv_(mean, square.sqrt().add_(group["eps"]), value=-group["lr"])
        parameter.mul_(1 - group["lr"] * group["weight_decay"])


def linear_schedule(step: int, *, warmup_steps: int, total_steps: int) -> float:
    """The share of the peak learning rate at `step` (from 0): up over the warm-up, then down to 0."""
    if step < warmup_steps:
        return step / warmup_steps
    return max(0.0, (total_steps - step) / max(1, total_steps - warmup_steps))


def fit(
    module: nn.Module,
    loss: Losses,
    batches: Callable[[int], Sequence[Any]],
    optimizer: torch.optim.Optimizer,
    schedule: Callable[[int], float],
    *,
    steps: int,
    first_step: int = 0,
    seed: int,
    on_step: Callable[[int, dict[str, float]], None],
    ranks: Ranks = ALONE,
) -> None:
    """Train for the steps from `first_step` up to, not including, `steps`.

    `batches(step)` gives the micro-batches of a step. Their gradients ADD UP: where a step has several and a
    mean is wanted, `loss` divides by what the whole step holds. `loss` maps one micro-batch to its named
    parts, whose sum is minimised. `schedule(step)` multiplies the optimiser's own learning rates. The dropout
    of a step is a function of (seed, step, rank) alone. `on_step(step, values)` follows each update with the
    parts, `learning_rate` and `gradient_norm`. Losses and gradients of several processes are added up, too.
    Raises NotFiniteError, before the update, when the loss or the gradient of a step is not finite.
    """
    module.train()
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    for group in optimizer.param_groups:
        group.setdefault("initial_lr", group["lr"])
    for step in range(first_step, steps):
        torch.manual_seed(dropout_seed(seed, step, ranks.rank))
        multiplier = schedule(step)
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"] * multiplier
        optimizer.zero_grad(set_to_none=True)
        values = ranks.sum(accumulate(loss, batches(step), step))
        check_finite(step, values)
        ranks.add_gradients(parameters)
        norm = gradient_norm(parameters)
        check_finite(step, {"gradient norm": norm})
        optimizer.step()
        on_step(step, values | {"learning_rate": optimizer.param_groups[0]["lr"], "gradient_norm": norm})


def accumulate(loss: Losses, micro_batches: Sequence[Any], step: int) -> dict[str, float]:
    """Add the gradients of the micro-batches and return the sums of their losses by name."""
    sums: dict[str, Tensor] = {}
    for micro_batch in micro_batches:
        parts = loss(micro_batch)
        torch.stack(list(parts.values())).sum().backward()
        for name, value in parts.items():
            sums[name] = sums.get(name, 0) + value.detach()
    values = {name: float(value) for name, value in sums.items()}
    if not values:
        raise ValueError(f"step {step}: no loss; its batch is empty")
    return values


class NotFiniteError(ValueError):
    """The loss or the gradient of `step` is not finite."""

    def __init__(self, step: int, values: Mapping[str, float]) -> None:
        found = ", ".join(f"{name} {value}" for name, value in values.items())
        super().__init__(f"step {step}: the loss is not finite ({found}); lower the learning rate")
        self.step = step


def check_finite(step: int, values: Mapping[str, float]) -> None:
    """Raise a NotFiniteError for a value that is none."""
    if not all(math.isfinite(value) for value in values.values()):
        raise NotFiniteError(step, values)


def gradient_norm(parameters: Iterable[nn.Parameter]) -> float:
    """The Euclidean norm over all gradients."""
    return float(get_total_norm([parameter.grad for parameter in parameters if parameter.grad is not None]))


def resolve_device(name: str) -> torch.device:
    """The device of that name; "auto" is the GPU where there is one. ValueError for one that is not there."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device {name!r} is unknown; use auto, cpu, cuda or cuda:N") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device {name!r} is not there ({torch.cuda.device_count()} GPUs found); use cpu or auto"
        )
    return device


def dropout_seed(seed: int, step: int, rank: int = 0) -> int:
    """A seed for torch's generators that is a function of these numbers."""
    entropy = [seed, step, rank] if rank else [seed, step]
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> 1)
