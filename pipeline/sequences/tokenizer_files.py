"""The files of tokenizers: RoBERTa's vocab.json with merges.txt, tokenizer.json of BERT and XLM-R, or vocab.txt.

Or XLM-R's sentencepiece.bpe.model, which is all that mLUKE has.
"""

import base64
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

BERT_SPECIAL_TOKENS = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")
_SPECIAL_NAMES = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
_BPE = (("vocab.json", "merges.txt"), ("vocab", "merges"))
_CONFIG = "tokenizer_config.json"
_WORDPIECE = ("tokenizer.json", "vocab.txt")
_PIECES = "sentencepiece.bpe.model"
SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_Unigram = tuple[list[tuple[str, float]], bytes, frozenset[str], str]
_IDS_WANTED = "wanted the ids 0, 1, 2, ..., each once; take the file that came with the model, unchanged"


@dataclass(frozen=True)
class Normalizer:
    """Changes by BERT to a text; accents are stripped where `strip_accents` is None and letters lower-cased."""

    do_lower_case: bool = True
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool = True


def tokenizer_files(folder: Path) -> dict[str, Path]:
    """The files that make a folder's tokenizer, by their usual names. Raises: ValueError for a folder without."""
    names = {path.name for path in folder.iterdir() if path.is_file()} if folder.is_dir() else set()
    return {usual: folder / name for usual, name in tokenizer_names(names, str(folder)).items()}


def tokenizer_names(names: Collection[str], source: str) -> dict[str, str]:
    """Return which of some files make a tokenizer: their names, by their usual names.

    RoBERTa's vocab.json and merges.txt (or vocab and merges), or else BERT's or XLM-R's tokenizer.json or BERT's
    vocab.txt, and tokenizer_config.json where there is one, or else sentencepiece.bpe.model. Raises: ValueError, with
    where the files are, for files without.
    """
    for own in _BPE:
        if all(name in names for name in own):
            return dict(zip(_BPE[0], own, strict=True))
    for name in _WORDPIECE:
        if name in names:
            return {file: file for file in (name, _CONFIG) if file in names}
    if _PIECES in names:
        return {_PIECES: _PIECES}
    raise ValueError(
        f"{source}: found no vocab.json with merges.txt, no tokenizer.json, no vocab.txt and no {_PIECES}; "
        "give a folder with a RoBERTa, BERT or XLM-R tokenizer "
        "(of a pretraining it is model/ in ExportHuggingFace's folder)"
    )


def read_vocab(path: Path) -> dict[str, int]:
    """Token -> id, from RoBERTa's vocab.json. Raises: ValueError for anything else."""
    vocab = _read_object(path, "use RoBERTa's vocab.json")
    if not is_vocabulary(vocab):
        raise ValueError(f"{path}: found no object of token -> id; use RoBERTa's vocab.json")
    return vocab


def is_vocabulary(value: object) -> bool:
    """Return whether a value is an object of token -> id."""
    return isinstance(value, dict) and all(isinstance(token_id, int) for token_id in value.values())


def read_merges(path: Path) -> list[tuple[str, str]]:
    """The pairs of merges.txt, in their order. Raises: ValueError naming the line."""
    merges = []
    for number, line in enumerate(_read_text(path, "use RoBERTa's merges.txt").split("\n"), start=1):
        if line and not (number == 1 and line.startswith("#version")):
            left, blank, right = line.partition(" ")
            if not (left and blank and right) or " " in right:
                raise ValueError(f"{path}: line {number} is {line[:40]!r}, not two tokens; use RoBERTa's merges.txt")
            merges.append((left, right))
    return merges


