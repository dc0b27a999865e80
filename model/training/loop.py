"""The one training loop, for pretraining and fine-tuning alike."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from model.training.ranks import ALONE, Ranks

Losses = Callable[[Any], Mapping[str, Tensor]]


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
        norm = float(get_total_norm([each.grad for each in parameters if each.grad is not None]))
        check_finite(step, {"gradient norm": norm})
        optimizer.step()
        on_step(step, values | {"learning_rate": optimizer.param_groups[0]["lr"], "gradient_norm": norm})


def accumulate(loss: Losses, micro_batches: Sequence[Any], step: int) -> dict[str, float]:
    """Add the gradients of the micro-batches and return the sums of their losses by name."""
    sums: dict[str, Tensor] = {}
    for micro_batch in micro_batches:
        parts = loss(micro_batch)
        total = torch.stack(list(parts.values())).sum()
        if total.requires_grad:  # it has labels
            total.backward()
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


def check_seed(seed: int) -> None:
    """Raises: ValueError for a seed that torch's generators cannot take."""
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed}, but must be at least 0 and below 2^63")


def dropout_seed(seed: int, step: int, rank: int = 0) -> int:
    """A seed for torch's generators that is a function of these numbers."""
    entropy = [seed, step, rank] if rank else [seed, step]
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0] >> 1)
