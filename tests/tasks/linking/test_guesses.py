"""Longer mentions by loops, priors that are mixed, and guesses: their share, and which pages they are."""

import pytest

from tasks.linking.guesses import (
    DOCUMENT,
    EXACT,
    FORM,
    LETTERS,
    NONE,
    OPEN,
    TITLE,
    WORDS,
    Candidate,
    Candidates,
    forms,
    longer_mentions,
    taken_over,
    with_guesses,
)
from tests.support.properties import given, st

SOME_WORDS = st.lists(st.sampled_from(["Alan", "Turing", "the", "United", "Nations", "UN", "U", "N", "AT"]), min_size=1)
NAMES = st.lists(SOME_WORDS.map(lambda words: " ".join(words[:4])), unique=True, max_size=7)


@given(NAMES)
def test_longer_mentions_are_those_of_loops(texts: list[str]) -> None:
    expected = {}
    for text in texts:
        inside = [other for other in texts if other != text and f" {text} " in f" {other} " and len(other) > len(text)]
        letters = text.replace(" ", "")
        initials = []
        if 1 < len(letters) <= 8 and letters == letters.upper():
            initials = [
                other
                for other in texts
                if " " in other
                and "".join(word[0] for word in other.split() if word[0] != "t") == letters
                and other.replace(" ", "") != letters
            ]
        if inside or initials:
            expected[text] = sorted([*inside, *initials])
    assert {text: sorted(others) for text, others in longer_mentions(texts).items()} == expected


def test_signs_in_names_and_acronyms_do_not_matter() -> None:
    texts = ["U.N.", "United Nations", "Turing", "Alan Turing's", "Turing, Alan"]
    assert longer_mentions(texts) == {"U.N.": ["United Nations"], "Turing": ["Alan Turing's", "Turing, Alan"]}


def candidates(step: str, **priors: float) -> Candidates:
    items = tuple(Candidate(title, None, prior) for title, prior in priors.items())
    return Candidates(step, items, 3 * len(items))


@pytest.mark.parametrize(
    ("own", "longer", "expected"),
    [
        # A name takes over what is also its own; what the longer one has beside is none of its candidates.
        (candidates(EXACT, A=0.9, B=0.1), [candidates(EXACT, B=0.5, C=0.5)], {"B": 0.55, "A": 0.45}),
        (candidates(EXACT, A=0.9), [candidates(EXACT, B=1.0)], None),
        (candidates(LETTERS, A=1.0), [candidates(EXACT, B=1.0)], {"A": 0.5, "B": 0.5}),
        (candidates(NONE), [candidates(EXACT, B=0.5, C=0.25), candidates(TITLE, C=1.0)], {"C": 5 / 7, "B": 2 / 7}),
        (candidates(NONE), [candidates(NONE)], None),
        (candidates(EXACT, A=1.0), [], None),
    ],
)
def test_priors_are_mixed(own: Candidates, longer: list[Candidates], expected: dict[str, float] | None) -> None:
    found = taken_over(own, longer, 30)
    if expected is None:
        assert found == own
    else:
        assert found.step == DOCUMENT
        assert found.links == own.links + sum(each.links for each in longer)
        assert {each.title: each.prior for each in found.items} == pytest.approx(expected)
        assert [each.title for each in found.items] == list(expected)
        assert taken_over(own, longer, 1).items == found.items[:1]


ITEMS = st.dictionaries(st.sampled_from("ABCDEFG"), st.floats(0.01, 1), max_size=5)


@given(ITEMS, st.lists(st.tuples(st.sampled_from([FORM, WORDS]), ITEMS), max_size=4), st.integers(0, 50))
def test_guesses_get_what_links_leave_open(
    own: dict[str, float], ways: list[tuple[str, dict[str, float]]], more_links: int
) -> None:
    """Each way half as much as the one before it; without candidates of its own a mention has guesses alone."""
    priors = {title: prior / sum(own.values()) for title, prior in own.items()}
    items = tuple(Candidate(title, None, prior) for title, prior in priors.items())
    start = Candidates(EXACT if items else NONE, items, len(items) + more_links if items else 0)
    guessed = [(step, tuple(Candidate(title, None, prior) for title, prior in of.items())) for step, of in ways]
    found = with_guesses(start, guessed, 30)
    unseen = [(step, {title: of[title] for title in of if title not in priors}) for step, of in ways]
    some = [(step, of) for step, of in unseen if of]
    if not some:
        assert found == start
        return
    share = OPEN * len(items) / start.links if items else 1.0
    parts = [share * 2.0**-number / sum(2.0**-n for n in range(len(some))) for number in range(len(some))]
    expected = {title: (1 - share) * prior for title, prior in priors.items()}
    for part, (_, of) in zip(parts, some, strict=True):
        for title, prior in of.items():
            expected[title] = expected.get(title, 0.0) + part * prior / sum(of.values())
    assert {each.title: each.prior for each in found.items} == pytest.approx(expected)
    assert sum(each.prior for each in found.items) == pytest.approx(1)
    first = {title: step for step, of in reversed(some) for title in of}
    assert {each.title: each.guess for each in found.items} == first | dict.fromkeys(priors, "")
    assert found.step == (EXACT if items else some[0][0])
    assert (found.links, found.open_share) == (start.links, start.open_share)


@pytest.mark.parametrize(
    ("language", "name", "expected"),
    [
        ("en", "the Alps", ["Alps", "Alp"]),
        ("en", "Lille, France", ["Lille"]),
        ("en", "The Hague's", ["Hague's", "Hague", "Hague'"]),
        ("en", "companies", ["company", "compani", "companie"]),
        ("en", "Alan Turing", []),
        ("de", "die Alpen", ["Alpen"]),
        ("fr", "l\u2019Europe", ["Europe"]),
        ("xx", "the Alps", []),
        ("ja", "\u6771\u4eac\uff0c\u65e5\u672c", ["\u6771\u4eac"]),
        ("en", ", France", []),
        ("en", "the ", []),
    ],
)
def test_forms_of_names(language: str, name: str, expected: list[str]) -> None:
    assert forms(name, language) == expected
