"""Contexts: the words that are written around the links of each title and on its page; and its vector.

A text's words count by the logarithm of how often they stand there, and the more the fewer paragraphs have them.
`contexts/*.parquet` has the heaviest words of each title; `contexts.arrow` has the same to be mapped, in the same
order, with the words by their numbers, which are their rows in `words.arrow`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline import schemas, storage
from pipeline.lookup.held_out import is_held_out
from pipeline.lookup.names import words_of as written_words
from pipeline.lookup.title_vectors import TitleVectors, coherence
from pipeline.storage.tries import TextMap, batches_of, write_numbered

TABLE = "contexts"
WORDS, WORD_NUMBERS = "words.arrow", "words.tries"
CONTEXTS, TITLE_NUMBERS = "contexts.arrow", "contexts.tries"
_ROWS_PER_BATCH = 1 << 14
_TEXTS_AT_HAND = 1 << 16
_REMEMBERED_CHARACTERS = 64  # of a word: the words of texts are users' own
_LOW_BITS = (1 << 14) - 1

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
WordVector = tuple[NDArray[np.int32], Floats]  # numbers of words, rising, and the weight of each


def words_of(text: str) -> list[str]:
    """The words of a text, without their case: those that begin with a letter or a digit."""
    if text.isascii():
        return written_words(text.lower())
    return [word.casefold() for word in written_words(text)]


def weights_of(counts: Integers, paragraphs: Integers, total: int) -> Floats:
    """The weight of words: (1 + ln count) * (1 + ln((1 + total) / (1 + paragraphs))).

    `counts` are those of a text's words, and so many of a corpus's `total` paragraphs have each.
    """
    weights: Floats = (1 + np.log(counts)) * (1 + np.log((1 + total) / (1 + paragraphs)))
    return weights


def cosine(one: WordVector, other: WordVector) -> float:
    """Return the cosine of two vectors of the length 1."""
    _, *places = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    return float(one[1][places[0]] @ other[1][places[1]])


class Words:
    """The words of a corpus, numbered in their order; all of it stays on disk, memory-mapped."""

    def __init__(self, folder: str) -> None:
        """Open what `write_words` wrote. Raises: ValueError: a file is not a whole one."""
        self._numbers = TextMap(storage.join(folder, WORD_NUMBERS))
        self._number = lru_cache(_TEXTS_AT_HAND)(self._numbers.get)
        batches = storage.open_arrow(storage.join(folder, WORDS)).to_batches()
        self._words = [batch.column(0) for batch in batches]
        self._paragraphs = [batch.column(1).to_numpy() for batch in batches]
        self._bounds = _bounds(batches)

    def number(self, word: str) -> int | None:
        """The number of a word, or None; a long one is not remembered."""
        return self._number(word) if len(word) <= _REMEMBERED_CHARACTERS else self._numbers.get(word)

    def paragraphs(self, numbers: Integers) -> Integers:
        """Return how many paragraphs have each of these words, whose numbers rise."""
        found = [self._paragraphs[batch][rows] for batch, rows in self._places(numbers)]
        return np.concatenate([np.empty(0, np.int64), *found])

    def words(self, numbers: Integers) -> list[str]:
        """The words that have these numbers, which rise."""
        found = (self._words[batch].take(pa.array(rows)).to_pylist() for batch, rows in self._places(numbers))
        return [*chain.from_iterable(found)]

    def _places(self, numbers: Integers) -> Iterator[tuple[int, Integers]]:
        """(batch, rows in it) of rising numbers."""
        cuts = np.searchsorted(numbers, self._bounds)
        for batch in np.flatnonzero(np.diff(cuts)).tolist():
            yield batch, numbers[cuts[batch] : cuts[batch + 1]] - self._bounds[batch]


class ContextTable:
    """The words around the links of each title and on its page, and its vector, memory-mapped."""

    def __init__(self, folder: str) -> None:
        """Open the folder of the stage BuildContexts. Raises: ValueError: it is no such folder, or not complete."""
        self.folder, self.manifest = folder, storage.read_manifest(folder, "BuildContexts")
        self._total: int = self.manifest.facts["paragraphs"]
        self._words = Words(folder)
        self._rows = TextMap(storage.join(folder, TITLE_NUMBERS))
        self._row = lru_cache(_TEXTS_AT_HAND)(self._rows.get)
        batches = storage.open_arrow(storage.join(folder, CONTEXTS)).to_batches()
        lists = [batch.column(0) for batch in batches]
        self._offsets = [storage.cells(each.offsets) for each in lists]
        self._numbers = [each.values.to_numpy() for each in lists]
        self._weights = [batch.column(1).values.to_numpy() for batch in batches]
        self._bounds = _bounds(batches)
        self._vectors = TitleVectors(folder)

    def has_read(self, page_id: int) -> bool:
        """Return whether a page of the dump was not held out, so that its words are among those of its links."""
        return not is_held_out(page_id, self.manifest.parameters["held_out"])

    def cosines(self, text: str, titles: Sequence[Sequence[str]]) -> list[Floats]:
        """Return the cosines of titles' words with those of a text, for each list; 0 for a title without words.

        Each title is looked up once, however many lists have it.
        """
        wanted = dict.fromkeys(chain.from_iterable(titles))
        found = [(title, row) for title in wanted if (row := self._row(title)) is not None]
        cosines = self._cosines(text, np.array([row for _, row in found], np.int64))
        by_title = dict(zip((title for title, _ in found), cosines.tolist(), strict=True))
        return [np.array([by_title.get(title, 0.0) for title in some], np.float64) for some in titles]

    def coherence(
        self, names: Sequence[str], titles: Sequence[Sequence[str]], weights: Sequence[Sequence[float]]
    ) -> list[Floats]:
        """Return how near titles are to those of the other mentions of a document, as the module `title_vectors` tells.

        `titles` are for each mention those that it may stand for, after redirects, `weights` those of these titles.
        """
        wanted = {title: place for place, title in enumerate(dict.fromkeys(chain.from_iterable(titles)))}
        rows = [-1 if (row := self._row(title)) is None else row for title in wanted]
        vectors = self._vectors.of(np.array(rows, np.int64))
        places = [np.array([wanted[title] for title in some], np.int64) for some in titles]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        of_mention = np.array([numbers[name] for name in names], np.int64)
        return coherence(vectors, places, [np.array(some, np.float64) for some in weights], of_mention)

    def _cosines(self, text: str, rows: Integers) -> Floats:
        numbers, weights = self.vector(text if len(rows) else "")
        if not len(numbers):
            return np.zeros(len(rows))
        batches = np.searchsorted(self._bounds, rows, side="right") - 1
        spans = []
        for batch, row in zip(batches.tolist(), (rows - self._bounds[batches]).tolist(), strict=True):
            start, end = self._offsets[batch](row), self._offsets[batch](row + 1)
            spans.append((self._numbers[batch][start:end], self._weights[batch][start:end]))
        theirs, their_weights = (np.concatenate(each) for each in zip(*spans, strict=True))
        owners = np.repeat(np.arange(len(rows)), [len(each) for each, _ in spans])
        # Most of theirs differ from all of the text's words in the low bits, and need no search.
        has_bits = np.zeros(_LOW_BITS + 1, np.bool_)
        has_bits[numbers & _LOW_BITS] = True
        shared = np.flatnonzero(has_bits[theirs & _LOW_BITS])
        places = np.minimum(numbers.searchsorted(theirs[shared]), len(numbers) - 1)
        is_shared = numbers[places] == theirs[shared]
        shared, places = shared[is_shared], places[is_shared]
        products = their_weights[shared] * weights[places]
        return np.bincount(owners[shared], products, len(rows)).astype(np.float64, copy=False)

    def vector(self, text: str) -> WordVector:
        """(numbers, rising, and weights) of a text's words that are known; the weights have the length 1."""
        number = self._words.number
        counts = {row: count for word, count in Counter(words_of(text)).items() if (row := number(word)) is not None}
        numbers = np.array(sorted(counts), np.int64)
        counted = np.array([counts[row] for row in numbers.tolist()], np.int64)
        weights = weights_of(counted, self._words.paragraphs(numbers), self._total)
        # As wide as those that are looked for among them: numpy would convert these.
        return numbers.astype(np.int32), weights / (np.linalg.norm(weights) or 1.0)


