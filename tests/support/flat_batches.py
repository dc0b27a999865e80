"""Random batches without padding, of sequences with so many words and entities."""

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional

from model.kernels.packing import Packed
from model.luke.batch import IGNORED, FlatBatch, MaskedSequence, collate
from model.luke.config import LukeConfig


def layout_of(lengths: Sequence[tuple[int, int]], device: torch.device | str = "cpu") -> Packed:
    """The layout of sequences with so many words and entities."""
    counts = torch.tensor(lengths, dtype=torch.int32).T
    words, entities = functional.pad(counts.cumsum(dim=1, dtype=torch.int32), (1, 0)).to(device)
    return Packed(tuple(lengths), words, entities)


def random_flat(lengths: Sequence[tuple[int, int]], config: LukeConfig, seed: int = 0) -> FlatBatch:
    """A batch of sequences with so many words and entities; at least one of each kind is masked in each."""
    generator = np.random.default_rng(seed)
    sequences = [random_sequence(*each, config, generator) for each in lengths]
    return collate(sequences, max_mention_words=3, entities=True)


def random_sequence(words: int, entities: int, config: LukeConfig, generator: np.random.Generator) -> MaskedSequence:
    """Words and mentions of 1 to 3 words; every fourth token or so is masked."""
    lengths = generator.integers(1, min(4, words + 1), size=entities)
    starts = generator.integers(0, words - lengths + 1)
    return MaskedSequence(
        word_ids=generator.integers(4, config.vocab_size, size=words),
        word_labels=labels(words, 4, config.vocab_size, generator),
        entity_ids=generator.integers(1, config.entity_vocab_size, size=entities),
        entity_labels=labels(entities, 1, config.entity_vocab_size, generator),
        entity_starts=starts,
        entity_ends=starts + lengths,
    )


def labels(count: int, first: int, end: int, generator: np.random.Generator) -> np.ndarray:
    """The labels of so many tokens, at some of them: one at least where there is any."""
    found = np.full(count, IGNORED)
    chosen = generator.choice(count, size=-(-count // 4), replace=False) if count else []
    found[chosen] = generator.integers(first, end, size=len(chosen))
    return found
