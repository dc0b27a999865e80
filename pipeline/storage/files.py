"""Files that appear complete or not at all; hashes of them.

Paths are strings of a POSIX file system, which a cluster's machines share. What is written appears by rename.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")


join, remove = os.path.join, os.remove


def read_bytes(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


def file_size(path: str) -> int | None:
    """Size in bytes, or None where there is no such file."""
    try:
        return os.stat(path).st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def list_files(folder: str) -> list[str]:
    """Every file below the folder, as sorted paths relative to it with forward slashes.

    Without those that NFS keeps of files that are removed while they are open.
    """
    found = (path for path in Path(folder).rglob("*") if path.is_file() and not path.name.startswith(".nfs"))
    return sorted(path.relative_to(folder).as_posix() for path in found)


def make_folder(folder: str) -> None:
    """Create the folder and its parents; a ValueError says which could not be written and why."""
    try:
        os.makedirs(folder, exist_ok=True)
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
    """Give a path beside `path` to write to; rename it on success, remove it on an exception."""
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
    """Give a folder to fill; it replaces `folder` on success and goes away on an exception."""
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
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        yield stream


def sync_folders(folder: str, paths: Iterable[str]) -> None:
    """Make renames in a folder, and in those below it with these files, outlast a power cut.

    A record of files is written behind this: some file systems keep no order between renames.
    """
    for each in {folder, *(join(folder, os.path.dirname(path)) for path in paths)}:
        with contextlib.suppress(OSError):  # there are file systems that refuse it
            handle = os.open(each, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def write_bytes(path: str, data: bytes) -> None:
    with atomic_output(path) as stream:
        stream.write(data)


def link_or_copy(source: str, target: str) -> None:
    """Give a file another name, or copy it where the file system has no such names."""
    make_folder(os.path.dirname(target))
    try:
        os.link(source, target)
    except OSError:
        with open(source, "rb") as content, atomic_output(target) as stream:
            shutil.copyfileobj(content, stream)


def canonical_json(value: Any) -> str:
    """JSON with sorted keys and no blanks: equal values have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """SHA-256 of the value's canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()


def file_sha256(path: str) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sweep_temporary(folder: str) -> None:
    """Remove what writers left that were killed while their run went on; for when nobody writes there any more."""
    for path in list_files(folder):
        if any(_TEMPORARY.fullmatch(name) for name in path.split("/")):
            remove(join(folder, path))
