"""Span scores against seqeval, default and strict, and against conlleval written out step by step."""

import warnings
from collections import Counter

import pytest

from tasks.ner.spans import parse_tag, span_scores, spans_of_tags, tags_of_spans
from tests.support.properties import given, settings, st

metrics = pytest.importorskip("seqeval.metrics")
schemes = pytest.importorskip("seqeval.scheme")
TYPES = ("LOC", "ORG", "PER")
STRICT = {name: getattr(schemes, name) for name in ("IOB1", "IOB2", "IOBES")}


def tags_with(prefixes: str) -> st.SearchStrategy[str]:
    return st.sampled_from(["O", "O", *(f"{prefix}-{label}" for prefix in prefixes for label in TYPES)])


def paired_sentences(prefixes: str) -> st.SearchStrategy[list[list[tuple[str, str]]]]:
    word = st.tuples(tags_with(prefixes), tags_with(prefixes))
    return st.lists(st.lists(word, min_size=1, max_size=10), min_size=1, max_size=4)


def scores_of(gold: list[list[str]], predicted: list[list[str]]) -> dict:
    sides = [[spans_of_tags([parse_tag(tag) for tag in tags]) for tags in side] for side in (gold, predicted)]
    return span_scores(*sides)


def starts_chunk(previous: tuple[str, str], tag: tuple[str, str]) -> bool:
    pairs = {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I"), ("E", "E"), ("E", "I"), ("O", "E")}
    return (previous[0], tag[0]) in pairs or (tag[0] != "O" and previous[1] != tag[1])


def ends_chunk(previous: tuple[str, str], tag: tuple[str, str]) -> bool:
    pairs = {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O"), ("E", "E"), ("E", "I"), ("E", "O")}
    return (previous[0], tag[0]) in pairs or (previous[0] != "O" and previous[1] != tag[1])


def conlleval(words: list[tuple[str, str]]) -> tuple[Counter, Counter, Counter]:
    """Gold, guessed and correct chunks by type, counted word by word as the shared task's script does."""
    gold, guessed, correct = Counter(), Counter(), Counter()
    last_gold = last_guess = ("O", "")
    in_correct = ""
    for gold_tag, guess_tag in [*words, ("O", "O")]:
        now_gold, now_guess = ((*tag.split("-", 1), "")[:2] for tag in (gold_tag, guess_tag))
        if in_correct:
            ends = ends_chunk(last_gold, now_gold), ends_chunk(last_guess, now_guess)
            if all(ends) and last_gold[1] == last_guess[1]:
                correct[in_correct] += 1
                in_correct = ""
            elif ends[0] != ends[1] or now_gold[1] != now_guess[1]:
                in_correct = ""
        starts = starts_chunk(last_gold, now_gold), starts_chunk(last_guess, now_guess)
        if all(starts) and now_gold[1] == now_guess[1]:
            in_correct = now_gold[1]
        gold[now_gold[1]] += starts[0]
        guessed[now_guess[1]] += starts[1]
        last_gold, last_guess = now_gold, now_guess
    return gold, guessed, correct


@settings(deadline=None)
@given(paired_sentences("BI"))
def test_counts_equal_conlleval(sentences: list[list[tuple[str, str]]]) -> None:
    words = [word for sentence in sentences for word in [*sentence, ("O", "O")]]
    gold, guessed, correct = conlleval(words)
    found = scores_of([[g for g, _ in s] for s in sentences], [[p for _, p in s] for s in sentences])
    assert (found["gold"], found["predicted"], found["correct"]) == tuple(
        sum(counts.values()) for counts in (gold, guessed, correct)
    )
    for label in TYPES:
        row = found["types"].get(label, {"gold": 0, "predicted": 0, "correct": 0})
        assert (row["gold"], row["predicted"], row["correct"]) == (
            gold[label],
            guessed[label],
            correct[label],
        )


def assert_equals_report(found: dict, gold: list[list[str]], predicted: list[list[str]], **mode) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = metrics.classification_report(gold, predicted, output_dict=True, zero_division=0, **mode)
    for ours, theirs in [
        (found, report["micro avg"]),
        *((found["types"][t], report[t]) for t in found["types"]),
    ]:
        values = [theirs["precision"], theirs["recall"], theirs["f1-score"], theirs["support"]]
        assert [ours[name] for name in ("precision", "recall", "f1", "gold")] == pytest.approx(values)


@settings(deadline=None)
@given(paired_sentences("BIES"))
def test_scores_equal_seqeval_on_any_tags(sentences: list[list[tuple[str, str]]]) -> None:
    gold, predicted = ([[word[side] for word in sentence] for sentence in sentences] for side in (0, 1))
    found = scores_of(gold, predicted)
    if found["types"]:
        assert_equals_report(found, gold, predicted)


@settings(deadline=None)
@given(paired_sentences("BIES"), st.sampled_from(sorted(STRICT)))
def test_scores_equal_strict_seqeval_on_valid_tags(sentences: list, scheme: str) -> None:
    sides = [
        [
            tags_of_spans(spans_of_tags([parse_tag(word[side]) for word in sentence]), len(sentence), scheme)
            for sentence in sentences
        ]
        for side in (0, 1)
    ]
    found = scores_of(*sides)
    if found["types"]:
        assert_equals_report(found, *sides, mode="strict", scheme=STRICT[scheme])
