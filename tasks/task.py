"""The parts of a fine-tuning task, and the hyper-parameters of all of them.

Fine-tuning and serving use a task by five verbs:

read        a file to examples (describe, label_names, negative_label say what is in them)
featurize   examples to inputs of the model (feature_size, loss_terms)
head        the model with the task's classifier (starting_bias, collate, loss, logits are for it and its batches)
decode      logits to a prediction for each example (choices are what it decides, with what is right; bias_shift makes
            it decide better)
score       predictions to the field's metrics

`from_records` takes questions of users, `answers` answers them, `prediction_lines` writes predictions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from model.luke.batch import IGNORED, FlatBatch, Integers, MaskedSequence, collate
from model.luke.config import LukeConfig, check_value
from model.luke.embeddings import initialise
from model.luke.encoder import LukeModel
from model.training.precision import PRECISIONS
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.annotations import Annotate
from tasks.io.probabilities import Choices
from tasks.io.records import Record
from tasks.presets import DROPOUT, of_task

PROFILES = ("fixed", "paper")
MAX_MENTION_POSITIONS = 30
# The counts of features that say that a model did not see all of an example, and what it was that it did not see whole.
CUT = {
    "mentions_cut": "mentions",
    "contexts_cut": "context",
    "questions_cut": "question",
    "entities_out_of_reach": "entities",
    "entities_cut": "entities",
    "words_cut": "words",
    "sentences_split": "sentences",
}

Dataset = TypeVar("Dataset")
Feature = TypeVar("Feature")
FeatureOut = TypeVar("FeatureOut", covariant=True)


@dataclass(frozen=True)
class Hyperparameters:
    """The hyper-parameters of fine-tuning; the values that all tasks share are the defaults (appendix, Table 12).

    `dropout` is that of the whole model, whatever it was pretrained with.
    The classifier, which starts at random, may learn faster than the pretrained part:
    `head_learning_rate` is the same as `learning_rate` in the paper. `tokens_per_batch` bounds the words and
    entities that the model holds at once, and with it the memory: a batch with more of them is computed in
    parts, which changes no gradient but what dropout draws. 0: a batch is computed at once. Training ends early when
    `patience` epochs in a row were no better on dev (0: never); the schedule stays that of all `epochs`.
    `micro_batch_size` is what the authors' code computed at once, and of profile `paper` alone: its loss is the mean
    of such parts' means, and an epoch's last parts that make no whole batch come with the next one's first
    (0: the whole batch). `precision` is that of matrix products (weights are float32), float32 or bf16; with
    `gradient_checkpointing` a layer's inner states are computed twice instead of kept.
    """

    learning_rate: float
    head_learning_rate: float
    batch_size: int
    epochs: int
    warmup_ratio: float = 0.06
    weight_decay: float = 0.01
    dropout: float = DROPOUT
    betas: tuple[float, float] = (0.9, 0.98)
    epsilon: float = 1e-6
    max_words: int = 512
    tokens_per_batch: int = 0
    patience: int = 0
    micro_batch_size: int = 0
    precision: str = "float32"
    gradient_checkpointing: bool = False

    def __post_init__(self) -> None:
        for name in ("tokens_per_batch", "patience", "micro_batch_size"):
            check_value(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        check_value(0 <= self.dropout < 1, "dropout", self.dropout, "at least 0 and below 1")
        known = f"one of {', '.join(PRECISIONS)}"
        check_value(self.precision in PRECISIONS, "precision", self.precision, known)


def presets(task: str) -> Mapping[str, Hyperparameters]:
    """The hyperparameters of a task by the names of its presets."""
    return {name: Hyperparameters(**values) for name, values in of_task(task).items()}


@dataclass(frozen=True)
class InputSettings:
    """The settings of inputs: at most `max_words` word positions; `markers` are the word ids of WORD_MARKERS."""

    tokenizer: WordTokenizer
    labels: tuple[str, ...]
    markers: Mapping[str, int]
    max_words: int
    profile: str


@dataclass(frozen=True)
class Features(Generic[FeatureOut]):
    """Model inputs of a data set (an example may need several), and what was cut or could not be reached.

    `of_examples` are the counts of each example, of each document in ner, as far as `CUT` names them.
    """

    items: Sequence[FeatureOut]
    counts: Mapping[str, int] = field(default_factory=dict)
    of_examples: Sequence[Mapping[str, int]] = ()

    def cut(self) -> list[list[str]]:
        """Return what the model did not see of each example."""
        return [[*dict.fromkeys(CUT[name] for name in CUT if own.get(name))] for own in self.of_examples]


@dataclass(frozen=True)
class Outputs(Generic[Dataset, Feature]):
    """The outputs of a model for a data set: the logits of each feature; `labels` are the classes."""

    dataset: Dataset
    features: Sequence[Feature]
    logits: Sequence[np.ndarray]
    labels: Sequence[str] = ()


class Classifier(nn.Module):
    """A model for a task: the pretrained part `luke`, and on top of `states` of it a linear `classifier`.

    What a subclass makes of the states goes through `dropout` first, if it wants that.
    """

    def __init__(self, luke: LukeModel, states: int, label_count: int, *, bias: bool = True) -> None:
        super().__init__()
        self.luke = luke
        self.dropout = nn.Dropout(luke.config.hidden_dropout_prob)
        self.classifier = nn.Linear(states * luke.config.hidden_size, label_count, bias=bias)
        initialise(self.classifier, luke.config.initializer_range)

    @property
    def config(self) -> LukeConfig:
        """The configuration of the encoder."""
        return self.luke.config


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Features as one batch: the model's input, and the labels. A task adds what else its classifier wants."""

    inputs: FlatBatch
    labels: Tensor
    sizes: tuple[int, ...]  # the numbers of items of each feature

    def to(self, device: torch.device | str) -> Self:
        """The same batch on another device."""
        return replace(self, **{k: v.to(device) for k, v in vars(self).items() if hasattr(v, "to")})


