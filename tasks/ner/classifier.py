"""Spans of words: input and classifier of entity recognition (section 4.3 of the paper).

A pass of the model is a sentence in its context with some of its spans, each of which is a [MASK] entity. The
classifier sees the states of a span's first and last word and of its entity or, where the model has no
entities, those of the words alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.luke.batch import IGNORED, Batch, mention_positions, pad
from model.luke.encoder import LukeModel
from tasks.task import MAX_MENTION_POSITIONS, Classifier, LabelledBatch

MASK_ROW = 1  # where [MASK] stands once only [PAD] and [MASK] are kept


@dataclass(frozen=True, eq=False)
class SpanFeature:
    """One pass of the model: a sentence in its context, and some of its spans.

    `word_ids` (words) begins with [CLS] and ends with [SEP]; `spans` (spans, 2) are words of the sentence,
    half open; `positions` (spans, 2) are the first and the last word position of each; `labels` (spans).
    """

    sentence: int
    word_ids: np.ndarray
    spans: np.ndarray
    positions: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, eq=False)
class SpanBatch(LabelledBatch):
    """Padded passes with the first and last word position of each span; the labels are the classes.

    `positions` (batch, spans, 2) and `labels` (batch, spans) are int64; `labels` is IGNORED at padding;
    `sizes` are the true numbers of spans; `rows` (batch) says which row of `inputs` holds the words of a pass.
    `inputs` has no entities where the model is to see none.
    """

    rows: Tensor
    positions: Tensor
    sizes: tuple[int, ...]


def feature_size(feature: SpanFeature) -> int:
    """Words and entities of a pass."""
    return len(feature.word_ids) + len(feature.spans)


def loss_terms(feature: SpanFeature) -> int:
    """Each span is a term of the loss."""
    return len(feature.spans)


def collate(features: Sequence[SpanFeature], *, entities: bool, pad_id: int) -> SpanBatch:
    """Pads passes; every span is a [MASK] entity over its word positions (the first 30 of them).

    Words attend to the entities of their pass, so that each pass has its own encoding of the words. Without
    entities passes over the same words (of a sentence, or of sentences with the same context) share one.
    """
    places: dict[Any, int] = {}
    keys = [number if entities else feature.word_ids.tobytes() for number, feature in enumerate(features)]
    rows = [places.setdefault(key, len(places)) for key in keys]
    inputs = Batch.of_words([features[rows.index(row)].word_ids for row in range(len(places))], pad_id)
    ends = pad([feature.positions for feature in features], 0)
    labels = pad([feature.labels for feature in features], IGNORED)
    if entities:
        mask = labels != IGNORED
        positions = mention_positions(ends[..., 0], ends[..., 1] + mask, MAX_MENTION_POSITIONS)
        inputs = replace(inputs, entity_ids=mask * MASK_ROW, entity_positions=positions, entity_mask=mask)
    sizes = tuple(len(feature.spans) for feature in features)
    return SpanBatch(inputs.unpadded(), labels, torch.tensor(rows), ends, sizes)


class SpanClassifier(Classifier):
    """LUKE with a linear classifier over [h_first; h_last; h_entity], or over the words alone."""

    def __init__(self, luke: LukeModel, label_count: int, *, entities: bool) -> None:
        super().__init__(luke, 3 if entities else 2, label_count)

    def forward(self, batch: SpanBatch) -> Tensor:
        """Logits (batch, spans, labels)."""
        word_states, entity_states = self.luke(batch.inputs)
        rows = batch.rows[:, None, None]
        states = word_states[rows, batch.positions].flatten(2)  # (batch, spans, 2 * hidden)
        if entity_states is not None:
            states = torch.cat([states, entity_states], dim=-1)
        return self.classifier(self.dropout(states))


def starting_bias(features: Sequence[SpanFeature], label_count: int) -> np.ndarray:
    """The logarithms of the classes' shares of all spans: hundreds are no entity where one is."""
    labels = [feature.labels for feature in features]
    counts = 1 + np.bincount(np.concatenate(labels), minlength=label_count)
    return np.log(counts / counts.sum())


def loss(module: nn.Module, batch: SpanBatch) -> dict[str, Tensor]:
    """Cross-entropy, the mean over all spans of the batch."""
    scores = module(batch).flatten(0, 1)  # (batch * spans, labels)
    return {"loss": nn.functional.cross_entropy(scores, batch.labels.flatten(), ignore_index=IGNORED)}


def logits(module: nn.Module, batch: SpanBatch) -> list[np.ndarray]:
    """Logits (spans, labels) of each pass."""
    scores = module(batch).float().cpu().numpy()
    return [row[:size] for row, size in zip(scores, batch.sizes, strict=True)]
