"""Relation classification between a head and a tail entity (section 4.2 of the paper)."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from model.luke.batch import IGNORED
from model.luke.encoder import LukeModel
from tasks.io.data_folder import ClassNames
from tasks.io.metrics import micro_scores, precision_recall_f1
from tasks.io.probabilities import Choices, of_classes, rounded, softmax
from tasks.io.records import check_same_inputs
from tasks.markers import MarkedFeature, MarkedTask, MentionClassifier, marked_input
from tasks.relations.relation_format import Dataset, parse, records_of, relation_of
from tasks.task import Features, InputSettings, Outputs, presets

# Of TACRED, SemEval-2010 task 8 and OpenNRE, in any letters and with any signs between them.
NEGATIVE_LABELS = ("no_relation", "Other", "NA", "None")
DIRECTION = re.compile(r"\((e1,e2|e2,e1)\)$")


def relation_scores(gold: Sequence[str], predicted: Sequence[str], negative: str | None) -> dict[str, Any]:
    """Precision, recall and F1 as TACRED's scorer computes them, and per relation under `types`."""
    golds, predictions = ([{label} - {negative} for label in side] for side in (gold, predicted))
    scores = micro_scores(golds, predictions)
    if any(DIRECTION.search(label) for label in gold):
        scores["semeval_macro_f1"] = semeval_macro_f1(gold, predicted, negative)
    return scores


def semeval_macro_f1(gold: Sequence[str], predicted: Sequence[str], negative: str | None) -> float:
    """The official score of SemEval-2010 task 8: the mean F1 of the relations without their directions.

    A prediction with the wrong direction is wrong, and counts as a prediction of its relation all the same.
    Relations that neither side has are left out, as is the negative label.
    """
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for gold_label, predicted_label in zip(gold, predicted, strict=True):
        if gold_label != negative:
            counts[DIRECTION.sub("", gold_label)][0] += 1
            counts[DIRECTION.sub("", gold_label)][2] += gold_label == predicted_label
        if predicted_label != negative:
            counts[DIRECTION.sub("", predicted_label)][1] += 1
    scores = [precision_recall_f1(*numbers)["f1"] for numbers in counts.values()]
    return sum(scores) / len(scores) if scores else 0.0


