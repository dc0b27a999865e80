"""Medians, ratios and checks of measurements, and the report with its tables."""

import argparse
import datetime
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.facts import describe, environment_facts
from benchmarks.harness.workloads import Record

Number = float | None


def median(values: Iterable[Number]) -> Number:
    """Return the median of the values that are known; None where there is none."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def divide(a: Number, b: Number) -> Number:
    return a / b if a is not None and b else None


def equal_losses(rows: Iterable[Record], kind: Callable[[Record], str]) -> list[Record]:
    """Check that rows of a kind, which share weights, batch and masks, have the same loss; a single one is no check."""
    losses: dict[str, list[float]] = {}
    for row in rows:
        if row.get("loss") is not None:
            losses.setdefault(kind(row), []).append(row["loss"])
    found = []
    for name, values in sorted(losses.items()):
        spread = max(values) - min(values)
        row = {"check": f"equal losses, {name}", "losses": len(values), "spread": f"{spread:.1e}"}
        found += [row | {"passed": spread < 1e-3 * values[0]}] if len(values) > 1 else []
    return found


def equal_outputs(dumps: Iterable[Record], outputs: Mapping[str, Any], once: str) -> list[Record]:
    """Check that equal input gave equal bytes, and repeated pages as many times the rows of the dump `once`.

    An output of a dump has its `sha256` and the `rows` of each table; it is empty where the run failed.
    """
    found: list[Record] = []
    expected = next(iter(outputs[once]), {}).get("rows", {})
    for dump in dumps:
        name, copies = dump["name"], dump["copies"]
        first = next(iter(outputs[name]), {})
        same = all(output and output["sha256"] == first.get("sha256") for output in outputs[name])
        rows, passed = first.get("rows", {}), same and any(first.get("rows", {}).values())
        found.append({"check": f"{len(outputs[name])} runs: the same bytes", "dump": name, "passed": passed})
        if copies > 1:
            passed = bool(rows) and rows == {table: number * copies for table, number in expected.items()}
            found.append({"check": f"{copies} times the rows of {once}", "dump": name, "passed": passed})
    return found


def progress(what: str) -> None:
    """Print a line for whoever waits."""
    print(f"{datetime.datetime.now():%H:%M:%S} {what}", file=sys.stderr, flush=True)


def table(rows: Sequence[Record]) -> str:
    """Return rows as a Markdown table that can be read as it is."""
    if not rows:
        return "(nothing measured)\n"
    columns = []
    for name in rows[0]:
        cells = [name, *(_cell(row[name]) for row in rows)]
        is_number = all(isinstance(row[name], int | float | None) for row in rows)
        width, place = max(map(len, cells)), str.rjust if is_number else str.ljust
        placed = [place(cell, width) for cell in cells]
        columns.append([placed[0], "-" * (width - 1) + (":" if is_number else "-"), *placed[1:]])
    return "".join(f"| {' | '.join(line)} |\n" for line in zip(*columns, strict=True))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value).replace("|", "\\|").replace("\n", " ")


class Report:
    """The results of a benchmark: sections in the order in which they are read, and all measurements behind them.

    `measured` is what the JSON holds beside the sections, `head` the paragraphs before the first section.
    """

    def __init__(
        self, title: str, options: argparse.Namespace, packages: Iterable[str], peers: Path | None = None
    ) -> None:
        self.title, self.options = title, options
        self.date = datetime.date.today().isoformat()
        self.environment = environment_facts(packages, peers)
        self.notes: list[str] = list(options.notes)
        self.measured: Record = {}
        self.head: list[str] = []
        self.sections: dict[str, tuple[str, list[Record]]] = {}

    def add(self, name: str, rows: Iterable[Record], text: str = "") -> None:
        """Add a section with a table below its text; a section of the same name is replaced."""
        self.sections[name] = (text, list(rows))

    def note_failure(self, what: str, found: Record) -> None:
        """Add a note where a workload failed."""
        if "failure" in found:
            self.notes.append(f"{what}: {found['failure']}")

    def text(self) -> str:
        """Return the report for reading."""
        facts = describe(self.environment, os.getloadavg()[0])
        parts = [f"# {self.title}, {self.date}\n", f"`{self.options.command}`\n", facts, *self.head]
        for name, (text, rows) in self.sections.items():
            parts += [f"## {name}\n", *([text.strip() + "\n"] if text else [])]
            parts += [table(rows)] if rows or not text else []
        if self.notes:
            parts += ["## Notes\n", *(f"- {note}" for note in self.notes), ""]
        return "\n".join(parts)

    def write(self) -> None:
        """Write the JSON, and the Markdown beside it, each whole or not at all."""
        record = {"date": self.date, "command": self.options.command, "environment": self.environment}
        record |= {"notes": self.notes, **self.measured, "load after": os.getloadavg()[0]}
        record |= {name.lower(): rows for name, (_, rows) in self.sections.items()}
        output: Path = self.options.output
        output.parent.mkdir(parents=True, exist_ok=True)
        whole = json.dumps(record, indent=1, ensure_ascii=False) + "\n"
        for path, text in ((output, whole), (output.with_suffix(".md"), self.text())):
            aside = path.with_name(f".{path.name}.tmp")
            aside.write_text(text, encoding="utf-8")
            aside.replace(path)

    def finish(self) -> None:
        """Write and print the report; a check that failed makes the command fail."""
        self.write()
        print(self.text())
        _, checks = self.sections.get("Checks", ("", []))
        if failed := [row["check"] for row in checks if not row["passed"]]:
            raise SystemExit(f"what was measured is wrong: {'; '.join(failed)}")
