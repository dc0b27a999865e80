"""Documents as sub-words: encoding word by word, and sentences with as much of their document as fits."""

import string
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.windows import context_window
from tasks.ner.columns import Document


class Piece(NamedTuple):
    """Words `start` to `end` of a document that are looked at together: a sentence, if the model can hold it."""

    sentence: int  # its number in the data set
    first: int  # the place of the sentence's first word in the document
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class EncodedDocument:
    """Sub-words of a document; word `n` has those from `offsets[n]` to `offsets[n + 1]`."""

    word_ids: np.ndarray
    offsets: np.ndarray


def encode(
    document: Document, tokenizer: WordTokenizer, room: int, counts: Counter[str], *, profile: str
) -> EncodedDocument:
    """Sub-words of each word: at least one ([UNK] for a word that has none), at most `room`."""
    words = [word for sentence in document.sentences for word in sentence.words]
    blanks = [True] * len(words) if tokenizer.blank_first else leading_spaces(document, profile)
    subwords = tokenizer.encode(words, blanks)
    counts["words_without_subwords"] += sum(not word for word in subwords)
    counts["words_cut"] += sum(len(word) > room for word in subwords)
    kept = [word[:room] or [tokenizer.unk_id] for word in subwords]
    offsets = np.array([*accumulate(map(len, kept), initial=0)], dtype=np.int64)
    return EncodedDocument(np.fromiter(chain.from_iterable(kept), dtype=np.int64), offsets)


def leading_spaces(document: Document, profile: str) -> list[bool]:
    """Return whether each word is tokenised as after a blank: as it is written or, where that is not known, guessed.

    A text begins without a blank in the profile `fixed`, as transformers' LukeTokenizer reads it, not in `paper`.
    """
    sentences = document.sentences
    found = [blank for each in sentences for blank in (each.blanks or map(has_leading_space, each.words))]
    first = [has_leading_space(words[0]) for words in (each.words for each in sentences) if words][:1]
    return found if not found else [profile == "paper" and first[0], *found[1:]]


def has_leading_space(word: str) -> bool:
    """Return whether a blank is put before a word to tokenise it: not before `'`, nor before a punctuation mark."""
    is_mark = len(word) == 1 and (word in string.punctuation or unicodedata.category(word).startswith("P"))
    return not word.startswith("'") and not is_mark


def document_pieces(document: Document, offsets: np.ndarray, index: int, room: int) -> Iterator[Piece]:
    """The sentences of a document, numbered from `index`; those of more than `room` sub-words in parts."""
    first = 0
    for sentence, rows in enumerate((sentence.rows for sentence in document.sentences), start=index):
        start = first
        for word in range(first, first + len(rows)):
            if offsets[word + 1] - offsets[start] > room:
                yield Piece(sentence, first, start, word)
                start = word
        yield Piece(sentence, first, start, first + len(rows))
        first += len(rows)


def with_context(
    document: EncodedDocument, piece: Piece, tokenizer: WordTokenizer, room: int
) -> tuple[np.ndarray, int]:
    """[CLS], the piece in the middle of its document, [SEP]; and where in the document the excerpt starts."""
    start, end, length = document.offsets[[piece.start, piece.end, -1]].tolist()
    left, right = context_window(start, end, length, room)
    excerpt = document.word_ids[left:right]
    return np.concatenate([[tokenizer.cls_id], excerpt, [tokenizer.sep_id]]), left
