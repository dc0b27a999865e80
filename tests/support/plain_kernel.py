"""A slow, plain `model.kernels.attention_cuda.Flash`, sequence by sequence, for where there is no GPU."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from model.kernels.attention_cuda import Place


class PlainKernel:
    """Attention by products and softmax; it says infinity where there are no keys, as the GPU's kernel does."""

    def __init__(self) -> None:
        self.calls = 0

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, place: Place, dropout: float
    ) -> tuple[Tensor, Tensor, Any]:
        self.calls += 1
        attended = torch.zeros_like(query)
        totals = query.new_full((query.shape[1], len(query)), torch.inf)
        kept = []
        for queries, keys in spans(place):
            scores = scores_of(query[queries], key[keys])
            if scores.shape[-1]:
                totals[:, queries] = scores.logsumexp(dim=-1)
            noise = (torch.rand_like(scores) >= dropout) / (1 - dropout)
            kept.append(noise)
            weights = scores.softmax(dim=-1) * noise
            attended[queries] = torch.einsum("hqk,khd->qhd", weights, value[keys])
        return attended, totals, kept

    def backward(
        self,
        gradient: Tensor,
        tokens: tuple[Tensor, Tensor, Tensor],
        whole: tuple[Tensor, Tensor],
        place: Place,
        dropout: float,
        drawn: Any,
    ) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = tokens
        attended, totals = whole
        of_query, of_key, of_value = (torch.zeros_like(each) for each in tokens)
        for (queries, keys), noise in zip(spans(place), drawn, strict=True):
            weights = (scores_of(query[queries], key[keys]) - totals[:, queries, None]).exp()
            of_value[keys] = torch.einsum("hqk,qhd->khd", weights * noise, gradient[queries])
            of_weights = torch.einsum("qhd,khd->hqk", gradient[queries], value[keys]) * noise
            mean = (gradient[queries] * attended[queries]).sum(dim=-1).T[..., None]
            of_scores = weights * (of_weights - mean) / math.sqrt(query.shape[-1])
            of_query[queries] = torch.einsum("hqk,khd->qhd", of_scores, key[keys])
            of_key[keys] = torch.einsum("hqk,qhd->khd", of_scores, query[queries])
        return of_query, of_key, of_value


def spans(place: Place) -> Iterator[tuple[slice, slice]]:
    """The places of the queries and the keys of each sequence."""
    bounds = place.query_offsets.tolist(), place.key_offsets.tolist()
    for first, last, first_key, last_key in zip(
        bounds[0][:-1], bounds[0][1:], bounds[1][:-1], bounds[1][1:], strict=True
    ):
        assert last - first <= place.longest_query
        assert last_key - first_key <= place.longest_key
        yield slice(first, last), slice(first_key, last_key)


def scores_of(query: Tensor, key: Tensor) -> Tensor:
    return torch.einsum("qhd,khd->hqk", query, key) / math.sqrt(query.shape[-1])
