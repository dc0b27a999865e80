"""Arrow arrays and memory-mapped streams."""

import contextlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.storage.files import atomic_path


def to_array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as an Arrow array, lists and structs (sequences in the order of the fields) column by column."""
    if pa.types.is_list(kind):
        offsets = pa.array(list(accumulate(map(len, values), initial=0)), pa.int32())
        inner = to_array(list(chain.from_iterable(values)), kind.value_type)
        return pa.ListArray.from_arrays(offsets, inner, type=kind)
    if pa.types.is_struct(kind):
        columns = list(zip(*values, strict=True)) or [()] * kind.num_fields
        arrays = [to_array(column, field.type) for column, field in zip(columns, kind, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=list(kind))
    return pa.array(values, kind)


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
        raise ValueError(
            f"{path}: no readable Arrow stream ({reason}); delete it and run its stage again"
        ) from None
