"""Spans, passes, decoding and tag schemes, against brute force and seqeval."""

from itertools import combinations

import pytest

from tasks.ner.spans import (
    OUTSIDE,
    SCHEMES,
    Span,
    enumerate_spans,
    parse_tag,
    schemes_of,
    select_spans,
    spans_of_tags,
    split_passes,
    tags_of_spans,
)
from tests.support.properties import given, st

ANY_TAG = st.sampled_from(["O", *(f"{prefix}-{label}" for prefix in "BIES" for label in ("PER", "creative-work"))])


@st.composite
def sentences(draw: st.DrawFn) -> tuple[int, list[Span]]:
    """A length and spans that do not overlap; neighbours often touch."""
    spans, position = [], 0
    for gap, length, label in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(["LOC", "PER"])), max_size=5)
    ):
        spans.append(Span(position + gap, position + gap + length, label))
        position += gap + length
    return position + draw(st.integers(0, 2)), spans


def test_enumerate_spans_gives_every_span_once() -> None:
    for length in range(8):
        for limit in range(1, 5):
            expected = {pair for pair in combinations(range(length + 1), 2) if pair[1] - pair[0] <= limit}
            found = enumerate_spans(length, limit)
            assert sorted(expected) == found


@given(st.integers(0, 500), st.integers(1, 128))
def test_passes_cover_everything_once_in_near_equal_parts(length: int, limit: int) -> None:
    parts = [range(length)[part] for part in split_passes(length, limit)]
    assert [item for part in parts for item in part] == list(range(length))
    sizes = [len(part) for part in parts]
    assert all(0 < size <= limit for size in sizes)
    assert not sizes or max(sizes) - min(sizes) <= 1
    assert (len(parts) - 1) * limit < length or length == 0


def test_equal_scores_are_decoded_from_left_to_right_whatever_their_order() -> None:
    scored = [(1.0, Span(1, 3, "PER")), (1.0, Span(0, 2, "PER")), (1.0, Span(2, 4, "LOC"))]
    expected = [Span(0, 2, "PER"), Span(2, 4, "LOC")]
    assert select_spans(scored) == select_spans(reversed(scored)) == expected


@given(st.lists(ANY_TAG, max_size=12))
def test_any_tags_give_the_entities_of_seqeval(tags: list[str]) -> None:
    labeling = pytest.importorskip("seqeval.metrics.sequence_labeling")
    expected = [Span(start, end + 1, label) for label, start, end in labeling.get_entities(tags)]
    assert spans_of_tags([parse_tag(tag) for tag in tags]) == expected


def allowed(tags: list[str]) -> frozenset[str]:
    parsed = [OUTSIDE, *map(parse_tag, tags), OUTSIDE]
    fitting = [schemes_of(*context) for context in zip(parsed, parsed[1:], parsed[2:], strict=False)]
    return frozenset(SCHEMES).intersection(*fitting)


@given(sentences(), st.sampled_from(SCHEMES))
def test_tags_and_spans_are_each_others_inverse(sentence: tuple[int, list[Span]], scheme: str) -> None:
    length, spans = sentence
    tags = tags_of_spans(spans, length, scheme)
    assert len(tags) == length
    assert spans_of_tags([parse_tag(tag) for tag in tags]) == spans
    assert allowed(tags) == (frozenset({scheme}) if spans else frozenset(SCHEMES))


@given(st.lists(ANY_TAG, max_size=7))
def test_a_scheme_allows_exactly_the_tags_that_it_would_write(tags: list[str]) -> None:
    spans = spans_of_tags([parse_tag(tag) for tag in tags])
    assert allowed(tags) == {scheme for scheme in SCHEMES if tags_of_spans(spans, len(tags), scheme) == tags}
