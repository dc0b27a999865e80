"""The targets of links: every page of a dump, and every other title that is linked; by title and by redirect.

`targets/*.parquet` has a row for each; `targets.arrow` has the same to be mapped, in the same order. `title_words.npy`
has the hashes of the words and initials of titles, and the row of a title with each.
"""

import os
import shutil
import struct
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline import schemas, storage
from pipeline.lookup.entities import alias_rows
from pipeline.lookup.names import alike, fold, folded_words, initials_of, write_alike
from pipeline.storage.tries import TextMap, batches_of, write_numbered, write_numbers

TABLE = "targets"
ROWS, NUMBERS, ALIKE = "targets.arrow", "targets.tries", "targets_alike.tries"
WORDS = "title_words.npy"
_ROWS_PER_BATCH = 4096
_MOST_TITLES = 1000  # of a word; one that more titles have tells none apart
_MOST_CHECKED = 200  # titles of a look-up, whoever asks
_LAST = (1 << 32) - 1  # the rank of a title outside of the vocabulary
_WORD = struct.Struct("<III")  # the hash of a word, the rank and the row of a title with it
_GROUPS = 64  # of hashes, by their highest bits
_NO_ROWS = np.empty(0, np.uint32)
_INITIALS = "\x1f"  # before initials, so that they are no word


class Target(NamedTuple):
    """A title, after redirects; the page's number, the entity's id where it is in the vocabulary, and its QID."""

    title: str
    page_id: int | None
    entity_id: int | None
    qid: str | None = None


