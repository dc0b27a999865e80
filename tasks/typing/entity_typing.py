"""Entity typing: all types of a mention in its context (section 4.1 of the paper)."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from model.luke.encoder import LukeModel
from tasks.io.data_folder import ClassNames, read_label_file
from tasks.io.metrics import micro_scores
from tasks.io.probabilities import Choices, of_classes, sigmoid
from tasks.io.records import Examples, Record, check_mention, check_same_inputs, read_records
from tasks.io.windows import CharacterSpan
from tasks.markers import MarkedFeature, MarkedTask, MentionClassifier, marked_input
from tasks.task import Features, InputSettings, Outputs, presets

GENERAL_TYPES = (
    "entity", "event", "group", "location", "object", "organization", "person", "place", "time",
)  # fmt: skip
BRACKET = re.compile(r"-([LR])([RSC])B-", re.IGNORECASE)
BRACKETS = {"LR": "(", "RR": ")", "LS": "[", "RS": "]", "LC": "{", "RC": "}"}


@dataclass(frozen=True)
class Example:
    """A text, the characters of a mention in it, and the mention's types (none where they are asked for)."""

    text: str
    span: CharacterSpan
    types: tuple[str, ...]
    record: Record


Dataset = Examples[Example]


def parse(record: Record, names: ClassNames | None) -> Example:
    """The example of a record, whose fields tell its format; without `names` it has no types.

    ERNIE: `sent`, `start`, `end` (characters, half open), `labels`. Ultra-fine: `left_context_token`,
    `mention_span`, `right_context_token`, `y_str`. Or `text` with `start` and `end`. Raises: ValueError naming
    file, line and field.
    """
    if "mention_span" in record.values:
        left, right = (" ".join(record.texts(f"{side}_context_token")) for side in ("left", "right"))
        mention = record.text("mention_span")
        text, start = f"{left} {mention} {right}", len(left) + 1
        span = record.span("mention_span", [start, start + len(mention)], len(text), "characters")
    else:
        text = record.text(record.first_of("text", "sent"))
        ends = [record.field(side, int, "a character's number") for side in ("start", "end")]
        span = record.span("start, end", ends, len(text), "characters")
    check_mention(record, "start, end", text, span)
    field = "y_str" if "mention_span" in record.values else "labels"
    return Example(text, span, types_of(record, field, names) if names else (), record)


def types_of(record: Record, field: str, names: ClassNames) -> tuple[str, ...]:
    """The names in a list of types."""
    values = record.field(field, list, "a list of types")
    return tuple(names.name(record, f"{field}[{place}]", value) for place, value in enumerate(values))


def check_labels(dataset: Dataset, labels: Sequence[str], where: str) -> None:
    """Raises: ValueError where no example has one of the types; `where` says where others are listed."""
    if not any(set(example.types) & set(labels) for example in dataset.examples):
        raise ValueError(
            f"{dataset.path}: no example has one of the types {', '.join(labels[:9])}; list those of your data {where}"
        )


def left_out(types: Sequence[Sequence[str]], labels: Sequence[str]) -> int:
    """Return how many of the examples' types are none of the labels."""
    return sum(len(set(each) - set(labels)) for each in types)


def restore_brackets(text: str, *, profile: str) -> str:
    """-LRB-, -RSB- and their like as the brackets that they stand for."""
    return BRACKET.sub(
        lambda match: BRACKETS[match[1].upper() + ("R" if profile == "paper" else match[2].upper())], text
    )


def type_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], labels: Sequence[str]
) -> dict[str, Any]:
    """Precision, recall and F1 over all pairs of an example and a type; types not in `labels` are left out."""
    kept = set(labels)
    return micro_scores([set(types) & kept for types in gold], [set(types) & kept for types in predicted])