def _bounds(batches: Sequence[pa.RecordBatch]) -> Integers:
    """The number of each batch's first row, and behind them that of all rows."""
    return np.cumsum([0, *(batch.num_rows for batch in batches)])


def write_words(folder: str, words: Iterable[tuple[str, int]]) -> list[storage.FileEntry]:
    """Write words, and how many paragraphs have each; both in the words' order."""
    schema = schemas.WORDS.schema
    return write_numbered(folder, WORDS, schema, WORD_NUMBERS, batches_of(words, schema, _ROWS_PER_BATCH))


def write_contexts(folder: str, tables: Sequence[str]) -> list[storage.FileEntry]:
    """Write what `ContextTable` reads beside the words, which are there.

    Rows are numbered in the order of `tables`; no title is there twice.
    """
    words, schema = Words(folder), schemas.CONTEXT_ROWS.schema

    def batches() -> Iterator[tuple[Sequence[str], pa.RecordBatch]]:
        for batch in chain.from_iterable(storage.read_batches(path, rows=_ROWS_PER_BATCH) for path in tables):
            titles, named, weights = batch.columns
            coded = named.flatten().dictionary_encode()
            numbers = pa.array([words.number(word) for word in coded.dictionary.to_pylist()], pa.int32())
            offsets = pa.array(np.cumsum([0, *named.value_lengths().to_pylist()]), pa.int32())
            columns = zip((numbers.take(coded.indices), weights.flatten()), schema, strict=True)
            lists = [pa.ListArray.from_arrays(offsets, values, type=field.type) for values, field in columns]
            yield titles.to_pylist(), pa.record_batch(lists, schema=schema)

    return write_numbered(folder, CONTEXTS, schema, TITLE_NUMBERS, batches())
