"""Documents as sub-words: words keep their places, sentences are whole, windows as long as they can be."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.windows import context_window
from tasks.ner.columns import Document, Sentence
from tasks.ner.context import document_pieces, encode, has_leading_space, leading_spaces
from tests.support.properties import given, st


def document(lengths: list[int]) -> Document:
    return Document((), tuple(Sentence((("w", "O"),) * length, ()) for length in lengths))


@given(st.data(), st.integers(0, 60), st.integers(1, 40))
def test_window_is_the_longest_and_the_most_central(data: st.DataObject, length: int, room: int) -> None:
    start = data.draw(st.integers(0, length))
    end = data.draw(st.integers(start, min(length, start + room)))
    left, right = context_window(start, end, length, room)
    assert 0 <= left <= start <= end <= right <= length
    assert right - left == min(room, length)
    before, after = start - left, right - end
    if abs(before - after) > 1:
        assert (left if before < after else length - right) == 0


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), max_size=5), st.integers(9, 20))
def test_pieces_are_the_sentences_or_their_consecutive_parts(sizes: list[list[int]], room: int) -> None:
    offsets = np.cumsum([0, *(size for sentence in sizes for size in sentence)])
    pieces = list(document_pieces(document([len(sentence) for sentence in sizes]), offsets, 7, room))
    first = 0
    for index, sentence in enumerate(sizes, start=7):
        parts = [piece for piece in pieces if piece.sentence == index]
        words = [word for piece in parts for word in range(piece.start, piece.end)]
        assert words == list(range(first, first + len(sentence)))
        assert all(piece.first == first for piece in parts)
        used = [int(offsets[piece.end] - offsets[piece.start]) for piece in parts]
        assert max(used) <= room
        assert len(parts) == 1 or sum(sentence) > room
        assert all(used[n] + sentence[parts[n + 1].start - first] > room for n in range(len(parts) - 1))
        first += len(sentence)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("Paris", True), ("'s", False), ("'", False), (",", False), ("-", False), ("«", False), ("$", False),
     ("...", True), ("é", True), ("€", True), ("7", True), ("n't", True), ("``", True)],
)  # fmt: skip
def test_leading_space(word: str, expected: bool) -> None:
    assert has_leading_space(word) is expected


def test_words_are_encoded_as_in_running_text_and_keep_their_place(shared: Path) -> None:
    tokenizer = WordTokenizer.load(shared / "data" / "roberta-tokenizer")
    words = ["Beyoncé", "lives", "in", "Los", "Angeles", ".", "\u3000", "'s"]
    sentences = tuple(Sentence(tuple((word, "O") for word in part), ()) for part in (words[:6], words[6:]))
    counts: Counter[str] = Counter()
    encoded = encode(Document((), sentences), tokenizer, 2, counts, profile="paper")
    per_word = [encoded.word_ids[a:b].tolist() for a, b in zip(encoded.offsets, encoded.offsets[1:], strict=False)]
    assert per_word[1:6] == [[1074], [11], [1287], [1422], [4]]
    assert per_word[6] == [tokenizer.unk_id]
    assert per_word[7] == tokenizer.encode(["'s"], [False])[0]
    assert per_word[0] == tokenizer.encode(["Beyoncé"], [True])[0][:2]
    assert counts == {"words_without_subwords": 1, "words_cut": 0}
    assert encode(Document((), sentences), tokenizer, 1, counts, profile="paper").offsets.tolist() == list(range(9))
    assert counts == {"words_without_subwords": 2, "words_cut": 1}


def test_a_text_begins_without_a_blank_and_keeps_those_it_has() -> None:
    def blanks(profile: str, *sentences: Sentence) -> list[bool]:
        return leading_spaces(Document((), sentences), profile)

    guessed = Sentence((("(",), ("Ada",), (")",)), ())
    known = replace(guessed, blanks=(True, False, True))
    assert blanks("fixed", guessed, guessed) == [False, True, False, False, True, False]
    assert blanks("paper", replace(guessed, rows=guessed.rows[1:]), guessed) == [
        True, False, False, True, False,
    ]  # fmt: skip
    assert blanks("fixed", known, known) == [False, False, True, True, False, True]
    assert blanks("fixed", Sentence((), ()), known) == [False, False, True]
    assert blanks("fixed") == []
