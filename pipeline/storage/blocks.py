"""Blocks: the pieces in which a stage's work is committed, each by rename; a rerun keeps those that are complete."""

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Collection, Mapping

from pipeline.storage.files import file_size, join, list_files, read_bytes, remove, write_bytes
from pipeline.storage.manifests import MANIFEST, FileEntry, Result, as_json

WORKER_DIED = 75  # exit status of a child that lost a worker
BLOCKS = "blocks"  # folder of their records
KEY = "key.txt"  # says from what the files of an unfinished stage are made


def block_name(number: int) -> str:
    return f"block-{number:05d}"


def commit_block(folder: str, key: str, number: int, record: Result) -> None:
    """Make a block count as done; its data files are already in place.

    Args:
        folder: the stage's folder.
        key: digest of all that decides the stage's bytes; a block with another key is never reused.
        number: the block's number within the stage.
        record: its files (relative to the folder) and counts.
    """
    text = json.dumps({"key": key, **as_json(record)}, sort_keys=True, indent=1)
    write_bytes(join(folder, BLOCKS, block_name(number) + ".json"), text.encode() + b"\n")


def _read_block(folder: str, path: str, key: str) -> Result | None:
    try:
        values = json.loads(read_bytes(join(folder, path)))
        if values.pop("key") != key:
            return None
        record = Result(files=tuple(FileEntry(**entry) for entry in values.pop("files")), **values)
    except (ValueError, TypeError, KeyError):
        return None
    is_complete = all(file_size(join(folder, entry.path)) == entry.bytes for entry in record.files)
    return record if is_complete else None


def finished_blocks(folder: str, key: str) -> dict[int, Result]:
    """The blocks of this stage that are complete and were made from the same inputs, by number."""
    blocks = {}
    for path in list_files(folder):
        match = re.fullmatch(rf"{BLOCKS}/block-(\d{{5,}})\.json", path)
        if match and (record := _read_block(folder, path, key)):
            blocks[int(match[1])] = record
    return blocks


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
    files: list[FileEntry] = []
    rows: Counter[str] = Counter()
    drops: Counter[str] = Counter()
    facts: Counter[str] = Counter()
    for _, record in sorted(blocks.items()):
        files += record.files
        rows.update(record.rows)
        drops.update(record.drops)
        facts.update(record.facts)
    return Result(tuple(sorted(files, key=lambda entry: entry.path)), rows, drops, facts)


def clear_if_changed(folder: str, key: str) -> None:
    """Remove the folder's files if they were made from something else, and write down from what they are made now."""
    path = join(folder, KEY)
    if file_size(path) is None or read_bytes(path) != key.encode():
        sweep(folder, {})
        write_bytes(path, key.encode())


# Pages that kill their worker


def error_path(folder: str, number: int) -> str:
    """Where a worker leaves the message of a user's error in a block."""
    return join(folder, BLOCKS, f"error-{number:05d}.txt")


def page_path(folder: str, number: int) -> str:
    """Where a worker leaves the id of the page of a block that it is working on."""
    return join(folder, BLOCKS, f"page-{number:05d}.txt")


class PageGate:
    """Leaves a page's id in a file before it is worked on, so that a page which kills the worker is known.

    Keeps out the pages that have killed one.
    """

    def __init__(self, path: str, deadly: Collection[int]) -> None:
        self._deadly = frozenset(deadly)
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def enter(self, page_id: int) -> bool:
        """Whether the page may be worked on."""
        os.pwrite(self._file, b"%020d" % page_id, 0)
        return page_id not in self._deadly

    def close(self) -> None:
        os.close(self._file)
        with contextlib.suppress(FileNotFoundError):  # another attempt of a cluster has ended before
            os.remove(self._path)
