"""Extractive question answering: the answer is a span of a Wikipedia passage (section 4.5 of the paper)."""

from collections.abc import Iterator

import numpy as np
from torch import Tensor, nn

from model.luke.batch import IGNORED
from model.luke.encoder import LukeModel
from tasks.io.probabilities import Choices
from tasks.questions import extractive_format, extractive_input
from tasks.questions.answers import Candidates, QuestionTask
from tasks.questions.extractive_format import Dataset
from tasks.questions.extractive_input import MAX_ANSWER, WindowFeature
from tasks.task import Classifier, LabelledBatch, Outputs, presets


class BoundaryClassifier(Classifier):
    """LUKE with two linear classifiers over the words, for the start and the end of the answer; no dropout."""

    def forward(self, batch: LabelledBatch) -> Tensor:
        """Logits (words of all windows, 2)."""
        return self.classifier(self.luke(batch.inputs)[: batch.inputs.shape.words])


def spans_of_window(feature: WindowFeature, logits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The spans that may be answers, in the order of the text: their sums of logits, their characters (spans, 2)."""
    rows = logits[feature.first : feature.first + len(feature.characters)]
    has_text = feature.characters[:, 0] < feature.characters[:, 1]
    starts = np.where(feature.is_start & has_text, rows[:, 0], -np.inf)
    sums, first, last = sums_of_spans(starts, np.where(has_text, rows[:, 1], -np.inf), MAX_ANSWER)
    return sums, np.stack([feature.characters[first, 0], feature.characters[last, 1]], axis=1)


def sums_of_spans(starts: np.ndarray, ends: np.ndarray, longest: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The spans of at most `longest` tokens: their sums, their first and last tokens, by start, then end.

    `starts` and `ends` (tokens) are logits, -inf where none may be; spans with such an end are left out.

    All sums lie in one table (tokens, longest): row i holds those of the spans that start at token i, and its
    columns the ends i, i + 1, ... For starts (5, 1, 0), ends (0, 4, 2) and spans of at most two tokens the table is

        5 + 0   5 + 4
        1 + 4   1 + 2
        0 + 2   -inf

    and the sums are 9 for the tokens 0 to 1, 5 for 0 alone, and so on.
    """
    padded = np.pad(ends, (0, longest), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, longest)[:-1]
    sums = starts[:, None] + windows  # (tokens, longest)
    first, more = np.nonzero(np.isfinite(sums))
    return sums[first, more], first, first + more


class ExtractiveAnswering(QuestionTask):
    """The span of a passage that answers. No bias starts at frequencies: it is the same for all words of a window."""

    PRESETS = presets("extractive_qa")
    ENTITY_ROWS = None  # Wikipedia's entities are the input: the table keeps all rows, and is not trained
    LABELS = ("start", "end")
    WANTED = "an answer where answer_start says; wanted characters of the context, from 0"
    ARCHITECTURE = "LukeForQuestionAnswering"
    read = staticmethod(extractive_format.read)
    annotated = staticmethod(extractive_format.annotated)
    describe = staticmethod(extractive_format.describe)
    featurize = staticmethod(extractive_input.featurize)
    collate = staticmethod(extractive_input.collate)
    from_records = staticmethod(extractive_format.from_records)

    def loss_terms(self, feature: WindowFeature) -> int:
        """Start and end, where they are known, are terms of the loss."""
        return int((feature.label != IGNORED).sum())

    def head(self, luke: LukeModel, label_count: int, *, entities: bool) -> BoundaryClassifier:
        """LUKE with the classifiers of start and end."""
        return BoundaryClassifier(luke, 1, label_count)

    def loss(self, module: nn.Module, batch: LabelledBatch) -> dict[str, Tensor]:
        """Half the cross-entropies of start and end over the words, the mean over the windows of known answers."""
        windows = module(batch).split(batch.sizes)
        rows = nn.utils.rnn.pad_sequence(windows, batch_first=True, padding_value=float("-inf"))
        total = nn.functional.cross_entropy(rows, batch.labels, ignore_index=IGNORED, reduction="sum")
        return {"loss": total / (batch.labels != IGNORED).sum().clamp(min=1)}

    def candidates(self, outputs: Outputs[Dataset, WindowFeature]) -> Iterator[Candidates]:
        """All spans of at most 30 tokens that may answer each question, over all its windows."""
        windows: list[list[tuple[WindowFeature, np.ndarray]]] = [[] for _ in outputs.dataset.examples]
        for feature, scores in zip(outputs.features, outputs.logits, strict=True):
            windows[feature.example].append((feature, scores))
        for example, found in zip(outputs.dataset.examples, windows, strict=True):
            parts = [spans_of_window(*window) for window in found]
            sums, spans = zip(*parts, strict=True) if parts else ((), ())
            yield Candidates(
                example.passage,
                np.concatenate([*sums, np.zeros(0, np.float32)]),
                np.concatenate([*spans, np.zeros((0, 2), np.int64)]),
            )

    def choices(self, outputs: Outputs[Dataset, WindowFeature]) -> Iterator[Choices]:
        """The answer to each question, of all spans of at most 30 tokens; right are those of its answers."""
        for example, found in zip(outputs.dataset.examples, self.candidates(outputs), strict=True):
            gold = np.array(example.spans, dtype=np.int64).reshape(-1, 1, 2)
            is_right = (found.spans == gold).all(axis=2).any(axis=0)
            if is_right.any():
                yield found.scores[None], is_right[None]


TASK = ExtractiveAnswering()
