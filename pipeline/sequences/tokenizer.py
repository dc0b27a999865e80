"""Sub-words of pieces of text: RoBERTa's byte-level BPE, BERT's WordPiece, and XLM-R's Unigram."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import chain, filterfalse, pairwise
from pathlib import Path
from typing import ClassVar

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from pipeline.sequences import tokenizer_files as formats
from pipeline.storage import write_bytes

CONTINUATION, BLANK = "##", "▁"
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
# White space as Unicode has it (Python's own \s holds four control characters more). BERT drops control characters.
_BLANKS = " \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WHITE, _BERT_WHITE = f"\t-\r\x85{_BLANKS}", f"\t\n\r{_BLANKS}"
# How Unicode's names of letters begin in the scripts that have no blanks between words.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "BOPOMOFO", "YI ", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
_MAX_REMEMBERED, _MAX_REMEMBERED_LENGTH = 1 << 17, 32


class WordTokenizer(ABC):
    """A tokenizer that remembers words: whatever is between blanks has the same ids everywhere.

    Texts never become special tokens: "<mask>" in an article is six ordinary characters. `special` are the
    vocabulary's tokens for [CLS], [PAD], [SEP], [UNK] and [MASK]; `source` is named in errors.
    """

    FORMAT: ClassVar[str]
    keeps_spelling: ClassVar[bool]  # whether `decode` gives back what was encoded, case, accents and blanks included
    WORD: ClassVar[re.Pattern[str]]  # white space, if any, and what follows up to the next
    pair_separators: ClassVar[int]  # how many [SEP] are between two texts of one input
    blank_first: ClassVar[bool] = False  # whether transformers reads each piece of a text, as a mention, after a blank

    def __init__(self, vocab: dict[str, int], encoder: Tokenizer, special: Sequence[str], source: str) -> None:
        missing = [token for token in special if token not in vocab]
        if missing:
            raise ValueError(
                f"{source}: the vocabulary has no {', '.join(missing)}; "
                f"use a tokenizer in {self.FORMAT} format, with {' '.join(special)}"
            )
        self.vocab = vocab
        self.vocab_size = max(vocab.values()) + 1
        self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id = (vocab[token] for token in special)
        self.special_ids = frozenset((self.cls_id, self.pad_id, self.sep_id, self.unk_id, self.mask_id))
        self._encoder = encoder
        self._remembered: dict[str, list[int]] = {}  # ids of words, with the blanks before them

    @staticmethod
    def load(folder: str | Path) -> "WordTokenizer":
        """The tokenizer in a folder, as `tokenizer_files` finds it: RoBERTa's, BERT's or XLM-R's; else a ValueError."""
        files = formats.tokenizer_files(Path(folder))
        if "merges.txt" not in files:
            unigram = formats.read_unigram(files)
            return Unigram(*unigram) if unigram else WordPiece(*formats.read_wordpiece(files))
        vocab, merges = files["vocab.json"], files["merges.txt"]
        return ByteLevelBPE(formats.read_vocab(vocab), formats.read_merges(merges), str(vocab))

    def encode(self, segments: Sequence[str], leading_space: Sequence[bool]) -> list[list[int]]:
        """The token ids of each segment, with no special tokens added.

        Segments are stripped first; where ``leading_space`` holds, the first word is tokenised as after a
        blank (which makes no difference to WordPiece).
        """
        stripped = (segment.strip() for segment in segments)
        texts = (f" {text}" if leading else text for text, leading in zip(stripped, leading_space, strict=True))
        words = [self.WORD.findall(text) for text in texts]
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

    def encode_as_written(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text as it is, blanks included, with no special tokens added."""
        return [found.ids for found in self._encoder.encode_batch_fast([*texts])]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The token ids of a text as it is, and the characters (half open, no blanks) that each comes from."""
        encoding = self._encoder.encode(text, add_special_tokens=False)
        return encoding.ids, [
            (first, end)
            if first == end or not (text[first].isspace() or text[end - 1].isspace())
            else _trimmed(text, first, end)
            for first, end in encoding.offsets
        ]

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens as they are written."""

    @abstractmethod
    def word_starts(self) -> list[bool]:
        """For each id: whether a word begins there."""

    @cached_property
    def _tokens(self) -> list[str]:
        tokens = [""] * self.vocab_size
        for token, token_id in self.vocab.items():
            tokens[token_id] = token
        return tokens


class ByteLevelBPE(WordTokenizer):
    """RoBERTa's: sub-words are of bytes, with the blank before them."""

    FORMAT = "RoBERTa's"
    keeps_spelling = True
    pair_separators = 2
    WORD = re.compile(f"[{_WHITE}]*[^{_WHITE}]+")

    def __init__(self, vocab: dict[str, int], merges: list[tuple[str, str]], source: str = "vocab.json") -> None:
        super().__init__(vocab, _encoder(vocab, merges), formats.SPECIAL_TOKENS, source)
        self.merges = merges

    def marks_apart(self) -> "ByteLevelBPE":
        """The same without merges of punctuation marks that differ, as otherwise `).` and its like may be one token."""
        return ByteLevelBPE(self.vocab, [pair for pair in self.merges if not _joins_marks("".join(pair))])

    def write_merges(self, path: Path) -> None:
        """Writes merges.txt."""
        lines = ("#version: 0.2", *map(" ".join, self.merges))
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, special tokens as they are written; broken UTF-8 becomes U+FFFD."""
        return _token_bytes("".join(self._tokens[token_id] for token_id in ids)).decode("utf-8", errors="replace")

    def word_starts(self) -> list[bool]:
        """For each id: whether a word begins there: the token begins with a blank or with punctuation."""
        return [
            token_id in self.special_ids or _starts_word(_token_bytes(token).decode("utf-8", errors="ignore"))
            for token_id, token in enumerate(self._tokens)
        ]


class WordPiece(WordTokenizer):
    """BERT's: words, punctuation apart, lower-cased and without accents where `normalizer` says so, in pieces."""

    FORMAT = "BERT's"
    keeps_spelling = False
    pair_separators = 1
    WORD = re.compile(f"[{_BERT_WHITE}]*[^{_BERT_WHITE}]+")

    def __init__(
        self,
        vocab: dict[str, int],
        normalizer: formats.Normalizer,
        special: Sequence[str] = formats.BERT_SPECIAL_TOKENS,
        source: str = "vocab.txt",
    ) -> None:
        encoder = Tokenizer(models.WordPiece(vocab, unk_token=special[3]))
        encoder.normalizer = normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=normalizer.tokenize_chinese_chars,
            strip_accents=normalizer.strip_accents,
            lowercase=normalizer.do_lower_case,
        )
        encoder.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        super().__init__(vocab, encoder, special, source)

    def decode(self, ids: Sequence[int]) -> str:
        """Words with a blank between them, normalised as they are: the text does not come back exactly."""
        return " ".join(self._tokens[token_id] for token_id in ids).replace(f" {CONTINUATION}", "")

    def word_starts(self) -> list[bool]:
        """For each id: whether a word begins there: the token does not begin with ##."""
        return [not token.startswith(CONTINUATION) for token in self._tokens]


