"""XLM-R's tokenizers against transformers: ids and offsets of any text, and what their files say."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sequences.packing import Limits, build_page
from pipeline.sequences.tokenizer import Unigram, WordTokenizer, copy_tokenizer
from pipeline.wikitext.paragraphs import Link, Paragraph
from tests.support.unigram import BLANKS, JAPANESE, LETTERS, pieces, write_sentencepiece, write_unigram

WORDS = ["word", "London", "(", ".", "'s", "東京", "私は", "e\u0301", "fi…", "①", "Ａｆ", "ｱ"]
RARE = ["か\u3099", "\u0301", "\u3099", "  ", " ", "x" * 40, "\x1c", "\u200d", "𐍈", "🙂", "\u0600"]
PIECES = st.one_of(
    st.sampled_from([*WORDS, *RARE, *LETTERS, *BLANKS, *JAPANESE]),
    st.characters(exclude_categories=["Cs"], exclude_characters="<▁"),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("unigram")
    write_unigram(folder)
    return folder


@pytest.fixture(scope="module")
def ours(folder: Path) -> WordTokenizer:
    return WordTokenizer.load(folder)


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    import transformers

    return transformers.XLMRobertaTokenizer.from_pretrained(folder)


@given(text=st.lists(PIECES, max_size=12).map("".join))
def test_ids_and_offsets_are_those_of_transformers(ours: WordTokenizer, theirs: Any, text: str) -> None:
    """Of the characters that a token comes from those count that are no blanks and no marks that the table drops.

    Where the table drops the first characters, all of theirs are of as many before.
    """
    drawn = {place for place, letter in enumerate(text) if unicodedata.category(letter)[0] not in "CZM"}
    wanted = theirs(text, add_special_tokens=False, return_offsets_mapping=True)
    ids, places = ours.encode_with_offsets(text)
    assert [ids] == [wanted["input_ids"]] == ours.encode_as_written([text])
    for token, found, expected in zip(ids, places, wanted["offset_mapping"], strict=True):
        shifted = (place + len(text) - len(text.lstrip("\x1c\xad")) for place in expected)
        assert token == ours.vocab["▁"] or drawn & {*range(*found)} == drawn & {*range(*shifted)}


def test_a_dropped_character_takes_no_letter_from_a_token(ours: WordTokenizer) -> None:
    for text in ("\x1cword", "\xadword", " \x1cword"):
        _, places = ours.encode_with_offsets(text)
        assert {place for span in places for place in range(*span)} >= {*range(text.index("w"), len(text))}


@given(texts=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_words_are_those_of_running_text(ours: WordTokenizer, texts: list[str]) -> None:
    """A segment after a blank has what it has in a text; one behind letters begins with no blank."""
    whole = ours.encode_with_offsets(" ".join(texts))[0]
    assert [whole] == ours.encode([" ".join(texts)], [True])
    assert whole == [token for ids in ours.encode(texts, [True] * len(texts)) for token in ids]
    for text, ids in zip(texts, ours.encode(texts, [False] * len(texts)), strict=True):
        assert ours.decode(ids) == unicodedata.normalize("NFKC", text)


def test_special_tokens_are_xlm_rs_and_no_text_becomes_one(ours: WordTokenizer, theirs: Any) -> None:
    assert (ours.cls_id, ours.pad_id, ours.sep_id, ours.unk_id, ours.mask_id) == (0, 1, 2, 3, ours.vocab_size - 1)
    for encoded in (ours.encode(["<s> <mask></s><pad>"], [True])[0], ours.encode_with_offsets("<mask><unk>")[0]):
        assert not ours.special_ids - {ours.unk_id} & {*encoded}
    ids = theirs("a", "b")["input_ids"]
    assert (ids.count(ours.sep_id), ids[0], ids[-1]) == (ours.pair_separators + 1, ours.cls_id, ours.sep_id)


def test_words_begin_at_blanks_punctuation_and_in_scripts_without_blanks(ours: WordTokenizer) -> None:
    starts = ours.word_starts()
    assert len(starts) == ours.vocab_size
    assert [starts[ours.vocab[piece]] for piece in ("▁the", ".", "東京", "が", "<s>", "e", "he")] == [True] * 5 + [
        False
    ] * 2


def test_mentions_of_a_page_are_their_pieces(ours: WordTokenizer) -> None:
    text = "The ①ﬁ (London) is big, but 私は東京タワーが好き。"
    links = [Link(text.index(name), text.index(name) + len(name), name) for name in ("London", "東京タワー")]
    paragraphs, limits = [Paragraph("", text, tuple(links))], Limits(min_sentence_words=1)
    given: Any = {"language": "en", "entity_id": {"London": 3, "東京タワー": 4}.get, "limits": limits}
    [sequence], drops, _ = build_page(paragraphs, tokenizer=ours, profile="fixed", **given)
    spans = zip(sequence.entity_starts, sequence.entity_ends, strict=True)
    assert [ours.decode(sequence.word_ids[start:end]) for start, end in spans] == ["London", "東京タワー"]
    assert ours.decode(sequence.word_ids) == f" {unicodedata.normalize('NFKC', text)}"
    assert not drops


def test_the_file_is_copied_whole(folder: Path, tmp_path: Path) -> None:
    copy_tokenizer(folder, tmp_path)
    [copy] = tmp_path.iterdir()
    assert copy.read_bytes() == (folder / "tokenizer.json").read_bytes()
    assert isinstance(WordTokenizer.load(tmp_path), Unigram)


def test_the_file_of_sentencepiece_gives_the_same(ours: WordTokenizer, theirs: Any, tmp_path: Path) -> None:
    """It is all that mLUKE's folder has; a copy has the tokenizer.json that transformers reads."""
    write_sentencepiece(tmp_path)
    text = f" The ①ﬁ (London)  {JAPANESE} {''.join(LETTERS)}"
    found = WordTokenizer.load(tmp_path)
    assert (found.vocab, found.encode_with_offsets(text)) == (ours.vocab, ours.encode_with_offsets(text))
    (tmp_path / "copy").mkdir()
    copy_tokenizer(tmp_path, tmp_path / "copy")
    copy = type(theirs).from_pretrained(tmp_path / "copy")
    for each in (text, "a <mask> b"):
        assert copy(each, each)["input_ids"] == theirs(each, each)["input_ids"]
    assert WordTokenizer.load(tmp_path / "copy").encode([text], [True]) == ours.encode([text], [True])


