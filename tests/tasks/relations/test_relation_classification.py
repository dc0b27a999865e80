"""Relation classification: both formats, labels, features of real sentences, and the field's scores."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from model.luke.batch import IGNORED
from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.relations import relation_classification
from tasks.task import InputSettings
from tests.support import ROOT
from tests.support.fine_tuned import written
from tests.support.models import TINY
from tests.support.properties import given, settings, st

EXAMPLES = ROOT / "examples" / "relation_classification"
MARKERS = {"[HEAD]": 60000, "[TAIL]": 60001}
WORDS = ["The", "firm", "of", "Ada", "Bell", "thrives", "."]
TACRED = {
    "token": WORDS, "subj_start": 3, "subj_end": 4, "obj_start": 1, "obj_end": 1, "relation": "no_relation",
}  # fmt: skip
SEMEVAL = {"token": WORDS, "h": {"pos": [3, 5]}, "t": {"pos": [1, 2]}, "relation": "Other"}


def test_both_formats_say_the_same(tmp_path: Path) -> None:
    examples = relation_classification.TASK.read(written(tmp_path, TACRED, SEMEVAL)).examples
    raw = {"text": " ".join(WORDS), "head": [12, 20], "tail": [4, 8], "relation": "Other"}
    third = relation_classification.TASK.read(written(tmp_path, raw)).examples[0]
    for example in (*examples, third):
        assert example.text[slice(*example.head)] == "Ada Bell"
        assert example.text[slice(*example.tail)] == "firm"
    assert [example.relation for example in examples] == ["no_relation", "Other"]


def test_unknown_labels(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    path = written(tmp_path, TACRED, {**TACRED, "relation": "per:title"})
    dataset = relation_classification.TASK.read(path)
    features = relation_classification.TASK.featurize(
        dataset, InputSettings(tokenizer, ("no_relation", "org:x"), MARKERS, 99, "fixed")
    )
    assert features.counts["labels_unknown"] == 1
    assert [int(feature.label) for feature in features.items] == [0, IGNORED]
    scores = relation_classification.TASK.score(
        dataset, ["no_relation", "org:x"], ("no_relation", "org:x"), "no_relation"
    )
    assert (scores["gold"], scores["predicted"], scores["correct"]) == (1, 1, 0)


def test_the_negative_label_is_given_or_known() -> None:
    assert relation_classification.TASK.negative_label(["a", "b"], "") is None
    for label in ("no_relation", "NO_RELATION", "Other", "NA", "N/A", "None", "na"):
        assert relation_classification.TASK.negative_label(["/people/nation", label], "") == label
    assert relation_classification.TASK.negative_label(["a", "Other"], "a") == "a"


labels = st.sampled_from(["no_relation", "a(e1,e2)", "a(e2,e1)", "b(e1,e2)", "c"])


@settings(max_examples=60)
@given(st.lists(st.tuples(labels, labels), min_size=1, max_size=30))
def test_micro_scores_equal_scikit_learn(pairs: list[tuple[str, str]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    gold, predicted = zip(*pairs, strict=True)
    scores = relation_classification.relation_scores(gold, predicted, "no_relation")
    scored = sorted({*gold, *predicted} - {"no_relation"})
    if not scored:
        assert scores["f1"] == 0
        return
    expected = metrics.precision_recall_fscore_support(gold, predicted, labels=scored, average="micro", zero_division=0)
    assert [scores[name] for name in ("precision", "recall", "f1")] == pytest.approx(expected[:3])
    each = metrics.precision_recall_fscore_support(gold, predicted, labels=scored, zero_division=0)
    for number, label in enumerate(scored):
        found = [scores["types"][label][name] for name in ("precision", "recall", "f1")]
        assert found == pytest.approx([column[number] for column in each[:3]])


def official_macro_f1(gold: Sequence[str], predicted: Sequence[str]) -> float:
    """From the confusion matrix of relations without directions, with wrong directions aside, as the script has it."""
    names = sorted({label[:-7] for label in (*gold, *predicted) if label != "Other"})
    index = {name: number for number, name in enumerate([*names, "Other"])}
    matrix, wrong_direction = np.zeros((len(index), len(index)), dtype=int), Counter[str]()
    for gold_label, predicted_label in zip(gold, predicted, strict=True):
        row, column = (label[:-7] if label != "Other" else label for label in (gold_label, predicted_label))
        if row == column and gold_label != predicted_label:
            wrong_direction[row] += 1
        else:
            matrix[index[row], index[column]] += 1
    scores = []
    for name in names:
        number, aside = index[name], wrong_direction[name]
        guessed, actual = matrix[:, number].sum() + aside, matrix[number].sum() + aside
        precision = matrix[number, number] / guessed if guessed else 0
        recall = matrix[number, number] / actual if actual else 0
        scores.append(2 * precision * recall / (precision + recall) if precision + recall else 0)
    return sum(scores) / len(scores) if scores else 0


directed = st.sampled_from(["Other", *(f"{name}({ends})" for name in "ABC" for ends in ("e1,e2", "e2,e1"))])


@given(st.lists(st.tuples(directed, directed), min_size=1, max_size=30))
def test_macro_f1_equals_the_official_counting(pairs: list[tuple[str, str]]) -> None:
    gold, predicted = zip(*pairs, strict=True)
    found = relation_classification.semeval_macro_f1(gold, predicted, "Other")
    assert found == pytest.approx(official_macro_f1(gold, predicted))
    scores = relation_classification.relation_scores(gold, predicted, "Other")
    assert scores.get("semeval_macro_f1") == (found if set(gold) != {"Other"} else None)


def test_loss_ignores_unknown_labels() -> None:
    torch.manual_seed(4)
    module = relation_classification.TASK.head(LukeModel(TINY), 3, entities=False).eval()
    features = [
        relation_classification.MarkedFeature(np.arange(5, 15), np.array([[1, 3], [5, 7]]), np.array(label))
        for label in (2, IGNORED)
    ]
    with torch.inference_mode():
        both = relation_classification.TASK.loss(
            module, relation_classification.TASK.collate(features, entities=False)
        )["loss"]
        one = relation_classification.TASK.loss(
            module, relation_classification.TASK.collate(features[:1], entities=False)
        )["loss"]
    assert float(both) == pytest.approx(float(one), rel=1e-5)
