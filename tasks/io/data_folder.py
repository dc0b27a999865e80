"""The folder of a data set: a file for each split, and perhaps one with the names of the labels."""

import json
from pathlib import Path

from tasks.io.records import read_text

SPLITS = ("train", "dev", "test")
SPLIT_NAMES = {"train": ("train",), "dev": ("dev", "val", "validation"), "test": ("test",)}
LABEL_FILES = ("labels.*", "rel2id.json")


def split_file(data: Path, split: str) -> Path:
    """The one file `<split>.*` of a data folder (for dev also `val.*` and `validation.*`).

    Hugging Face's files are found, too: `<split>-00000-of-00001.parquet`, and the Arrow file in a folder `<split>`.

    Raises: ValueError when there is none or more than one.
    """
    if not data.is_dir():
        raise ValueError(f"{data}: no such folder; expected one with train.*, dev.* and test.*")
    patterns = [name + end for name in SPLIT_NAMES[split] for end in (".*", "-*.parquet", "/data-*.arrow")]
    found = sorted(path for pattern in patterns for path in data.glob(pattern) if path.is_file())
    if len(found) != 1:
        there = ", ".join(sorted(path.name for path in data.iterdir())[:10]) or "no file at all"
        names = ", ".join(str(path.relative_to(data)) for path in found) or f"none among {there}"
        raise ValueError(f"{data}: found {names} for the split {split!r}; give exactly one file {split}.*")
    return found[0]


def label_file(data: Path) -> Path | None:
    """The file `labels.*` or `rel2id.json` of a data folder, if any. Raises: ValueError when there are several."""
    found = sorted(path for pattern in LABEL_FILES for path in data.glob(pattern) if path.is_file())
    if len(found) > 1:
        raise ValueError(f"{data}: found {' and '.join(path.name for path in found)}; give one label file")
    return found[0] if found else None


def read_label_file(path: Path) -> tuple[str, ...]:
    """Label names: a JSON list, a JSON object of name -> number (in the order of numbers), or a name a line."""
    text = read_text(path, "names of labels")
    if text.lstrip().startswith(("[", "{")):
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path}:{error.lineno}: not JSON ({error.msg})") from None
        if isinstance(value, dict):
            if not all(type(number) is int for number in value.values()):
                raise ValueError(f"{path}: wanted whole numbers as the values of all labels")
            value = sorted(value, key=lambda name: value[name])
        names = value
    else:
        names = [line.strip() for line in text.split("\n") if line.strip()]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"{path}: wanted names of labels, at least one")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path}: label {repeated[0]!r} stands there twice")
    return tuple(names)
