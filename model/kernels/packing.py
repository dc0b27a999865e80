"""How the tokens of a batch lie in memory, and what computes the attention among them.

`Padded` is a block (batch, words + entities, hidden) with a mask. `Packed` is (tokens, hidden) without
padding: the words of all sequences, then the entities of all sequences, so that whatever treats a token by
itself sees real tokens only and words and entities are one slice each.

What computes attention:

Packed on a GPU, bf16   its variable-length kernel (`model.kernels.attention_cuda`; `model.luke.attention.has_kernel`)
Packed on a GPU, else   torch's attention over jagged tensors
Padded on a GPU         torch's attention with a mask
Both on a CPU           products (`model.kernels.attention_cpu`), sequence after sequence where they are packed; torch's
                        attention where there is neither dropout nor a query for entities
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from model.kernels.attention_cpu import Joined, Separated, attend_by_products

# Where plain products are faster than what serves instead of a fused kernel, and where one takes jagged batches.
PLAIN_DEVICES = ("cpu",)
JAGGED_DEVICES = ("cuda",) if hasattr(torch.nested, "nested_tensor_from_jagged") else ()
# What an operator of torch has in its name, and what its kernel is called.
KERNELS = {
    "flash_attention_for_cpu": "the CPU's flash attention",
    "cudnn_attention": "cuDNN",
    "efficient_attention": "memory-efficient attention",
    "flash_attention": "flash attention",
}


@dataclass(frozen=True)
class Queries:
    """Queries (..., tokens, hidden) of every token: for word keys, and for entity keys where they differ."""

    for_words: Tensor
    for_entities: Tensor | None = None

    def map(self, function: Any) -> "Queries":
        """The same for both kinds of keys."""
        entities = None if self.for_entities is None else function(self.for_entities)
        return Queries(function(self.for_words), entities)


@dataclass(frozen=True)
class Padded:
    """`key_mask` (batch, words + entities) is True where a token is real; the first `word_count` are words."""

    key_mask: Tensor
    word_count: int

    def attend(self, queries: Queries, keys: Tensor, values: Tensor, heads: int, dropout: float) -> Tensor:
        """Multi-head attention on (batch, words + entities, hidden)."""

        def split(tokens: Tensor) -> Tensor:
            return tokens.unflatten(-1, (heads, -1)).transpose(1, 2)

        mask = self.key_mask[:, None, None, :]
        attended = attend(
            queries.map(split), split(keys), split(values), self.word_count, mask=mask, dropout=dropout
        )
        return attended.transpose(1, 2).flatten(2)


@dataclass(frozen=True, eq=False)
class Packed:
    """Where the tokens of a batch without padding are; what is not given is computed once, where the offsets lie.

    Two sequences, of the words a b and c d e, with the entities X and Y Z, are packed as a b c d e X Y Z:
    `word_offsets` are 0 2 5, `entity_offsets` 0 1 3, `lengths` (2, 1), (3, 2). What reads sequence after sequence,
    a b X | c d e Y Z, has `places` 0 1 3 4 5 2 6 7, `order` 0 1 5 2 3 4 6 7 and `offsets` 0 3 8.

    word_offsets    (sequences + 1) int32, where the words of each sequence begin among all words
    entity_offsets  (sequences + 1) int32, the same of entities
    lengths         words and entities of each sequence
    """

    word_offsets: Tensor
    entity_offsets: Tensor
    lengths: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, lengths: Sequence[tuple[int, int]]) -> "Packed":
        """The layout of sequences with so many words and entities."""
        counts = torch.tensor(lengths, dtype=torch.int32).T
        words, entities = functional.pad(counts.cumsum(dim=1, dtype=torch.int32), (1, 0))
        return cls(words, entities, tuple(lengths))

    def to(self, device: torch.device | str) -> "Packed":
        """The same on another device."""
        return replace(
            self, word_offsets=self.word_offsets.to(device), entity_offsets=self.entity_offsets.to(device)
        )

    @property
    def word_count(self) -> int:
        """Words of all sequences."""
        return sum(words for words, _ in self.lengths)

    @property
    def entity_count(self) -> int:
        """Entities of all sequences."""
        return sum(entities for _, entities in self.lengths)

    @functools.cached_property
    def places(self) -> Tensor:
        """For each packed token its place in the order sequence after sequence, (tokens)."""
        words = spread(self.entity_offsets[:-1], self.word_offsets, self.word_count)
        entities = spread(self.word_offsets[1:], self.entity_offsets, self.entity_count)
        moved = torch.cat([words, entities])
        return moved.add_(count_up(self.word_count, self.entity_count, like=moved))

    @functools.cached_property
    def order(self) -> Tensor:
        """The inverse of `places`: for each token, sequence after sequence, its place in the packed tensor."""
        places = self.places
        return torch.empty_like(places).scatter_(0, places, count_up(len(places), like=places))

    @functools.cached_property
    def offsets(self) -> Tensor:
        """Where each sequence begins in that order, (sequences + 1)."""
        return (self.word_offsets + self.entity_offsets).long()

    def attend(self, queries: Queries, keys: Tensor, values: Tensor, heads: int, dropout: float) -> Tensor:
        """Multi-head attention on (tokens, hidden): a token sees those of its own sequence."""
        is_jagged = keys.device.type in JAGGED_DEVICES
        form = self.attend_jagged if is_jagged else self.attend_in_turn

        def arrange(tokens: Tensor) -> Tensor:
            return Reordered.apply(tokens, self.order, self.places).unflatten(-1, (heads, -1))

        attended = form(queries.map(arrange), arrange(keys), arrange(values), dropout)
        return Reordered.apply(attended.flatten(1), self.places, self.order)

    def attend_in_turn(self, queries: Queries, keys: Tensor, values: Tensor, dropout: float) -> Tensor:
        """One sequence after the other, (tokens, heads, head size): no padding, and all stays in the cache."""
        sizes = [words + entities for words, entities in self.lengths]
        entities = queries.for_entities
        rows = zip(
            Separated.apply(queries.for_words, sizes),
            [None] * len(sizes) if entities is None else Separated.apply(entities, sizes),
            Separated.apply(keys, sizes),
            Separated.apply(values, sizes),
            self.lengths,
            strict=True,
        )
        attended = [
            attend(Queries(for_words, for_entities), key, value, words, mask=None, dropout=dropout)
            for for_words, for_entities, key, value, (words, _) in rows
        ]
        return Joined.apply(sizes, *attended)

    def attend_jagged(self, queries: Queries, keys: Tensor, values: Tensor, dropout: float) -> Tensor:
        """All sequences in one variable-length call of a fused kernel, (tokens, heads, head size)."""
        size = keys.shape[-1]
        query, key, value = queries.for_words, keys, values
        if queries.for_entities is not None:
            query = torch.cat([queries.for_words, queries.for_entities], dim=-1)
            is_word = self.order < self.word_count
            key = torch.cat(
                [keys * is_word[:, None, None], keys * ~is_word[:, None, None]], dim=-1
            )  # [k; 0] for words, [0; k] for entities
            value = functional.pad(values, (0, size))  # flash wants equal widths
        sizes = [words + entities for words, entities in self.lengths]

        def jagged(tokens: Tensor) -> Tensor:
            return torch.nested.nested_tensor_from_jagged(
                tokens, self.offsets, min_seqlen=min(sizes), max_seqlen=max(sizes)
            ).transpose(1, 2)

        attended = functional.scaled_dot_product_attention(
            jagged(query), jagged(key), jagged(value), dropout_p=dropout, scale=1 / math.sqrt(size)
        )
        return attended.transpose(1, 2).values()[..., :size]


Layout = Padded | Packed


def spread(values: Tensor, offsets: Tensor, count: int) -> Tensor:
    """A value of each sequence for each of its `count` tokens, int64. The device is not waited for."""
    return values.long().repeat_interleave(offsets.diff(), output_size=count)


def count_up(*counts: int, like: Tensor) -> Tensor:
    """0 1 2 ... up to each count, one after the other, where `like` lies."""
    return torch.cat([torch.arange(count, device=like.device) for count in counts])


class Reordered(torch.autograd.Function):
    """Rows in another order. As a permutation its gradient is a look-up, not a sum over equal rows."""

    @staticmethod
    def forward(context: Any, tokens: Tensor, order: Tensor, places: Tensor) -> Tensor:
        context.save_for_backward(order, places)
        return tokens.index_select(0, order)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        _, places = context.saved_tensors
        return gradient.index_select(0, places), None, None


def kernel_of(
    attention: Callable[[Tensor, Layout], Tensor], layout: Layout, width: int, device: torch.device
) -> str:
    """The kernel that an attention module over states of that width runs on there, found by running it."""
    tokens = layout.key_mask.shape if isinstance(layout, Padded) else [len(layout.order)]
    calls: list[str] = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(str(function))
            return function(*args, **(kwargs or {}))

    states = torch.zeros(*tokens, width, device=device)
    with torch.no_grad(), Recorder():
        attention(states, layout)
    found = (name for part, name in KERNELS.items() if any(part in call for call in calls))
    return next(found, "plain products")


def attend(
    queries: Queries, keys: Tensor, values: Tensor, word_count: int, *, mask: Tensor | None, dropout: float
) -> Tensor:
    """Attention on (batch, heads, tokens, head size); `mask` (batch, 1, 1, tokens) is True at real keys.

    The CPU's fused kernel has neither dropout nor values narrower than its queries: plain products are faster
    than what takes its place.
    """
    is_plain = dropout > 0 or queries.for_entities is not None
    if is_plain and keys.device.type in PLAIN_DEVICES and not torch.compiler.is_compiling():
        return attend_by_products(
            queries.for_words, queries.for_entities, keys, values, word_count, mask, dropout
        )
    query = queries.for_words
    scale = 1 / math.sqrt(keys.shape[-1])
    if queries.for_entities is not None:
        query = torch.cat([queries.for_words, queries.for_entities], dim=-1)
        keys = stack_keys(keys, word_count)
    return functional.scaled_dot_product_attention(
        query, keys, values, attn_mask=mask, dropout_p=dropout, scale=scale
    )


def stack_keys(keys: Tensor, word_count: int) -> Tensor:
    """Keys of double width: [k; 0] for words and [0; k] for entities, so that each meets its own query.

    A query is [for words; for entities]. With (1, 2; 3, 4) the word's key (5, 6; 0, 0) gives 1 * 5 + 2 * 6 = 17, the
    entity's key (0, 0; 5, 6) gives 3 * 5 + 4 * 6 = 39: one product instead of four.
    """
    size = keys.shape[-1]
    word_keys = functional.pad(keys[..., :word_count, :], (0, size))
    entity_keys = functional.pad(keys[..., word_count:, :], (size, 0))
    return torch.cat([word_keys, entity_keys], dim=-2)
