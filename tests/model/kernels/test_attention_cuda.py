"""Attention by cases, on a plain kernel in double precision."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from model.kernels.attention_cuda import FOR_ENTITIES, FOR_WORDS, KEY, VALUE, ByCases, Place
from tests.support.flat_batches import layout_of
from tests.support.plain_kernel import PlainKernel

LENGTHS = [(5, 2), (3, 0), (7, 3)]
HEADS, SIZE = 2, 8


class Remembering(PlainKernel):
    """Keeps the noise of each case, by sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.noise: list[list[Tensor]] = []

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, place: Place, dropout: float
    ) -> tuple[Tensor, Tensor, Any]:
        found = super().forward(query, key, value, place, dropout)
        self.noise.append(found[2])
        return found


def dense(kinds: list[Tensor], noise: list[list[Tensor]]) -> Tensor:
    """The same by one softmax a sequence, of words and then entities, whose weights are multiplied by the noise."""
    ends = [0, 0]
    attended: list[list[Tensor]] = [[], []]
    for number, lengths in enumerate(LENGTHS):
        parts = [kind[end : end + count] for kind, end, count in zip(kinds, ends, lengths, strict=True)]
        ends = [end + count for end, count in zip(ends, lengths, strict=True)]
        value = torch.cat([part[:, VALUE] for part in parts])
        for asking, part in enumerate(parts):
            scores = [
                torch.einsum("qhd,khd->hqk", part[:, column], keys[:, KEY]) / math.sqrt(SIZE)
                for column, keys in zip((FOR_WORDS, FOR_ENTITIES), parts, strict=True)
            ]
            dropped = torch.cat([noise[2 * asking + of_entities][number] for of_entities in (0, 1)], dim=-1)
            weights = torch.cat(scores, dim=-1).softmax(dim=-1) * dropped
            attended[asking].append(torch.einsum("hqk,khd->qhd", weights, value))
    return torch.cat([*attended[0], *attended[1]])


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_gradients_are_those_of_one_softmax_under_the_same_noise(dropout: float) -> None:
    torch.manual_seed(0)
    layout, kernel = layout_of(LENGTHS), Remembering()
    kinds = [
        torch.randn(count, 4, HEADS, SIZE, dtype=torch.float64, requires_grad=True)
        for count in (layout.words, layout.entities)
    ]
    longest = [max(counts) for counts in zip(*LENGTHS, strict=True)]
    places = tuple(zip((layout.word_offsets, layout.entity_offsets), longest, strict=True))
    found = ByCases.apply(kernel, dropout, places, *kinds)
    wanted = dense(kinds, kernel.noise)
    assert len(kernel.noise) == 4
    torch.testing.assert_close(found, wanted)
    direction = torch.randn_like(wanted)
    of_found, of_wanted = (torch.autograd.grad(each, kinds, direction) for each in (found, wanted))
    torch.testing.assert_close(of_found, of_wanted)
