"""Random batches without padding, of sequences with so many words and entities."""

from collections.abc import Sequence

import numpy as np
import torch

from model.luke.config import LukeConfig
from model.luke.flat import FlatBatch, FlatSequence, flatten


def random_flat(lengths: Sequence[tuple[int, int]], config: LukeConfig, seed: int = 0) -> FlatBatch:
    """A batch of sequences with so many words and entities; at least one of each kind is masked in each."""
    generator = np.random.default_rng(seed)
    numbers, shape = flatten([random_sequence(*each, config, generator) for each in lengths])
    return FlatBatch(torch.from_numpy(numbers), shape)


def random_sequence(
    words: int, entities: int, config: LukeConfig, generator: np.random.Generator
) -> FlatSequence:
    """Words and mentions of 1 to 3 words; every fourth token or so is masked."""
    lengths = generator.integers(1, min(4, words + 1), size=entities)
    masked_words, masked_entities = (masked(count, generator) for count in (words, entities))
    return FlatSequence(
        word_ids=generator.integers(4, config.vocab_size, size=words),
        masked_words=masked_words,
        word_labels=generator.integers(4, config.vocab_size, size=len(masked_words)),
        entity_ids=generator.integers(1, config.entity_vocab_size, size=entities),
        mention_starts=generator.integers(0, words - lengths + 1),
        mention_lengths=lengths,
        masked_entities=masked_entities,
        entity_labels=generator.integers(1, config.entity_vocab_size, size=len(masked_entities)),
    )


def masked(count: int, generator: np.random.Generator) -> np.ndarray:
    """Some of so many places, in order: one at least where there is any."""
    chosen = generator.choice(count, size=-(-count // 4), replace=False) if count else np.zeros(0)
    return np.sort(chosen).astype(np.int64)