class EntityTyping(MarkedTask):
    """All types of a mention."""

    PRESETS = presets("entity_typing")
    WORD_MARKERS = MappingProxyType({"[ENTITY]": "@"})
    ENTITIES = (1,)
    ARCHITECTURE = "LukeForEntityClassification"
    parse = staticmethod(parse)

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Sizes of a data set."""
        examples = dataset.examples
        return {
            "examples": len(examples),
            "labels": sum(len(set(example.types)) for example in examples),
            "examples_without_label": sum(not example.types for example in examples),
        }

    def label_names(self, datasets: Mapping[str, Dataset], listed: Sequence[str]) -> tuple[str, ...]:
        """The types `listed` (a label file) or else the nine general ones; others are left out of gold labels.

        Raises: ValueError where the training set has none of them.
        """
        labels = tuple(listed) or GENERAL_TYPES
        check_labels(datasets["train"], labels, "in labels.txt beside it, one a line")
        return labels

    def featurize(self, dataset: Dataset, inputs: InputSettings) -> Features[MarkedFeature]:
        """The text with [ENTITY] on both sides of the mention; of a long one, what is around the mention.

        -LRB- and its like become brackets again: `fixed` gives each kind its own, `paper` round ones to all.
        """
        counts = Counter(mentions_cut=0, contexts_cut=0, labels_left_out=0)
        clean = partial(restore_brackets, profile=inputs.profile)
        items, of_examples = [], []
        for example in dataset.examples:
            before = counts.copy()
            word_ids, ends = marked_input(example.text, [example.span], inputs, counts, clean)
            counts["labels_left_out"] += left_out([example.types], inputs.labels)
            label = np.array([name in example.types for name in inputs.labels], dtype=np.float32)
            items.append(MarkedFeature(word_ids, ends, label))
            of_examples.append(counts - before)
        return Features(items, counts, of_examples)

    def head(self, luke: LukeModel, label_count: int, *, entities: bool) -> MentionClassifier:
        """LUKE with a linear classifier over h_entity."""
        return MentionClassifier(luke, 1, label_count)

    def starting_bias(self, features: Sequence[MarkedFeature], label_count: int) -> np.ndarray:
        """The logarithms of each type's odds: of the mentions that have it to those that have not."""
        positive = np.sum([feature.label for feature in features], axis=0)
        return np.log((1 + positive) / (1 + len(features) - positive))

    def decode(self, outputs: Outputs[Dataset, MarkedFeature]) -> list[tuple[str, ...]]:
        """The types of each example whose logits are above 0; there may be none."""
        labels = outputs.labels
        return [tuple(labels[column] for column in np.flatnonzero(row > 0).tolist()) for row in outputs.logits]

    def choices(self, outputs: Outputs[Dataset, MarkedFeature]) -> Iterator[Choices]:
        """Yield whether a mention has a type, of all mentions and types: no, whose score is 0, or yes."""
        scores = np.concatenate(outputs.logits)
        is_right = np.concatenate([feature.label for feature in outputs.features]) > 0
        yield np.stack([np.zeros_like(scores), scores], axis=1), np.stack([~is_right, is_right], axis=1)

    def score(
        self, dataset: Dataset, predictions: Sequence[Sequence[str]], labels: Sequence[str], negative: str | None
    ) -> dict[str, Any]:
        """Loose micro scores over the types in `labels`, and per type under `types`."""
        return type_scores([example.types for example in dataset.examples], predictions, labels)

    def answers(
        self, outputs: Outputs[Dataset, MarkedFeature], *, temperature: float = 1.0, top: int | None = None
    ) -> list[dict[str, Any]]:
        """`labels` of each record, a list, and the `probabilities` of all types or of the `top` likeliest."""
        shares = (of_classes(outputs.labels, sigmoid(row, temperature), top) for row in outputs.logits)
        found = zip(self.decode(outputs), shares, strict=True)
        return [{"labels": list(types), "probabilities": each} for types, each in found]

    def score_files(self, gold_path: Path, predictions_path: Path, *, labels: str = "") -> dict[str, Any]:
        """Scores of a file of predictions (field `prediction`, or else `labels` or `y_str`) for another's examples.

        `labels` is a file with the types that are scored; the nine general ones where it is empty. How many others
        either side has is said under `labels_left_out`. Raises: ValueError where all gold types are others.
        """
        dataset = self.read(gold_path)
        records = read_records(predictions_path)
        fields = ("prediction", "y_str", "labels")
        check_same_inputs([each.record for each in dataset.examples], records, fields)
        names = read_label_file(Path(labels)) if labels else GENERAL_TYPES
        check_labels(dataset, names, "in a file, one a line, and pass it as --labels")
        gold = [example.types for example in dataset.examples]
        numbered = ClassNames(predictions_path)
        predicted = [types_of(record, record.first_of(*fields), numbered) for record in records]
        others = {"gold": left_out(gold, names), "predicted": left_out(predicted, names)}
        return {"labels_left_out": others, **type_scores(gold, predicted, names)}


TASK = EntityTyping()
