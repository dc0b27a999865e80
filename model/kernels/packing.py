"""The layout of a batch's tokens in memory.

`Packed` is (tokens, hidden) without padding: the words of all sequences, then the entities of all sequences, so that
whatever treats a token by itself sees real tokens only and words and entities are one slice each.
"""

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Lengths:
    """Words and entities of each sequence of a batch, in plain integers: no device is waited for."""

    lengths: tuple[tuple[int, int], ...]

    @functools.cached_property
    def words(self) -> int:
        """Words of all sequences."""
        return sum(words for words, _ in self.lengths)

    @functools.cached_property
    def entities(self) -> int:
        """Entities of all sequences."""
        return sum(entities for _, entities in self.lengths)


@dataclass(frozen=True, eq=False)
class Packed(Lengths):
    """The places of a batch's tokens without padding; all else is computed once, on the device of the offsets.

    Two sequences, of the words a b and c d e, with the entities X and Y Z, are packed as a b c d e X Y Z:
    `word_offsets` are 0 2 5, `entity_offsets` 0 1 3, `lengths` (2, 1), (3, 2). What reads sequence after sequence,
    a b X | c d e Y Z, has `places` 0 1 3 4 5 2 6 7, `order` 0 1 5 2 3 4 6 7 and `offsets` 0 3 8.
    """

    word_offsets: Tensor  # (sequences + 1) int32, where the words of each sequence begin among all words
    entity_offsets: Tensor  # (sequences + 1) int32, the same of entities

    @functools.cached_property
    def places(self) -> Tensor:
        """For each packed token its place in the order sequence after sequence, (tokens)."""
        words = spread(self.entity_offsets[:-1], self.word_offsets, self.words)
        entities = spread(self.word_offsets[1:], self.entity_offsets, self.entities)
        moved = torch.cat([words, entities])
        return moved.add_(count_up(self.words, self.entities, like=moved))

    @functools.cached_property
    def order(self) -> Tensor:
        """The inverse of `places`: for each token, sequence after sequence, its place in the packed tensor."""
        places = self.places
        return torch.empty_like(places).scatter_(0, places, count_up(len(places), like=places))

    @functools.cached_property
    def offsets(self) -> Tensor:
        """The first place of each sequence in that order, (sequences + 1)."""
        return (self.word_offsets + self.entity_offsets).long()

    @functools.cached_property
    def mixed(self) -> "Packed":
        """The layout sequence after sequence, for a model that treats words and entities alike: all count as words."""
        offsets = self.word_offsets + self.entity_offsets
        lengths = tuple((words + entities, 0) for words, entities in self.lengths)
        return Packed(lengths, offsets, torch.zeros_like(offsets))


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
