"""Files, local or on any fsspec file system, that appear complete or not at all; hashes of them.

Paths are strings: local, or any fsspec URL (`s3://...`, `memory://...`).
"""

import contextlib
import hashlib
import json
import os
import posixpath
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

_CHUNK = 1 << 20
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")


# Paths and files


def _filesystem(path: str) -> tuple[Any, str]:
    import fsspec  # absent on machines that only train

    return fsspec.core.url_to_fs(path)


def is_url(path: str) -> bool:
    return "://" in path


def join(folder: str, *names: str) -> str:
    return posixpath.join(folder, *names) if is_url(folder) else os.path.join(folder, *names)


def open_input(path: str) -> IO[bytes]:
    """Open a file for reading bytes, local or remote."""
    return open(path, "rb") if not is_url(path) else _filesystem(path)[0].open(path, "rb")


def read_bytes(path: str) -> bytes:
    with open_input(path) as stream:
        return stream.read()


def file_size(path: str) -> int | None:
    """Size in bytes, or None where there is no such file."""
    try:
        return os.stat(path).st_size if not is_url(path) else int(_filesystem(path)[0].size(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def list_files(folder: str) -> list[str]:
    """Every file below the folder, as sorted paths relative to it with forward slashes."""
    if not is_url(folder):
        return sorted(
            path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()
        )
    filesystem, root = _filesystem(folder)
    return sorted(posixpath.relpath(path, root) for path in filesystem.find(root))


def remove(path: str) -> None:
    if is_url(path):
        _filesystem(path)[0].rm(path)
    else:
        os.remove(path)


def make_folder(folder: str) -> None:
    """Create the folder and its parents; a ValueError says which could not be written and why."""
    try:
        _filesystem(folder)[0].makedirs(folder, exist_ok=True) if is_url(folder) else os.makedirs(
            folder, exist_ok=True
        )
    except OSError as error:
        raise ValueError(
            f"{folder}: cannot be created ({error.strerror or error}); pass a --workdir that can be written"
        ) from error


def _temporary(path: str) -> str:
    """A hidden name beside the path that nobody else uses: processes on two machines can have the same id."""
    folder, name = os.path.split(path)
    return join(folder, f".{name}.{uuid.uuid4().hex}.tmp")


@contextlib.contextmanager
def atomic_path(path: str) -> Iterator[str]:
    """Give a local path beside `path` to write to; rename it on success, remove it on an exception."""
    temporary = _temporary(path)
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    try:
        yield temporary
        with open(temporary, "rb+") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


@contextlib.contextmanager
def atomic_folder(folder: str) -> Iterator[str]:
    """Give a local folder to fill; it replaces `folder` on success and goes away on an exception."""
    temporary = _temporary(folder)
    os.makedirs(temporary)
    try:
        yield temporary
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def atomic_output(path: str) -> Iterator[IO[bytes]]:
    """Open `path` for writing so that it appears complete or not at all."""
    if not is_url(path):
        with atomic_path(path) as temporary, open(temporary, "wb") as stream:
            yield stream
        return
    filesystem, target = _filesystem(path)
    filesystem.makedirs(posixpath.dirname(target), exist_ok=True)
    temporary = _temporary(target)
    try:
        with filesystem.open(temporary, "wb") as stream:
            yield stream
        filesystem.mv(temporary, target)
    finally:
        if filesystem.exists(temporary):
            filesystem.rm(temporary)


def write_bytes(path: str, data: bytes) -> None:
    with atomic_output(path) as stream:
        stream.write(data)


# Hashes


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def file_sha256(path: str) -> str:
    hasher = hashlib.sha256()
    with open_input(path) as stream:
        while chunk := stream.read(_CHUNK):
            hasher.update(chunk)
    return hasher.hexdigest()


def sweep_temporary(folder: str) -> None:
    """Remove what writers left that were killed while their run went on; for when nobody writes there any more."""
    for path in list_files(folder):
        if any(_TEMPORARY.fullmatch(name) for name in path.split("/")):
            remove(join(folder, path))