class Targets:
    """Looks titles up; all of it stays on disk, memory-mapped."""

    def __init__(self, folder: str, language: str) -> None:
        """Open what BuildMentionTable wrote into its folder, of a wiki in this language.

        Raises: ValueError: a file is missing, or not a whole one.
        """
        self._folder, self._language = folder, language
        self._numbers = TextMap(storage.join(folder, NUMBERS))
        self._rows = storage.open_arrow(storage.join(folder, ROWS))
        batches = self._rows.to_batches()
        self._cells = cache(lambda batch: [*map(storage.cells, batches[batch].columns)])

    def get(self, title: str) -> Target | None:
        """The target of a title or redirect, also where its first letter is written small; None for no such title."""
        number = self._numbers.get(title)
        if number is None and title[:1].islower():
            number = self._numbers.get(title[0].upper() + title[1:])
        return None if number is None else self._row(number)

    @cached_property
    def has_qids(self) -> bool:
        """Return whether the QID of any target is known."""
        return bool(self._rows.column("qid").null_count < len(self._rows))

    def of_qid(self, qid: str) -> Target | None:
        """The target with a QID, such as "Q42"; None for no such target. The first time, all QIDs are read."""
        qids, rows = self._by_qid
        number = int(qid[1:])
        place = int(np.searchsorted(qids, number))
        return self._row(int(rows[place])) if place < len(qids) and qids[place] == number else None

    @cached_property
    def _by_qid(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All QIDs as numbers, ascending, and the row of each: 16 bytes of memory for a page."""
        qids = self._rows.column("qid")
        numbers = pc.utf8_slice_codeunits(qids.drop_null(), 1).cast(pa.int64()).to_numpy()
        order = np.argsort(numbers, kind="stable")
        return numbers[order], np.flatnonzero(qids.is_valid().to_numpy())[order]

    @cached_property
    def _alike(self) -> TextMap:
        return TextMap(storage.join(self._folder, ALIKE))

    def alike(self, title: str) -> list[Target]:
        """The targets of titles and redirects that differ in case, accents, punctuation and blanks at most."""
        return [self._row(number) for number in dict.fromkeys(alike(self._alike, title))]

    @cached_property
    def _words(self) -> NDArray[np.uint32]:
        found = np.load(storage.join(self._folder, WORDS), mmap_mode="r")
        return np.asarray(found)  # parts of numpy's own class of mapped arrays are slow to make

    def _rows_with(self, word: str) -> NDArray[np.uint32]:
        """The rows of titles with a word or initials, and maybe some with another of the same hash."""
        hashes, rows = self._words
        wanted = np.uint32(zlib.crc32(word.encode()))  # of the same type, or all hashes would be copied
        return rows[hashes.searchsorted(wanted) : hashes.searchsorted(wanted, "right")]

    def with_words(self, words: Sequence[str]) -> Iterator[Target]:
        """The targets whose titles have all of these words in any case, the commonest entities first.

        Words of more than a thousand titles find none by themselves.
        """
        wanted = {fold(word) for word in words}
        rarest, *others = sorted(filter(len, map(self._rows_with, wanted)), key=len) or [_NO_ROWS]
        rows = rarest.tolist()
        for each in others:
            with_it = {*rows}.intersection(each.tolist())
            rows = [row for row in rows if row in with_it]
        return self._titled(rows, lambda title: wanted <= folded_words(title))

    def with_initials(self, initials: str) -> Iterator[Target]:
        """The targets whose titles have these initials (`initials_of`), the commonest entities first."""
        rows = self._rows_with(_INITIALS + initials).tolist() if initials else []
        return self._titled(rows, lambda title: initials in initials_of(title, self._language))

    def _titled(self, rows: Sequence[int], is_right: Callable[[str], bool]) -> Iterator[Target]:
        checked = map(self._row, rows[:_MOST_CHECKED])
        return (target for target in checked if is_right(target.title))

    def entities(self) -> list[tuple[int, str]]:
        """The ids and titles of the vocabulary's entities, by id; the whole table is read once."""
        known = self._rows.select(["entity_id", "title"]).filter(pc.field("entity_id").is_valid())
        return sorted(zip(*(column.to_pylist() for column in known.columns), strict=True))

    def _row(self, number: int) -> Target:
        batch, row = divmod(number, _ROWS_PER_BATCH)
        titles, page_ids, entity_ids, qids = self._cells(batch)
        page_id = page_ids(row)
        return Target(titles(row), None if page_id < 0 else page_id, entity_ids(row), qids(row))


def write_targets(folder: str, tables: Sequence[str], titles: Sequence[str], language: str) -> list[storage.FileEntry]:
    """Write what `Targets` reads.

    Rows are numbered in the order of `tables`; no title is there twice. `titles` are the files of that table.
    """
    schema = schemas.TARGETS.schema
    batches = batches_of(storage.read_tuples(tables, schema.names), schema, _ROWS_PER_BATCH)
    rows, own = write_numbered(folder, ROWS, schema, f"own_{NUMBERS}", batches)
    known = TextMap(storage.join(folder, own.path))

    def all_titles() -> Iterator[tuple[str, int]]:
        """Titles without a page, which the titles table lacks or has as loops, then pages and redirects."""
        for number, (title, page_id) in enumerate(storage.read_tuples(tables, ["title", "page_id"])):
            if page_id < 0:
                yield title, number
        yield from alias_rows(titles, known)

    count = write_numbers(storage.join(folder, NUMBERS), all_titles())
    found = write_alike(storage.join(folder, ALIKE), all_titles())
    storage.remove(storage.join(folder, own.path))
    words = write_words(storage.join(folder, WORDS), storage.read_tuples(tables, ["title", "entity_id"]), language)
    counts = {NUMBERS: count, ALIKE: found, WORDS: words}
    return [rows, *(storage.describe(folder, name, count) for name, count in counts.items())]


def write_words(path: str, titles: Iterable[tuple[str, int | None]], language: str) -> int:
    """Write the words and initials of titles, whose rows are numbered in their order; returns how many there are.

    Of a word the titles come by the ids of their entities; those of none are the last. Only the words of one group of
    hashes are in memory.
    """
    count = 0
    with ExitStack() as stack:
        folder = os.path.dirname(path)
        *groups, sorted_words = (stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(_GROUPS + 1))
        for row, (title, entity_id) in enumerate(titles):
            rank = _LAST if entity_id is None else entity_id
            for word in folded_words(title) | {_INITIALS + each for each in initials_of(title, language)}:
                number = zlib.crc32(word.encode())
                groups[number * _GROUPS >> 32].write(_WORD.pack(number, rank, row))
        for group in groups:
            group.seek(0)
            found = np.frombuffer(group.read(), np.uint32).reshape(-1, 3)
            found = found[np.lexsort(found.T[::-1])]
            same = np.unique(found[:, 0], return_counts=True)[1]
            kept = found[np.repeat(same <= _MOST_TITLES, same)]
            sorted_words.write(kept[:, [0, 2]].tobytes())
            count += len(kept)
        stream = stack.enter_context(storage.atomic_output(path))
        shape = {"descr": "<u4", "fortran_order": True, "shape": (2, count)}
        np.lib.format.write_array_header_1_0(stream, shape)
        sorted_words.seek(0)
        shutil.copyfileobj(sorted_words, stream)
    return count
