"""Model input: the `Batch`, the masks of pretraining and the collation of sequences.

A mask is a function of (seed, epoch, index of the sequence) alone: it does not depend on the order in which
sequences are read, on the batch that they are in, or on what was drawn before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from model.checks import IGNORED, check_mentions, check_range, check_tokens, check_words
from model.config import MASK_ENTITY, PAD_ENTITY, LukeConfig
from model.layout import Packed
from model.recipes import MASKED_SHARE
from model.shards import AnnotatedSequence, SequenceFacts, random_bits

PROFILES = ("fixed", "paper")
MASK_STREAM = 1
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """One batch of word and entity sequences; what is None has no part in it.

    word_ids          (batch, words) int64
    word_mask         (batch, words) bool, True where the word is real
    entity_ids        (batch, entities) int64, 0 is [PAD]
    entity_positions  (batch, entities, mention) int64 positions in word_ids, -1 is padding
    entity_mask       (batch, entities) bool, True where the entity is real
    word_labels       (batch, words) int64, -100 where nothing is to be predicted
    entity_labels     (batch, entities) int64, -100 where nothing is to be predicted
    packed            where the real tokens are; with it the model does no work on padding (`unpadded`)

    Raises ValueError for shapes and types that do not fit together and, for what lies on the CPU, for values
    that no model can take; a batch that lies on another device is not looked into.
    """

    word_ids: Tensor
    word_mask: Tensor
    entity_ids: Tensor | None = None
    entity_positions: Tensor | None = None
    entity_mask: Tensor | None = None
    word_labels: Tensor | None = None
    entity_labels: Tensor | None = None
    packed: Packed | None = None

    def __post_init__(self) -> None:
        check_tokens("word", self.word_ids, self.word_mask, self.word_labels)
        check_words(self.word_mask)
        parts = (self.entity_ids, self.entity_positions, self.entity_mask)
        if any(part is None for part in parts):
            if any(part is not None for part in (*parts, self.entity_labels)):
                raise ValueError("entity_ids, entity_positions, entity_mask come together; one is None")
            return
        assert self.entity_ids is not None
        assert self.entity_positions is not None
        assert self.entity_mask is not None
        check_tokens("entity", self.entity_ids, self.entity_mask, self.entity_labels)
        check_mentions(self.entity_positions, self.entity_ids, self.entity_mask, self.word_mask)

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device."""
        values: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {
            name: None if value is None else value.to(device) for name, value in values.items()
        }
        return Batch(**moved)

    def unpadded(self) -> "Batch":
        """The same batch, on whose padding the model does no work; call it before the batch is moved."""
        return replace(self, packed=Packed.of(self.word_mask, self.entity_mask))

    def check(self, config: LukeConfig, part: str) -> None:
        """Raise a ValueError unless a model of that configuration has a row for every `part`: ids or labels.

        A model does that itself with what lies on the CPU; elsewhere it would have to wait for the device.
        """
        check_range(f"word_{part}", getattr(self, f"word_{part}"), config.vocab_size)
        check_range(f"entity_{part}", getattr(self, f"entity_{part}"), config.entity_vocab_size)


@dataclass(frozen=True)
class MaskedSequence:
    """A sequence with [CLS] and [SEP] added, spans shifted, some words and entities hidden."""

    word_ids: Integers
    word_labels: Integers
    entity_ids: Integers
    entity_labels: Integers
    entity_starts: Integers
    entity_ends: Integers


