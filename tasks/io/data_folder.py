"""The folder of a data set: a file for each split, and perhaps one with the names of the labels."""

import json
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

from tasks.io.records import Record, parse_file, read_text
from tasks.io.tables import shards

SPLITS = ("train", "dev", "test")
SPLIT_NAMES = {"train": ("train",), "dev": ("dev", "val", "validation"), "test": ("test",)}
LABEL_FILES = ("labels.*", "rel2id.json")


def split_file(data: Path, split: str) -> Path:
    """The one file `<split>.*` of a data folder (for dev also `val.*` and `validation.*`).

    Hugging Face's files are found, too: `<split>-00000-of-00001.parquet`, and the Arrow file in a folder `<split>`.
    Of a table in several files this is the first. Raises: ValueError when there is none or more than one.
    """
    if not data.is_dir():
        raise ValueError(f"{data}: no such folder; expected one with train.*, dev.* and test.*")
    found = files_of_split(data, split)
    if not found:
        there = ", ".join(sorted(path.name for path in data.iterdir())[:10]) or "no file at all"
        wanted = " or ".join(f"{name}.*" for name in SPLIT_NAMES[split])
        folders = [path for path in sorted(data.iterdir()) if path.is_dir()]
        inside = [path for path in folders if all(files_of_split(path, each) for each in SPLITS)]
        remedy = f"give {inside[0]}, which has all three" if inside else f"give one {wanted}"
        raise ValueError(f"{data}: no file for the split {split!r}; {remedy} (found {there})")
    if found != shards(found[0]):
        names = ", ".join(str(path.relative_to(data)) for path in found)
        raise ValueError(f"{data}: found {names} for the split {split!r}; give exactly one file {split}.*")
    return found[0]


def files_of_split(data: Path, split: str) -> list[Path]:
    """All files of a folder that may be those of a split."""
    patterns = [name + end for name in SPLIT_NAMES[split] for end in (".*", "-*.parquet", "/data-*.arrow")]
    return sorted(path for pattern in patterns for path in data.glob(pattern) if path.is_file())


def split_files(data: Path) -> dict[str, Path]:
    """All files that the splits of a data folder are read from, and its label file, each by what it is.

    Raises: ValueError as `split_file` and `label_file`.
    """
    files: dict[str, Path] = {}
    for split in SPLITS:
        first, *others = shards(split_file(data, split))
        files |= {split: first} | {f"{split} {n}": path for n, path in enumerate(others, start=2)}
    labels = label_file(data)
    return {**files, **({"labels": labels} if labels else {})}


def label_file(data: Path) -> Path | None:
    """The file `labels.*` or `rel2id.json` of a data folder, if any. Raises: ValueError when there are several."""
    found = sorted(path for pattern in LABEL_FILES for path in data.glob(pattern) if path.is_file())
    if len(found) > 1:
        raise ValueError(f"{data}: found {' and '.join(path.name for path in found)}; give one label file")
    return found[0] if found else None


def read_label_file(path: Path) -> tuple[str, ...]:
    """Label names: a JSON list, a JSON object of name -> number (in the order of numbers), or a name a line."""
    return tuple(numbered_labels(path).values())


def numbered_labels(path: Path) -> dict[int, str]:
    """The names of a label file by their numbers, in their order; those of lines are the lines' numbers from 0.

    Raises: ValueError naming the file and a label.
    """
    pairs = _names_and_numbers(path, read_text(path, "names of labels"))
    if not pairs or not all(isinstance(name, str) and name for name, _ in pairs):
        raise ValueError(f"{path}: wanted names of labels, at least one")
    if not all(type(number) is int for _, number in pairs):
        raise ValueError(f"{path}: wanted whole numbers as the values of all labels")
    found: dict[int, str] = {}
    for name, number in sorted(pairs, key=lambda pair: pair[1]):
        if number in found:
            raise ValueError(f"{path}: {found[number]!r} and {name!r} are both {number}; give each its own")
        found[number] = name
    if repeated := [name for name, count in Counter(found.values()).items() if count > 1]:
        raise ValueError(f"{path}: label {repeated[0]!r} stands there twice")
    return found


def _names_and_numbers(path: Path, text: str) -> list[tuple[Any, Any]]:
    if not text.lstrip().startswith(("[", "{")):
        return [(line.strip(), number) for number, line in enumerate(text.split("\n")) if line.strip()]
    names = parse_file(path, text)
    return list(names.items()) if isinstance(names, dict) else [(name, n) for n, name in enumerate(names)]


class ClassNames:
    """Names of classes that a file may give as numbers: those of the label file beside it.

    It is read where a number stands, and not before. A folder of `save_to_disk` has it beside its folders of splits.
    """

    def __init__(self, path: Path) -> None:
        is_saved = path.suffix == ".arrow" and path.name.startswith("data-")
        self.folder = path.parent.parent if is_saved else path.parent

    @cached_property
    def names(self) -> dict[int, str]:
        found = label_file(self.folder)
        return numbered_labels(found) if found else {}

    def numbers(self) -> str:
        """The numbers that have names, for errors."""
        least, most = min(self.names), max(self.names)
        if len(self.names) == most - least + 1:
            return f"{least} to {most}"
        return ", ".join(map(str, self.names))

    def name(self, record: Record, field: str, value: object) -> str:
        """The name that is `value`, or that has this number. Raises: ValueError naming the record and the field."""
        if isinstance(value, str):
            return value
        if type(value) is not int:
            raise record.error(f"{field} is {json.dumps(value)[:80]}; wanted a class's name or number")
        if not self.names:
            raise record.error(
                f"{field} is {value}, a number without a name; list the names in their order, one a line, "
                f"in a file labels.txt in {self.folder}, or write names"
            )
        if value not in self.names:
            raise record.error(
                f"{field} is {value}, but {label_file(self.folder)} has names for {self.numbers()}; "
                "correct it, or add the name"
            )
        return self.names[value]
