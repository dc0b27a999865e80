"""Finding and counting names, against brute force."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.mentions import (
    Names,
    count_occurrences,
    find_names,
    fold,
    inner_positions,
    normalize_mention,
    write_names,
)

TEXTS = st.text(alphabet="ab A.-'日本éß\u0301😀1", max_size=30)


def names_of(folder: Path, *names: str) -> Names:
    write_names(str(folder / "names"), names)
    return Names(str(folder / "names"))


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
    ],
)
def test_word_boundaries(text: str, boundaries: list[int]) -> None:
    inner = inner_positions(text)
    assert [position for position in range(len(text) + 1) if position not in inner] == boundaries


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
    inner = inner_positions(text)
    expected = {
        (start, start + len(name), name)
        for name in wanted
        for start in range(len(text))
        if text.startswith(name, start)
        and start not in inner
        and start + len(name) not in inner
        and not text[start].isspace()
    }
    found = list(find_names(text, names))
    assert set(found) == expected
    assert len(found) == len(expected)


def test_a_link_counts_wherever_it_stands_and_once(tmp_path: Path) -> None:
    names = names_of(tmp_path, "cat", "日")
    text = "cats and cat, 日本"
    assert count_occurrences(text, [], names) == Counter({"cat": 1, "日": 1})
    assert count_occurrences(text, [(0, 3), (9, 12), (5, 8)], names) == Counter({"cat": 2, "日": 1})


@pytest.mark.parametrize(
    ("anchor", "profile", "mention"),
    [
        ("New York", "fixed", "New York"),
        (" ", "fixed", ""),
        ("x" * 101, "fixed", ""),
        ("Café", "paper", "cafe"),
        (" ".join("a" * 21), "paper", ""),
        (" ".join("a" * 20), "paper", " ".join("a" * 20)),
    ],
)
def test_mention_of_an_anchor(anchor: str, profile: str, mention: str) -> None:
    assert normalize_mention(anchor, profile) == mention


def test_fold() -> None:
    assert fold("ÀÉÎõü Straße") == "aeiou straße"
