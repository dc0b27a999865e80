"""Rows of Parquet files and of the Arrow files that Hugging Face's `datasets` writes, with names of classes."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PARQUET, ARROW_STREAM, ARROW_FILE = b"PAR1", b"\xff\xff\xff\xff", b"ARROW1"
SHARD = re.compile(r"(.*)-(\d{5})-of-(\d{5})(\..*)")


def is_table(path: Path) -> bool:
    """Return whether a file begins as Parquet or Arrow does; no text in UTF-8 begins so, but for PAR1 and ARROW1."""
    return path.is_file() and _magic(path).startswith((PARQUET, ARROW_STREAM, ARROW_FILE))


def shards(path: Path) -> list[Path]:
    """All files of the table that `path` is one of, `train-00000-of-00002.parquet` and so on; else the file itself.

    Raises: ValueError naming one that is missing.
    """
    match = SHARD.fullmatch(path.name)
    if not match or int(match[2]) >= int(match[3]):
        return [path]
    names = [f"{match[1]}-{number:05}-of-{match[3]}{match[4]}" for number in range(int(match[3]))]
    found = [path.with_name(name) for name in names]
    if missing := [each.name for each in found if not each.is_file()]:
        raise ValueError(
            f"{path}: one of {len(found)} files of a table, and {missing[0]} is not beside it; "
            "put all of them there, or rename this one if it is all that you want"
        )
    return found


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table as JSON values; numbers of classes become the names that the file has for them.

    Bytes that are a text become one; dates and decimal numbers become texts. What JSON has not is None.
    Raises: ValueError naming the file, and the row and the column of a number without a name.
    """
    magic = _magic(path)
    try:
        if magic.startswith(PARQUET):
            # Not read_table of an open file: at the end of the process its threads may abort it.
            with pq.ParquetFile(path) as parquet:
                table = parquet.read()
        else:
            with path.open("rb") as file:
                opened = pa.ipc.open_file if magic == ARROW_FILE else pa.ipc.open_stream
                table = opened(file).read_all()
        text = json.dumps(table.to_pylist(), default=_as_json)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path}: a broken table ({reason}); write or download it again") from None
    rows: list[dict[str, Any]] = json.loads(text, parse_constant=lambda _: None)
    names = _class_names(table.schema.metadata or {})
    for number, row in enumerate(rows, start=1):
        for column in names.keys() & row.keys():
            row[column] = _named(row[column], names[column], f"{path}: row {number}: {column}")
    return rows


def _magic(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(ARROW_FILE))


def _as_json(value: object) -> str | None:
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


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


def _named(value: Any, names: list[str], where: str) -> Any:
    if isinstance(value, list):
        return [_named(each, names, where) for each in value]
    if isinstance(value, int):
        if not 0 <= value < len(names):
            raise ValueError(
                f"{where} holds {value!r}; wanted a class from 0 to {len(names) - 1}, which the file names; "
                "correct it or remove the row"
            )
        return names[value]
    return value
