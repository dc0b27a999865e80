"""What a batch must be like: every refusal names the tensor, what was found and what was wanted.

Values are looked at on the CPU alone, since looking at them elsewhere would wait for the device.
"""

import torch
from torch import Tensor

IGNORED = -100


def check_tokens(kind: str, ids: Tensor, mask: Tensor, labels: Tensor | None) -> None:
    """Ids, mask and labels of words or entities (`kind`), each (batch, tokens)."""
    if ids.ndim != 2:
        raise ValueError(f"{kind}_ids has shape {tuple(ids.shape)}, wanted (batch, tokens)")
    check_type(f"{kind}_ids", ids, torch.int64)
    check_type(f"{kind}_mask", mask, torch.bool)
    check_shape(f"{kind}_mask", mask, ids.shape)
    check_place(f"{kind}_mask", mask, ids)
    if labels is None:
        return
    check_type(f"{kind}_labels", labels, torch.int64)
    check_shape(f"{kind}_labels", labels, ids.shape)
    check_place(f"{kind}_labels", labels, ids)
    if labels.device.type == "cpu":
        refuse(f"{kind}_labels", labels, (labels != IGNORED) & ~mask, f"{IGNORED} at padding")


def check_words(word_mask: Tensor) -> None:
    """Every sequence has a word: attention over nothing is not a number."""
    if word_mask.device.type == "cpu" and not (has_word := word_mask.any(dim=1)).all():
        row = int(has_word.int().argmin())
        raise ValueError(f"word_mask of shape {tuple(word_mask.shape)} has no word in sequence {row}")


def check_mentions(positions: Tensor, entity_ids: Tensor, entity_mask: Tensor, word_mask: Tensor) -> None:
    """The word positions of entities (batch, entities, mention): real words, at least one for a real entity."""
    name, words = "entity_positions", word_mask.shape[1]
    check_type(name, positions, torch.int64)
    check_shape(name, positions, torch.Size([*entity_ids.shape, positions.shape[-1]]))
    check_place(name, positions, entity_ids)
    if len(entity_ids) != len(word_mask):
        raise ValueError(f"entity_ids has {len(entity_ids)} sequences, but word_ids has {len(word_mask)}")
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


def check_range(name: str, ids: Tensor | None, rows: int) -> None:
    """Ids of a table with so many rows; labels may be -100, too."""
    if ids is None:
        return
    is_outside = (ids < 0) | (ids >= rows)
    if name.endswith("_labels"):
        is_outside &= ids != IGNORED
    refuse(name, ids, is_outside, f"0 to {rows - 1}, the rows of the model's table")


def check_type(name: str, tensor: Tensor, wanted: torch.dtype) -> None:
    """The tensor's type is the one wanted."""
    if tensor.dtype != wanted:
        raise ValueError(f"{name} has type {tensor.dtype}, wanted {wanted}")


def check_shape(name: str, tensor: Tensor, wanted: torch.Size) -> None:
    """The tensor's shape is the one wanted."""
    if tensor.shape != wanted:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, but its ids want {tuple(wanted)}")


def check_place(name: str, tensor: Tensor, ids: Tensor) -> None:
    """The tensor lies where its ids lie."""
    if tensor.device != ids.device:
        raise ValueError(f"{name} is on {tensor.device}, but its ids are on {ids.device}")


def refuse(name: str, tensor: Tensor, is_wrong: Tensor, wanted: str) -> None:
    """Raise a ValueError about the first value that is wrong, if there is one."""
    if is_wrong.any():
        place = is_wrong.nonzero()[0].tolist()
        raise ValueError(
            f"{name} of shape {tuple(tensor.shape)} has {int(tensor[tuple(place)])} at {place}, wanted {wanted}"
        )
