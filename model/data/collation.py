"""Masked sequences to a batch."""

from collections.abc import Sequence

import numpy as np
import torch

from model.data.masking import MaskedSequence
from model.luke.batch import IGNORED
from model.luke.flat import FlatBatch, FlatSequence, flatten


def collate(sequences: Sequence[MaskedSequence], *, max_mention_words: int, entities: bool) -> FlatBatch:
    """Sequences as one batch without padding; a mention is cut at `max_mention_words`.

    With `entities` False the batch is words alone (the baseline "RoBERTa with extra training").
    """
    flat = [flat_sequence(each, max_mention_words=max_mention_words, entities=entities) for each in sequences]
    numbers, shape = flatten(flat)
    return FlatBatch(torch.from_numpy(numbers), shape)


def flat_sequence(sequence: MaskedSequence, *, max_mention_words: int, entities: bool) -> FlatSequence:
    """A masked sequence as a flat batch holds it."""
    kept = slice(None) if entities else slice(0)
    masked_words = np.flatnonzero(sequence.word_labels != IGNORED)
    labels = sequence.entity_labels[kept]
    masked_entities = np.flatnonzero(labels != IGNORED)
    starts, ends = sequence.entity_starts[kept], sequence.entity_ends[kept]
    return FlatSequence(
        word_ids=sequence.word_ids,
        masked_words=masked_words,
        word_labels=sequence.word_labels[masked_words],
        entity_ids=sequence.entity_ids[kept],
        mention_starts=starts,
        mention_lengths=np.minimum(ends - starts, max_mention_words),
        masked_entities=masked_entities,
        entity_labels=labels[masked_entities],
    )
