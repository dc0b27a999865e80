"""The text of a run file: where it lies, how it is read and parsed, and one without values."""

import os
import textwrap
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from pipeline import storage
from workflows.run.kinds import AUTO, Option
from workflows.run.options import PRESET, defaults, options
from workflows.run.tables import TABLES

NAME = "run.toml"
VERSION = 1  # of the file
_WIDTH = 110


def path_of(workdir: str) -> str:
    """The run file of a work directory."""
    return os.path.join(workdir, NAME)


def read(path: str) -> str:
    """The text of a run file. Raises: ValueError where it cannot be read."""
    try:
        return storage.read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: no UTF-8 ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None


def parse(text: str, path: str) -> tomlkit.TOMLDocument:
    """The document of a run file's text. Raises: ValueError for what is none, or of another version."""
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise ValueError(
            f"{path}: no TOML ({error}); wanted a run file, as in examples/runs; words stand in quotes"
        ) from None
    version = document.get("version", VERSION)
    if version != VERSION:
        raise ValueError(f"{path}: version is {version!r}, this project reads {VERSION}; update the project")
    return document


def template() -> str:
    """A run file without values: every table, with a comment for each field."""
    lines = [
        "# What this work directory is built from. Flags of the command line change it; so may you.",
        "# A field that is not given has its default, or the preset's value.",
        f"version = {VERSION}",
        "",
        *_comment("preset", PRESET, AUTO),
    ]
    for table in TABLES:
        by_default = defaults(table)
        lines += ["", f"[{table}]"]
        for key, option in options(table).items():
            lines += _comment(key, option, by_default.get(key))
    return "\n".join(lines) + "\n"


def _comment(key: str, option: Option, default: Any) -> list[str]:
    shown = "" if default in (None, "", {}) else f" ({_shown(default)})"
    text = f"{key}: {option.help}{shown}"
    return textwrap.wrap(text, _WIDTH, initial_indent="# ", subsequent_indent="#     ")


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