@dataclass(frozen=True, eq=False)
class PlacedBatch(LabelledBatch):
    """Features with the `places` (items, states) of the states that their items are classified by."""

    places: Tensor


class PlaceClassifier(Classifier):
    """A linear classifier over the states of each item together."""

    def forward(self, batch: PlacedBatch) -> Tensor:
        """Logits (items, labels), or (items) where there is one label."""
        states = self.luke(batch.inputs)[batch.places].flatten(1)
        return self.classifier(self.dropout(states)).squeeze(-1)


def inputs_of(sequences: Iterable[tuple[Integers, Integers, Integers]], *, entities: bool) -> FlatBatch:
    """The model's input of sequences: of each its word ids, its entities' ids and their half-open spans (entities, 2).

    A mention is cut at its first 30 words; without `entities` there are words alone.
    """
    unmasked = [MaskedSequence.unmasked(*each) for each in sequences]
    return collate(unmasked, max_mention_words=MAX_MENTION_POSITIONS, entities=entities)


class Task(Protocol[Dataset, Feature]):
    """A task; `Dataset` is a split, `Feature` an input of the model."""

    PRESETS: Mapping[str, Hyperparameters]
    PREDICTIONS_SUFFIX: str  # the end of the names of files with predictions
    DEV_METRIC: str = "f1"
    """The score on dev by which epochs and hyperparameters are chosen: exact_match or f1, which all tasks have."""
    BEST_EPOCH_IN_PAPER: bool = False
    """True where the profile `paper` keeps the best epoch on dev, as `fixed` always does, and not the last."""
    BEGINS_WITHOUT_ENTITIES: bool = False
    """True where words begin as if there were no entities with all weights, not only with those that know none."""
    READS_IN_WINDOWS: bool = False
    """True where a long text is read in windows, which then are no longer than the sequences of pretraining."""
    WORD_MARKERS: Mapping[str, str] = MappingProxyType({})
    """Words that the task adds to the vocabulary, each with the token that its embedding starts from."""
    ENTITY_ROWS: tuple[int, ...] | None = (0, 2)
    """The special entities that fine-tuning keeps, by their rows in our tables, [PAD] first; None: all rows,
    untrained."""
    ARCHITECTURE: str | None = None  # the class of transformers that has the same classifier, if there is one

    # Read

    def read(self, path: Path) -> Dataset:
        """The examples of a file. Raises: ValueError naming file and line."""

    def annotated(self, dataset: Dataset, annotate: Annotate, entity_count: int) -> Dataset:
        """The data set with the entities that an annotator finds in its texts, where ENTITY_ROWS is None.

        Raises: ValueError for an entity that is not among the `entity_count` of the model.
        """
        return dataset

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return what was read: counts and the format that was found."""

    def label_names(self, datasets: Mapping[str, Dataset], listed: Sequence[str]) -> tuple[str, ...]:
        """The classes, in the order of the classifier's rows; `listed` are those of a label file, if any."""

    def negative_label(self, labels: Sequence[str], given: str) -> str | None:
        """The class that scores leave out: `given`, or what the task knows where that is empty.

        Raises: ValueError for one that cannot be.
        """
        if given:
            raise ValueError(f"negative label {given!r}: the task has none")
        return None

    # Featurize

    def featurize(self, dataset: Dataset, inputs: InputSettings) -> Features[Feature]:
        """Inputs of the model; those of an example stand next to each other."""

    def feature_size(self, feature: Any) -> int:
        """Words and entities of a feature, which `tokens_per_batch` counts; each entity has its `ends`."""
        return len(feature.word_ids) + len(feature.ends)

    def loss_terms(self, feature: Feature) -> int:
        """Of how many terms `loss` is the mean for a batch of this feature alone."""

    # Head

    def head(self, luke: LukeModel, label_count: int, *, entities: bool) -> Classifier:
        """The model with the task's classifier; without `entities` it classifies by words alone."""

    def starting_bias(self, features: Sequence[Feature], label_count: int) -> np.ndarray | None:
        """The classifier's bias (labels) at which it answers with the classes' frequencies in these features.

        Each class counts one more, so that none is impossible. None: the classifier has no bias, or no fixed classes.
        """
        return None

    def collate(self, features: Sequence[Feature], *, entities: bool) -> Any:
        """One batch, a LabelledBatch."""

    def loss(self, module: nn.Module, batch: Any) -> Mapping[str, Tensor]:
        """The parts of the loss, each a scalar: the mean over the `loss_terms` of the batch's features.

        It is the cross-entropy, the binary one of labels that are shares, unless a task has another.
        """
        if batch.labels.is_floating_point():
            return {"loss": nn.functional.binary_cross_entropy_with_logits(module(batch), batch.labels)}
        return {"loss": nn.functional.cross_entropy(module(batch), batch.labels, ignore_index=IGNORED)}

    def logits(self, module: nn.Module, batch: Any) -> list[np.ndarray]:
        """For each feature of the batch its logits, those of as many items as the batch's `sizes` say."""
        return [scores.numpy() for scores in module(batch).float().cpu().split(batch.sizes)]

    # Decode

    def bias_shift(self, outputs: Outputs[Dataset, Feature]) -> np.ndarray | None:
        """Return what to add to the classifier's bias (labels) after training, by the score of a data set such as dev.

        None: nothing, or the task has nothing to choose.
        """
        return None

    def decode(self, outputs: Outputs[Dataset, Feature]) -> Sequence[Any]:
        """One prediction for each example of the data set."""

    def choices(self, outputs: Outputs[Dataset, Feature]) -> Iterator[Choices]:
        """Yield what the model decided, and what is right: the probabilities of a row are the softmax of its scores.

        Rows without a right alternative are left out.
        """

    # Score

    def score(
        self, dataset: Dataset, predictions: Sequence[Any], labels: Sequence[str], negative: str | None
    ) -> dict[str, Any]:
        """The field's metrics, all but the class `negative`, with those of each class under `types`.

        `predicted` counts positive predictions. Answers to questions have `exact_match` in place of precision,
        recall and `types`.
        """

    def score_files(self, gold_path: Path, predictions_path: Path) -> dict[str, Any]:
        """The scores of a file of predictions for the examples of another. Raises: ValueError where these differ."""

    # Questions of users, and what is written

    def from_records(self, records: Sequence[Record]) -> Dataset:
        """Return what a user asks about, without labels. Raises: ValueError naming the record and its field."""

    def answers(
        self, outputs: Outputs[Dataset, Feature], *, temperature: float, top: int | None
    ) -> list[dict[str, Any]]:
        """The predictions for a data set of `from_records` as JSON objects, one for each record.

        Their probabilities are those of logits divided by `temperature`. `top` is how many alternatives are told.
        """

    def prediction_lines(self, dataset: Dataset, predictions: Sequence[Any]) -> list[str]:
        """The input with the prediction added, in the task's own file format."""
