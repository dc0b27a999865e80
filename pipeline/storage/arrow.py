"""Arrow arrays and memory-mapped streams."""

from collections.abc import Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any

import pyarrow as pa


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


# Arrow


def open_arrow(path: str | Path) -> pa.Table:
    """The rows of an Arrow IPC stream in a local file, memory-mapped: nothing is read before it is asked for.

    Raises:
        ValueError: it is no such file.
    """
    try:
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_stream(source).read_all()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{path}: no readable Arrow stream ({reason}); delete it and run its stage again"
        ) from None