class RelationClassification(MarkedTask):
    """Relations between a head and a tail."""

    PRESETS = presets("relation_classification")
    WORD_MARKERS = MappingProxyType({"[HEAD]": "@", "[TAIL]": "#"})
    ENTITY_ROWS = (0, 2, 2)  # [PAD]; [HEAD] and [TAIL] both start from [MASK]
    ENTITIES = (1, 2)
    ARCHITECTURE = "LukeForEntityPairClassification"
    parse = staticmethod(parse)
    records_of = staticmethod(records_of)

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Sizes, and how often the tail comes first or shares words with the head."""
        examples = dataset.examples
        apart = [each.head[1] <= each.tail[0] or each.tail[1] <= each.head[0] for each in examples]
        return {
            "examples": len(examples),
            "relations": len({example.relation for example in examples}),
            "tail_before_head": sum(example.tail < example.head for example in examples),
            "overlapping": len(examples) - sum(apart),
        }

    def label_names(self, datasets: Mapping[str, Dataset], listed: Sequence[str]) -> tuple[str, ...]:
        """The relations `listed` (a label file) or else those of all splits, in alphabetical order.

        Those of dev and test that are not listed count as misses. Raises: ValueError naming file and line for one
        of train, and file where train has one relation alone.
        """
        train = {each.relation for each in datasets["train"].examples}
        if len(train) == 1:
            raise ValueError(
                f"{datasets['train'].path}: all examples have the relation {next(iter(train))!r}, so that there is "
                "nothing to learn; where the file is sorted by relation, shuffle it before it is split"
            )
        if not listed:
            return tuple(sorted({each.relation for dataset in datasets.values() for each in dataset.examples}))
        for example in datasets["train"].examples:
            if example.relation not in listed:
                raise example.record.error(f"relation {example.relation!r} is not in the label file")
        return tuple(listed)

    def negative_label(self, labels: Sequence[str], given: str) -> str | None:
        """The class that means no relation, which the scores leave out: `given`, or else the one that is known.

        None where neither of the known names is among the labels. Raises: ValueError for one that is not a label.
        """
        if given and given not in labels:
            raise ValueError(f"negative label {given!r} is no label; the data have {', '.join(labels)}")
        names = [name.replace("_", "").lower() for name in NEGATIVE_LABELS]
        plain = {label: re.sub(r"[\W_]", "", label).lower() for label in labels}
        known = [given] if given else [label for name in names for label in labels if plain[label] == name]
        if len(known) > 1:
            raise ValueError(f"both {' and '.join(known)} are labels; name the negative one (--negative-label)")
        return known[0] if known else None

    def featurize(self, dataset: Dataset, inputs: InputSettings) -> Features[MarkedFeature]:
        """The text with [HEAD] and [TAIL] around head and tail; those of a long text keep what is around them."""
        counts = Counter(mentions_cut=0, contexts_cut=0, labels_unknown=0)
        items, of_examples = [], []
        for example in dataset.examples:
            before, spans = counts.copy(), (example.head, example.tail)
            word_ids, ends = marked_input(example.text, spans, inputs, counts)
            is_known = example.relation in inputs.labels
            counts["labels_unknown"] += not is_known
            label = inputs.labels.index(example.relation) if is_known else IGNORED
            items.append(MarkedFeature(word_ids, ends, np.array(label)))
            of_examples.append(counts - before)
        return Features(items, counts, of_examples)

    def head(self, luke: LukeModel, label_count: int, *, entities: bool) -> MentionClassifier:
        """LUKE with a linear classifier over [h_head; h_tail], without bias as in transformers."""
        return MentionClassifier(luke, 2, label_count, bias=False)

    def decode(self, outputs: Outputs[Dataset, MarkedFeature]) -> list[str]:
        """The best relation of each example."""
        return [outputs.labels[int(row.argmax())] for row in outputs.logits]

    def choices(self, outputs: Outputs[Dataset, MarkedFeature]) -> Iterator[Choices]:
        """The relation of each example, as far as it is a class."""
        gold = np.array([feature.label for feature in outputs.features])
        if (gold != IGNORED).any():
            scores = np.stack(outputs.logits)[gold != IGNORED]
            yield scores, gold[gold != IGNORED, None] == np.arange(scores.shape[1])

    def score(
        self, dataset: Dataset, predictions: Sequence[str], labels: Sequence[str], negative: str | None
    ) -> dict[str, Any]:
        """Micro scores over all relations but the negative one; where they have a direction, SemEval's macro-F1."""
        return relation_scores([example.relation for example in dataset.examples], predictions, negative)

    def answers(
        self, outputs: Outputs[Dataset, MarkedFeature], *, temperature: float = 1.0, top: int | None = None
    ) -> list[dict[str, Any]]:
        """`relation` and `probability` of each record; with `top` the `probabilities` of the likeliest."""
        found = []
        for relation, row in zip(self.decode(outputs), outputs.logits, strict=True):
            shares = softmax(row, temperature)
            answer = {"relation": relation, "probability": rounded(shares.max())}
            found.append(answer | ({"probabilities": of_classes(outputs.labels, shares, top)} if top else {}))
        return found

    def score_files(self, gold_path: Path, predictions_path: Path, *, negative_label: str = "") -> dict[str, Any]:
        """Scores of a file of predictions (field `prediction`, or else `relation`) for the examples of another."""
        gold = self.read(gold_path).examples
        records, names = records_of(predictions_path), ClassNames(predictions_path)
        fields = ("prediction", "relation")
        check_same_inputs([example.record for example in gold], records, fields)
        predicted = [relation_of(record, names, record.first_of(*fields)) for record in records]
        relations = [example.relation for example in gold]
        chosen = self.negative_label(sorted({*relations, *predicted}), negative_label)
        return {"negative_label": chosen, **relation_scores(relations, predicted, chosen)}


TASK = RelationClassification()
