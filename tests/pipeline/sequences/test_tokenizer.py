import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from pipeline.sequences.tokenizer import ByteLevelBPE, WordTokenizer
from pipeline.sequences.tokenizer_files import SPECIAL_TOKENS
from pipeline.sequences.tokenizer_training import train_tokenizer

SENTENCES = [
    "Beyoncé lives in Los Angeles.",
    "A flat bread, dried 3 weeks in the wind; it's hard.",
    "𐌰𐌱 birds 🐦 and 漢字 stand here",
    "don't   stop\tnow",
    "<mask> </s> and <s> are words here",
]


@pytest.fixture(scope="module")
def corpus_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> WordTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer(SENTENCES * 3, folder, 400)
    return WordTokenizer.load(folder)


@pytest.fixture(scope="module")
def roberta(shared: Path) -> WordTokenizer:
    return WordTokenizer.load(shared / "data" / "roberta-tokenizer")


def test_special_ids_are_robertas(roberta: WordTokenizer) -> None:
    ids = (roberta.cls_id, roberta.pad_id, roberta.sep_id, roberta.unk_id, roberta.mask_id)
    assert ids == (0, 1, 2, 3, roberta.vocab_size - 1)


def test_both_encoders_agree_with_transformers(roberta: WordTokenizer, shared: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = shared / "data" / "roberta-tokenizer"
    vocab = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    lines = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()[1:]
    merges = [tuple(line.split(" ")) for line in lines if line]
    reference = transformers.RobertaTokenizer(vocab=vocab, merges=merges)
    assert len(reference) == 50265
    document = json.loads((shared / "data" / "squad" / "squad1.1-mixed20-dev.json").read_text(encoding="utf-8"))
    texts = [paragraph["context"] for article in document["data"] for paragraph in article["paragraphs"][:10]]
    plain = [text.strip() for text in texts + SENTENCES[:4]]
    for prefix, leading in (("", False), (" ", True)):
        wanted = [reference.encode(prefix + text, add_special_tokens=False) for text in plain]
        assert roberta.encode(plain, [leading] * len(plain)) == wanted


def test_word_starts(roberta: WordTokenizer) -> None:
    starts = roberta.word_starts()
    assert len(starts) == roberta.vocab_size
    ids = roberta.encode(["Beyoncé lives in Los Angeles, doesn't she?"], [True])[0]
    words: list[str] = []
    for token_id in ids:
        text = roberta.decode([token_id])
        words += [text] if starts[token_id] else [words.pop() + text]
    assert words[0].startswith(" Bey")
    assert "|".join(word.strip() for word in words[1:]) == "lives|in|Los|Angeles|,|doesn|'t|she|?"


def test_texts_never_become_special_tokens(corpus_tokenizer: WordTokenizer) -> None:
    ids = corpus_tokenizer.encode(["<mask> </s><s> <pad><unk>"] * 2, [True, False])
    assert not corpus_tokenizer.special_ids & {token_id for segment in ids for token_id in segment}
    assert corpus_tokenizer.decode(ids[0]) == " <mask> </s><s> <pad><unk>"


BLANKS = " \n\t\xa0\u3000\u2009\x1c\x85"
PIECES = st.one_of(
    st.sampled_from(["word", "'s", "...", "3", "日本", "é", "  ", *BLANKS]), st.characters(exclude_categories=["Cs"])
)


@given(st.lists(st.tuples(st.lists(PIECES, max_size=8).map("".join), st.booleans()), max_size=5))
def test_remembered_words_have_the_ids_of_the_whole_text(
    roberta: WordTokenizer, segments: list[tuple[str, bool]]
) -> None:
    encoder = Tokenizer(models.BPE(vocab=roberta.vocab, merges=roberta.merges))
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = [f"{' ' * leading}{text.strip()}" if text.strip() else "" for text, leading in segments]
    wanted = [encoding.ids for encoding in encoder.encode_batch(texts)]
    for _ in range(2):
        assert roberta.encode([text for text, _ in segments], [leading for _, leading in segments]) == wanted


@given(st.lists(PIECES, max_size=12).map("".join))
def test_offsets_are_the_characters_of_the_tokens(corpus_tokenizer: WordTokenizer, text: str) -> None:
    ids, characters = corpus_tokenizer.encode_with_offsets(text)
    assert corpus_tokenizer.decode(ids) == text
    covered: set[int] = set()
    for token_id, (start, end) in zip(ids, characters, strict=True):
        covered.update(range(start, end))
        assert text[start:end] == text[start:end].strip()
        written = corpus_tokenizer.decode([token_id])
        if "\ufffd" not in written:  # not a part of a character
            assert text[start:end] == written.strip()
    assert covered >= {place for place, character in enumerate(text) if not character.isspace()}


def test_words_are_remembered_up_to_a_number_and_a_length(
    corpus_tokenizer: WordTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.sequences.tokenizer._MAX_REMEMBERED", 5)
    texts = ["a b c", "x" * 100, "a d e f g", "a b c d e f g h", "y"]
    together = corpus_tokenizer.encode(texts, [True] * len(texts))
    fresh = ByteLevelBPE(corpus_tokenizer.vocab, corpus_tokenizer.merges)
    assert [fresh.encode([text], [True])[0] for text in texts] == together
    assert set(fresh._remembered) == {" a", " b", " c", " y"}


@given(st.lists(st.tuples(st.text(max_size=20), st.booleans()), max_size=5))
def test_every_text_comes_back(corpus_tokenizer: WordTokenizer, segments: list[tuple[str, bool]]) -> None:
    ids = corpus_tokenizer.encode([text for text, _ in segments], [leading for _, leading in segments])
    for (text, leading), segment in zip(segments, ids, strict=True):
        stripped = text.strip()
        assert corpus_tokenizer.decode(segment) == (" " if leading and stripped else "") + stripped


def write(folder: Path, vocab: str, merges: str) -> Path:
    (folder / "vocab.json").write_text(vocab, encoding="utf-8")
    (folder / "merges.txt").write_text(merges, encoding="utf-8")
    return folder


def test_bad_tokenizers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"found no vocab\.json"):
        WordTokenizer.load(tmp_path)
    with pytest.raises(ValueError, match=r"vocab\.json: no JSON"):
        WordTokenizer.load(write(tmp_path, "<html>", ""))
    with pytest.raises(ValueError, match="found no object of token -> id"):
        WordTokenizer.load(write(tmp_path, '{"<s>": [0]}', ""))
    with pytest.raises(ValueError, match="has no <mask>; use a tokenizer in RoBERTa"):
        WordTokenizer.load(write(tmp_path, '{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}', ""))
    full = json.dumps({token: index for index, token in enumerate(SPECIAL_TOKENS)})
    with pytest.raises(ValueError, match="line 2 is 'abc'"):
        WordTokenizer.load(write(tmp_path, full, "#version: 0.2\nabc\n"))
    with pytest.raises(ValueError, match=r"merges\.txt does not fit"):
        WordTokenizer.load(write(tmp_path, full, "a b\n"))
