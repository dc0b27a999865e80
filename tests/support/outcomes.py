"""The losses and gradients of a small model, beside those of another form of it."""

from dataclasses import replace

import torch
from torch import Tensor

from model.luke.batch import FlatBatch
from model.luke.config import LukeConfig
from model.luke.heads import LukeForPretraining
from tests.support.models import shake

# Shares: of a loss; of the norm of a parameter's gradient, to which a twentieth of the largest norm is added.
OF_LOSS, OF_GRADIENT = {"float32": 1e-4, "bf16": 1e-2}, {"float32": 1e-3, "bf16": 5e-2}
Outcome = tuple[dict[str, float], dict[str, Tensor]]


def make(config: LukeConfig, entity_aware: bool) -> LukeForPretraining:
    torch.manual_seed(1)
    module = shake(LukeForPretraining(replace(config, use_entity_aware_attention=entity_aware))).train()
    for _, table in module.heads.values():
        table.adds_in_place = True  # as in pretraining
    return module


def outcome(module: LukeForPretraining, batch: FlatBatch, precision: str = "bf16") -> Outcome:
    """Losses, and gradients on the CPU."""
    module.zero_grad()
    with torch.autocast(batch.numbers.device.type, torch.bfloat16, enabled=precision == "bf16"):
        losses = module(batch).losses
    sum(losses.values()).backward()
    gradients = {name: value.grad for name, value in module.named_parameters() if value.grad is not None}
    return {name: loss.item() for name, loss in losses.items()}, {
        name: value.detach().float().cpu().clone() for name, value in gradients.items()
    }


def compare(found: dict[str, Tensor], wanted: dict[str, Tensor], tolerance: float) -> None:
    """Gradients are alike; those that only one side has are zero."""
    largest = max(float(value.norm()) for value in wanted.values())
    for name in found.keys() | wanted.keys():
        some = found.get(name, wanted.get(name))
        nothing = torch.zeros_like(some)
        value = wanted.get(name, nothing)
        off = float((found.get(name, nothing) - value).norm())
        assert off <= tolerance * (float(value.norm()) + 0.05 * largest), name
