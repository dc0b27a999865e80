"""A folder as a stage leaves it."""

from collections.abc import Iterable
from typing import Any

from pipeline import storage


def write_manifest(folder: object, stage: str, files: Iterable[storage.FileEntry] = (), **others: Any) -> None:
    """The manifest of a stage that has made these files in a folder; with others of its fields as given."""
    fields: dict[str, Any] = {"version": 1, "parameters": {}, "inputs": {}, **others}
    storage.write_manifest(str(folder), storage.Manifest(tuple(files), stage=stage, **fields))
