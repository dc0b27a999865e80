"""Entity typing: both formats of Open Entity, brackets, label sets and loose micro scores."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline.sequences.tokenizer import WordTokenizer
from tasks.task import InputSettings, Outputs
from tasks.typing import entity_typing
from tests.support.fine_tuned import written
from tests.support.properties import given, settings, st

ERNIE = {"sent": "A cat ( Tom ) sat .", "labels": ["entity", "object"], "start": 8, "end": 11}
ULTRA_FINE = {
    "annot_id": "x/1",
    "left_context_token": ["A", "cat", "-LRB-"],
    "mention_span": "Tom",
    "right_context_token": ["-RRB-", "sat", "."],
    "y_str": ["person", "cat", "pet"],
}


def featurize(dataset: entity_typing.Dataset, tokenizer: WordTokenizer, **changes: Any) -> entity_typing.Features:
    arguments = {"max_words": 64, "profile": "fixed", **changes}
    return entity_typing.TASK.featurize(
        dataset, InputSettings(tokenizer, entity_typing.GENERAL_TYPES, {"[ENTITY]": 999}, **arguments)
    )


def test_both_formats(tmp_path: Path) -> None:
    examples = entity_typing.TASK.read(written(tmp_path, ERNIE, ULTRA_FINE)).examples
    assert [example.text[slice(*example.span)] for example in examples] == ["Tom", "Tom"]
    assert examples[1].text == "A cat -LRB- Tom -RRB- sat ."
    assert examples[1].types == ("person", "cat", "pet")
    alone = {**ULTRA_FINE, "left_context_token": [], "right_context_token": []}
    [example] = entity_typing.TASK.read(written(tmp_path, alone)).examples
    assert example.text[slice(*example.span)] == "Tom"


def test_brackets_come_back(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    text = "-LRB- a -RRB- -lsb- b -rsb- -LCB- c -RCB- -ABC- LRB"
    assert entity_typing.restore_brackets(text, profile="fixed") == "( a ) [ b ] { c } -ABC- LRB"
    assert entity_typing.restore_brackets(text, profile="paper") == "( a ) ( b ) ( c ) -ABC- LRB"
    dataset = entity_typing.TASK.read(written(tmp_path, ERNIE, ULTRA_FINE))
    features = featurize(dataset, tokenizer)
    assert features.items[0].word_ids.tolist() == features.items[1].word_ids.tolist()


def test_features_mark_the_mention(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    features = featurize(entity_typing.TASK.read(written(tmp_path, ERNIE, ULTRA_FINE)), tokenizer)
    assert features.counts == {"mentions_cut": 0, "contexts_cut": 0, "labels_left_out": 2}
    for feature, wanted in zip(features.items, [{"entity", "object"}, {"person"}], strict=True):
        first, last = feature.ends[0]
        assert feature.word_ids[[first, last]].tolist() == [999, 999]
        assert tokenizer.decode(feature.word_ids[first + 1 : last].tolist()) == " Tom"
        named = {name for name, value in zip(entity_typing.GENERAL_TYPES, feature.label, strict=True) if value}
        assert named == wanted
        assert feature.label.dtype == np.float32


def test_label_sets(tmp_path: Path) -> None:
    train = entity_typing.TASK.read(written(tmp_path, ULTRA_FINE))
    assert entity_typing.TASK.label_names({"train": train}, ()) == entity_typing.GENERAL_TYPES
    assert len(entity_typing.GENERAL_TYPES) == 9
    assert entity_typing.TASK.label_names({"train": train}, ("pet", "dog")) == ("pet", "dog")


def test_every_logit_above_zero_is_a_type() -> None:
    rows = [np.array([0.1, -0.1, 0.0]), np.array([-1.0, -2.0, -3.0]), np.array([1.0, 2.0, 3.0])]
    assert entity_typing.TASK.decode(Outputs(None, [], rows, ["a", "b", "c"])) == [("a",), (), ("a", "b", "c")]


subsets = st.sets(st.sampled_from(entity_typing.GENERAL_TYPES[:4]))


@settings(max_examples=60)
@given(st.lists(st.tuples(subsets, subsets), min_size=1, max_size=20))
def test_scores_equal_scikit_learn(pairs: list[tuple[set[str], set[str]]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    columns = entity_typing.GENERAL_TYPES[:4]
    gold, predicted = (
        np.array([[name in row for name in columns] for row in side]) for side in zip(*pairs, strict=True)
    )
    scores = entity_typing.type_scores(*([sorted(row) for row in side] for side in zip(*pairs, strict=True)), columns)
    expected = metrics.precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0)
    assert [scores[name] for name in ("precision", "recall", "f1")] == pytest.approx(expected[:3])
    each = metrics.precision_recall_fscore_support(gold, predicted, zero_division=0)
    for number, name in enumerate(columns):
        if name in scores["types"]:
            assert scores["types"][name]["f1"] == pytest.approx(each[2][number])
        else:
            assert not gold[:, number].any()
            assert not predicted[:, number].any()
