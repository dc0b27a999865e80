"""Sequences as Arrow IPC files: one shard for each block of pages."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa

from pipeline.sequences import Sequence

ROWS_PER_BATCH = 1024


def sequence_schema(word_vocab_size: int) -> pa.Schema:
    """The columns of a shard; word ids are 16 bits wide where the vocabulary allows it."""
    word_type = pa.uint16() if word_vocab_size <= 1 << 16 else pa.int32()
    return pa.schema(
        [
            ("word_ids", pa.list_(word_type)),
            ("entity_ids", pa.list_(pa.int32())),
            ("entity_starts", pa.list_(pa.int16())),
            ("entity_ends", pa.list_(pa.int16())),
            ("page_id", pa.int64()),
        ]
    )


def write_shard(path: str | Path, sequences: Iterable[tuple[int, Sequence]], schema: pa.Schema) -> int:
    """Stream (page id, sequence) rows to an Arrow IPC file; the number of rows.

    Batches have a fixed number of rows, so the same rows give the same bytes. The file is not written
    atomically.
    """
    rows = 0
    with open(path, "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for chunk in _chunks(sequences):
            writer.write_batch(_record_batch(chunk, schema))
            rows += len(chunk)
    return rows


def _chunks(sequences: Iterable[tuple[int, Sequence]]) -> Iterator[list[tuple[int, Sequence]]]:
    iterator = iter(sequences)
    while chunk := list(islice(iterator, ROWS_PER_BATCH)):
        yield chunk


def _record_batch(chunk: list[tuple[int, Sequence]], schema: pa.Schema) -> pa.RecordBatch:
    columns = {
        "word_ids": [sequence.word_ids for _, sequence in chunk],
        "entity_ids": [sequence.entity_ids for _, sequence in chunk],
        "entity_starts": [sequence.entity_starts for _, sequence in chunk],
        "entity_ends": [sequence.entity_ends for _, sequence in chunk],
        "page_id": [page_id for page_id, _ in chunk],
    }
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def read_shard(path: str | Path) -> pa.Table:
    """A shard as a table over the memory-mapped file; ValueError where it is no Arrow file."""
    try:
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()
    except (pa.ArrowInvalid, FileNotFoundError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path}: no readable Arrow file ({reason}); build the sequences again") from None


def write_word_starts(path: str | Path, word_starts: Iterable[bool]) -> int:
    """Write the table that makes whole words recoverable: one row a token id; the number of rows.

    The file is not written atomically.
    """
    table = pa.table({"word_start": pa.array(list(word_starts), pa.bool_())})
    with open(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    return table.num_rows
