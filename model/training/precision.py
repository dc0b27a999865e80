"""Precisions of matrix products; weights are float32."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line of stages names precisions, and does without torch
    import torch

PRECISIONS = ("float32", "bf16")


def autocast(device: str, precision: str) -> "torch.autocast":
    """Matrix products in that precision; weights stay as they are."""
    import torch

    return torch.autocast(torch.device(device).type, torch.bfloat16, enabled=precision == "bf16")
