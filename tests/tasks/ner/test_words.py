"""Words of raw text and where they stand."""

import pytest

from tasks.ner.words import blanks_before, split_words
from tests.support.properties import given, st


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He said: \"No.\"", [["He", "said", ":", '"', "No", ".", '"']]),
        ("Germany's Jean-Paul paid", [["Germany", "'s", "Jean-Paul", "paid"]]),
        ("3.5% to AT&T.", [["3.5", "%", "to", "AT&T", "."]]),
        ("one\n\n two \r\nthree", [["one"], ["two"], ["three"]]),
        ("हिन्दी में 東京。", [["हिन्दी", "में", "東京", "。"]]),
        ("...", [[".", ".", "."]]),
        (" \n", []),
        ("", []),
    ],
)  # fmt: skip
def test_words(text: str, words: list[list[str]]) -> None:
    assert [[word for word, _, _ in line] for line in split_words(text)] == words


@given(st.text(alphabet=" \nab.'-é,\u0301😀\x00", max_size=30))
def test_every_character_but_blanks_is_in_one_word(text: str) -> None:
    found = [word for line in split_words(text) for word in line]
    assert all(text[start:end] == word for word, start, end in found)
    assert "".join(word for word, _, _ in found) == "".join(text.split())
    assert [start for _, start, _ in found] == sorted(start for _, start, _ in found)


def test_blanks_are_those_of_the_text() -> None:
    assert blanks_before(split_words("(Ada  met Bob).\n\nShe 's")) == [
        (False, False, True, True, False, False),
        (True, True),
    ]
    assert blanks_before(split_words(" Ada")) == [(True,)]
    assert blanks_before([]) == []
