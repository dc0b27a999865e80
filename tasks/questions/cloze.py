"""Cloze-style question answering: which entity of a passage a placeholder stands for (section 4.4 of the paper)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.luke.encoder import LukeModel
from tasks.io.probabilities import Choices
from tasks.questions import answers as common
from tasks.questions import cloze_format, cloze_input
from tasks.questions.answers import Answer, Candidates, gold_answers
from tasks.questions.cloze_format import Dataset
from tasks.questions.cloze_input import ClozeBatch, ClozeFeature
from tasks.task import Classifier, Outputs, no_annotations, no_shift, presets

PRESETS = presets("cloze_qa")
WORD_MARKERS: Mapping[str, str] = {"[HIGHLIGHT]": "@", "[PLACEHOLDER]": "#", "[ENTITY]": "*"}
ENTITY_ROWS: tuple[int, ...] = (0, 2)  # [PAD] and [MASK] of the pretrained entity vocabulary
DEV_METRIC = "exact_match"
BEST_EPOCH_IN_PAPER = True
BEGINS_WITHOUT_ENTITIES = False
PREDICTIONS_SUFFIX = ".json"
ARCHITECTURE = None


# Read

read = cloze_format.read
describe = cloze_format.describe
negative_label = common.no_negative_label


def label_names(datasets: Mapping[str, Dataset], listed: Sequence[str]) -> tuple[str, ...]:
    """Return what the row of the classifier finds.

    Raises: ValueError where a label file lists classes, or train has no answer to learn from.
    """
    common.check_no_classes(listed)
    train = datasets["train"]
    if not any({text for _, text in each.answers} & set(each.texts()) for each in train.examples):
        raise ValueError(
            f"{train.path}: no question has an answer that is an entity of its passage; check their places"
        )
    return ("answer",)


# Featurize

featurize = cloze_input.featurize
feature_size = cloze_input.feature_size
loss_terms = cloze_input.loss_terms
collate = cloze_input.collate


# Head


class EntityScorer(Classifier):
    """LUKE with a linear classifier over [h_placeholder; h_entity].

    Without entities these are the states of [PLACEHOLDER] and of the [ENTITY] before the entity.
    """

    def forward(self, batch: ClozeBatch) -> Tensor:
        """Logits (batch, entities)."""
        word_states, states = self.luke(batch.inputs)
        if states is None:
            rows = torch.arange(len(word_states), device=word_states.device)[:, None]
            states = word_states[rows, batch.starts]
        entities = states[:, 1:]  # (batch, entities, hidden)
        pairs = torch.cat([states[:, :1].expand_as(entities), entities], dim=-1)
        return self.classifier(self.dropout(pairs)).squeeze(-1)


def head(luke: LukeModel, label_count: int, *, entities: bool) -> EntityScorer:
    """LUKE with the classifier of entities."""
    return EntityScorer(luke, 2, label_count)


def starting_bias(features: Sequence[ClozeFeature], label_count: int) -> np.ndarray:
    """The logarithm of the odds: of the entities that are an answer to those that are not."""
    labels = np.concatenate([feature.label for feature in features])
    return np.log([(1 + labels.sum()) / (1 + (1 - labels).sum())])


def loss(module: nn.Module, batch: ClozeBatch) -> dict[str, Tensor]:
    """Binary cross-entropy, the mean over all entities of the batch."""
    is_entity = batch.labels >= 0
    scores = module(batch)[is_entity]
    return {"loss": nn.functional.binary_cross_entropy_with_logits(scores, batch.labels[is_entity])}


def logits(module: nn.Module, batch: ClozeBatch) -> list[np.ndarray]:
    """Logits (entities) of each window."""
    scores = module(batch).float().cpu().numpy()
    sizes = (batch.labels >= 0).sum(dim=1).tolist()
    return [row[:size] for row, size in zip(scores, sizes, strict=True)]


# Decode


def candidates(outputs: Outputs[Dataset, ClozeFeature]) -> Iterator[Candidates]:
    """Of each text the best of its entities that any window holds; an entity's score is its best in any window."""
    best = [np.full(len(example.entities), -np.inf, np.float32) for example in outputs.dataset.examples]
    for feature, scores in zip(outputs.features, outputs.logits, strict=True):
        found = best[feature.example]
        found[feature.entities] = np.maximum(found[feature.entities], scores)
    for example, scores in zip(outputs.dataset.examples, best, strict=True):
        spans = np.array(example.entities, dtype=np.int64).reshape(-1, 2)
        held = np.flatnonzero(np.isfinite(scores))
        entities = Candidates(example.passage, scores[held], spans[held])
        chosen = sorted(common.ranked(entities, len(held)))
        yield Candidates(example.passage, entities.scores[chosen], entities.spans[chosen])


bias_shift = no_shift
annotated = no_annotations
decode = partial(common.decode, candidates)


def choices(outputs: Outputs[Dataset, ClozeFeature]) -> Iterator[Choices]:
    """The answer to each question, of the texts of its entities; right are those of its answers."""
    for example, found in zip(outputs.dataset.examples, candidates(outputs), strict=True):
        right = {text for _, text in example.answers}
        is_right = np.array([found.answer(number).text in right for number in range(len(found.scores))], bool)
        if is_right.any():
            yield found.scores[None], is_right[None]


# Score


def score(
    dataset: Dataset, predictions: Sequence[Sequence[Answer]], labels: Sequence[str], negative: str | None
) -> dict[str, Any]:
    """Exact match and F1 as in ReCoRD's own script, as fractions of 1."""
    gold = gold_answers(dataset)
    return common.answer_scores(gold, common.best_texts(gold, predictions))


def score_files(gold_path: Path, predictions_path: Path) -> dict[str, Any]:
    """Scores of a file of predictions, in either release's layout, for a file of ReCoRD."""
    return common.score_answers(gold_answers(read(gold_path)), predictions_path)


# A user's questions

from_records = cloze_format.from_records
answers = partial(common.answer_objects, candidates)
prediction_lines = cloze_format.prediction_lines
