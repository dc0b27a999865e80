"""Finding names, against brute force."""

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.lookup.names import (
    alike,
    compose_in_place,
    fold,
    folded_words,
    letters_of,
    longest_names,
    normalize_mention,
    tokens,
    words_of,
    write_alike,
)
from pipeline.storage.tries import TextMap
from tests.support import oracle_tables as oracle
from tests.support.oracle_tables import word_boundaries

TEXTS = st.text(alphabet="ab A.-'日本éß\u0301😀1", max_size=30)


class Names:
    """A set of names to look for."""

    def __init__(self, names: set[str]) -> None:
        self.names, self.longest = names, max(map(len, names), default=0)

    def prefixes(self, text: str) -> list[str]:
        return [text[:end] for end in range(1, len(text) + 1) if text[:end] in self.names]

    def __contains__(self, name: str) -> bool:
        return name in self.names


@pytest.mark.parametrize(
    ("text", "boundaries"),
    [
        ("cat", [0, 3]),
        ("cat's 2", [0, 3, 4, 5, 6, 7]),
        ("e\u0301a", [0, 3]),
        ("x😀y", [0, 1, 2, 3]),
        ("العربية", [0, 7]),
        ("12th", [0, 4]),
        ("ドクターX", [0, 1, 2, 3, 4, 5]),
        ("ᥖᥭᥰ", [0, 1, 2, 3]),  # Tai Le
        ("བོད་", [0, 3, 4]),  # Tibetan marks its syllables
    ],
)
def test_word_boundaries(text: str, boundaries: list[int]) -> None:
    inside = {position for match in tokens(text) for position in range(match.start() + 1, match.end())}
    assert [position for position in range(len(text) + 1) if position not in inside] == boundaries


@given(st.text(alphabet="a1 .\u0301\u0e49日かーｰกé\u3099\x85\u3000မ်ꦏꦶᦎꆈㄅ", max_size=12))
def test_word_boundaries_equal_the_oracles(text: str) -> None:
    inside = {position for match in tokens(text) for position in range(match.start() + 1, match.end())}
    assert inside == set(range(len(text))) - set(word_boundaries(text))


@given(TEXTS, st.sets(st.text(alphabet="ab A日本é", min_size=1, max_size=4), max_size=6))
def test_the_longest_names_cover_what_can_be_covered(text: str, wanted: set[str]) -> None:
    expected = [(start, end, text[start:end]) for start, end in oracle.longest_spans(text, wanted)]
    assert list(longest_names(text, Names(wanted))) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("မြန်မာနိုင်ငံ", "ကျောင်းသားများသည်မြန်မာနိုင်ငံမှလာ၍မြန်မာနိုင်ငံသို့ပြန်သည်။"),
        ("မိူင်းတႆး", "ၵူၼ်းမိူင်းတႆးယူႇတီႈမိူင်းတႆးယဝ်ႉ"),
        ("ꦪꦺꦴꦒꦾꦏꦂꦠ", "ꦏꦸꦛꦪꦺꦴꦒꦾꦏꦂꦠꦲꦤꦁꦪꦺꦴꦒꦾꦏꦂꦠ꧉"),
        ("ᬩᬮᬶ", "ᬧᬸᬮᭀᬩᬮᬶᬤᬶᬩᬮᬶ"),
        ("ᨩ᩠ᨿᨦᩉ᩠ᨾᩲ᩵", "ᨾᩮᩬᩥᨦᨩ᩠ᨿᨦᩉ᩠ᨾᩲ᩵ᨲᩦ᩵ᨩ᩠ᨿᨦᩉ᩠ᨾᩲ᩵"),
        ("ᦵᦙᦲᧂ", "ᦶᦑᦵᦙᦲᧂᦂᦸᧃᦵᦙᦲᧂ"),
        ("ꆈꌠ", "ꋍꆈꌠꁱꂷꆈꌠ"),
        ("ㄊㄞˊ", "ㄗㄞˋㄊㄞˊㄨㄢㄊㄞˊ"),
        ("กรุงเทพ", "ที่กรุงเทพและกรุงเทพ"),
    ],
)
def test_names_are_found_between_letters_of_scripts_without_blanks(name: str, text: str) -> None:
    assert [text[start:end] for start, end, _ in longest_names(text, Names({name}))] == [name, name]


