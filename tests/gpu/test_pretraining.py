"""A pretraining on one device that is interrupted ends with the bits of one that is not; and the paper's optimiser."""

from pathlib import Path

import pytest
import torch
from torch import nn

from model.files import WEIGHTS
from model.pretraining.phases import Execution
from model.pretraining.recipes import RECIPES, Phase, Recipe
from model.training.checkpoints import CHECKPOINTS
from model.training.optimizer import UncorrectedAdamW
from tests.gpu import DEVICE, ON_GPU
from tests.support.pretraining import run, run_up_to
from tests.support.shards import random_rows, write_sequences

pytestmark = ON_GPU
LONGEST = 400
RECIPE = Recipe(
    phases=(Phase(6, 1e-3, 2, "all"),),
    batch_size=12,
    micro_batch_size=12,
    tokens_per_batch=1200,
    log_every=1,
    checkpoint_every=3,
    deterministic=True,
)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_run_that_is_interrupted_ends_with_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences are longer than a block of the kernel, whose sums over blocks have an order to keep."""
    rows = random_rows(40, longest=LONGEST)
    sequences = write_sequences(tmp_path / "sequences", rows, max_words=LONGEST + 2)
    monkeypatch.setitem(RECIPES, "tiny", RECIPE)
    options = {"device": DEVICE.type, "precision": "bf16"}  # the kernel for float32 has no order of its own
    whole = run(sequences, tmp_path / "whole", **options)
    # A loader's process would keep the interrupt to itself.
    run_up_to(4, sequences, tmp_path / "broken", execution=Execution(workers=0), **options)
    assert (tmp_path / "broken" / CHECKPOINTS).is_dir()
    assert run(sequences, tmp_path / "broken", **options) == whole
    weights = [(tmp_path / name / WEIGHTS).read_bytes() for name in ("whole", "broken")]
    assert weights[0] == weights[1]


@pytest.mark.parametrize("decays_old", [True, False])
def test_the_paper_s_optimiser_is_that_of_the_cpu(decays_old: bool) -> None:
    """There many parameters are updated in one call."""
    sizes = [(64, 32), (32,), (5,), (300, 40)]
    there, here = [
        [nn.Parameter(torch.linspace(-1, 1, torch.Size(size).numel()).view(size).to(device)) for size in sizes]
        for device in (DEVICE, "cpu")
    ]
    optimizers = [
        UncorrectedAdamW([{"params": each, "weight_decay": 0.3}], 0.1, (0.9, 0.98), 1e-6, decays_old)
        for each in (there, here)
    ]
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        for one, other in zip(there, here, strict=True):
            other.grad = torch.randn(other.shape, generator=generator)
            one.grad = other.grad.to(DEVICE)
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(there, here, strict=True):
        torch.testing.assert_close(one.detach().cpu(), other.detach(), rtol=1e-5, atol=1e-6)
