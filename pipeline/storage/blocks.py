"""Blocks: the pieces in which a stage's work is committed, each by rename; a rerun keeps those that are complete.

A cluster's workers write them on other machines. A worker looks first whether it sees the stage's folder, and never
creates it. The machine that started them holds what they say against what it finds.
"""

import contextlib
import json
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from pipeline.storage.files import file_size, join, list_files, read_bytes, remove, sync_folders, write_bytes
from pipeline.storage.manifests import MANIFEST, FileEntry, Result, as_json

BLOCKS = "blocks"  # folder of their records
KEY = "key.txt"  # the digest of what a stage's files are made from; a worker that does not find it sees another folder
PATIENCE_SECONDS = 60.0  # after which a shared file system shows what another machine has written
SHARED = "the work directory has to be on a file system that all machines see under the same path"
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Block:
    """A range [start, end) of a file, of its bytes unless a stage says otherwise; numbers count through all files."""

    number: int
    path: str
    start: int
    end: int


def error_path(folder: str, number: int) -> str:
    """Return where a worker leaves the message of a user's error in a block."""
    return join(folder, BLOCKS, f"error-{number:05d}.txt")


def page_path(folder: str, number: int) -> str:
    """Return where a worker leaves the id of the page of a block that it is working on."""
    return join(folder, BLOCKS, f"page-{number:05d}.txt")


class PageMarker:
    """Writes the id of the page that is being worked on into a file, so that a page which kills the worker is known.

    Keeps out the fatal pages, which have killed one before: by their ids the reasons for which they are left out.
    """

    def __init__(self, path: str, fatal_pages: Mapping[int, str] = MappingProxyType({})) -> None:
        self._fatal_pages = fatal_pages
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def begin(self, page_id: int) -> str:
        """Write down that the page is worked on now; gives the reason why it may not be, or nothing."""
        os.pwrite(self._file, b"%020d" % page_id, 0)
        return self._fatal_pages.get(page_id, "")

    def close(self) -> None:
        os.close(self._file)
        with contextlib.suppress(FileNotFoundError):  # another attempt of a cluster has ended before
            os.remove(self._path)


class BlockJob(Protocol):
    """A stage's work, one block at a time.

    A process imports the class by its name and makes it from its arguments, which are JSON: heavy objects are loaded
    there.
    """

    page_seconds: ClassVar[float] = 600.0  # of work on a page, which is left out after them

    def __init__(self, arguments: Mapping[str, Any]) -> None: ...

    def __call__(self, block: Block, folder: str, marker: PageMarker) -> Result:
        """Write the block's files into the stage's folder."""


class RunBlocks(Protocol):
    """Runs a job over blocks with these arguments."""

    def __call__(
        self, job: type[BlockJob], blocks: Sequence[Block], arguments: Mapping[str, Any]
    ) -> Mapping[int, Result]: ...


def block_name(number: int) -> str:
    return f"block-{number:05d}"


def _record_path(folder: str, number: int) -> str:
    return join(folder, BLOCKS, f"{block_name(number)}.json")


def commit_block(folder: str, key: str, number: int, record: Result) -> None:
    """Make a block count as done; its data files are already in place. A block with another key is never reused."""
    sync_folders(folder, (entry.path for entry in record.files))
    text = json.dumps({"key": key, **as_json(record)}, sort_keys=True, indent=1)
    write_bytes(_record_path(folder, number), text.encode() + b"\n")


def _read_block(folder: str, number: int, key: str) -> Result | None:
    try:
        values = json.loads(read_bytes(_record_path(folder, number)))
        if values.pop("key") != key:
            return None
        record = Result(files=tuple(FileEntry(**entry) for entry in values.pop("files")), **values)
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None
    is_complete = all(file_size(join(folder, entry.path)) == entry.bytes for entry in record.files)
    return record if is_complete else None


def finished_blocks(folder: str, key: str) -> dict[int, Result]:
    """The blocks of this stage that are complete and were made from the same inputs, by number."""
    names = list_files(join(folder, BLOCKS))
    matches = (re.fullmatch(r"block-(\d{5,})\.json", name) for name in names)
    numbers = (int(match[1]) for match in matches if match)
    return {number: record for number in numbers if (record := _read_block(folder, number, key))}


def sweep(folder: str, blocks: Mapping[int, Result]) -> int:
    """Remove every file of the folder that no given block owns; returns how many were removed."""
    wanted = {KEY} | {f"{BLOCKS}/{block_name(number)}.json" for number in blocks}
    wanted |= {entry.path for record in blocks.values() for entry in record.files}
    # The manifest goes first: without it nothing else in the folder counts as done.
    unwanted = [path for path in list_files(folder) if path not in wanted]
    for path in sorted(unwanted, key=lambda path: path != MANIFEST):
        remove(join(folder, path))
    return len(unwanted)


def merge_blocks(blocks: Mapping[int, Result]) -> Result:
    """All blocks as one record: files in the order of block numbers, counts added up."""
    rows, drops, facts = Counter[str](), Counter[str](), Counter[str]()
    for _, record in sorted(blocks.items()):
        rows.update(record.rows)
        drops.update(record.drops)
        facts.update(record.facts)
    files = (entry for record in blocks.values() for entry in record.files)
    return Result(tuple(sorted(files, key=lambda entry: entry.path)), rows, drops, facts)


def clear_if_changed(folder: str, key: str) -> None:
    """Remove the folder's files if they were made from something else, and write down from what they are made now."""
    path = join(folder, KEY)
    if file_size(path) is None or read_bytes(path) != key.encode():
        sweep(folder, {})
        write_bytes(path, key.encode())


# What other machines see and write


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether something comes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def unseen(folder: str, key: str, patience: float) -> str:
    """For a worker: a line that says that this machine does not see the stage's folder, or nothing where it does.

    A folder of the same name whose KEY has not `key` is another one.
    """
    path = join(folder, KEY)
    found = ""

    def is_seen() -> bool:
        nonlocal found
        try:
            found = "" if read_bytes(path) == key.encode() else "is that of another folder"
        except FileNotFoundError:
            found = "is not there"
        except OSError as error:
            found = f"cannot be read ({error.strerror or error})"
        return not found

    if wait_for(is_seen, patience):
        return ""
    return f"{socket.gethostname()}: {path} {found}; {SHARED}"


def await_blocks(folder: str, key: str, numbers: Collection[int], patience: float) -> dict[int, Result]:
    """The records of these blocks, once all are there with their files; after `patience` seconds those that are."""
    found: dict[int, Result] = {}

    def are_there() -> bool:
        for number in set(numbers) - found.keys():
            if record := _read_block(folder, number, key):
                found[number] = record
        return len(found) == len(set(numbers))

    wait_for(are_there, patience)
    return dict(sorted(found.items()))


def forget_blocks(folder: str, numbers: Collection[int]) -> None:
    """Have these blocks made again by the next run."""
    for number in numbers:
        if file_size(path := _record_path(folder, number)) is not None:
            remove(path)
