"""Rows of Parquet files and of the Arrow files that Hugging Face's `datasets` writes, with names of classes."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PARQUET, ARROW_STREAM = b"PAR1", b"\xff\xff\xff\xff"


def is_table(path: Path) -> bool:
    """Whether a file begins as Parquet or an Arrow stream does; no text in UTF-8 begins so, but for PAR1."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) in (PARQUET, ARROW_STREAM)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table as JSON values; numbers of classes become the names that the file has for them.

    Raises: ValueError naming the file, and the row and the column of a number without a name.
    """
    try:
        with path.open("rb") as file:
            is_parquet = file.read(4) == PARQUET
            file.seek(0)
            table = pq.read_table(file) if is_parquet else pa.ipc.open_stream(file).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path}: a broken table ({reason}); write or download it again") from None
    names = _class_names(table.schema.metadata or {})
    rows: list[dict[str, Any]] = table.to_pylist()
    for number, row in enumerate(rows, start=1):
        for column in names.keys() & row.keys():
            row[column] = _named(row[column], names[column], _refuse(path, number, column))
    return rows


def _class_names(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """For each column of classes, or of lists of them, the names, as the `huggingface` metadata has them."""
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    found = {}
    for column, feature in features.items():
        inner = feature[0] if isinstance(feature, list) and feature else feature
        inner = inner.get("feature", inner) if isinstance(inner, dict) else {}
        if isinstance(inner, dict) and inner.get("_type") == "ClassLabel" and inner.get("names"):
            found[column] = inner["names"]
    return found


def _refuse(path: Path, row: int, column: str) -> Callable[[object, int], ValueError]:
    return lambda value, count: ValueError(
        f"{path}: row {row}: {column} holds {value!r}; wanted a class from 0 to {count - 1}, which the file names; "
        "correct it or remove the row"
    )


def _named(value: Any, names: list[str], refuse: Callable[[object, int], ValueError]) -> Any:
    if isinstance(value, list):
        return [_named(each, names, refuse) for each in value]
    if isinstance(value, int):
        if not 0 <= value < len(names):
            raise refuse(value, len(names))
        return names[value]
    return value
