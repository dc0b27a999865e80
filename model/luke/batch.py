"""The model's input: a `MaskedSequence`, and the `FlatBatch` of several, in one tensor, so that it travels at once."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.kernels.packing import Lengths, Packed, count_up, spread
from model.luke.config import LukeConfig

Integers = NDArray[np.int64]
INT32 = -(2**31), 2**31 - 1
IGNORED = -100  # a label where nothing is to be predicted


@dataclass(frozen=True)
class MaskedSequence:
    """A sequence with [CLS] and [SEP], spans counted from [CLS]; some words and entities may be masked."""

    word_ids: Integers
    word_labels: Integers
    entity_ids: Integers
    entity_labels: Integers
    entity_starts: Integers
    entity_ends: Integers

    @classmethod
    def unmasked(cls, word_ids: Integers, entity_ids: Integers, spans: Integers) -> "MaskedSequence":
        """Words, and entities at spans (entities, 2), half open, of which nothing is masked."""
        of_words, of_entities = (np.full(len(ids), IGNORED) for ids in (word_ids, entity_ids))
        return cls(word_ids, of_words, entity_ids, of_entities, *spans.T)


@dataclass(frozen=True)
class Shape(Lengths):
    """The counts of a flat batch: the host knows them without waiting for a device."""

    mention_words: int  # words of all mentions, cut at the longest that the sequences have
    masked_words: int  # of all sequences
    masked_entities: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of each field, as they lie one after the other."""
        offsets = len(self.lengths) + 1
        of_words = (self.words, offsets, self.masked_words, self.masked_words)
        return (*of_words, *[self.entities] * 3, offsets, self.masked_entities, self.masked_entities)


class Part:
    """A part of a flat batch's numbers, by its place among all of them."""

    def __init__(self, place: int) -> None:
        self.place = place

    def __get__(self, batch: "FlatBatch", owner: type) -> Tensor:
        return batch.fields[self.place]


@dataclass(frozen=True, eq=False)
class FlatBatch:
    """One batch: words of all sequences, then entities of all sequences, without padding.

    `numbers` is int32 and holds, one after the other, what the parts name. Masked tokens are named by their
    place in the packed tensor, in which entities come after all words; labels are those of masked tokens alone.
    """

    numbers: Tensor
    shape: Shape

    word_ids = Part(0)  # (words)
    masked_words = Part(2)  # (masked words) places in the packed tensor
    word_labels = Part(3)  # (masked words) ids
    entity_ids = Part(4)  # (entities)
    mention_starts = Part(5)  # (entities) the first word of each mention, counted in its own sequence
    mention_lengths = Part(6)  # (entities) words of each mention
    masked_entities = Part(8)  # (masked entities) places in the packed tensor
    entity_labels = Part(9)  # (masked entities) ids

    @functools.cached_property
    def fields(self) -> tuple[Tensor, ...]:
        """The parts of `numbers`."""
        return self.numbers.split(self.shape.sizes)

    @functools.cached_property
    def layout(self) -> Packed:
        """The layout of the tokens."""
        return Packed(self.shape.lengths, self.fields[1], self.fields[7])

    @property
    def word_places(self) -> Tensor:
        """(words) the place of each word in its sequence."""
        offsets = self.layout.word_offsets
        begins = spread(offsets[:-1], offsets, self.shape.words)
        return count_up(self.shape.words, like=begins).sub_(begins)

    def mention_places(self) -> tuple[Tensor, Tensor]:
        """The places in their sequences of the words of all mentions, and where each mention begins among them."""
        ends = self.mention_lengths.cumsum(0)
        begins = ends - self.mention_lengths
        shifts = (self.mention_starts - begins).repeat_interleave(
            self.mention_lengths, output_size=self.shape.mention_words
        )
        return count_up(self.shape.mention_words, like=shifts) + shifts, begins

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "FlatBatch":
        """The same batch on another device."""
        return FlatBatch(self.numbers.to(device, non_blocking=non_blocking), self.shape)

    def check(self, config: LukeConfig) -> None:
        """Raise a ValueError unless a model of that configuration has a row for every id, label and place."""
        words, entities = config.vocab_size, config.entity_vocab_size
        named = (
            ("word_ids", self.word_ids, words), ("word_labels", self.word_labels, words),
            ("entity_ids", self.entity_ids, entities), ("entity_labels", self.entity_labels, entities),
        )  # fmt: skip
        for name, ids, rows in named:
            refuse(name, ids, (ids < 0) | (ids >= rows), f"0 to {rows - 1}, the rows of the model's table")
        self.check_mentions()
        longest = max(length for length, _ in self.shape.lengths)
        if longest > config.max_words:
            raise ValueError(
                f"word_ids has {longest} words in a sequence, but the model has positions for {config.max_words}; "
                "split the text into shorter windows"
            )

    def check_mentions(self) -> None:
        """Raise a ValueError unless each mention has words, and lies in its sequence."""
        lengths = torch.tensor(self.shape.lengths)
        words = lengths[:, 0].repeat_interleave(lengths[:, 1])
        ends = self.mention_starts + self.mention_lengths
        refuse("mention_starts", self.mention_starts, self.mention_starts < 0, "0 or more")
        refuse("mention_lengths", self.mention_lengths, self.mention_lengths < 1, "a word or more")
        refuse("mention_lengths", self.mention_lengths, ends > words, "mentions that end in their sequences")


def collate(sequences: Sequence[MaskedSequence], *, max_mention_words: int, entities: bool) -> FlatBatch:
    """Sequences as one batch without padding; a mention is cut at `max_mention_words`.

    With `entities` False the batch is words alone (the baseline "RoBERTa with extra training").
    """
    kept = slice(None) if entities else slice(0)

    def joined(name: str, part: slice = kept) -> Integers:
        return np.concatenate([getattr(each, name)[part] for each in sequences])

    lengths = [(len(each.word_ids), len(each.entity_ids[kept])) for each in sequences]
    word_offsets, entity_offsets = np.cumsum([(0, 0), *lengths], axis=0).T
    word_labels, entity_labels = joined("word_labels", slice(None)), joined("entity_labels")
    masked_words, masked_entities = (np.flatnonzero(each != IGNORED) for each in (word_labels, entity_labels))
    starts = joined("entity_starts")
    mention_lengths = np.minimum(joined("entity_ends") - starts, max_mention_words)
    shape = Shape(tuple(lengths), int(mention_lengths.sum()), len(masked_words), len(masked_entities))
    numbers = [
        joined("word_ids", slice(None)), word_offsets, masked_words, word_labels[masked_words],
        joined("entity_ids"), starts, mention_lengths, entity_offsets,
        masked_entities + word_offsets[-1], entity_labels[masked_entities],
    ]  # fmt: skip
    # An id that is too large for int32 must not become a small one: so it is beyond any table, and refused.
    within = np.concatenate(numbers).clip(*INT32)
    return FlatBatch(torch.from_numpy(within.astype(np.int32)), shape)


def refuse(name: str, tensor: Tensor, is_wrong: Tensor, wanted: str) -> None:
    """Raise a ValueError about the first value that is wrong, if there is one."""
    if is_wrong.any():
        place = is_wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name} of shape {tuple(tensor.shape)} has {int(tensor[tuple(place)])} at {place}, wanted {wanted}"
        )
