"""Words of raw text and where they stand."""

import time

import pytest

from tasks.io.records import Record
from tasks.ner.words import blanks_before, record_lines, split_words
from tests.support.properties import given, st


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("He said: \"No.\"", [["He", "said", ":", '"', "No", ".", '"']]),
        ("Germany's Jean-Paul paid", [["Germany", "'s", "Jean-Paul", "paid"]]),
        ("3.5% to AT&T.", [["3.5", "%", "to", "AT&T", "."]]),
        ("one\n\n two \r\nthree", [["one"], ["two"], ["three"]]),
        ("हिन्दी में 東京。", [["हिन्दी", "में", "東京", "。"]]),
        ("don't, they're O'Neil's rock'n'roll", [["don't", ",", "they're", "O'Neil", "'s", "rock'n'roll"]]),
        ("O’Neil’s “don’t” 'so'", [["O’Neil", "’s", "“", "don’t", "”", "'", "so", "'"]]),
        ("(see http://x.org/a_(b)?c=d#e).", [["(", "see", "http://x.org/a_(b)?c=d#e", ")", "."]]),
        ("<https://x.org/> \"www.x.org\",", [["<", "https://x.org/", ">", '"', "www.x.org", '"', ","]]),
        ("Mail me.too+1@b-c.org. Or a@b", [["Mail", "me.too+1@b-c.org", ".", "Or", "a", "@", "b"]]),
        ("bob.o'hara+x@mail.org 'ann@b.org'", [["bob.o'hara+x@mail.org", "'", "ann@b.org", "'"]]),
        ("#COVID-19, @user_name: #हिन्दी C# a#b", [
            ["#COVID-19", ",", "@user_name", ":", "#हिन्दी", "C", "#", "a", "#", "b"],
        ]),
        ("می‌خواهم، Dampf\u00adschiff. (بله)\u200f", [
            ["می‌خواهم", "،", "Dampf\u00adschiff", ".", "(", "بله", ")\u200f"],
        ]),
        ("Hi👩‍👩‍👧👍🏽❤️you 1️⃣ क्‍ष", [["Hi", "👩‍👩‍👧", "👍🏽", "❤️", "you", "1️⃣", "क्‍ष"]]),
        ("\ufeffសួស្តី\u200bពិភពលោក", [["សួស្តី", "ពិភពលោក"]]),
        (" \n", []),
        ("", []),
    ],
)  # fmt: skip
def test_words(text: str, words: list[list[str]]) -> None:
    assert [[word for word, _, _ in line] for line in split_words(text)] == words


@given(st.text(alphabet=" \nab.'-é,\u0301😀\x00\u200d\u200c\ufe0f#", max_size=30))
def test_every_character_but_blanks_is_in_one_word(text: str) -> None:
    found = [word for line in split_words(text) for word in line]
    assert all(text[start:end] == word for word, start, end in found)
    assert "".join(word for word, _, _ in found) == "".join(text.split())
    assert [start for _, start, _ in found] == sorted(start for _, start, _ in found)


@pytest.mark.parametrize(
    "part", ["http://", "(", "a", "a.b", "@", "a@", "www.", "a.", "'", "http://(a", "x@y.z", "b-", "#", "a'"]
)
def test_hostile_texts_take_no_time(part: str) -> None:
    begin = time.monotonic()
    for text in (part * 20_000, f"http://{part * 20_000}", f"a@{part * 20_000}"):
        assert "".join(word for word, _, _ in split_words(text)[0]) == text
    assert time.monotonic() - begin < 5


def test_sentences_are_given_or_lines() -> None:
    text = "Ada sat. Bob\nleft.\n"
    given = {"text": text, "sentences": [[0, 8], [9, 19]]}
    assert record_lines(Record("x", given)) == [
        [("Ada", 0, 3), ("sat", 4, 7), (".", 7, 8)],
        [("Bob", 9, 12), ("left", 13, 17), (".", 17, 18)],
    ]
    assert [len(line) for line in record_lines(Record("x", {"text": text}))] == [4, 2]
    assert record_lines(Record("x", {**given, "sentences": []})) == []


def test_blanks_are_those_of_the_text() -> None:
    assert blanks_before(split_words("(Ada  met Bob).\n\nShe 's")) == [
        (False, False, True, True, False, False),
        (True, True),
    ]
    assert blanks_before(split_words(" Ada")) == [(True,)]
    assert blanks_before([]) == []
