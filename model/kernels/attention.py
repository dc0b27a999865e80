"""Attention over tokens that lie as a layout says (`model.kernels.packing`), by what suits the device.

On a GPU, bf16   its variable-length kernel (`attention_cuda.attend_by_cases`; `model.luke.attention.has_kernel`)
On a GPU, else   torch's attention over jagged tensors (`attention_cuda.attend_jagged`)
On a CPU         products (`attention_cpu`), sequence after sequence; torch's attention where there is neither dropout
                 nor a query for entities, except in training in bf16
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from model.kernels import attention_cpu, attention_cuda
from model.kernels.packing import Packed, Reordered

# Where plain products are faster than what serves instead of a fused kernel, and where one takes jagged batches.
PLAIN_DEVICES = ("cpu",)
JAGGED_DEVICES = ("cuda",) if hasattr(torch.nested, "nested_tensor_from_jagged") else ()


@dataclass(frozen=True)
class Queries:
    """Queries (..., tokens, hidden) of every token: for word keys, and for entity keys where they differ."""

    for_words: Tensor
    for_entities: Tensor | None = None

    def map(self, function: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor | None]:
        """The function of both."""
        entities = None if self.for_entities is None else function(self.for_entities)
        return function(self.for_words), entities


def attend(
    queries: Queries, keys: Tensor, values: Tensor, layout: Packed, heads: int, dropout: float
) -> Tensor:
    """Multi-head attention on (tokens, hidden): a token sees those of its own sequence."""
    device = keys.device.type
    dense = attention_cpu.attend if device in PLAIN_DEVICES else attend_stacked

    def arrange(tokens: Tensor) -> Tensor:
        if layout.entity_count:
            tokens = Reordered.apply(tokens, layout.order, layout.places)
        return tokens.unflatten(-1, (heads, -1))

    in_order = *queries.map(arrange), arrange(keys), arrange(values)
    if device in JAGGED_DEVICES:
        attended = attention_cuda.attend_jagged(*in_order, layout, dropout)
    else:
        attended = attention_cpu.attend_in_turn(dense, *in_order, layout.lengths, dropout)
    attended = attended.flatten(1)
    return Reordered.apply(attended, layout.places, layout.order) if layout.entity_count else attended


def attend_stacked(
    for_words: Tensor,
    for_entities: Tensor | None,
    keys: Tensor,
    values: Tensor,
    word_count: int,
    dropout: float,
) -> Tensor:
    """Torch's attention on (batch, heads, tokens, head size).

    Where entity keys have queries of their own, both kinds are one call: queries and keys of double width.
    """
    query, scale = for_words, 1 / math.sqrt(keys.shape[-1])
    if for_entities is not None:
        query, keys = torch.cat([for_words, for_entities], dim=-1), stack_keys(keys, word_count)
    return functional.scaled_dot_product_attention(query, keys, values, dropout_p=dropout, scale=scale)


def stack_keys(keys: Tensor, word_count: int) -> Tensor:
    """Keys of double width: [k; 0] for words and [0; k] for entities, so that each meets its own query.

    A query is [for words; for entities]. With (1, 2; 3, 4) the word's key (5, 6; 0, 0) gives 1 * 5 + 2 * 6 = 17, the
    entity's key (0, 0; 5, 6) gives 3 * 5 + 4 * 6 = 39: one product instead of four.
    """
    size = keys.shape[-1]
    word_keys = functional.pad(keys[..., :word_count, :], (0, size))
    entity_keys = functional.pad(keys[..., word_count:, :], (size, 0))
    return torch.cat([word_keys, entity_keys], dim=-2)
