"""The words of an unexpected error, and how much a stage may drop."""

import logging
import re
import traceback
from collections.abc import Iterable, Mapping

from pipeline.storage.files import join
from pipeline.storage.manifests import FileEntry
from pipeline.storage.parquet import read_rows

logger = logging.getLogger("pipeline")

_MOST_CHARACTERS, _MOST_CALLS = 1000, 20
FREE = 10  # rows that may always be dropped, so that one does not stop a small dump


class Failures:
    """Puts unexpected errors into words: the first of each kind has its traceback.

    They go into tables, so addresses in memory are left out, and calls are named by module.
    """

    def __init__(self) -> None:
        self._kinds: set[str] = set()

    def describe(self, error: Exception) -> tuple[str, str, str]:
        """An error's kind, its message, and the calls that led to it, the innermost last."""
        kind, calls = type(error).__name__, ""
        if kind not in self._kinds:
            self._kinds.add(kind)
            frames = list(traceback.walk_tb(error.__traceback__))[-_MOST_CALLS:]
            called = (f"{each.f_globals.get('__name__')}:{line} {each.f_code.co_name}" for each, line in frames)
            calls = "\n".join(called)
        message = re.sub(r"\b0x[0-9a-fA-F]+", "0x...", str(error)).encode("utf-8", "replace").decode()
        return kind, message[:_MOST_CHARACTERS], calls


def log_failures(folder: str, files: Iterable[FileEntry]) -> None:
    """Log one of each kind of unexpected error in a stage's table `rejected`, with its page and traceback."""
    logged = set()
    for entry in files:
        if not entry.path.startswith("rejected/") or not entry.rows:
            continue
        for row in read_rows(join(folder, entry.path), ["page_id", "reason", "message", "traceback"]):
            if row["traceback"] and row["reason"] not in logged:
                logged.add(row["reason"])
                logger.warning("page %d: %s: %s\n%s", *row.values())


def check_share(
    what: str, drops: Mapping[str, int], total: int, limit: float, parameter: str, *, free_share: float = 1.0
) -> None:
    """Stop a stage that drops more than it may.

    `total` counts kept and dropped rows; the user sets the limit by `parameter`. `FREE` rows are allowed whatever it
    is, where they are at most `free_share` of the total. Raises: ValueError: the share is passed.
    """
    dropped = sum(drops.values())
    if dropped > max(min(FREE, free_share * total), limit * total):
        raise ValueError(
            f"{dropped:,} of {total:,} {what} ({dropped / total:.2%}) were dropped ({list_reasons(drops)}), more "
            f"than {parameter} {limit:g} allows; a higher {parameter} accepts them, and what is done is kept"
        )


def check_pages(drops: Mapping[str, int], total: int, limit: float) -> None:
    """Stop a stage that loses more pages than `corpus.max_rejected`; ten, or a quarter of fewer, it may."""
    check_share("pages", drops, total, limit, "corpus.max_rejected", free_share=0.25)


def reasons_of(drops: Mapping[str, int]) -> dict[str, int]:
    """The rows of the table `rejected`, by their reasons."""
    return {name.partition(":")[2]: count for name, count in drops.items() if name.startswith("rejected:")}


def list_reasons(drops: Mapping[str, int]) -> str:
    """Counts by reason, the commonest first: "12 broken_xml, 1 worker_died"."""
    ordered = sorted(drops.items(), key=lambda drop: (-drop[1], drop[0]))
    return ", ".join(f"{count:,} {reason}" for reason, count in ordered)
