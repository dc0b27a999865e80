"""Attention on CPUs: plain products, where torch's fused kernel there lacks dropout or is slow, as in bf16.

Sequences are taken out of packed tokens one after the other, and joined again.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

LANE = 1 << 16


def attend(
    for_words: Tensor, for_entities: Tensor | None, keys: Tensor, values: Tensor, word_count: int, dropout: float
) -> Tensor:
    """softmax(Q K^T / sqrt(L)) V on (batch, heads, tokens, L), its weights dropped with that probability.

    `for_words` are the queries that meet the first `word_count` keys, `for_entities` those that meet the
    others (None: the same). The fused kernel has neither dropout nor values narrower than its queries: plain products
    are faster than what takes its place. In bf16 its way back takes two to three times as long as theirs.
    """
    learns_in_bf16 = keys.dtype is torch.bfloat16 and keys.requires_grad
    if dropout > 0 or for_entities is not None or learns_in_bf16:
        with torch.autocast(keys.device.type, enabled=False):
            return Products.apply(for_words, for_entities, keys, values, word_count, dropout)
    return functional.scaled_dot_product_attention(for_words, keys, values)


def attend_in_turn(
    for_words: Tensor,
    for_entities: Tensor | None,
    keys: Tensor,
    values: Tensor,
    lengths: Sequence[tuple[int, int]],
    dropout: float,
) -> Tensor:
    """One sequence after the other, (tokens, heads, L): no padding, and all stays in the cache.

    `lengths` are the words and entities of each sequence.
    """
    sizes = [words + entities for words, entities in lengths]
    parts = (
        [None] * len(sizes) if tokens is None else Separated.apply(tokens, sizes)
        for tokens in (for_words, for_entities, keys, values)
    )
    attended = [
        attend(query, other, key, value, words, dropout)
        for query, other, key, value, (words, _) in zip(*parts, lengths, strict=True)
    ]
    return Joined.apply(sizes, *attended)


class Products(torch.autograd.Function):
    """Keeps one number a weight for the backward pass, its sign saying whether the weight was dropped."""

    @staticmethod
    def forward(
        context: Any,
        for_words: Tensor,
        for_entities: Tensor | None,
        keys: Tensor,
        values: Tensor,
        word_count: int,
        dropout: float,
    ) -> Tensor:
        scale = 1 / math.sqrt(keys.shape[-1])
        scores = (for_words * scale) @ keys.transpose(-1, -2)
        if for_entities is not None:
            entity_keys = keys[..., word_count:, :].transpose(-1, -2)
            scores[..., word_count:] = (for_entities * scale) @ entity_keys
        weights = torch.softmax(scores, dim=-1, out=scores)
        kept, rescale = weights, 1.0
        if dropout:
            kept, rescale = dropout_noise(weights, dropout)
            weights.copysign_(kept)
            torch.clamp_min(weights, 0, out=kept)
        attended = (kept @ values).mul_(rescale)
        context.save_for_backward(for_words, for_entities, keys, values, weights, attended)
        context.word_count, context.dropout, context.scale = word_count, dropout, scale
        context.rescale = rescale
        return attended

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        for_words, for_entities, keys, values, weights, attended = context.saved_tensors
        words = context.word_count
        # Each row's sum of weight times gradient, which the softmax takes off.
        mean = (gradient * attended).sum(dim=-1, keepdim=True)
        gradient = gradient * context.rescale
        of_weights = gradient @ values.transpose(-1, -2)
        if context.dropout:
            kept = weights.relu()
            of_values = kept.transpose(-1, -2) @ gradient
            torch.ops.aten.threshold_backward.grad_input(of_weights, weights, 0, grad_input=of_weights)
            weights = torch.abs(weights, out=kept)
        else:
            of_values = weights.transpose(-1, -2) @ gradient
        of_scores = of_weights.sub_(mean).mul_(weights)
        of_keys = of_scores.transpose(-1, -2) @ for_words
        if for_entities is None:
            of_queries = of_scores @ keys * context.scale
            return of_queries, None, of_keys * context.scale, of_values, None, None
        of_words, of_entities = of_scores[..., :words], of_scores[..., words:]
        of_keys[..., words:, :] = of_entities.transpose(-1, -2) @ for_entities
        return (
            of_words @ keys[..., :words, :] * context.scale,
            of_entities @ keys[..., words:, :] * context.scale,
            of_keys * context.scale,
            of_values,
            None,
            None,
        )


def dropout_noise(like: Tensor, dropout: float) -> tuple[Tensor, float]:
    """Numbers below zero with probability `dropout` (to 1/65536), and what scales the rest to an equal mean.

    A draw of 64 bits serves four numbers: four times the speed of a draw for each.
    """
    count = like.numel()
    draws = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    threshold = round(dropout * LANE)
    lanes = draws.view(torch.int16)[:count].view(like.shape)
    # By way of int32, to which and from which conversions are vectorised.
    noise = lanes.to(torch.int32).sub_(threshold - LANE // 2).to(like.dtype)
    return noise, LANE / (LANE - threshold)


class Separated(torch.autograd.Function):
    """(tokens, heads, head size) to a view (1, heads, tokens, head size) of each sequence.

    torch's own way back, a concatenation of transposed tensors, takes a hundred times as long as copies do.
    """

    @staticmethod
    def forward(context: Any, tokens: Tensor, sizes: list[int]) -> tuple[Tensor, ...]:
        return separate(tokens, sizes)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return join(gradients), None


class Joined(torch.autograd.Function):
    """The inverse of `Separated`."""

    @staticmethod
    def forward(context: Any, sizes: list[int], *parts: Tensor) -> Tensor:
        context.sizes = sizes
        return join(parts)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return None, *separate(gradient, context.sizes)


def separate(tokens: Tensor, sizes: list[int]) -> tuple[Tensor, ...]:
    """Views (1, heads, tokens, head size) of each sequence."""
    return tuple(part.transpose(0, 1)[None] for part in tokens.split(sizes))


def join(parts: tuple[Tensor, ...]) -> Tensor:
    """(1, heads, tokens, head size) of each sequence in one tensor (tokens, heads, head size)."""
    by_token = [part[0].transpose(0, 1) for part in parts]
    joined = parts[0].new_empty(sum(map(len, by_token)), *by_token[0].shape[1:])
    for target, part in zip(joined.split([len(part) for part in by_token]), by_token, strict=True):
        target.copy_(part)
    return joined
