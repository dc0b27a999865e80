"""Texts in one memory-mapped file: a trie for each group of pairs of first characters, and one for shorter texts.

While it is built a trie takes some 300 bytes a text, gigabytes for all the names of a large Wikipedia. So texts are
dealt out to files on disk by their first two characters, and one group of them is in memory at a time.

The file of {"Ape": 3, "Apes": 4, "I": 7} holds, each part from a multiple of 8 bytes on:

    bytes 0 to 1,047   "tries 3", then where each of the 129 groups begins, and where the last one ends
    group 79           the trie of "Ape" and "Apes", whose first characters give (31 * 65 + 112) % 128 = 79;
                       then 3 and 4, by the ids that the trie gives to its texts, in 32 bits each
    group 128          the trie of "I", which is shorter than two characters; then 7
    other groups       nothing: they begin where the next one does
"""

import contextlib
import mmap
import os
import struct
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import IO, Any, Final

import pyarrow as pa

from pipeline import storage

_GROUPS = 128
_SHORT = _GROUPS  # the group of texts of one character, or none
_MAGIC = b"tries 3\n"
_HEADER = struct.Struct(f"<8s{_GROUPS + 2}Q")  # and where each group's trie begins, and the last one ends
_ALIGNMENT = 8
_NUMBER: Final = "i"  # of 32 bits


class TextMap:
    """Texts and a number for each, in a file that any number of processes share."""

    def __init__(self, path: str) -> None:
        """Map the file. Raises: ValueError: it is none of `write_numbers`, or not complete."""
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            # Kept, since tries do not hold on to what they lie in.
            self._mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
        magic, *offsets = _HEADER.unpack_from(self._mapped) if size >= _HEADER.size else (b"", size)
        if magic != _MAGIC or offsets[-1] != size:
            raise ValueError(f"{path}: no file of tries, or not a whole one; delete it and run its stage again")
        import marisa_trie

        view, empty = memoryview(self._mapped), marisa_trie.Trie()
        self._groups = [view[begin:end] for begin, end in pairwise(offsets)]
        self._tries = [marisa_trie.Trie().map(group) if group else empty for group in self._groups]
        # Behind each trie, by the ids that it gives to its texts. A trie of records would be several times as slow.
        both = zip(self._groups, self._tries, strict=True)
        self._numbers = [group[len(group) - _aligned(4 * len(trie)) :].cast(_NUMBER) for group, trie in both]

    def prefixes(self, text: str) -> list[str]:
        """The texts of at least a character with which this one begins, the shortest first."""
        first = [text[0]] if text and text[0] in self._tries[_SHORT] else []
        return first + self._tries[_group(text)].prefixes(text) if len(text) > 1 else first

    def beginning_with(self, beginning: str) -> Iterator[tuple[str, int]]:
        """The texts that begin with this one, of two characters or more, and their numbers, in no order."""
        group = _group(beginning)
        trie, numbers = self._tries[group], self._numbers[group]
        for text in trie.keys(beginning):
            yield text, numbers[trie[text]]

    def __contains__(self, text: str) -> bool:
        return text in self._tries[_group(text)]

    def __len__(self) -> int:
        return sum(map(len, self._tries))

    def get(self, text: str) -> int | None:
        """The text's number; None for a text that is not there."""
        group = _group(text)
        place = self._tries[group].get(text)
        return None if place is None else self._numbers[group][place]


def write_numbers(path: str, rows: Iterable[tuple[str, int]]) -> int:
    """Write texts, each there once, with their numbers of 32 bits to a local path; returns how many there are."""
    count = 0
    offsets = [_HEADER.size]
    folder = os.path.dirname(path) or "."
    os.makedirs(folder, exist_ok=True)
    with contextlib.ExitStack() as stack:
        spilled = [stack.enter_context(tempfile.TemporaryFile(dir=folder)) for _ in range(_GROUPS + 1)]
        for text, number in rows:
            spilled[_group(text)].write(b"%s\xff%d\xff" % (text.encode(), number))
        out = stack.enter_context(open(stack.enter_context(storage.files.atomic_path(path)), "wb"))
        out.write(bytes(_HEADER.size))
        for file in spilled:
            if file.tell():
                count += _write_group(out, file)
            offsets.append(out.tell())
        out.seek(0)
        out.write(_HEADER.pack(_MAGIC, *offsets))
    return count


def batches_of(
    rows: Iterable[tuple[Any, ...]], schema: pa.Schema, size: int
) -> Iterator[tuple[Sequence[str], pa.RecordBatch]]:
    """Rows as batches of this size for `write_numbered`, with the texts that their first column has."""
    waiting = iter(rows)
    while some := list(islice(waiting, size)):
        columns = list(zip(*some, strict=True))
        yield columns[0], pa.record_batch(columns, schema=schema)


def write_numbered(
    folder: str, table: str, schema: pa.Schema, numbers: str, batches: Iterable[tuple[Sequence[str], pa.RecordBatch]]
) -> list[storage.FileEntry]:
    """Write batches as a table to be mapped, and beside it the numbers of its rows by their texts, which come along."""

    def rows(writer: pa.ipc.RecordBatchStreamWriter) -> Iterator[tuple[str, int]]:
        first = 0
        for texts, batch in batches:
            writer.write_batch(batch)
            yield from zip(texts, range(first, first + len(batch)), strict=True)
            first += len(batch)

    with storage.arrow_writer(storage.join(folder, table), schema) as writer:
        count = write_numbers(storage.join(folder, numbers), rows(writer))
    return [storage.describe(folder, name, count) for name in (table, numbers)]


def _group(text: str) -> int:
    return (31 * ord(text[0]) + ord(text[1])) % _GROUPS if len(text) > 1 else _SHORT


def _aligned(size: int) -> int:
    return size + -size % _ALIGNMENT


def _write_group(out: IO[bytes], file: IO[bytes]) -> int:
    """Write the trie of the texts in a file, and behind it their numbers; returns how many texts there are."""
    import marisa_trie

    file.seek(0)
    *parts, _ = file.read().split(b"\xff")  # which is in no text of UTF-8
    texts = list(map(bytes.decode, parts[::2]))
    trie = marisa_trie.Trie(texts)
    out.flush()
    trie.write(out)
    out.write(bytes(-out.seek(0, os.SEEK_END) % _ALIGNMENT))
    numbers = array(_NUMBER, bytes(_aligned(4 * len(trie))))
    for text, number in zip(texts, map(int, parts[1::2]), strict=True):
        numbers[trie[text]] = number
    out.write(numbers.tobytes())
    return len(trie)
