"""Masked sequences to a batch."""

from collections.abc import Sequence
from dataclasses import replace

from model.data.masking import MaskedSequence
from model.luke.batch import IGNORED, Batch, lengths_mask, mention_positions, pad
from model.luke.config import PAD_ENTITY


def collate(
    sequences: Sequence[MaskedSequence], *, pad_id: int, max_mention_words: int, entities: bool
) -> Batch:
    """Pad sequences to the longest; a mention's positions are cut at `max_mention_words`.

    With `entities` False the batch is words alone (the baseline "RoBERTa with extra training"). The model does
    no work on the padding.
    """
    words = replace(
        Batch.of_words([sequence.word_ids for sequence in sequences], pad_id),
        word_labels=pad([sequence.word_labels for sequence in sequences], IGNORED),
    )
    ids = [sequence.entity_ids for sequence in sequences]
    if not entities or not any(map(len, ids)):
        return words.unpadded()
    starts = pad([sequence.entity_starts for sequence in sequences], 0)
    ends = pad([sequence.entity_ends for sequence in sequences], 0)
    return replace(
        words,
        entity_ids=pad(ids, PAD_ENTITY),
        entity_positions=mention_positions(starts, ends, max_mention_words),
        entity_mask=lengths_mask(ids),
        entity_labels=pad([sequence.entity_labels for sequence in sequences], IGNORED),
    ).unpadded()
