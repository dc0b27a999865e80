"""Extractive question answering: the answer is a span of a Wikipedia passage (section 4.5 of the paper)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from model.luke.batch import IGNORED
from model.luke.encoder import LukeModel
from tasks.questions import answers as common
from tasks.questions import extractive_format, extractive_input
from tasks.questions.answers import Answer, gold_answers
from tasks.questions.extractive_format import Dataset
from tasks.questions.extractive_input import MAX_ANSWER, WindowBatch, WindowFeature
from tasks.task import Classifier, presets

PRESETS = presets("extractive_qa")
ENTITY_ROWS = None  # Wikipedia's entities are the input: the table keeps all rows, and is not trained
WORD_MARKERS: Mapping[str, str] = {}
DEV_METRIC = "f1"
BEST_EPOCH_IN_PAPER = False
PREDICTIONS_SUFFIX = ".json"
FIRST_CLASS: Sequence[str] = ()
ARCHITECTURE = "LukeForQuestionAnswering"
N_BEST = 20


# Read

read = extractive_format.read
describe = extractive_format.describe
negative_label = common.no_negative_label


def label_names(datasets: Mapping[str, Dataset], listed: Sequence[str]) -> tuple[str, ...]:
    """What the two rows of the classifier find.

    Raises: ValueError where a label file lists classes, or train has no answer to learn from.
    """
    common.check_no_classes(listed)
    train = datasets["train"]
    if not any(example.spans for example in train.examples):
        raise ValueError(
            f"{train.path}: no question has an answer where answer_start says; wanted characters of the context, from 0"
        )
    return ("start", "end")


# Featurize

featurize = extractive_input.featurize
feature_size = extractive_input.feature_size
loss_terms = extractive_input.loss_terms
collate = extractive_input.collate


# Head


class BoundaryClassifier(Classifier):
    """LUKE with two linear classifiers over the words, for the start and the end of the answer; no dropout."""

    def forward(self, batch: WindowBatch) -> Tensor:
        """Logits (batch, words, 2)."""
        word_states, _ = self.luke(batch.inputs)
        return self.classifier(word_states)


def head(luke: LukeModel, label_count: int, *, entities: bool) -> BoundaryClassifier:
    """LUKE with the classifiers of start and end."""
    return BoundaryClassifier(luke, 1, label_count)


def starting_bias(features: Sequence[WindowFeature], label_count: int) -> None:
    """None: the words of a window compete, and a bias is the same for all of them."""


def loss(module: nn.Module, batch: WindowBatch) -> dict[str, Tensor]:
    """Half the cross-entropies of start and end over the words, the mean over the windows of known answers."""
    scores = module(batch).masked_fill(~batch.inputs.word_mask[..., None], float("-inf"))
    total = nn.functional.cross_entropy(scores, batch.labels, ignore_index=IGNORED, reduction="sum")
    return {"loss": total / (batch.labels != IGNORED).sum().clamp(min=1)}


def logits(module: nn.Module, batch: WindowBatch) -> list[np.ndarray]:
    """Logits (words, 2) of each window."""
    scores = module(batch).float().cpu().numpy()
    sizes = batch.inputs.word_mask.sum(dim=1).tolist()
    return [row[:size] for row, size in zip(scores, sizes, strict=True)]


# Decode


def decode(
    dataset: Dataset, features: Sequence[WindowFeature], logits: Sequence[np.ndarray], labels: Sequence[str]
) -> list[tuple[Answer, ...]]:
    """The 20 best answers to each question over all its windows, cut out of the passage; none for no tokens.

    An answer's score is the sum of its two logits; it starts in the window where the start has the most context.
    """
    found: list[list[Answer]] = [[] for _ in dataset.examples]
    for feature, scores in zip(features, logits, strict=True):
        passage = dataset.examples[feature.example].passage
        rows = scores[feature.first : feature.first + len(feature.characters)]
        has_text = feature.characters[:, 0] < feature.characters[:, 1]
        starts = np.where(feature.is_start & has_text, rows[:, 0], -np.inf)
        for score, first, last in best_spans(
            starts, np.where(has_text, rows[:, 1], -np.inf), MAX_ANSWER, N_BEST
        ):
            start, end = int(feature.characters[first, 0]), int(feature.characters[last, 1])
            found[feature.example].append(Answer(passage[start:end], start, end, score))
    return [tuple(sorted(each, key=lambda answer: -answer.score)[:N_BEST]) for each in found]


def best_spans(
    starts: np.ndarray, ends: np.ndarray, longest: int, count: int
) -> list[tuple[float, int, int]]:
    """The `count` spans with the largest sums (sum, first token, last token) of those of at most `longest` tokens.

    `starts` and `ends` (tokens) are logits, -inf where none may be. Of equals the earlier, then the shorter is first.

    All sums lie in one table (tokens, longest): row i holds those of the spans that start at token i, and its
    columns the ends i, i + 1, ... Its place number p is the span from p // longest on that is p % longest longer
    than one token. For starts (5, 1, 0), ends (0, 4, 2) and spans of at most two tokens the table is

        5 + 0   5 + 4
        1 + 4   1 + 2
        0 + 2   -inf

    and the two best are (9, 0, 1) at place 1 and (5, 0, 0) at place 0, which comes before the 5 at place 2.
    """
    if not len(starts):
        return []
    padded = np.pad(ends, (0, longest - 1), constant_values=-np.inf)
    sums = starts[:, None] + np.lib.stride_tricks.sliding_window_view(padded, longest)  # (tokens, longest)
    sums = sums.ravel()
    least = np.partition(sums, -count)[-count] if len(sums) > count else -np.inf
    candidates = np.flatnonzero((sums >= least) & np.isfinite(sums))
    chosen = candidates[np.argsort(-sums[candidates], kind="stable")[:count]]
    return [
        (score, place // longest, place // longest + place % longest)
        for score, place in zip(sums[chosen].tolist(), chosen.tolist(), strict=True)
    ]


# Score


def score(
    dataset: Dataset, predictions: Sequence[Sequence[Answer]], labels: Sequence[str], negative: str | None
) -> dict[str, Any]:
    """Exact match and F1 as in SQuAD 1.1's own script, as fractions of 1."""
    return common.answer_scores(gold_answers(dataset), common.best_texts(gold_answers(dataset), predictions))


def score_files(gold_path: Path, predictions_path: Path) -> dict[str, Any]:
    """Scores of a JSON object of answers by question id for a SQuAD 1.1 file."""
    return common.score_answers(gold_answers(read(gold_path)), predictions_path)


# A user's questions

from_records = extractive_format.from_records
answers = common.answer_objects
prediction_lines = extractive_format.prediction_lines
