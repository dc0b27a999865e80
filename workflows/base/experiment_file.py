"""Where the data sets and the weights of fine-tuning lie, said once in a small TOML file (`--experiments`).

    negative_label = "no_relation"              # optional, of relation classification
    tag_column = "2"                            # optional, of entity recognition
    mentions = "work/mentions-0b2f3c4d"         # optional, of extractive question answering

    [data]                                      # folders with train, dev and test
    ner = "conll2003"
    relation_classification = "tacred"

    [weights]                                   # folders, or names of Hugging Face
    luke = "studio-ousia/luke-large"
    roberta = "roberta-large"

Paths are relative to the file. A task that [data] does not name has no data; weights that [weights] does not name are
those of the pipeline.
"""

import difflib
import functools
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tasks.finetuning.variants import WEIGHTS

TASKS = ("entity_typing", "relation_classification", "ner", "cloze_qa", "extractive_qa")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_TABLES = {"data": TASKS, "weights": WEIGHTS}
_VALUES = ("negative_label", "tag_column", "mentions")

State = Literal["no data", "no weights"]


class Missing(ValueError):
    """A fine-tuning that cannot be done for want of data or weights, which a grid shows as such."""

    def __init__(self, state: State, message: str) -> None:
        super().__init__(message)
        self.state = state


@dataclass(frozen=True)
class Sources:
    """The content of the file at `path`; an empty path means the project's examples and the pipeline's weights."""

    path: str = ""
    data: Mapping[str, str] = field(default_factory=dict)
    weights: Mapping[str, str] = field(default_factory=dict)
    negative_label: str = ""
    tag_column: str = ""
    mentions: str = ""

    def data_folder(self, task: str) -> str:
        """The folder of a task's data. Raises: Missing where the file names none."""
        if not self.path:
            return str(EXAMPLES / task)
        if task not in self.data:
            raise Missing("no data", f"{os.path.basename(self.path)}: [data] names no folder for {task}")
        return self.data[task]


def read_sources(path: str) -> Sources:
    """The file at `path`, or the examples where it is empty.

    Raises:
        ValueError: it cannot be read, has a key that is not known, or names a folder that is not there.
    """
    if not path:
        return Sources()
    try:
        return _read(path, os.stat(path).st_mtime_ns)
    except OSError as error:
        raise ValueError(f"--experiments {path}: cannot be read ({error.strerror})") from None


@functools.cache
def _read(path: str, mtime_ns: int) -> Sources:
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(
            f"{path}: no TOML ({error}); wanted a file as in docs/tutorials/your-data.md"
        ) from None
    _check_keys(path, "", content, (*_VALUES, *_TABLES))
    values = {name: _text(path, name, content[name]) for name in _VALUES if name in content}
    tables: dict[str, dict[str, str]] = {}
    for name, keys in _TABLES.items():
        table = content.get(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"{path}: {name} is {table!r}, wanted a table [{name}]")
        _check_keys(path, f"[{name}] ", table, keys)
        tables[name] = {key: _text(path, f"[{name}] {key}", value) for key, value in table.items()}
    data = {key: _folder(path, f"[data] {key}", value) for key, value in tables["data"].items()}
    weights = {key: _weights(path, f"[weights] {key}", value) for key, value in tables["weights"].items()}
    if "mentions" in values:
        values["mentions"] = _folder(path, "mentions", values["mentions"])
    return Sources(path, data, weights, **values)


def _check_keys(path: str, where: str, found: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in found:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise ValueError(f"{path}: {where}{key} is not known{hint} (wanted: {', '.join(known)})")


def _text(path: str, name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f'{path}: {name} is {value!r}, wanted text, as "conll2003"')
    return value


def _resolved(path: str, value: str) -> str:
    return os.path.join(os.path.dirname(os.path.abspath(path)), os.path.expanduser(value))


def _folder(path: str, name: str, value: str) -> str:
    folder = _resolved(path, value)
    if not os.path.isdir(folder):
        raise ValueError(
            f"{path}: {name}: no such folder {folder}; correct the path, or delete the line if there is none"
        )
    return folder


def _weights(path: str, name: str, value: str) -> str:
    """A folder where there is one, or else the name as Hugging Face knows it."""
    folder = _resolved(path, value)
    if os.path.isdir(folder):
        return folder
    if value.startswith((".", "/", "~")):
        return _folder(path, name, value)
    return value
