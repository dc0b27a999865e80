"""What the full English dump takes: each stage's CPU seconds, carried over by what drives the stage.

Between the smallest and the largest of the made dumps a stage takes so many seconds more for so much more of its
driver. What a stage takes at its start is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from benchmarks.harness.report import Number
from benchmarks.harness.workloads import Record


class Driver(NamedTuple):
    """What a stage's work grows with: how much of it the English Wikipedia has, by which source."""

    unit: str
    full: float
    source: str


DRIVERS: Mapping[str, Driver] = {
    "XML": Driver("MB of XML", 100_000, "enwiki's pages-articles, a round figure"),
    "text": Driver(
        "MB of text", 22_000, "published plain-text versions of 2023 and 2024: 16.1, 21.1 and 22.1 GB"
    ),
    "links": Driver("links", 200e6, "a round figure for running text; nobody counted them here"),
    "sample": Driver("MB of the sample", 100, "the default of --tokenizer-characters; it grows no further"),
    "titles": Driver("titles", 18e6, "articles and redirects, a round figure"),
}
DRIVER_OF = {
    "FetchDump": "XML",
    "ExtractPages": "XML",
    "ResolveRedirects": "titles",
    "ResolveLinks": "links",
    "BuildEntityVocab": "links",
    "BuildMentionTable": "text",
    "TrainTokenizer": "sample",
    "BuildSequences": "text",
}
CORE_HOURS, MENTION_HOURS = 8, 2  # at most


def amounts(dump: Record, rows: Mapping[str, int], text_bytes: int) -> dict[str, float]:
    """How much of each driver a dump has; `rows` are those of all stages."""
    return {
        "XML": dump["xml_bytes"] / 1e6,
        "text": text_bytes / 1e6,
        "sample": min(text_bytes / 1e6, DRIVERS["sample"].full),
        "links": rows["links"],
        "titles": rows["titles"],
    }


def full_dump_rows(
    made: Sequence[Record],
    figure: Callable[[str, str, str], Number],
    amount: Mapping[str, Mapping[str, float]],
) -> list[Record]:
    """A row for each stage, and one for all.

    Args:
        made: the made dumps, the smallest first.
        figure: a dump's stage's figure.
        amount: of each driver, by dump.
    """
    first, last = made[0]["name"], made[-1]["name"]
    rows: list[Record] = []
    if not {first, last} <= set(amount):
        return [{"stage": "all", "core-hours": None}]
    for stage, name in DRIVER_OF.items():
        driver = DRIVERS[name]
        more = amount[last][name] - amount[first][name]

        def per_unit(of: str, stage: str = stage, more: float = more) -> Number:
            small, large = figure(first, stage, of), figure(last, stage, of)
            return max(0.0, (large - small) / more) if more and None not in (small, large) else None

        seconds, size = per_unit("cpu_seconds"), per_unit("bytes")
        rows.append(
            {
                "stage": stage,
                "grows with": driver.unit,
                "CPU s a million": seconds and 1e6 * seconds,
                "full": driver.full,
                "core-hours": None if seconds is None else seconds * driver.full / 3600,
                "disk GB": None if size is None else size * driver.full / 1e9,
            }
        )
    sums = {name: sum(row[name] or 0 for row in rows) for name in ("core-hours", "disk GB")}
    return [*rows, {**dict.fromkeys(rows[0]), "stage": "all", **sums}]


def mention_hours(rows: Sequence[Record]) -> Number:
    return next((row["core-hours"] for row in rows if row["stage"] == "BuildMentionTable"), None)