class Masker:
    """Hides MASKED_SHARE of the words and `entity_share` of the entities of sequences (section 3.3 of the paper).

    Profile "fixed" hides whole words and never puts a special token in a word's place; "paper" hides
    sub-words and draws a random one from all ids after [PAD], as the authors' code did.
    """

    def __init__(
        self,
        facts: SequenceFacts,
        word_starts: NDArray[np.bool_],
        *,
        profile: str,
        seed: int,
        entity_share: float = MASKED_SHARE,
    ) -> None:
        if profile not in PROFILES:
            raise ValueError(f"profile {profile!r} is unknown; use one of {', '.join(PROFILES)}")
        self.facts = facts
        self.seed = seed
        self.entity_share = entity_share
        self.word_starts = word_starts if profile == "fixed" else np.ones_like(word_starts)
        first = 0 if profile == "fixed" else facts.pad_id + 1
        excluded = facts.special_ids if profile == "fixed" else ()
        self.random_ids = np.setdiff1d(np.arange(first, facts.word_vocab_size), excluded)

    def mask(self, sequence: AnnotatedSequence, *, epoch: int, index: int) -> MaskedSequence:
        """The sequence as seen in that epoch; at least a word and an entity (if there is one) are hidden."""
        generator = np.random.Generator(random_bits(self.seed, epoch, stream=MASK_STREAM, index=index))
        words, word_labels = self.mask_words(sequence.word_ids.astype(np.int64), generator)
        entities, entity_labels = mask_entities(
            sequence.entity_ids.astype(np.int64), generator, self.entity_share
        )
        ignored = [IGNORED]
        return MaskedSequence(
            word_ids=np.concatenate([[self.facts.cls_id], words, [self.facts.sep_id]]),
            word_labels=np.concatenate([ignored, word_labels, ignored]),
            entity_ids=entities,
            entity_labels=entity_labels,
            entity_starts=sequence.entity_starts.astype(np.int64) + 1,
            entity_ends=sequence.entity_ends.astype(np.int64) + 1,
        )

    def mask_words(self, word_ids: Integers, generator: np.random.Generator) -> tuple[Integers, Integers]:
        """Words after masking and their labels; of the chosen 80 % are [MASK], 10 % random, 10 % kept."""
        starts = self.word_starts[word_ids]
        starts[0] = True
        lengths = np.diff(np.append(np.flatnonzero(starts), len(word_ids)))
        chosen = choose_words(
            lengths, generator.permutation(len(lengths)), masked_count(len(word_ids), MASKED_SHARE)
        )
        # One draw a word, so that the parts of a word share their fate.
        draws = generator.random(len(lengths))
        word_of_token = np.cumsum(starts) - 1
        is_chosen = np.isin(word_of_token, chosen)
        draw = draws[word_of_token]
        random_words = generator.choice(self.random_ids, size=len(word_ids))
        masked = np.where(draw < 0.8, self.facts.mask_id, np.where(draw < 0.9, random_words, word_ids))
        return np.where(is_chosen, masked, word_ids), np.where(is_chosen, word_ids, IGNORED)


def masked_count(length: int, share: float) -> int:
    """How many of `length` words or entities are hidden: that share, but at least one."""
    return max(1, round(length * share))


def choose_words(lengths: Integers, order: Integers, budget: int) -> Integers:
    """The words to hide: taken in this order, those that fit into what is left of the budget (in tokens).

    When no word fits, the shortest one is taken though it is over the budget (of equals the first in the
    order).
    """
    ordered = lengths[order]
    fitting = int(np.searchsorted(np.cumsum(ordered), budget, side="right"))
    chosen = list(range(fitting))
    left = budget - int(ordered[:fitting].sum())
    while left > 0:
        later = np.flatnonzero(ordered[fitting:] <= left)
        if not len(later):
            break
        chosen.append(fitting + int(later[0]))
        fitting = chosen[-1] + 1
        left -= int(ordered[chosen[-1]])
    return order[chosen] if chosen else order[[int(np.argmin(ordered))]]


def mask_entities(
    entity_ids: Integers, generator: np.random.Generator, share: float
) -> tuple[Integers, Integers]:
    """Entities after masking (always [MASK]) and their labels; an [UNK] entity is a label like any other."""
    if not len(entity_ids):
        return entity_ids, entity_ids
    is_chosen = np.zeros(len(entity_ids), dtype=bool)
    is_chosen[generator.permutation(len(entity_ids))[: masked_count(len(entity_ids), share)]] = True
    return np.where(is_chosen, MASK_ENTITY, entity_ids), np.where(is_chosen, entity_ids, IGNORED)


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


def mention_positions(starts: Tensor, ends: Tensor, max_mention_words: int) -> Tensor:
    """Word positions of half-open spans (batch, entities) as (batch, entities, mention), padded with -1."""
    longest = min(int((ends - starts).max()), max_mention_words)
    positions = starts[..., None] + torch.arange(longest)
    return torch.where(positions < ends[..., None], positions, -1)


def pad(rows: Sequence[Integers], value: int) -> Tensor:
    """Stack rows of different lengths into (rows, longest), filled up with `value`."""
    padded = torch.full((len(rows), max(len(row) for row in rows)), value, dtype=torch.int64)
    for row, target in zip(rows, padded, strict=True):
        target[: len(row)] = torch.from_numpy(row)
    return padded
