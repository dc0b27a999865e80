"""Texts with marked mentions: input and classifier of entity typing and relation classification.

A word marker of its own stands on both sides of each mention, and an entity covers the mention with its
markers. The classifier sees the entities' states or, where the model has no entities, those of the opening
markers.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.kernels.tables import Table
from model.luke.config import LukeConfig
from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.data_folder import ClassNames
from tasks.io.records import Examples, Record, read_records
from tasks.io.windows import CharacterSpan, boundaries, context_window
from tasks.task import Classifier, InputSettings, PlacedBatch, Task, inputs_of


@dataclass(frozen=True, eq=False)
class MarkedFeature:
    """A text with [CLS], [SEP] and markers; `ends` (mentions, 2) are the positions of each mention's markers.

    `label` is a class, () int64, or for several labels at once a row of zeros and ones, (labels) float32.
    """

    word_ids: np.ndarray
    ends: np.ndarray
    label: np.ndarray


def add_word_markers(
    luke: LukeModel, tokenizer: WordTokenizer, markers: Mapping[str, str], source: str
) -> dict[str, int]:
    """Gives the model a word embedding for each marker, a copy of that of the token it names; returns the ids.

    Raises: ValueError where the vocabulary has no such token.
    """
    missing = [initial for initial in markers.values() if initial not in tokenizer.vocab]
    if missing:
        raise ValueError(f"{source}: no token {missing[0]!r} in the vocabulary, from which a marker starts")
    table = luke.word_embeddings.token.weight
    initial_ids = torch.tensor([tokenizer.vocab[initial] for initial in markers.values()], dtype=torch.int64)
    replace_words(luke, torch.cat([table.detach(), table.detach()[initial_ids.to(table.device)]]))
    return marker_ids(luke.config, markers)


def remove_word_markers(luke: LukeModel, markers: Collection[str]) -> None:
    """Takes away the word embeddings of markers that `add_word_markers` gave the model."""
    replace_words(luke, luke.word_embeddings.token.weight.detach()[: luke.config.vocab_size - len(markers)])


def replace_words(luke: LukeModel, rows: Tensor) -> None:
    """Gives the word table other rows (words, width); the configuration follows."""
    table = luke.word_embeddings.token
    luke.word_embeddings.token = Table.from_pretrained(
        rows, freeze=not table.weight.requires_grad, padding_idx=table.padding_idx
    )
    luke.config = replace(luke.config, vocab_size=len(rows))


def marker_ids(config: LukeConfig, markers: Collection[str]) -> dict[str, int]:
    """The word ids of markers in a model that has them: the last of its words."""
    first = config.vocab_size - len(markers)
    return {marker: first + number for number, marker in enumerate(markers)}


def marked_input(
    text: str,
    spans: Sequence[CharacterSpan],
    inputs: InputSettings,
    counts: Counter[str],
    clean: Callable[[str], str] = str,
) -> tuple[np.ndarray, np.ndarray]:
    """Word ids with markers around the spans of `text`, and the positions (spans, 2) of each span's markers.

    The markers of the first span come first in `inputs.markers`, and so on. What stands between two markers is
    tokenised by itself, after `clean`: in the profile `fixed` as it is written, like transformers' LukeTokenizer, in
    `paper` with a blank before it. Spans may overlap or be nested. Of a text with more than
    `inputs.max_words` sub-words, markers, [CLS] and [SEP], the context is cut on both sides, and if that is not enough
    the ends of what stands between markers; `counts` tells how often.
    """
    tokenizer, markers = inputs.tokenizer, [*inputs.markers.values()]
    marks = boundaries(spans)
    places = [place for place, _, _ in marks]
    if inputs.profile == "fixed":  # a blank belongs to what follows it
        places = [place - text[:place].endswith(" ") for place in places]
    pieces = [clean(text[start:end]) for start, end in pairwise([0, *places, len(text)])]
    if inputs.profile == "fixed":
        encoded = tokenizer.encode_as_written(pieces)
    else:
        encoded = tokenizer.encode(pieces, [True] * len(pieces))
    segments = fit(encoded, inputs.max_words - 2 - len(marks), counts)
    word_ids = [tokenizer.cls_id]
    ends = np.zeros((len(spans), 2), dtype=np.int64)
    for segment, (_, span, side) in zip(segments[:-1], marks, strict=True):
        word_ids += segment
        ends[span, side] = len(word_ids)
        word_ids.append(markers[span])
    word_ids += [*segments[-1], tokenizer.sep_id]
    return np.array(word_ids, dtype=np.int64), ends


def fit(segments: Sequence[list[int]], room: int, counts: Counter[str]) -> list[list[int]]:
    """Segments of at most `room` sub-words together; the first and the last give way before the others."""
    left, *inner, right = segments
    if room < 0:
        raise ValueError("max_words leaves no room for the markers of mentions; wanted a longer model")
    if sum(map(len, inner)) > room:
        counts["mentions_cut"] += 1
        longest = next(
            size for size in range(room, -1, -1) if sum(min(size, len(segment)) for segment in inner) <= room
        )
        inner = [segment[:longest] for segment in inner]
    spare = room - sum(map(len, inner))
    if len(left) + len(right) > spare:
        counts["contexts_cut"] += 1
        start, end = context_window(len(left), len(left), len(left) + len(right), spare)
        left, right = left[start:], right[: end - len(left)]
    return [left, *inner, right]


class MentionClassifier(Classifier):
    """A linear classifier over the states of all mentions together: of entities, or of opening markers without any."""

    def forward(self, batch: PlacedBatch) -> Tensor:
        """Logits (batch, labels)."""
        states = self.luke(batch.inputs, batch.places.flatten())
        return self.classifier(self.dropout(states.view(len(batch.places), -1)))


class MarkedTask(Task[Examples[Any], MarkedFeature]):
    """A task with marked mentions; mention n is the entity `ENTITIES[n]` once only ENTITY_ROWS are kept."""

    ENTITIES: tuple[int, ...]
    PREDICTIONS_SUFFIX = ".jsonl"
    BEST_EPOCH_IN_PAPER = True
    records_of = staticmethod(read_records)

    @staticmethod
    def parse(record: Record, names: ClassNames | None) -> Any:
        """The example of a record, whose fields tell its format; without `names` of classes it has no labels."""

    def read(self, path: Path) -> Examples[Any]:
        names = ClassNames(path)
        return Examples(path, tuple(self.parse(record, names) for record in self.records_of(path)))

    def from_records(self, records: Sequence[Record]) -> Examples[Any]:
        """Examples without labels."""
        return Examples(Path("input"), tuple(self.parse(record, None) for record in records))

    def loss_terms(self, feature: MarkedFeature) -> int:
        return 1

    def collate(self, features: Sequence[MarkedFeature], *, entities: bool) -> PlacedBatch:
        ids, mentions = np.array(self.ENTITIES), len(self.ENTITIES)
        inputs = inputs_of(((each.word_ids, ids, np.add(each.ends, (0, 1))) for each in features), entities=entities)
        if entities:
            places = inputs.shape.words + torch.arange(len(features) * mentions).view(-1, mentions)
        else:
            markers = torch.from_numpy(np.stack([feature.ends[:, 0] for feature in features]))
            places = markers + inputs.layout.word_offsets[:-1, None]
        labels = torch.from_numpy(np.stack([feature.label for feature in features]))
        return PlacedBatch(inputs, labels, (1,) * len(features), places)

    def logits(self, module: nn.Module, batch: PlacedBatch) -> list[np.ndarray]:
        """Logits (labels) of each feature."""
        return list(module(batch).float().cpu().numpy())

    def prediction_lines(self, dataset: Examples[Any], predictions: Sequence[Any]) -> list[str]:
        """JSON lines: the record of each example with its `prediction`."""
        return [
            json.dumps({**example.record.values, "prediction": prediction}, ensure_ascii=False)
            for example, prediction in zip(dataset.examples, predictions, strict=True)
        ]
