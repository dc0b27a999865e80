"""Counting names in many texts at once, against brute force."""

from collections import Counter
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from pipeline.jobs.tables import occurrences as counting
from pipeline.jobs.tables.occurrences import NO_LINKS, Links, NameKeys, find_keys, write_keys
from pipeline.lookup.names import tokens
from tests.support.oracle_tables import NameFinder

ALPHABET = "ab A.-'日本éß\u0301\u0e49かー😀1\x85\u3000မ်ꦏꦶꆈ"
TEXTS = st.lists(st.text(alphabet=ALPHABET, max_size=30), max_size=5)
NAMES = st.sets(st.text(alphabet=ALPHABET, min_size=1, max_size=5), min_size=1, max_size=8)


def names_of(folder: Path, *names: str) -> NameKeys:
    batches = [names[:1], names[1:]] if names[1:] else [names] if names else []
    write_keys(str(folder / "names"), lambda: batches, len(names))
    return NameKeys(str(folder / "names"))


def count(texts: list[str], links: Links, known: NameKeys, names: set[str]) -> Counter[tuple[int, str]]:
    """The counts of each name in each text."""
    by_row = dict(zip(known.rows(known.of_names(sorted(names))).tolist(), sorted(names), strict=True))
    found: Counter[tuple[int, str]] = Counter()
    for numbers, keys in find_keys(texts, links, known):
        rows = known.rows(keys).tolist()
        found.update((text, by_row[row]) for text, row in zip(numbers.tolist(), rows, strict=True) if row >= 0)
    return found


@pytest.mark.parametrize("at_once", [1, 20, 1 << 18])
@given(TEXTS, st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30), st.integers(1, 4)), max_size=8), NAMES)
def test_occurrences_are_the_union_of_links_and_places(
    tmp_path_factory: pytest.TempPathFactory,
    at_once: int,
    texts: list[str],
    places: list[tuple[int, int, int]],
    names: set[str],
) -> None:
    """Wherever the texts are cut into pieces that are looked at together."""
    spans = sorted(
        (text, start, start + size)
        for text, start, size in places
        if text < len(texts) and start + size <= len(texts[text])
    )
    links = Links(*np.array(spans, np.int64).reshape(-1, 3).T)
    expected: Counter[tuple[int, str]] = Counter()
    for number, text in enumerate(texts):
        linked = {(start, end) for each, start, end in spans if each == number and text[start:end] in names}
        union = linked | set(NameFinder(names).spans(text))
        expected.update((number, text[start:end]) for start, end in union)
    known = names_of(tmp_path_factory.mktemp("names"), *names)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_AT_ONCE", at_once)
        assert count(texts, links, known, names) == expected


def test_every_character_is_what_it_is_to_words() -> None:
    """White space is in no token; a letter or sign begins one, a mark does behind no letter."""
    kinds = counting._kinds()
    everything = "".join(map(chr, range(0x110000)))
    of_words = {match.start() for match in regex.finditer(r"[\p{L}\p{N}\p{M}\s]", everything)}
    assert not of_words - {number for part in counting._ASSIGNED for number in range(*part)}
    for number in {*range(0x3100), *range(0x3100, 0x110000, 7)} - {*range(0xD800, 0xE000)}:
        assert (kinds[number] == 0) == (not list(tokens(chr(number)))), hex(number)
        between = [match.span() for match in tokens(f"é{chr(number)}é")]
        joined = counting._inside_words(kinds[[0xE9, number, 0xE9]])
        bounds = [place for place in range(4) if not joined[place]]
        assert bounds == sorted(
            {0, 3} | {place for span in between for place in span} | ({1, 2} if kinds[number] == 0 else set())
        )


def one_key(letters: str, size: int) -> list[str]:
    """Two texts with one key: the Thue-Morse word of the letters, and the one with the letters exchanged."""
    ones = [number.bit_count() % 2 for number in range(size)]
    return ["".join(letters[one ^ turned] for one in ones) for turned in (0, 1)]


@pytest.mark.parametrize(("letters", "size"), [("ab", 1024), ("\u331f\U000372c0", 64), ("\ubf05\U00017826", 128)])
def test_names_made_to_have_one_key_are_counted_each(tmp_path: Path, letters: str, size: int) -> None:
    one, two = made = one_key(letters, size)
    names = {*made, *one_key(letters, 2 * size), "ape", one + two}
    assert len(names) == 5, "the longer words are one + two, and two + one"
    texts = [f"{one} {two}, an ape", f"{two}", one + two, f"x{one}x apes {two} {one}"]
    known = names_of(tmp_path, *sorted(names))
    assert len(set(counting._Texts(made).whole().tolist())) == 1
    assert sorted(known.rows(known.of_names([*names])).tolist()) == [0, 1, 2, 3, 4]
    spans = {(number, *span) for number, text in enumerate(texts) for span in NameFinder(names).spans(text)}
    found = Counter((number, texts[number][start:end]) for number, start, end in {*spans, (3, 1, 1 + size)})
    assert (found[3, one], found[3, two], found[0, one]) == (2, 1, 1)
    assert count(texts, Links(*np.array([[3], [1], [1 + size]])), known, names) == found
    assert known.rows(known.of_names(["another", one + "a"])).tolist() == [-1, -1]


def test_own_keys_are_those_of_no_other_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys may be small numbers, as somebody could choose them."""
    monkeypatch.setattr(counting, "_values", lambda: np.arange(0x110000, dtype=np.uint64) % np.uint64(4))
    monkeypatch.setattr(counting, "_powers", lambda bits: [np.ones((1 << bits) + 1, np.uint64)] * 2)
    names = {"".join(chosen) for size in (1, 2, 3) for chosen in product("abcde", repeat=size)}
    known = names_of(tmp_path, *sorted(names))
    assert sorted(known.rows(known.of_names(sorted(names))).tolist()) == [*range(len(names))]


def test_no_name_is_found_among_none(tmp_path: Path) -> None:
    known = names_of(tmp_path)
    assert count(["ape"], NO_LINKS, known, set()) == Counter()
