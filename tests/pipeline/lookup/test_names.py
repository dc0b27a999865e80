"""Finding and counting names, against brute force."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lookup.names import (
    Names,
    find_names,
    fold,
    longest_names,
    normalize_mention,
    occurrences,
    tokens,
)
from pipeline.storage.tries import write_texts
from tests.support.oracle_tables import word_boundaries

TEXTS = st.text(alphabet="ab A.-'日本éß\u0301😀1", max_size=30)


def names_of(folder: Path, *names: str) -> Names:
    write_texts(str(folder / "names"), names)
    return Names(str(folder / "names"), max(map(len, names), default=0))


@pytest.mark.parametrize(
    ("text", "boundaries"),
    [
        ("cat", [0, 3]),
        ("cat's 2", [0, 3, 4, 5, 6, 7]),
        ("日本語", [0, 1, 2, 3]),
        ("e\u0301a", [0, 3]),
        ("a日b", [0, 1, 2, 3]),
        ("x😀y", [0, 1, 2, 3]),
        ("ก\u0e49า", [0, 2, 3]),
        ("العربية", [0, 7]),
        ("12th", [0, 4]),
        ("ドクターX", [0, 1, 2, 3, 4, 5]),
        ("ー2", [0, 1, 2]),
    ],
)
def test_word_boundaries(text: str, boundaries: list[int]) -> None:
    inside = {position for match in tokens(text) for position in range(match.start() + 1, match.end())}
    assert [position for position in range(len(text) + 1) if position not in inside] == boundaries


@given(st.text(alphabet="a1 .\u0301\u0e49日かーｰกé\u3099\x85\u3000", max_size=12))
def test_word_boundaries_equal_the_oracles(text: str) -> None:
    inside = {position for match in tokens(text) for position in range(match.start() + 1, match.end())}
    assert inside == set(range(len(text))) - set(word_boundaries(text))


def test_names_are_found_between_boundaries(tmp_path: Path) -> None:
    names = names_of(tmp_path, "New York", "York", "New", "or", "日本", "😀")
    text = "New York, Yorkshire or 日本語 😀"
    found = sorted((start, text[start:end]) for start, end, name in find_names(text, names))
    assert found == [(0, "New"), (0, "New York"), (4, "York"), (20, "or"), (23, "日本"), (27, "😀")]


@given(TEXTS, st.sets(st.text(alphabet="ab A日本é", min_size=1, max_size=4), max_size=6))
def test_finding_equals_brute_force(
    tmp_path_factory: pytest.TempPathFactory, text: str, wanted: set[str]
) -> None:
    names = names_of(tmp_path_factory.mktemp("names"), *wanted)
    boundaries = {*word_boundaries(text)}
    expected = {
        (start, start + len(name), name)
        for name in wanted
        for start in range(len(text))
        if text.startswith(name, start)
        and {start, start + len(name)} <= boundaries
        and not text[start].isspace()
    }
    found = list(find_names(text, names))
    assert set(found) == expected
    assert len(found) == len(expected)


@given(TEXTS, st.sets(st.text(alphabet="ab A日本é", min_size=1, max_size=4), max_size=6))
def test_the_longest_names_cover_what_can_be_covered(
    tmp_path_factory: pytest.TempPathFactory, text: str, wanted: set[str]
) -> None:
    names = names_of(tmp_path_factory.mktemp("names"), *wanted)
    places = sorted(find_names(text, names))
    expected: list[tuple[int, int, str]] = []
    while free := [place for place in places if not expected or place[0] >= expected[-1][1]]:
        expected.append(max(free, key=lambda place: (-place[0], place[1])))
    assert list(longest_names(text, names)) == expected


def test_a_link_counts_wherever_it_stands_and_once(tmp_path: Path) -> None:
    names = names_of(tmp_path, "cat", "日")
    text = "cats and cat, 日本"
    assert Counter(occurrences(text, [], names)) == {"cat": 1, "日": 1}
    assert Counter(occurrences(text, [(0, 3), (9, 12), (5, 8)], names)) == {"cat": 2, "日": 1}


@given(
    TEXTS,
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 4)), max_size=5),
    st.sets(st.text(alphabet="ab A日本é", min_size=1, max_size=4), max_size=6),
)
def test_occurrences_are_the_union_of_links_and_places(
    tmp_path_factory: pytest.TempPathFactory, text: str, places: list[tuple[int, int]], wanted: set[str]
) -> None:
    names = names_of(tmp_path_factory.mktemp("names"), *wanted)
    links = [(start, start + size) for start, size in places if start + size <= len(text)]
    union = {(start, end) for start, end, _ in find_names(text, names)}
    union |= {(start, end) for start, end in links if text[start:end] in wanted}
    assert Counter(occurrences(text, links, names)) == Counter(text[start:end] for start, end in union)


@pytest.mark.parametrize(
    ("anchor", "mention"),
    [("Café", "cafe"), (" ", ""), (" ".join("a" * 21), ""), (" ".join("a" * 20), " ".join("a" * 20))],
)
def test_mention_of_an_anchor_in_the_papers_profile(anchor: str, mention: str) -> None:
    assert normalize_mention(anchor) == mention


def test_fold() -> None:
    assert fold("ÀÉÎõü Straße") == "aeiou straße"
