"""Attention on the device against products in float32 on the CPU, and what dropout does there.

Tolerances are norms of differences as shares of the whole: bf16 keeps 8 bits, so that a number is off by 0.2 % on
average; products of such numbers, and the sum of two softmaxes, add to it.
"""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from model.kernels import attention_cuda
from model.kernels.attention_cuda import KEY, VALUE, Rows
from model.kernels.packing import Packed
from model.luke.attention import EntityAwareAttention, SelfAttention
from tests.gpu import DEVICE, LENGTHS, ON_GPU, distance
from tests.support.flat_batches import layout_of
from tests.support.models import TINY, shake

pytestmark = ON_GPU
CONFIG = replace(TINY, hidden_size=128, num_attention_heads=2, attention_probs_dropout_prob=0.0)
TOLERANCE = {"float32": 1e-3, "bf16": 2e-2}
DRAWS = 400


def attended(attention: SelfAttention, states: Tensor, layout: Packed) -> tuple[Tensor, dict[str, Tensor]]:
    """The output, and the gradients of a fixed function of it by the states and by every weight."""
    attention.zero_grad()
    states = states.detach().requires_grad_()
    output = attention(states, layout)
    pattern = torch.randn(output.shape, generator=torch.Generator().manual_seed(1)).to(output.device)
    (output.float() * pattern).sum().backward()
    gradients = {name: value.grad for name, value in attention.named_parameters() if value.grad is not None}
    return output, {"states": states.grad, **gradients}


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("kind", [SelfAttention, EntityAwareAttention])
def test_attention_is_that_of_products(kind: type[SelfAttention], name: str, precision: str) -> None:
    """In bf16 by cases, in float32 in one call over jagged tensors."""
    torch.manual_seed(0)
    attention, layout = shake(kind(CONFIG)), layout_of(LENGTHS[name])
    states = torch.randn(layout.words + layout.entities, CONFIG.hidden_size)
    wanted, of_wanted = attended(attention, states, layout)
    of_wanted = {key: value.clone() for key, value in of_wanted.items()}
    attention.to(DEVICE)
    with torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "bf16"):
        found, of_found = attended(attention, states.to(DEVICE), layout_of(LENGTHS[name], DEVICE))
    assert found.isfinite().all()
    assert distance(found, wanted) < TOLERANCE[precision]
    largest = max(float(value.norm()) for value in of_wanted.values())
    for key, value in of_wanted.items():
        off = float((of_found[key].cpu() - value).norm())
        # A key's bias changes no weight of attention: its gradient is zero but for rounding.
        assert off < TOLERANCE[precision] * (float(value.norm()) + 0.05 * largest), key


def rows_of(lengths: list[tuple[int, int]], columns: int = 4) -> list[Rows]:
    """Random projections of words and of entities."""
    layout = layout_of(lengths, DEVICE)
    sides = zip((layout.word_offsets, layout.entity_offsets), zip(*lengths, strict=True), strict=True)
    return [
        Rows(
            torch.randn(sum(counts), columns, 2, 64, device=DEVICE, dtype=torch.bfloat16, requires_grad=True),
            offsets,
            max(counts),
        )
        for offsets, counts in sides
    ]


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("kind", [SelfAttention, EntityAwareAttention])
def test_the_mean_over_dropout_is_the_result_without_it(kind: type[SelfAttention], precision: str) -> None:
    """Dropped weights are made up for by the others, so that z scores of means over draws spread by one."""
    torch.manual_seed(0)
    layout = layout_of([(60, 9), (25, 4)], DEVICE)
    attention, states = shake(kind(CONFIG)).to(DEVICE), torch.randn(98, CONFIG.hidden_size).to(DEVICE)

    def draw(dropout: float) -> Tensor:
        attention.dropout = dropout
        with torch.no_grad(), torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "bf16"):
            return attention(states, layout).double()

    still, drawn = draw(0.0), torch.stack([draw(0.3) for _ in range(DRAWS)])
    spread = drawn.std(dim=0)
    assert spread.min() > 0, "every output is drawn anew"
    scores = (drawn.mean(dim=0) - still) / (spread / math.sqrt(DRAWS))
    assert 0.7 < scores.square().mean() < 1.5


def test_the_backward_pass_drops_what_the_forward_pass_has_dropped() -> None:
    """Attention is linear in the values: <output, g> is <values, their gradient> under the same noise alone."""
    torch.manual_seed(0)
    kinds = rows_of([(60, 9), (25, 4)])
    output = attention_cuda.attend_by_cases(kinds, 0.5)
    output.backward(output.detach())
    whole = float(output.detach().double().square().sum())
    of_values = sum(
        float((rows.projected.detach()[:, VALUE].double() * rows.projected.grad[:, VALUE].double()).sum())
        for rows in kinds
    )
    assert of_values == pytest.approx(whole, rel=0.02)
    assert all(rows.projected.grad[:, KEY].norm() > 0 for rows in kinds)
