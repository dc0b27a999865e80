"""The parts of a table, each written by a task on some machine: what the tasks say is held against what is found."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from pipeline.storage.blocks import SHARED, await_blocks, forget_blocks
from pipeline.storage.files import file_sha256, file_size, join
from pipeline.storage.manifests import FileEntry, Result

_SHOWN = 5  # parts in a message


class Written(NamedTuple):
    """A task's words about its part: the file that it wrote, or why it did not; none of one that is kept."""

    part: int
    host: str
    problem: str = ""
    path: str = ""
    bytes: int = 0
    sha256: str = ""
    rows: int = 0


def check_parts(
    folder: str,
    key: str,
    numbers: Sequence[int],
    written: Iterable[Written],
    kept: Mapping[int, Result],
    patience: float,
) -> dict[int, Result]:
    """Hold what tasks say that they wrote against what is found: record, size, rows and SHA-256 of every part.

    `kept` are the records of the parts that were there before; what shows late is waited for. Return the record of
    each part. Raises: ValueError: names the parts that are not there or not the same, and their hosts. They are made
    again by the next run.
    """
    said = {each.part: each for each in written}
    raise_problem(each.problem for each in said.values())
    found = await_blocks(folder, key, numbers, patience)

    def problem(number: int) -> str:
        if number not in said:
            return "no task wrote it"
        each, record = said[number], found.get(number)
        wanted = kept.get(number) or Result((FileEntry(each.path, each.bytes, each.sha256, each.rows),))
        (entry,) = wanted.files
        path = join(folder, entry.path)
        if record is None:
            size = file_size(path)
            state = "its record is missing" if size == entry.bytes else f"{size} of {entry.bytes} bytes"
            return f"{each.host}: {'missing' if size is None else state}"
        if record.files != wanted.files or file_sha256(path) != entry.sha256:
            return f"{each.host}: other content"
        return ""

    with ThreadPoolExecutor() as pool:
        problems = dict(zip(numbers, pool.map(problem, numbers), strict=True))
    if wrong := [number for number in numbers if problems[number]]:
        forget_blocks(folder, wrong)
        shown = ", ".join(f"part {number} ({problems[number]})" for number in wrong[:_SHOWN])
        raise ValueError(
            f"{folder}: {len(wrong)} of {len(numbers)} parts are not found as they were written within {patience:g} s: "
            f"{shown}{', ...' * (len(wrong) > _SHOWN)}; {SHARED}; run the stage again, the others are kept"
        )
    return found


def raise_problem(problems: Iterable[str]) -> None:
    """Raise a ValueError with what a worker says of a folder that it does not see or cannot write, if one does."""
    if lines := sorted(set(problems) - {""}):
        others = f" (and {len(lines) - 1} more such lines)" if len(lines) > 1 else ""
        raise ValueError(lines[0] + others)
