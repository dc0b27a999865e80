"""Promises that only a CUDA device can show; without one all of it is skipped. `make gpu` runs it.

test_attention    attention by cases and by one call against products in float32, and its dropout
test_model        losses and gradients against the CPU's, checkpointing, the kernel, waiting, compilation
test_pretraining  resuming to the bit, and the paper's optimiser
"""

import os

import pytest
import torch

# cuBLAS is deterministic with a workspace of its own; it looks at this when it starts.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

DEVICE = torch.device("cuda")
ON_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]
# Words and entities of sequences: longer than the kernel's blocks, and shorter.
LENGTHS = {
    "different lengths": [(300, 20), (17, 3), (130, 140), (64, 1)],
    "a sequence without entities": [(90, 7), (33, 0), (150, 12)],
    "no entities at all": [(70, 0), (129, 0)],
    "one sequence": [(200, 9)],
}


def distance(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The norm of the difference, as a share of the norm of what is wanted."""
    difference = found.detach().double().cpu() - wanted.detach().double().cpu()
    return float(difference.norm() / wanted.detach().double().cpu().norm())
