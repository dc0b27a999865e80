"""Windows over passages, the layout of two texts, and characters as tokens."""

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

from pipeline.sequences.tokenizer import ByteLevelBPE, WordTokenizer
from pipeline.sequences.tokenizer_files import SPECIAL_TOKENS
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.io.annotations import EntityMention
from tasks.io.windows import STRIDE, token_spans, widest_windows, windows
from tasks.questions.windows import encode, joined, marks_apart, passage_room, tokens_of
from tests.support.properties import given, settings, st


@pytest.fixture(scope="module")
def tokenizer() -> WordTokenizer:
    """Every character is a token."""
    words = [*SPECIAL_TOKENS, "\u0120", *map(chr, range(ord("!"), ord("~")))]
    return ByteLevelBPE({word: number for number, word in enumerate(words)}, [])


def spans_of_bert(length: int, room: int, stride: int = STRIDE) -> list[tuple[int, int]]:
    """The windows of BERT's own script: a step of a stride, until one reaches the end."""
    found, start = [], 0
    while start < length:
        size = min(length - start, room)
        found.append((start, start + size))
        if start + size == length:
            break
        start += min(size, stride)
    return found


@given(st.integers(1, 60), st.integers(2, 9), st.integers(1, 9))
def test_windows_of_a_stride_of_ones_own(length: int, room: int, stride: int) -> None:
    stride = min(stride, room)
    assert windows(length, room, stride) == spans_of_bert(length, room, stride)


@given(st.integers(0, 1500), st.integers(2 * STRIDE, 508))
def test_windows_are_those_of_bert(length: int, room: int) -> None:
    assert windows(length, room) == spans_of_bert(length, room)


@given(st.integers(0, 300), st.integers(1, 2 * STRIDE))
def test_windows_of_short_models_cover_and_overlap(length: int, room: int) -> None:
    found = windows(length, room)
    assert {token for start, end in found for token in range(start, end)} == set(range(length))
    assert all(end - start <= room for start, end in found)
    assert all(start < end for start, end in found)
    assert len(found) <= 1 or found[-2][1] < length, "no window adds nothing"
    for (_, end), (start, _) in pairwise(found):
        assert end - start >= room // 2


def widest_by_hand(spans: Sequence[tuple[int, int]], token: int) -> int:
    best, chosen = None, -1
    for number, (start, end) in enumerate(spans):
        if start <= token < end:
            context = min(token - start, end - 1 - token) + 0.01 * (end - start)
            if best is None or context > best:
                best, chosen = context, number
    return chosen


@settings(max_examples=50)
@given(st.integers(1, 700), st.integers(1, 300))
def test_widest_windows_equal_brute_force(length: int, room: int) -> None:
    spans = windows(length, room)
    assert widest_windows(spans).tolist() == [widest_by_hand(spans, token) for token in range(length)]


def test_layouts_of_roberta_and_bert(tokenizer: WordTokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    cls, sep = tokenizer.cls_id, tokenizer.sep_id
    word_ids, first = joined([7, 8], np.array([9]), tokenizer)
    assert (word_ids.tolist(), first) == ([cls, 7, 8, sep, sep, 9, sep], 5)
    assert passage_room(2, 7, tokenizer) == 1
    with pytest.raises(ValueError, match="max_words 6 leaves no room for a passage; wanted a longer model"):
        passage_room(2, 6, tokenizer)
    monkeypatch.setattr(tokenizer, "pair_separators", 1)
    word_ids, first = joined([7, 8], np.array([9]), tokenizer)
    assert (word_ids.tolist(), first) == ([cls, 7, 8, sep, 9, sep], 4)
    assert passage_room(2, 6, tokenizer) == 1


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 30), st.integers(1, 10))
def test_tokens_that_share_characters(sizes: list[int], start: int, length: int) -> None:
    """Tokens of 0 to 3 characters with a blank between them; one of none is no part of a span at its side."""
    characters, place = [], 0
    for size in sizes:
        characters.append((place, place + size))
        place += size + 1
    spans = np.array([[start, start + length]])
    table = np.array(characters, dtype=np.int64).reshape(-1, 2)
    [(first, last)] = token_spans(table, spans).tolist()
    shared = [n for n, (a, b) in enumerate(characters) if a < b and a < start + length and b > start]
    assert set(shared) <= set(range(first, last))
    assert all(characters[n][0] == characters[n][1] for n in set(range(first, last)) - set(shared))


def test_mentions_as_tokens(tokenizer: WordTokenizer) -> None:
    mentions = (EntityMention(0, 2, 7), EntityMention(3, 4, 8), EntityMention(2, 3, 9))
    encoded = encode([("ab c", mentions), ("ab c", ()), ("ab c", mentions)], tokenizer, profile="fixed")
    assert list(encoded) == [("ab c", mentions), ("ab c", ())]
    text = encoded["ab c", mentions]
    # The blank is a token of its own, without characters; the last mention is all blank.
    assert tokenizer.decode(text.ids) == "ab c"
    assert text.entity_ids.tolist() == [7, 8]
    for (first, last), (start, end, _) in zip(text.entity_ends.tolist(), mentions[:2], strict=True):
        assert tokenizer.decode(text.ids[first:last]).strip() == "ab c"[start:end]
    ids, ends = text.entities(0, 3, 10)
    assert ids.tolist() == [7]
    assert (ends - 10).tolist() == text.entity_ends[:1].tolist()


PIECES = st.one_of(
    st.sampled_from([*"().,\"“—%' ab", "...", "  ", "\n", "é"]), st.characters(exclude_categories=["Cs"])
)
TEXTS = st.lists(PIECES, max_size=20).map("".join)


@pytest.fixture(scope="module")
def bytes_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> WordTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(['He (or "she"). A "cat", too).'] * 4, folder, 330)
    return WordTokenizer.load(folder)


@given(TEXTS, st.booleans())
def test_tokens_know_their_characters(bytes_tokenizer: WordTokenizer, text: str, is_fixed: bool) -> None:
    tokenizer = marks_apart(bytes_tokenizer) if is_fixed else bytes_tokenizer
    ids, characters = tokens_of(text, tokenizer, profile="fixed" if is_fixed else "paper")
    if is_fixed:
        assert tokenizer.decode(ids) == text
        assert [ids] == tokenizer.encode_as_written([text])
    else:
        assert ids == tokenizer.encode([text], [True])[0]
    covered: set[int] = set()
    for token_id, (start, end) in zip(ids, characters.tolist(), strict=True):
        covered.update(range(start, end))
        written = tokenizer.decode([token_id])
        assert "\ufffd" in written or text[start:end] == written.strip()
        marks = {each for each in text[start:end] if unicodedata.category(each)[0] in "PS"}
        assert len(marks) <= 1 or not is_fixed
    assert covered == {place for place, each in enumerate(text) if not each.isspace()} | covered
    assert (np.diff(characters, axis=0) >= 0).all(), "in the order of the text"