def test_other_files_of_sentencepiece_are_refused(tmp_path: Path) -> None:
    for other in ({"model_type": 2}, {"byte_fallback": True}):
        write_sentencepiece(tmp_path, **other)
        with pytest.raises(ValueError, match=r"bpe\.model: .*wanted a Unigram model \(1\) that begins with <unk>"):
            WordTokenizer.load(tmp_path)
    for content, message in ((b"\x0a\xff", "no model of SentencePiece"), (b"", "0 pieces, the first")):
        (tmp_path / "sentencepiece.bpe.model").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            WordTokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"normalizer": {"type": "NFKC"}}, r"normalised by NFKC and split by .*; wanted Precompiled and Metaspace"),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, r"normalised by Precompiled and split by .*ByteLevel"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "?"}}, "precompiled_charsmap is no base64"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "take the file that came with"),
        ({"vocab": {"a": 1}}, "found no list of pieces with their scores; take XLM-R's"),
        ({"vocab": [["a", "b"]]}, "found no list of pieces with their scores"),
        ({"vocab": [*pieces(), ["<s>", 0.0]]}, "of [0-9]+ tokens none has the id 0, .*take the file"),
        ({"vocab": pieces()[:-1]}, "the vocabulary has no <mask>; use a tokenizer in XLM-R's"),
    ],
)
def test_other_files_are_refused(folder: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    given = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    changed = given | changes | {"model": given["model"] | changes}
    (tmp_path / "tokenizer.json").write_text(json.dumps(changed), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"tokenizer\.json: .*{message}"):
        WordTokenizer.load(tmp_path)
