"""Arrays that one run keeps for another, in a file of NumPy's."""

import io
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from pipeline.storage import write_bytes


def write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write them all at once: the file is there whole, or not at all."""
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    write_bytes(str(path), stream.getvalue())


def read_arrays(path: Path, *wanted: str) -> dict[str, NDArray[Any]]:
    """What `write_arrays` wrote. Raises: ValueError for another file, or one without the arrays that are wanted."""
    try:
        with np.load(path, allow_pickle=False) as kept:
            arrays = {name: kept[name] for name in kept.files}
    except (ValueError, AttributeError, BadZipFile) as error:
        raise ValueError(f"{path}: no file that --found has written ({error}); give another one") from error
    if missing := [name for name in wanted if name not in arrays]:
        raise ValueError(
            f"{path}: has no {missing[0]}, so --found of another benchmark wrote it; give another one"
        )
    return arrays
