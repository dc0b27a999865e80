"""The masks of pretraining (section 3.3 of the paper).

A mask is a function of (seed, epoch, index of the sequence) alone: it does not depend on the order in which
sequences are read, on the batch that they are in, or on what was drawn before.
"""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from model.data.shards import AnnotatedSequence, SequenceFacts, random_bits
from model.luke.batch import IGNORED, Integers, MaskedSequence
from model.luke.config import MASK_ENTITY, MASKED_SHARE, UNKNOWN_ENTITY

PROFILES = ("fixed", "paper")
MASK_STREAM = 1


@dataclass
class Masker:
    """Masks `word_share` of the words and `entity_share` of the entities of sequences (section 3.3 of the paper).

    At least one of each is masked, where there is one; none at a share of 0. Without `masks_unknown` no [UNK] is.
    Profile "fixed" masks whole words and never replaces a word by a special token; "paper" masks
    sub-words and draws a random one from all ids after [PAD], as the authors' code did.
    """

    facts: SequenceFacts
    word_starts: NDArray[np.bool_]
    _: KW_ONLY
    profile: str
    seed: int
    word_share: float = MASKED_SHARE
    entity_share: float = MASKED_SHARE
    masks_unknown: bool = True

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ValueError(f"profile {self.profile!r} is unknown; use one of {', '.join(PROFILES)}")
        first, excluded = 0, self.facts.special_ids
        if self.profile == "paper":
            self.word_starts, first, excluded = np.ones_like(self.word_starts), self.facts.pad_id + 1, ()
        self.random_ids = np.setdiff1d(np.arange(first, self.facts.word_vocab_size), excluded)

    def mask(self, sequence: AnnotatedSequence, *, epoch: int, index: int) -> MaskedSequence:
        """The sequence as seen in that epoch."""
        generator = np.random.Generator(random_bits(self.seed, epoch, stream=MASK_STREAM, index=index))
        words, word_labels = self.mask_words(sequence.word_ids.astype(np.int64), generator)
        ids = sequence.entity_ids.astype(np.int64)
        entities, entity_labels = self.mask_entities(ids, generator)
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
        if not self.word_share:
            return word_ids, np.full_like(word_ids, IGNORED)
        starts = self.word_starts[word_ids]
        starts[0] = True
        lengths = np.diff(np.append(np.flatnonzero(starts), len(word_ids)))
        budget = masked_count(len(word_ids), self.word_share)
        chosen = choose_words(lengths, generator.permutation(len(lengths)), budget)
        # One draw a word, so that the parts of a word share their fate.
        draws = generator.random(len(lengths))
        word_of_token = np.cumsum(starts) - 1
        is_chosen = np.isin(word_of_token, chosen)
        draw = draws[word_of_token]
        random_words = generator.choice(self.random_ids, size=len(word_ids))
        masked = np.where(draw < 0.8, self.facts.mask_id, np.where(draw < 0.9, random_words, word_ids))
        return np.where(is_chosen, masked, word_ids), np.where(is_chosen, word_ids, IGNORED)

    def mask_entities(self, entity_ids: Integers, generator: np.random.Generator) -> tuple[Integers, Integers]:
        """Entities after masking (always [MASK]) and their labels."""
        places = np.flatnonzero(self.masks_unknown | (entity_ids != UNKNOWN_ENTITY))
        is_chosen = np.zeros(len(entity_ids), dtype=bool)
        if len(places) and self.entity_share:
            is_chosen[generator.permutation(places)[: masked_count(len(places), self.entity_share)]] = True
        return np.where(is_chosen, MASK_ENTITY, entity_ids), np.where(is_chosen, entity_ids, IGNORED)


def masked_count(length: int, share: float) -> int:
    """The number of `length` words or entities that are masked: that share, but at least one."""
    return max(1, round(length * share))


def choose_words(lengths: Integers, order: Integers, budget: int) -> Integers:
    """The words to mask: taken in this order, those that fit into what is left of the budget (in tokens).

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
