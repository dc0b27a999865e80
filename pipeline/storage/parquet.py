"""Parquet files of a schema: rows or batches in, equal bytes out."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.storage.files import atomic_output

ROW_GROUP_ROWS = 8192


def parquet_writer(stream: IO[bytes], schema: pa.Schema) -> pq.ParquetWriter:
    """A writer whose files tell when a bit of them has changed: `read_rows` and Spark check every page's checksum."""
    return pq.ParquetWriter(stream, schema, compression="zstd", write_page_checksum=True)


class ParquetRows:
    """Collects rows and writes them in row groups of a fixed size: equal rows give equal bytes however they come.

    A row is a sequence in the order of the schema's fields; a struct is a tuple.
    """

    def __init__(self, writer: pq.ParquetWriter, schema: pa.Schema) -> None:
        self.schema = schema
        self.count = 0
        self._pending: list[Any] = []
        self._pending_count = 0
        self._rest = schema.empty_table()  # rows behind the last full group
        self._writer = writer

    def extend(self, rows: Iterable[Any]) -> None:
        given = list(rows)
        self._pending += given
        self._pending_count += self.count_rows(given)
        if self._pending_count >= ROW_GROUP_ROWS:
            self._flush()

    def count_rows(self, rows: Sequence[Any]) -> int:
        """Return how many rows of the file these are."""
        return len(rows)

    def to_table(self, rows: Sequence[Any]) -> pa.Table:
        """These as a table of the schema."""
        columns = zip(*rows, strict=True) if rows else repeat((), len(self.schema))
        return pa.table(list(columns), schema=self.schema)

    def _flush(self) -> None:
        table = pa.concat_tables([self._rest, self.to_table(self._pending)]).combine_chunks()
        full = table.num_rows - table.num_rows % ROW_GROUP_ROWS
        self._write(table.slice(0, full))
        self._rest = table.slice(full)
        self._pending, self._pending_count = [], 0

    def _write(self, table: pa.Table) -> None:
        if table.num_rows:
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            self.count += table.num_rows

    def finish(self) -> None:
        """Write what is left."""
        self._flush()
        self._write(self._rest)


@contextlib.contextmanager
def parquet_rows(path: str, schema: pa.Schema, kind: type[ParquetRows] = ParquetRows) -> Iterator[ParquetRows]:
    """Write rows to a Parquet file that appears complete or not at all."""
    with atomic_output(path) as stream, parquet_writer(stream, schema) as writer:
        rows = kind(writer, schema)
        yield rows
        rows.finish()


def read_rows(path: str, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Stream a Parquet file's rows as dicts, holding a batch at a time.

    Raises: ValueError: the file cannot be read, or its content has changed since it was written.
    """
    for batch in read_batches(path, columns, rows=1024):
        yield from batch.to_pylist()


def read_tuples(paths: Iterable[str], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    """Stream these columns of Parquet files as `read_rows` does, a tuple for each row."""
    for batch in chain.from_iterable(read_batches(path, columns, rows=1024) for path in paths):
        yield from zip(*[batch.column(name).to_pylist() for name in columns], strict=True)


def sum_column(paths: Iterable[str], column: str) -> int:
    """Sum of a column of whole numbers over Parquet files."""
    batches = chain.from_iterable(read_batches(path, [column]) for path in paths)
    return sum(pc.sum(batch.column(0)).as_py() or 0 for batch in batches)


def count_values(paths: Iterable[str], column: str) -> dict[str, int]:
    """Return how often each text stands in a column of Parquet files, by text in order."""
    counts: Counter[str] = Counter()
    for batch in chain.from_iterable(read_batches(path, [column]) for path in paths):
        counts.update({found["values"]: found["counts"] for found in batch.column(0).value_counts().to_pylist()})
    return dict(sorted(counts.items()))


def read_batches(path: str, columns: list[str] | None = None, *, rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """Stream a Parquet file's rows, at most so many at a time; a column inside a list is named by its full path.

    Raises: ValueError: the file cannot be read, or its content has changed since it was written.
    """
    with open(path, "rb") as stream:
        try:
            file = pq.ParquetFile(stream, page_checksum_verification=True)
            # In this thread: others would each keep memory of their own.
            yield from file.iter_batches(rows, columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{path}: not readable as Parquet ({error}); delete it and run its stage again") from error
