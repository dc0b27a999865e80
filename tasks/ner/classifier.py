"""Spans of words: input and classifier of entity recognition (section 4.3 of the paper).

A pass of the model is a sentence in its context with some of its spans, each of which is a [MASK] entity. The
classifier sees the states of a span's first and last word and of its entity or, where the model has no
entities, those of the words alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from tasks.task import PlacedBatch, inputs_of

MASK_ROW = 1  # where [MASK] stands once only [PAD] and [MASK] are kept


@dataclass(frozen=True, eq=False)
class SpanFeature:
    """One pass of the model: a sentence in its context, and some of its spans."""

    sentence: int
    word_ids: np.ndarray  # (words) from [CLS] to [SEP]
    spans: np.ndarray  # (spans, 2) words of the sentence, half open
    ends: np.ndarray  # (spans, 2) the word positions of each, half open
    labels: np.ndarray  # (spans)


def loss_terms(feature: SpanFeature) -> int:
    """Each span is a term of the loss."""
    return len(feature.spans)


def collate(features: Sequence[SpanFeature], *, entities: bool) -> PlacedBatch:
    """Passes as one batch, whose items are their spans; every span is a [MASK] entity over its first 30 words.

    The places of a span are its first and its last word and, where the model is to see entities, its entity.
    Words attend to the entities of their pass, so that each pass has its own encoding of the words. Without
    entities passes over the same words (of a sentence, or of sentences with the same context) share one.
    """
    keys = [number if entities else feature.word_ids.tobytes() for number, feature in enumerate(features)]
    encoded = dict(zip(keys, features, strict=True))
    sequences = ((each.word_ids, np.full(len(each.spans), MASK_ROW), each.ends) for each in encoded.values())
    inputs = inputs_of(sequences, entities=entities)
    begins = dict(zip(encoded, inputs.layout.word_offsets[:-1].tolist(), strict=True))
    moved = (feature.ends - (0, 1) + begins[key] for key, feature in zip(keys, features, strict=True))
    places = np.concatenate([*moved])
    if entities:
        places = np.column_stack([places, np.arange(len(places)) + inputs.shape.words])
    labels = torch.from_numpy(np.concatenate([feature.labels for feature in features]))
    return PlacedBatch(inputs, labels, tuple(len(each.spans) for each in features), torch.from_numpy(places))


def starting_bias(features: Sequence[SpanFeature], label_count: int) -> np.ndarray:
    """The logarithms of the classes' shares of all spans: hundreds are no entity where one is."""
    labels = [feature.labels for feature in features]
    counts = 1 + np.bincount(np.concatenate(labels), minlength=label_count)
    return np.log(counts / counts.sum())
