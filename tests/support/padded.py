"""A flat batch as a padded one, for models that take nothing else."""

from dataclasses import dataclass

import torch
from torch import Tensor

from model.kernels.packing import count_up
from model.luke.batch import IGNORED, FlatBatch
from model.luke.config import PAD_ENTITY


@dataclass(frozen=True)
class PaddedBatch:
    """Sequences with padding at their ends, as transformers takes them; what is None has no part in it.

    Ids, masks (True where a token is real) and labels (-100 where nothing is to be predicted) are (batch, tokens);
    `entity_positions` (batch, entities, mention) are positions in word_ids, -1 is padding.
    """

    word_ids: Tensor
    word_mask: Tensor
    entity_ids: Tensor | None = None
    entity_positions: Tensor | None = None
    entity_mask: Tensor | None = None
    word_labels: Tensor | None = None
    entity_labels: Tensor | None = None

    def to(self, device: torch.device | str) -> "PaddedBatch":
        """The same batch on another device."""
        return PaddedBatch(**{k: v.to(device) for k, v in vars(self).items() if v is not None})


def padded(batch: FlatBatch, pad_id: int) -> PaddedBatch:
    """The same sequences with padding at their ends; `pad_id` is its word id."""
    shape, numbers = batch.shape, batch.numbers
    words, entities = torch.tensor(shape.lengths, device=numbers.device).T
    word_labels = labels_at(batch.masked_words, batch.word_labels, shape.words)
    of_words = pad_rows(batch.word_ids, words, pad_id), row_mask(words)
    word_labels = pad_rows(word_labels, words, IGNORED)
    if not shape.entities:
        return PaddedBatch(*of_words, word_labels=word_labels)
    entity_labels = labels_at(batch.masked_entities - shape.words, batch.entity_labels, shape.entities)
    lengths, starts = batch.mention_lengths[:, None], batch.mention_starts[:, None]
    places = count_up(int(lengths.max()), like=numbers)
    positions = torch.where(places < lengths, starts + places, -1)
    of_entities = (
        pad_rows(batch.entity_ids, entities, PAD_ENTITY),
        pad_rows(positions, entities, -1),
        row_mask(entities),
    )
    labels = {"word_labels": word_labels, "entity_labels": pad_rows(entity_labels, entities, IGNORED)}
    return PaddedBatch(*of_words, *of_entities, **labels)


def labels_at(places: Tensor, labels: Tensor, count: int) -> Tensor:
    """Labels (count) of all tokens: these at these places, -100 at the others."""
    return labels.new_full((count,), IGNORED).index_copy(0, places.long(), labels)


def pad_rows(tokens: Tensor, counts: Tensor, value: int) -> Tensor:
    """Tokens of all sequences (tokens, ...), so many of each, as int64 (sequences, longest, ...)."""
    mask = row_mask(counts)
    rows = tokens.new_full((*mask.shape, *tokens.shape[1:]), value, dtype=torch.int64)
    rows[mask] = tokens.long()
    return rows


def row_mask(counts: Tensor) -> Tensor:
    """(sequences, longest) bool, True where one of so many tokens of each sequence stands."""
    return count_up(int(counts.max()), like=counts) < counts[:, None]
