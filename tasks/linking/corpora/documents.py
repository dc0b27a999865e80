"""Documents of a folder of JSON lines and Parquet, in blocks that are read one by one."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import storage
from pipeline.storage.blocks import Block
from tasks.io.records import Record, parse_line

LINES, TABLE = ".jsonl", ".parquet"
COLUMNS = ["id", "text"]
_BOM = b"\xef\xbb\xbf"
_ROWS = 64  # of a table that are held at once
_PIECE = 1 << 20
_LONGEST = 64 << 20  # bytes; a line with more is no document, but perhaps an array of them
_FIRST = 1000  # lines or rows of a file, one of which at least has to be a document


class InputDocument(NamedTuple):
    """A document, or with a `reason` a line or row that is none, and a `message` that names it."""

    id: str
    text: str
    reason: str = ""
    message: str = ""


def find_files(folder: str) -> list[str]:
    """The folder's files of documents, relative to it, in order; names that begin with . or _ are left out.

    Raises: ValueError: there is no such folder, or it has another file, or no file of documents.
    """
    wanted = f"wanted files of JSON objects a line ({LINES}) or tables ({TABLE}) with {' and '.join(COLUMNS)}"
    if not os.path.isdir(folder):
        raise ValueError(f"linking.documents {folder}: no such folder; {wanted}")
    there = storage.list_files(folder)
    names = [name for name in there if not any(part.startswith((".", "_")) for part in name.split("/"))]
    for name in names:
        if not name.endswith((LINES, TABLE)):
            raise ValueError(f"linking.documents {folder}: found {name}; {wanted} alone")
    if not names:
        raise ValueError(f"linking.documents {folder}: no file in it; {wanted}")
    return sorted(names)


def plan_blocks(paths: Sequence[str], block_bytes: int) -> list[Block]:
    """Cut files into blocks of about so many bytes: ranges of bytes of JSON lines, of row groups of a table.

    Raises: ValueError: a table cannot be read, or lacks a column.
    """
    blocks: list[Block] = []
    for path in paths:
        size = storage.file_size(path) or 0
        pieces = [(start, min(size, start + block_bytes)) for start in range(0, size, block_bytes)]
        ranges = _groups(path, block_bytes) if path.endswith(TABLE) else pieces
        blocks += [Block(number, path, start, end) for number, (start, end) in enumerate(ranges, start=len(blocks))]
    return blocks


def _groups(path: str, block_bytes: int) -> Iterator[tuple[int, int]]:
    with _open_table(path) as table:
        sizes = [table.metadata.row_group(each).total_byte_size for each in range(table.num_row_groups)]
    first = held = 0
    for group, size in enumerate(sizes):
        held += size
        if held >= block_bytes or group == len(sizes) - 1:
            yield first, group + 1
            first, held = group + 1, 0


def _open_table(path: str) -> pq.ParquetFile:
    try:
        table = pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from None
    if missing := [name for name in COLUMNS if name not in table.schema_arrow.names]:
        table.close()
        raise ValueError(f"{path}: no column {missing[0]!r}; wanted a table with {' and '.join(COLUMNS)}")
    return table


def _broken(path: str, error: Exception) -> ValueError:
    return ValueError(f"{path}: a broken table ({str(error).splitlines()[0]}); write or copy it again")


def check_beginnings(blocks: Sequence[Block], folder: str) -> None:
    """See whether files hold documents before hours of work.

    Raises: ValueError: none of the first lines or rows of a file is one, so that all may have the same fault.
    """
    for path, of in groupby(blocks, key=lambda block: block.path):
        first, *others = of
        whole, found = replace(first, end=others[-1].end if others else first.end), []
        for each in islice(read_block(whole, os.path.relpath(path, folder)), _FIRST):
            if not each.reason:
                break
            found.append(each)
        else:
            if len(found) == _FIRST or any(each.reason == "too_long" for each in found):
                raise ValueError(
                    f"none of the first {len(found):,} lines or rows of {path} is a document; the first: "
                    f"{found[0].message}; mend the file, or pass --set corpus.max_rejected=1 to leave them out"
                )


def read_block(block: Block, name: str) -> Iterator[InputDocument]:
    """The documents of a block, in their order; `name` is the file's, for messages."""
    return _rows_of(block, name) if block.path.endswith(TABLE) else _lines_of(block, name)


def _lines_of(block: Block, name: str) -> Iterator[InputDocument]:
    """Those of the lines that begin in the block; empty ones are none."""
    with open(block.path, "rb") as stream:
        if block.start:  # the line around the start belongs to the block before
            stream.seek(block.start - 1)
            _read_line(stream, 1)
        place = first = stream.tell()
        lines, before = 0, -1
        while place < block.end and (line := _read_line(stream, _LONGEST)):
            text = line.removeprefix(b"" if place else _BOM).strip() if len(line) < _LONGEST else line
            if text:
                document = _of_line(text, name)
                if document.reason:  # only then it matters which line of the file this is
                    before = _count_lines(block.path, first) if before < 0 else before
                    document = _of_line(text, f"{name}:{before + lines + 1}")
                yield document
            lines += 1
            place = stream.tell()


def _read_line(stream: IO[bytes], most: int) -> bytes:
    """The next line of a file; of one with more than `most` bytes only these, and the rest is read over."""
    line = piece = stream.readline(most)
    while piece and not piece.endswith(b"\n"):
        piece = stream.readline(_PIECE)
    return line


def _count_lines(path: str, end: int) -> int:
    """The ends of lines before a place."""
    count = 0
    with open(path, "rb") as stream:
        while end > 0 and (piece := stream.read(min(end, _PIECE))):
            count += piece.count(b"\n")
            end -= len(piece)
    return count


def _of_line(line: bytes, where: str) -> InputDocument:
    if len(line) >= _LONGEST:
        message = f"{where}: a line of {_LONGEST:,} bytes or more; wanted a JSON object a line, and no array of them"
        return InputDocument("", "", "too_long", message)
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        return InputDocument("", "", "not_utf8", f"{where}: byte {error.start} of the line is not UTF-8")
    try:
        record = parse_line(where, text)
    except ValueError as error:
        return InputDocument("", "", "no_object", str(error))
    return _of_record(record)


def _rows_of(block: Block, name: str) -> Iterator[InputDocument]:
    with _open_table(block.path) as table:
        number = sum(table.metadata.row_group(group).num_rows for group in range(block.start))
        groups = range(block.start, block.end)
        try:
            for batch in table.iter_batches(_ROWS, row_groups=list(groups), columns=COLUMNS):
                for row in batch.to_pylist():
                    number += 1
                    yield _of_record(Record(f"{name}: row {number}", row))
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _broken(block.path, error) from None


def _of_record(record: Record) -> InputDocument:
    """A record's document: its `id` is a text that is not empty, or a whole number; its `text` a text."""
    found = record.values.get("id")
    if type(found) not in (str, int) or found == "":
        error = record.error(f"id is {found!r:.80}; wanted a text or a whole number")
        return InputDocument("", "", "no_id", str(error))
    try:
        return InputDocument(str(found), record.text("text"))
    except ValueError as error:
        return InputDocument(str(found), "", "no_text", str(error))