def read_wordpiece(files: Mapping[str, Path]) -> tuple[dict[str, int], Normalizer, tuple[str, ...], str]:
    """Vocabulary, normaliser, special tokens and source of BERT's files.

    What tokenizer_config.json says goes before what tokenizer.json does, as in transformers. Raises:
    ValueError for other formats and where the tokens do not have the ids 0, 1, 2, ..., each once.
    """
    config = _read_object(files[_CONFIG]) if _CONFIG in files else {}
    if "tokenizer.json" not in files:
        path = files["vocab.txt"]
        vocab, normalizer = _read_vocab_txt(path), Normalizer()
    else:
        path = files["tokenizer.json"]
        vocab, normalizer = _read_tokenizer_json(path)
        check_ids(vocab, path)
    given = {field.name: config.get(field.name) for field in fields(Normalizer)}
    values = {**asdict(normalizer), **{name: value for name, value in given.items() if value is not None}}
    if wrong := [name for name, value in values.items() if not isinstance(value, bool | None)]:
        raise ValueError(f"{files[_CONFIG]}: {wrong[0]} is {values[wrong[0]]!r}; wanted true, false or null")
    usual = zip(_SPECIAL_NAMES, BERT_SPECIAL_TOKENS, strict=True)
    special = tuple(_token(config.get(name), token) for name, token in usual)
    return vocab, Normalizer(**values), special, str(path)


def check_ids(vocab: Mapping[str, int], path: Path) -> None:
    """Raises: ValueError naming the file unless the tokens have the ids 0, 1, 2, ..., each once.

    Ids are rows of the model's table: with a gap or a shared id some of them would be another token's.
    """
    tokens: dict[int, str] = {}
    for token, token_id in vocab.items():
        if tokens.setdefault(token_id, token) != token:
            raise ValueError(f"{path}: {tokens[token_id]!r} and {token!r} both have the id {token_id}; {_IDS_WANTED}")
    absent = next((number for number in range(len(tokens)) if number not in tokens), None)
    if absent is not None:
        raise ValueError(
            f"{path}: of {len(tokens)} tokens none has the id {absent}, the largest id is {max(tokens)}; {_IDS_WANTED}"
        )


def read_unigram(files: Mapping[str, Path]) -> _Unigram | None:
    """Pieces with their scores by ids, table that normalises texts, added tokens and source of XLM-R's files.

    None for files of another kind. Raises: ValueError for a Unigram tokenizer that makes other words of a text.
    """
    if _PIECES in files:
        return _read_sentencepiece(files[_PIECES])
    path = files.get("tokenizer.json")
    values = _read_object(path) if path else {}
    model = values.get("model") or {}
    if model.get("type") != "Unigram":
        return None
    remedy = "take XLM-R's tokenizer.json, or that of a model made from it, unchanged"
    pieces = model.get("vocab") or [None]
    if not all(isinstance(each, list) and [*map(type, each)] in ([str, float], [str, int]) for each in pieces):
        raise ValueError(f"{path}: found no list of pieces with their scores; {remedy}")
    given = values.get("normalizer") or {}
    parts, splitter = given.get("normalizers") or [given], json.dumps(values.get("pre_tokenizer"))
    tables = [str(part.get("precompiled_charsmap")) for part in parts if part.get("type") == "Precompiled"]
    if len(tables) != 1 or "Metaspace" not in splitter or model.get("byte_fallback"):
        found = f"normalised by {', '.join(str(part.get('type')) for part in parts)} and split by {splitter[:80]}"
        raise ValueError(f"{path}: {found}; wanted Precompiled and Metaspace; {remedy}")
    try:
        table = base64.b64decode(tables[0], validate=True)
    except ValueError as error:
        raise ValueError(f"{path}: precompiled_charsmap is no base64 ({error}); {remedy}") from None
    hidden = frozenset(token["content"] for token in values.get("added_tokens") or [])
    return [(piece, float(score)) for piece, score in pieces], table, hidden, str(path)


def _read_sentencepiece(path: Path) -> _Unigram:
    """The same of SentencePiece's own file, whose pieces have the ids of fairseq's dictionary, as in XLM-R."""
    from google.protobuf import message
    from transformers.convert_slow_tokenizer import import_protobuf

    model = import_protobuf().ModelProto()
    try:
        model.ParseFromString(path.read_bytes())
    except message.DecodeError as error:
        raise ValueError(f"{path}: no model of SentencePiece ({error}); take XLM-R's or mLUKE's, unchanged") from None
    pieces = [(each.piece, each.score) for each in model.pieces]
    trainer = model.trainer_spec
    begins = [piece for piece, _ in pieces[:3]] == ["<unk>", "<s>", "</s>"]
    if not begins or trainer.byte_fallback or trainer.model_type != trainer.UNIGRAM:
        raise ValueError(
            f"{path}: {len(pieces):,} pieces, the first {[piece for piece, _ in pieces[:3]]}, of a model of type "
            f"{trainer.model_type}; wanted a Unigram model (1) that begins with <unk>, <s>, </s>, as XLM-R's"
        )
    special = [(token, 0.0) for token in SPECIAL_TOKENS]
    table = model.normalizer_spec.precompiled_charsmap
    return [*special[:4], *pieces[3:], special[4]], table, frozenset(SPECIAL_TOKENS), str(path)


