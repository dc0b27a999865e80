"""The text of a run file: where it lies, how it is read and parsed."""

import os

import tomlkit
from tomlkit.exceptions import TOMLKitError

from pipeline import storage

NAME = "run.toml"
VERSION = 1  # of the file


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
        raise ValueError(
            f"{path}: version is {version!r}, and this project reads {VERSION}; update the project"
        )
    return document
