"""Entity-aware attention as four matrix products and a softmax: what the fused forms are compared with."""

import math

import torch
from torch import Tensor
from torch.nn import functional

from model.kernels.packing import Padded
from model.luke.attention import EntityAwareAttention


def four_products(attention: EntityAwareAttention, states: Tensor, layout: Padded) -> Tensor:
    """The attended values (batch, tokens, hidden), by the scores of words and entities for words and entities."""
    words, heads = layout.word_count, attention.heads
    four = [split_heads(part, heads) for part in attention.four_queries(states, words)]
    keys = split_heads(attention.key(states), heads).transpose(-1, -2)
    word_keys, entity_keys = keys[..., :words], keys[..., words:]
    of_words = torch.cat([four[0] @ word_keys, four[1] @ entity_keys], dim=-1)
    of_entities = torch.cat([four[2] @ word_keys, four[3] @ entity_keys], dim=-1)
    scores = torch.cat([of_words, of_entities], dim=-2) / math.sqrt(attention.head_size)
    weights = scores.masked_fill(~layout.key_mask[:, None, None, :], -math.inf).softmax(dim=-1)
    weights = functional.dropout(weights, attention.dropout, attention.training)
    values = split_heads(attention.value(states), heads)
    return (weights @ values).transpose(-3, -2).flatten(-2)


def split_heads(projected: Tensor, heads: int) -> Tensor:
    """(..., tokens, hidden) to (..., heads, tokens, head size)."""
    return projected.unflatten(-1, (heads, -1)).transpose(-3, -2)
