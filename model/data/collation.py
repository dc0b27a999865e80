"""Masked sequences to a batch."""

from collections.abc import Sequence

import torch

from model.data.masking import MaskedSequence
from model.luke.batch import IGNORED, Batch, mention_positions, pad
from model.luke.config import PAD_ENTITY


def collate(
    sequences: Sequence[MaskedSequence], *, pad_id: int, max_mention_words: int, entities: bool
) -> Batch:
    """Pad sequences to the longest; a mention's positions are cut at `max_mention_words`.

    With `entities` False the batch is words alone (the baseline "RoBERTa with extra training"). The model does
    no work on the padding.
    """
    word_ids = pad([sequence.word_ids for sequence in sequences], pad_id)
    lengths = torch.tensor([len(sequence.word_ids) for sequence in sequences])
    word_mask = torch.arange(word_ids.shape[1]) < lengths[:, None]
    word_labels = pad([sequence.word_labels for sequence in sequences], IGNORED)
    if not entities or not any(len(sequence.entity_ids) for sequence in sequences):
        return Batch(word_ids, word_mask, word_labels=word_labels).unpadded()
    starts = pad([sequence.entity_starts for sequence in sequences], 0)
    ends = pad([sequence.entity_ends for sequence in sequences], 0)
    counts = torch.tensor([len(sequence.entity_ids) for sequence in sequences])
    return Batch(
        word_ids,
        word_mask,
        word_labels=word_labels,
        entity_ids=pad([sequence.entity_ids for sequence in sequences], PAD_ENTITY),
        entity_positions=mention_positions(starts, ends, max_mention_words),
        entity_mask=torch.arange(starts.shape[1]) < counts[:, None],
        entity_labels=pad([sequence.entity_labels for sequence in sequences], IGNORED),
    ).unpadded()