@pytest.mark.parametrize(
    ("anchor", "mention"),
    [
        *(("Café", "cafe"), (" ", ""), (" ".join("a" * 21), ""), (" ".join("a" * 20), " ".join("a" * 20))),
        *(("!" * 1000, "!" * 1000), ("!" * 1001, "")),
    ],
)
def test_mention_of_an_anchor_in_the_papers_profile(anchor: str, mention: str) -> None:
    assert normalize_mention(anchor) == mention


@given(st.text() | TEXTS)
def test_words_are_the_tokens_that_begin_with_a_letter_or_a_digit(text: str) -> None:
    words = [match.group() for match in tokens(text) if match.group()[0].isalnum()]
    assert words_of(text) == words
    assert folded_words(text) == {fold(word) for word in words}


def test_fold() -> None:
    assert fold("ÀÉÎõü Straße") == "aeiou straße"


@pytest.mark.parametrize(
    "names",
    [("U.S.A.", "usa", "U S A"), ("Spider-Man", "spiderman"), ("Groß", "GROSS"), ("Éire", "eire"), ("日本", "日 本")],
)
def test_names_are_alike_whose_letters_are(names: tuple[str, ...]) -> None:
    assert len({letters_of(name) for name in names}) == 1


def test_other_letters_are_other_names() -> None:
    names = ("C", "C4", "Cc", "日", "ก\u0e49า", "กา")  # marks above are accents
    assert len({letters_of(name) for name in names}) == 5


@settings(max_examples=30)  # each opens a hundred files
@given(st.lists(TEXTS, unique=True, max_size=12), st.lists(TEXTS, max_size=6))
def test_names_are_found_by_their_letters(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], others: list[str]
) -> None:
    path = str(tmp_path_factory.mktemp("alike") / "alike.tries")
    written = write_alike(path, ((name, number) for number, name in enumerate(names)))
    assert written == sum(oracle.letters_of(name) != "" for name in names)
    for text in [*names, *others]:
        letters = oracle.letters_of(text)
        expected = [name for name in names if letters and oracle.letters_of(name) == letters]
        assert [names[number] for number in alike(TextMap(path), text)] == sorted(expected)


@pytest.mark.parametrize(
    ("text", "composed", "places"),
    [
        ("a bc", "a bc", [0, 1, 2, 3, 4]),
        ("a\nb", "a b", [0, 1, 2, 3]),
        ("a \r\n b", "a b", [0, 1, 5, 6]),
        ("a\u00a0\u00a0b", "a b", [0, 1, 3, 4]),
        ("a\n \nb", "a\n\nb", [0, 1, 2, 4, 5]),
        (" a  b ", " a b ", [0, 1, 2, 4, 5, 6]),
        ("e\u0301t e\u0301", "ét é", [0, 2, 3, 4, 6]),
        ("\u1112\u1161\u11ab\u1100\u1173\u11af.", "한글.", [0, 3, 6, 7]),
        ("\u0301e\u0323\u0301", "\u0301ẹ\u0301", [0, 1, 1, 4]),
    ],
)
def test_texts_are_composed_in_place(text: str, composed: str, places: list[int]) -> None:
    found, where = compose_in_place(text)
    assert (found, list(where)) == (composed, places)


@given(
    st.text(st.sampled_from("ab e\u0301\u0323é\n\r\t\u00a0\u2028\u1112\u1161\u11ab한क़\u0915\u093c\u200d"), max_size=12)
)
def test_composing_changes_nothing_but_spelling_and_blanks(text: str) -> None:
    composed, places = compose_in_place(text)
    assert len(places) == len(composed) + 1
    assert list(places) == sorted(places)
    assert places[-1] == len(text)
    plain = re.sub(r"\s+", " ", composed)
    assert plain == re.sub(r"\s+", " ", unicodedata.normalize("NFC", text))
    again, same = compose_in_place(composed)
    assert (again, list(same)) == (composed, [*range(len(composed) + 1)])
