"""RoBERTa's byte-level BPE on pieces of text, and training one from a corpus."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, filterfalse
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SPECIAL_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
_FILES = (("vocab.json", "merges.txt"), ("vocab", "merges"))
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
# White space as Unicode has it (Python's own \s holds four control characters more).
_WHITE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = re.compile(f"[{_WHITE}]*[^{_WHITE}]+")
_MAX_REMEMBERED, _MAX_REMEMBERED_LENGTH = 1 << 17, 32


class WordTokenizer:
    """Byte-level BPE that remembers words: whatever stands between blanks has the same ids everywhere.

    Texts never become special tokens: "<mask>" in an article is six ordinary characters.
    """

    def __init__(
        self, vocab: dict[str, int], merges: list[tuple[str, str]], source: str = "vocab.json"
    ) -> None:
        missing = [token for token in SPECIAL_TOKENS if token not in vocab]
        if missing:
            raise ValueError(
                f"{source}: the vocabulary has no {', '.join(missing)}; "
                f"use a tokenizer in RoBERTa's format, with {' '.join(SPECIAL_TOKENS)}"
            )
        self.vocab = vocab
        self.merges = merges
        self.vocab_size = max(vocab.values()) + 1
        self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id = (
            vocab[token] for token in SPECIAL_TOKENS
        )
        self.special_ids = frozenset((self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id))
        self._encoder = _encoder(vocab, merges)
        self._remembered: dict[str, list[int]] = {}  # ids of words, with the blanks before them

    @classmethod
    def load(cls, folder: str | Path) -> "WordTokenizer":
        """Read ``vocab.json`` and ``merges.txt`` (or ``vocab`` and ``merges``); ValueError for any other."""
        vocab_path, merges_path = tokenizer_files(Path(folder))
        try:
            vocab = json.loads(vocab_path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{vocab_path}: no JSON ({error}); use RoBERTa's vocab.json") from None
        if not isinstance(vocab, dict) or not all(isinstance(token_id, int) for token_id in vocab.values()):
            raise ValueError(f"{vocab_path}: found no object of token -> id; use RoBERTa's vocab.json")
        try:
            merges = _read_merges(merges_path)
            return cls(vocab, merges, source=str(vocab_path))
        except UnicodeDecodeError:
            raise ValueError(f"{merges_path}: not UTF-8; use RoBERTa's merges.txt") from None

    def encode(self, segments: Sequence[str], leading_space: Sequence[bool]) -> list[list[int]]:
        """The token ids of each segment, with no special tokens added.

        Segments are stripped first; where ``leading_space`` holds, the first word is tokenised as after a
        blank.
        """
        stripped = (segment.strip() for segment in segments)
        texts = (
            f" {text}" if leading else text for text, leading in zip(stripped, leading_space, strict=True)
        )
        words = [_WORD.findall(text) for text in texts]
        known = self._remembered
        new = list({*filterfalse(known.__contains__, chain.from_iterable(words))})
        known.update(zip(new, (found.ids for found in self._encoder.encode_batch_fast(new)), strict=True))
        ids = [list(chain.from_iterable(map(known.__getitem__, parts))) for parts in words]
        # Memory is full of the words that came first, which are the frequent ones.
        is_full = len(known) > _MAX_REMEMBERED
        for word in new:
            if is_full or len(word) > _MAX_REMEMBERED_LENGTH:
                del known[word]
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens as they are written; broken UTF-8 becomes U+FFFD."""
        return _token_bytes("".join(self._tokens[token_id] for token_id in ids)).decode(
            "utf-8", errors="replace"
        )

    def word_starts(self) -> list[bool]:
        """For each id: whether a word begins there: the token begins with a blank or with punctuation."""
        return [
            token_id in self.special_ids or _starts_word(_token_bytes(token).decode("utf-8", errors="ignore"))
            for token_id, token in enumerate(self._tokens)
        ]

    @cached_property
    def _tokens(self) -> list[str]:
        tokens = [""] * self.vocab_size
        for token, token_id in self.vocab.items():
            tokens[token_id] = token
        return tokens


def tokenizer_files(folder: Path) -> tuple[Path, Path]:
    """The vocabulary and the merges of a tokenizer's folder, under either of their usual names."""
    for vocab, merges in _FILES:
        if (folder / vocab).is_file() and (folder / merges).is_file():
            return folder / vocab, folder / merges
    raise ValueError(f"{folder}: found no vocab.json with merges.txt; give a folder with a RoBERTa tokenizer")


def _read_merges(path: Path) -> list[tuple[str, str]]:
    merges = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1):
        if line and not (number == 1 and line.startswith("#version")):
            left, blank, right = line.partition(" ")
            if not (left and blank and right) or " " in right:
                raise ValueError(
                    f"{path}: line {number} is {line[:40]!r}, not two tokens; use RoBERTa's merges.txt"
                )
            merges.append((left, right))
    return merges


def _encoder(vocab: dict[str, int], merges: list[tuple[str, str]]) -> Tokenizer:
    try:
        encoder = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    except Exception as error:  # the library raises plain Exception for merges that the vocabulary lacks
        raise ValueError(
            f"merges.txt does not fit vocab.json ({error}); take both from one tokenizer"
        ) from None
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return encoder


def _byte_of_character() -> dict[str, int]:
    """Byte-level BPE's alphabet: printable Latin-1 is itself, other bytes are characters from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(0x100 + index): byte for index, byte in enumerate(others)}


_BYTES = _byte_of_character()


def _token_bytes(token: str) -> bytes:
    return bytes(_BYTES[char] for char in token if char in _BYTES)


def _starts_word(text: str) -> bool:
    if not text:
        return False
    first = text[0]
    return first.isspace() or first in _ASCII_PUNCTUATION or unicodedata.category(first)[0] == "P"


def train_tokenizer(texts: Iterable[str], folder: str | Path, vocab_size: int) -> None:
    """Learn a byte-level BPE from texts and write it in RoBERTa's format: ids 0 to 3 as there, <mask> last.

    The same texts in the same order give the same files. The vocabulary is smaller than ``vocab_size`` where
    the texts hold too few different words; ValueError below 261 (256 bytes and five special tokens).
    """
    smallest = 256 + len(SPECIAL_TOKENS)
    if vocab_size < smallest:
        raise ValueError(f"tokenizer vocabulary size: found {vocab_size}, wanted at least {smallest}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        min_frequency=2,
        show_progress=False,
        special_tokens=list(SPECIAL_TOKENS[:-1]),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts, trainer)
    learnt = json.loads(tokenizer.to_str())["model"]
    vocab = {**learnt["vocab"], SPECIAL_TOKENS[-1]: len(learnt["vocab"])}
    ordered = dict(sorted(vocab.items(), key=lambda item: item[1]))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    (target / "vocab.json").write_text(json.dumps(ordered, ensure_ascii=False), encoding="utf-8")
    merges = "".join(f"{' '.join(pair)}\n" for pair in learnt["merges"])
    (target / "merges.txt").write_text(f"#version: 0.2\n{merges}", encoding="utf-8")
