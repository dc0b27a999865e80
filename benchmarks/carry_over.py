"""The full English dump from what was measured on small ones, with the arithmetic."""

from collections.abc import Callable
from typing import Any

from report import divide
from stages import FOLDERS

Record = dict[str, Any]

XML_BYTES, ARTICLES = 100e9, 7_000_000  # of English Wikipedia
NAMES, REDIRECTS = 15_000_000, 10_000_000
_HEAP = "the Java heap is bounded by the stage: at most 16 GiB, at most a quarter of the memory; Spark spills beyond"
# What of a stage's memory grows with Wikipedia, beside its processes, whose size does not.
_GROWS = {
    "ResolveRedirects": "jvm: bounded",
    "BuildEntityVocab": "jvm: bounded; main: builds the aliases, group by group",
    "BuildMentionTable": "jvm: bounded; main: builds the names, group by group; spark worker: maps them",
    "BuildSequences": "worker: maps the aliases",
}

Lines = list[str]


def carry_over(report: Record, real: Record, made: list[Record]) -> tuple[list[Record], Lines]:
    """A row for each stage, and the lines of arithmetic behind it.

    Core-hours come from the seconds that the largest made dump takes more than the smallest one, so that start-up is
    left out; disk from the real dump, whose pages compress as real pages do.
    """
    first, last = (_only_run(report, dump["name"]) for dump in (made[0], made[-1]))
    once = _only_run(report, real["name"])
    lines: Lines = []
    if not (first and last and once):
        return [], ["not all stages were measured"]
    rows = []
    for stage in FOLDERS:
        hours = _core_hours(stage, first, last, made, lines)
        size = once["stages"][stage]["bytes"] / real["xml_bytes"] * XML_BYTES / 1e9
        lines.append(f"{stage}, disk: {_scaled(once['stages'][stage]['bytes'], real)} = {size:.1f} GB")
        largest = max(last["stages"][stage]["rss_mb"].values(), default=None)
        rows.append(
            {
                "stage": stage,
                "core-hours": hours,
                "disk GB": size,
                "largest process MB": largest,
                "all processes, PSS MB": last["stages"][stage]["tree_pss_mb"],
                "grows with Wikipedia": _GROWS.get(stage, "nothing"),
            }
        )
    whole = [sum(row[key] or 0.0 for row in rows) for key in ("core-hours", "disk GB")]
    rows.append({**dict.fromkeys(rows[0]), "stage": "all", "core-hours": whole[0], "disk GB": whole[1]})
    dump_size = real["file_bytes"] / real["xml_bytes"] * XML_BYTES / 1e9
    lines.append(f"the dump itself, disk: {_scaled(real['file_bytes'], real)} = {dump_size:.1f} GB")
    articles = once["stages"]["ExtractPages"]["rows"]["pages"]
    lines.append(
        f"XML is carried over {XML_BYTES / real['xml_bytes']:,.0f} times; by articles it would be "
        f"{ARTICLES:,} / {articles:,} = {ARTICLES / articles:,.0f} times"
    )
    return rows, [*lines, *_memory(once, first, last)]


def _only_run(report: Record, dump: str) -> Record | None:
    found = [r for r in report["runs"] if (r["dump"], r["profile"], r["failure"]) == (dump, "fixed", "")]
    return found[-1] if found else None


def _scaled(size: int, real: Record) -> str:
    return f"{size / 1e6:,.2f} MB / {real['xml_bytes'] / 1e6:,.1f} MB of XML x {XML_BYTES / 1e9:,.0f} GB"


def _core_hours(stage: str, first: Record, last: Record, made: list[Record], lines: Lines) -> float | None:
    begin, end = (run["stages"][stage]["cpu_seconds"] for run in (first, last))
    if begin is None or end is None:
        return None
    small, large = made[0]["xml_bytes"] / 1e6, made[-1]["xml_bytes"] / 1e6
    hours = (end - begin) / (large - small) * XML_BYTES / 1e6 / 3600
    lines.append(
        f"{stage}, core-hours: ({end:.1f} - {begin:.1f} CPU s) / ({large:.1f} - {small:.1f} MB) "
        f"x {XML_BYTES / 1e6:,.0f} MB / 3,600 = {hours:.1f}"
    )
    return hours


def _memory(once: Record, first: Record, last: Record) -> Lines:
    """What grows with the number of names, titles and redirects."""
    lines = [_HEAP]

    def file_line(stage: str, file: str, entries: str, wanted: int, what: str) -> None:
        size = once["stages"][stage]["files"].get(file)
        each = divide(size, once["stages"][stage]["rows"].get(entries))
        if each is not None:
            lines.append(
                f"{file}, mapped and shared: {each:.2f} bytes x {wanted:,} {what} = {each * wanted / 1e6:,.0f} MB"
            )

    file_line("BuildMentionTable", "lookup.tries", "names", NAMES, "names")
    file_line(
        "BuildEntityVocab", "aliases.tries", "aliases", ARTICLES + REDIRECTS, "titles and redirects, at most"
    )
    names: Callable[[Record], int] = lambda run: run["stages"]["BuildMentionTable"]["rows"]["names"]  # noqa: E731
    sizes = [run["stages"]["BuildMentionTable"]["rss_mb"].get("main") for run in (first, last)]
    if None not in sizes and names(last) > names(first):
        each = (sizes[1] - sizes[0]) * 1e6 / (names(last) - names(first))
        lines.append(
            f"main of BuildMentionTable: {sizes[1]:.0f} MB at {names(last):,} names, {sizes[0]:.0f} MB at "
            f"{names(first):,}: {each:.0f} bytes a name, x {NAMES:,} = {each * NAMES / 1e6:,.0f} MB"
        )
    return lines
