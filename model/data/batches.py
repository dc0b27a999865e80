"""Masked sequences to a batch, and items in parts that a budget of tokens allows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import torch

from model.data.masking import MaskedSequence
from model.luke.batch import IGNORED, Integers
from model.luke.flat import FlatBatch, Shape

Item = TypeVar("Item")


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
    return FlatBatch(torch.from_numpy(np.concatenate(numbers).astype(np.int32)), shape)


def cut_by_tokens(
    items: Iterable[Item], tokens: Callable[[Item], int], budget: int
) -> Iterator[Sequence[Item]]:
    """Consecutive parts of at most `budget` tokens; an item above it is alone."""
    part: list[Item] = []
    size = 0
    for item in items:
        if part and size + tokens(item) > budget:
            yield part
            part, size = [], 0
        part.append(item)
        size += tokens(item)
    if part:
        yield part
