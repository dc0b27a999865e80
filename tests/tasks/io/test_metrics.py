"""Span scores against seqeval, which counts as conlleval does."""

import warnings

import pytest

from tasks.io.metrics import micro_scores
from tasks.ner.spans import parse_tag, spans_of_tags
from tests.support.properties import given, settings, st

metrics = pytest.importorskip("seqeval.metrics")
labeling = pytest.importorskip("seqeval.metrics.sequence_labeling")
TYPES = ("LOC", "ORG", "PER")


TAGS = st.sampled_from(["O", "O", *(f"{prefix}-{label}" for prefix in "BIES" for label in TYPES)])
SENTENCES = st.lists(st.lists(st.tuples(TAGS, TAGS), min_size=1, max_size=10), min_size=1, max_size=4)


def scores_of(gold: list[list[str]], predicted: list[list[str]]) -> dict:
    sides = [[spans_of_tags([parse_tag(tag) for tag in tags]) for tags in side] for side in (gold, predicted)]
    return micro_scores(*sides, lambda span: span.label)


def assert_equals_report(found: dict, gold: list[list[str]], predicted: list[list[str]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = metrics.classification_report(gold, predicted, output_dict=True, zero_division=0)
    for ours, theirs in [(found, report["micro avg"]), *((found["types"][t], report[t]) for t in found["types"])]:
        values = [theirs["precision"], theirs["recall"], theirs["f1-score"], theirs["support"]]
        assert [ours[name] for name in ("precision", "recall", "f1", "gold")] == pytest.approx(values)


@settings(deadline=None)
@given(SENTENCES)
def test_scores_equal_seqeval_on_any_tags(sentences: list[list[tuple[str, str]]]) -> None:
    gold, predicted = ([[word[side] for word in sentence] for sentence in sentences] for side in (0, 1))
    found = scores_of(gold, predicted)
    sides = {"gold": gold, "predicted": predicted}
    assert {side: found[side] for side in sides} == {
        side: sum(len(labeling.get_entities(tags)) for tags in rows) for side, rows in sides.items()
    }
    if found["types"]:
        assert_equals_report(found, gold, predicted)
