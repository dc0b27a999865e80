"""Arrow streams, memory-mapped."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from pipeline.storage.files import atomic_path


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
