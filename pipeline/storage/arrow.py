"""Arrow streams, memory-mapped."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.storage.files import atomic_path

_FORMATS: dict[pa.DataType, Any] = {pa.string(): "i", pa.int32(): "i", pa.int64(): "q", pa.float64(): "d"}


@contextlib.contextmanager
def arrow_writer(path: str, schema: pa.Schema) -> Iterator[pa.ipc.RecordBatchStreamWriter]:
    """Write an Arrow IPC stream to a local file that appears complete or not at all."""
    with atomic_path(path) as temporary, pa.ipc.new_stream(temporary, schema) as writer:
        yield writer


def open_arrow(path: str | Path) -> pa.Table:
    """Return the rows of an Arrow IPC stream in a local file, memory-mapped: nothing is read before it is asked for.

    Raises: ValueError: it is no such file.
    """
    try:
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_stream(source).read_all()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path}: no readable Arrow stream ({reason}); delete it and run its stage again") from None


def cells(column: pa.Array) -> Callable[[int], Any]:
    """Return what reads the value of a row of a batch, as `column[row].as_py()` does, several times as fast."""
    assert not column.offset, "a part of a batch"
    valid, numbers, *texts = column.buffers()
    values: memoryview[Any] = memoryview(numbers).cast(_FORMATS[column.type])
    read: Callable[[int], Any] = values.__getitem__
    if texts:  # of which the numbers say where each begins
        data = memoryview(texts[0] or b"")
        read = lambda row: str(data[values[row] : values[row + 1]], "utf-8")  # noqa: E731
    if not column.null_count:
        return read
    bits = memoryview(valid)
    return lambda row: read(row) if bits[row >> 3] >> (row & 7) & 1 else None