def unigram_json(pieces: Sequence[tuple[str, float]], table: bytes, hidden: Collection[str]) -> bytes:
    """The tokenizer.json of XLM-R with these pieces, which transformers and `read_unigram` read."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    whole = Tokenizer(models.Unigram(list(pieces), SPECIAL_TOKENS.index("<unk>")))
    whole.normalizer = normalizers.Precompiled(table)
    whole.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    ends = [(token, SPECIAL_TOKENS.index(token)) for token in ("<s>", "</s>")]
    whole.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", ends)
    whole.decoder = decoders.Metaspace()
    tokens = [piece for piece, _ in pieces if piece in hidden]
    whole.add_special_tokens([AddedToken(each, lstrip=each == "<mask>", normalized=False) for each in tokens])
    return whole.to_str().encode()


def wordpiece_files(
    vocab: Mapping[str, int], normalizer: Normalizer, special: Sequence[str], source: str
) -> dict[str, bytes]:
    """vocab.txt and tokenizer_config.json, which transformers and `read_wordpiece` read.

    Raises: ValueError naming `source` for a vocabulary that no vocab.txt can hold.
    """
    tokens = sorted(vocab, key=lambda token: vocab[token])
    if broken := next((token for token in tokens if re.search("[\r\n]", token)), None):
        raise ValueError(
            f"{source}: found the token {broken!r}; wanted tokens without line breaks, as vocab.txt has one a line; "
            "take a tokenizer without such a token"
        )
    named = dict(zip(_SPECIAL_NAMES, special, strict=True))
    config = {"tokenizer_class": "BertTokenizer", **asdict(normalizer), **named}
    content = json.dumps(config, indent=1, ensure_ascii=False) + "\n"
    return {"vocab.txt": "".join(f"{token}\n" for token in tokens).encode(), _CONFIG: content.encode()}


def _token(value: object, usual: str) -> str:
    """A special token as tokenizer_config.json has it: a text, an object with `content`, or nothing."""
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else usual


def _read_vocab_txt(path: Path) -> dict[str, int]:
    """Token -> id, which is the number of its line. Raises: ValueError for a token that is on two lines."""
    vocab: dict[str, int] = {}
    lines = _read_text(path, "use BERT's vocab.txt").removesuffix("\n").split("\n")
    for number, token in enumerate(lines):
        if vocab.setdefault(token, number) != number:
            raise ValueError(
                f"{path}: lines {vocab[token] + 1} and {number + 1} are both {token!r}; wanted each token on one line; "
                "take the file that came with the model, unchanged"
            )
    return vocab


def _read_tokenizer_json(path: Path) -> tuple[dict[str, int], Normalizer]:
    values = _read_object(path)
    model, normalizer = values.get("model") or {}, values.get("normalizer") or {}
    if model.get("type") != "WordPiece" or not is_vocabulary(model.get("vocab")):
        raise ValueError(
            f"{path}: its model is {model.get('type')!r}; wanted WordPiece or Unigram, or RoBERTa's vocab.json "
            "with merges.txt"
        )
    ours = (each.name for each in fields(Normalizer))
    names = zip(ours, ("lowercase", "strip_accents", "handle_chinese_chars"), strict=True)
    if normalizer and normalizer.get("type") != "BertNormalizer":
        raise ValueError(f"{path}: its normalizer is {normalizer.get('type')!r}; wanted BertNormalizer")
    found = {own: normalizer[theirs] for own, theirs in names if theirs in normalizer}
    return model["vocab"], Normalizer(**found)


def _read_object(path: Path, remedy: str = "use a BERT tokenizer's files") -> dict[str, Any]:
    try:
        value = json.loads(_read_text(path, remedy))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: no JSON ({error}); {remedy}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: found no JSON object; {remedy}")
    return value


def _read_text(path: Path, remedy: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not UTF-8; {remedy}") from None
