"""The `Batch`: the model's input, checked when it is made; then the checks, then what builds its tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model.kernels.packing import Packed
from model.luke.config import LukeConfig

Integers = NDArray[np.int64]
IGNORED = -100  # a label where nothing is to be predicted


@dataclass(frozen=True, eq=False)
class Unpadded:
    """The places of the real tokens of a padded batch, and their layout when they are packed.

    word_indices    (words of all sequences) places in the flattened word ids
    entity_indices  (entities of all sequences) places in the flattened entity ids
    """

    word_indices: Tensor
    entity_indices: Tensor
    layout: Packed

    @classmethod
    def of(cls, word_mask: Tensor, entity_mask: Tensor | None) -> "Unpadded":
        """The tokens for which `word_mask` (batch, words) and `entity_mask` are True; made on the CPU, once a batch."""
        if entity_mask is None:
            entity_mask = word_mask[:, :0]
        lengths = zip(word_mask.sum(dim=1).tolist(), entity_mask.sum(dim=1).tolist(), strict=True)
        return cls(
            word_mask.flatten().nonzero()[:, 0],
            entity_mask.flatten().nonzero()[:, 0],
            Packed.of(list(lengths)),
        )

    def to(self, device: torch.device | str) -> "Unpadded":
        """The same on another device."""
        return Unpadded(self.word_indices.to(device), self.entity_indices.to(device), self.layout.to(device))


@dataclass(frozen=True)
class Batch:
    """One batch of word and entity sequences; what is None has no part in it.

    word_ids          (batch, words) int64
    word_mask         (batch, words) bool, True where the word is real
    entity_ids        (batch, entities) int64, 0 is [PAD]
    entity_positions  (batch, entities, mention) int64 positions in word_ids, -1 is padding
    entity_mask       (batch, entities) bool, True where the entity is real
    packed            where the real tokens are, on whose padding the model does no work (`unpadded`)

    Raises ValueError for values that no model can take, where they lie on the CPU; a batch that lies on another device
    is not looked into. Shapes and types that do not fit together are torch's errors.
    """

    word_ids: Tensor
    word_mask: Tensor
    entity_ids: Tensor | None = None
    entity_positions: Tensor | None = None
    entity_mask: Tensor | None = None
    packed: Unpadded | None = None

    def __post_init__(self) -> None:
        mask = self.word_mask
        if mask.device.type == "cpu" and not (has_word := mask.any(dim=1)).all():
            row = int(has_word.int().argmin())  # attention over nothing is not a number
            raise ValueError(f"word_mask of shape {tuple(mask.shape)} has no word in sequence {row}")
        parts = (self.entity_ids, self.entity_positions, self.entity_mask)
        if any(part is None for part in parts):
            if any(part is not None for part in parts):
                raise ValueError("entity_ids, entity_positions, entity_mask come together; one is None")
            return
        assert self.entity_positions is not None
        assert self.entity_mask is not None
        check_mentions(self.entity_positions, self.entity_mask, self.word_mask)

    @classmethod
    def of_words(cls, rows: Sequence[Integers], pad_id: int) -> "Batch":
        """Word ids of sequences, without entities."""
        return cls(pad(rows, pad_id), lengths_mask(rows))

    def to(self, device: torch.device | str) -> Self:
        """The same batch on another device."""
        return replace(
            self, **{name: value.to(device) for name, value in vars(self).items() if value is not None}
        )

    def unpadded(self) -> Self:
        """The same batch with the places of its tokens, which are found on the CPU: call it before it is moved."""
        return replace(self, packed=Unpadded.of(self.word_mask, self.entity_mask))

    def check(self, config: LukeConfig) -> None:
        """Raise a ValueError unless a model of that configuration has a row for every id.

        A model does that itself with what lies on the CPU; elsewhere it would have to wait for the device.
        """
        check_range("word_ids", self.word_ids, config.vocab_size)
        if self.entity_ids is not None:
            check_range("entity_ids", self.entity_ids, config.entity_vocab_size)


def check_mentions(positions: Tensor, entity_mask: Tensor, word_mask: Tensor) -> None:
    """The word positions of entities (batch, entities, mention): real words, at least one for a real entity."""
    name, words = "entity_positions", word_mask.shape[1]
    if positions.device.type != "cpu":
        return
    refuse(name, positions, (positions < -1) | (positions >= words), f"-1 to {words - 1} for {words} words")
    is_word = positions >= 0
    rows = torch.arange(len(positions))[:, None, None]
    is_padding = is_word & entity_mask[..., None] & ~word_mask[rows, positions.clamp(min=0)]
    refuse(name, positions, is_padding, "positions where word_mask is True")
    empty = entity_mask & ~is_word.any(dim=2)
    if empty.any():
        sequence, entity = empty.nonzero()[0].tolist()
        raise ValueError(
            f"{name} of shape {tuple(positions.shape)}: the mention of entity {entity} of sequence {sequence} "
            "is empty; give a real entity at least one position"
        )


def check_range(name: str, ids: Tensor, rows: int) -> None:
    """Ids of a table with so many rows."""
    refuse(name, ids, (ids < 0) | (ids >= rows), f"0 to {rows - 1}, the rows of the model's table")


def refuse(name: str, tensor: Tensor, is_wrong: Tensor, wanted: str) -> None:
    """Raise a ValueError about the first value that is wrong, if there is one."""
    if is_wrong.any():
        place = is_wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name} of shape {tuple(tensor.shape)} has {int(tensor[tuple(place)])} at {place}, wanted {wanted}"
        )


def mention_positions(starts: Tensor, ends: Tensor, max_mention_words: int) -> Tensor:
    """Word positions of half-open spans (batch, entities) as (batch, entities, mention), padded with -1."""
    longest = min(int((ends - starts).max()), max_mention_words)
    positions = starts[..., None] + torch.arange(longest)
    return torch.where(positions < ends[..., None], positions, -1)


def pad(rows: Sequence[Integers], value: int) -> Tensor:
    """Stack rows (length, ...) of different lengths into (rows, longest, ...), filled up with `value`."""
    tensors = [torch.from_numpy(row) for row in rows]
    return nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


def lengths_mask(rows: Sequence[Integers]) -> Tensor:
    """(rows, longest) bool, True where `pad` has values of the rows."""
    lengths = torch.tensor([len(row) for row in rows])
    return torch.arange(int(lengths.max())) < lengths[:, None]