class Unigram(WordTokenizer):
    """XLM-R's: normalised words in the likeliest pieces, the blank before a word being part of it, as in BPE.

    Blanks in a row are one, and none is left at an end, as in SentencePiece.
    """

    FORMAT = "XLM-R's"
    keeps_spelling = False
    pair_separators = 2
    blank_first = True
    WORD = re.compile(" *[^ ]+")
    _START = "\n"  # a blank to which no mark of the text is added

    def __init__(
        self, pieces: Sequence[tuple[str, float]], table: bytes, hidden: Collection[str], source: str = "tokenizer.json"
    ) -> None:
        vocab = {piece: number for number, (piece, _) in enumerate(pieces)}
        # No normalised word has a blank in it, so that no text becomes a special token.
        special = {*hidden, *formats.SPECIAL_TOKENS}
        apart = [(f"{piece} " if piece in special else piece, score) for piece, score in pieces]
        try:
            encoder = Tokenizer(models.Unigram(apart, vocab.get(formats.SPECIAL_TOKENS[3])))
            normalised = normalizers.Precompiled(table)
        except Exception as error:  # the library raises plain Exception
            raise ValueError(f"{source}: {error}; take the file that came with the model, unchanged") from None
        trimmed = normalizers.Replace(Regex(r"\s+$"), ""), normalizers.Replace(Regex(r"\s+"), " ")
        encoder.normalizer = normalizers.Sequence([normalised, *trimmed])
        encoder.pre_tokenizer = pre_tokenizers.Metaspace(BLANK, prepend_scheme="never")
        super().__init__(vocab, encoder, formats.SPECIAL_TOKENS, source)
        formats.check_ids(vocab, Path(source))

    def encode_as_written(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text, as transformers' MLukeTokenizer reads it: as after a blank."""
        return super().encode_as_written([f"{self._START}{text}" for text in texts])

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The token ids of a text, which begins as after a blank, and the characters that each comes from."""
        ids, places = super().encode_with_offsets(f"{self._START}{text}")
        return ids, [(max(0, start - 1), max(0, end - 1)) for start, end in places]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, normalised as it is: it does not come back exactly."""
        return "".join(self._tokens[token_id] for token_id in ids).replace(BLANK, " ")

    def word_starts(self) -> list[bool]:
        """For each id: whether a word begins there: after a blank, at punctuation, and anywhere in a script without."""
        return [
            token_id in self.special_ids or token.startswith(BLANK) or _starts_word(token) or _is_unspaced(token)
            for token_id, token in enumerate(self._tokens)
        ]


def tokenizer_contents(source: str | Path) -> dict[str, bytes]:
    """Return what a copy of a tokenizer holds that `WordTokenizer.load` reads, by the names of its files.

    vocab.json and merges.txt, vocab.txt and tokenizer_config.json, or XLM-R's tokenizer.json. Raises: ValueError for a
    tokenizer that these cannot hold.
    """
    files = formats.tokenizer_files(Path(source))
    if "merges.txt" in files:
        return {name: path.read_bytes() for name, path in files.items()}
    if unigram := formats.read_unigram(files):
        path = files.get("tokenizer.json")
        return {"tokenizer.json": path.read_bytes() if path else formats.unigram_json(*unigram[:3])}
    return formats.wordpiece_files(*formats.read_wordpiece(files))


def copy_tokenizer(source: str | Path, target: str | Path) -> None:
    """Writes the files of `tokenizer_contents` into a folder."""
    for name, content in tokenizer_contents(source).items():
        write_bytes(str(Path(target) / name), content)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without the blanks at its ends."""
    covered = text[start:end]
    start += len(covered) - len(covered.lstrip())
    return start, max(start, start + len(covered.strip()))


def _encoder(vocab: dict[str, int], merges: list[tuple[str, str]]) -> Tokenizer:
    try:
        encoder = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    except Exception as error:  # the library raises plain Exception for merges that the vocabulary lacks
        raise ValueError(f"merges.txt does not fit vocab.json ({error}); take both from one tokenizer") from None
    encoder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return encoder


# Byte-level BPE's alphabet: printable Latin-1 is itself, other bytes are characters from U+0100 on.
_ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
_BYTES = dict(zip(_ALPHABET, sorted(range(256), key=lambda byte: chr(byte) not in _ALPHABET), strict=True))


def _token_bytes(token: str) -> bytes:
    return bytes(_BYTES[char] for char in token if char in _BYTES)


def _joins_marks(token: str) -> bool:
    text = _token_bytes(token).decode("utf-8", errors="ignore")
    return any(first != second and _is_mark(first) and _is_mark(second) for first, second in pairwise(text))


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _starts_word(text: str) -> bool:
    if not text:
        return False
    first = text[0]
    return first.isspace() or first in _ASCII_PUNCTUATION or unicodedata.category(first)[0] == "P"


def _is_unspaced(token: str) -> bool:
    return unicodedata.name(token[:1] or " ", "").startswith(_UNSPACED)
