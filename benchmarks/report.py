"""What follows from the measurements: medians, phases, ratios, targets, checks, and the report of them."""

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from corpora import Dump

SMALL, LARGE, EMPTY = "enwiki-2016-206", "enwiki-2006-12k", "almost-empty"
COPIES = (5, 20, 80)
OURS = {count: f"ExtractPages --processes {count}" for count in (1, 2)}
WIKIPEDIA2VEC = {count: f"wikipedia2vec build-dump-db --pool-size {count}" for count in (1, 2)}
MWPARSERFROMHELL, WIKIEXTRACTOR, BZ2 = "mwparserfromhell", "wikiextractor --json --links", "bz2 alone"
PHASES, ORACLE = "phases of ExtractPages", "oracle"
FLAT = 1.1  # memory at 80x over memory at 5x
# What has to be left when the start-up is taken off, as a share of the start-up: less is noise. Wall time is noisier.
LEAST_WORK = {"cpu": 0.25, "wall": 1.0}

Record = dict[str, Any]


class Results:
    """Medians over the repetitions of every program on every dump, and what is made of them."""

    def __init__(self, dumps: Iterable[Dump], records: Sequence[Record]) -> None:
        self.dumps = {dump.name: dump for dump in dumps}
        self.records = records

    def median(self, dump: str, program: str, value: Callable[[Record], float]) -> float | None:
        """None where the program has no successful run."""
        found = [
            value(record)
            for record in self.records
            if record["dump"] == dump and record["program"] == program and not record["failure"]
        ]
        return statistics.median(found) if found else None

    def seconds(self, dump: str, program: str, kind: str = "cpu", *, net: bool = False) -> float | None:
        """CPU or wall seconds; net: less the start-up, where enough is left to mean anything."""
        seconds = self.median(dump, program, lambda record: record[f"{kind}_seconds"])
        start_up = self.seconds(EMPTY, program, kind) if net else 0.0
        if seconds is None or start_up is None or seconds - start_up < LEAST_WORK[kind] * start_up:
            return None
        return seconds - start_up

    def phase(self, dump: str, program: str, phase: str) -> float | None:
        return self.median(dump, program, lambda record: record["answer"]["seconds"].get(phase, 0.0))

    def speed(self, dump: str, program: str, *, net: bool = False) -> float | None:
        """MB of XML a CPU second."""
        return divide(self.dumps[dump].megabytes, self.seconds(dump, program, net=net))

    def speed_in_process(self, dump: str) -> float | None:
        """MB of XML a CPU second of all phases in one process: without Beam and its start-up."""
        seconds = self.median(dump, PHASES, lambda record: sum(record["answer"]["seconds"].values()))
        return divide(self.dumps[dump].megabytes, seconds)

    def memory(self, dump: str, program: str) -> float | None:
        return self.median(dump, program, lambda record: record["worker_rss_mb"])

    def programs(self, dump: str) -> list[str]:
        return list(dict.fromkeys(record["program"] for record in self.records if record["dump"] == dump))

    def has(self, dump: str) -> bool:
        return dump in self.dumps


def divide(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def spread(values: Sequence[float]) -> float | None:
    """From the least to the most, as a share of the median; None for a single value."""
    return (max(values) - min(values)) / statistics.median(values) if len(values) > 1 else None


def medians(results: Results) -> list[Record]:
    """A row for every program on every dump."""
    rows = []
    for dump in results.dumps:
        for program in results.programs(dump):
            runs = [r for r in results.records if r["dump"] == dump and r["program"] == program]
            failures = [record["failure"] for record in runs if record["failure"]]
            rows.append(
                {
                    "dump": dump,
                    "program": program,
                    "runs": len(runs) - len(failures),
                    "CPU s": results.seconds(dump, program),
                    "spread": spread([r["cpu_seconds"] for r in runs if not r["failure"]]),
                    "wall s": results.seconds(dump, program, "wall"),
                    "MB/s": results.speed(dump, program),
                    "MB/s less start-up": results.speed(dump, program, net=True) if dump != EMPTY else None,
                    "worker RSS MB": results.memory(dump, program),
                    "all PSS MB": results.median(dump, program, lambda record: record["tree_pss_mb"]),
                    "others' cores": results.median(dump, program, lambda record: record["other_cores"]),
                    "failure": "; ".join(dict.fromkeys(failures)),
                }
            )
    return [row for row in rows if row["program"] not in (PHASES, ORACLE) or row["failure"]]


def phases(results: Results) -> list[Record]:
    """A row for every phase in the process that does them all, and for the oracle's extraction."""
    rows = []
    names = ["decompression", "page reading", "wikitext", "writing"]
    for name, dump in results.dumps.items():
        steps = [(PHASES, phase, results.phase(name, PHASES, phase)) for phase in names]
        if None in [seconds for _, _, seconds in steps]:
            continue
        whole = sum(seconds or 0.0 for _, _, seconds in steps)
        steps.append((PHASES, "all four", whole))
        steps.append((ORACLE, "wikitext", results.phase(name, ORACLE, "wikitext")))
        steps.append((BZ2, "decompression from end to end", results.seconds(name, BZ2, net=True)))
        for program, phase, seconds in steps:
            speed = divide(dump.megabytes, seconds)
            share = divide(seconds, whole) if program == PHASES else None
            row = {"dump": name, "program": program, "phase": phase, "CPU s": seconds}
            rows.append({**row, "MB/s": speed, "share": share})
    return rows


def ratios(results: Results) -> list[Record]:
    """Ours against the others, with and without each one's start-up, and two processes against one."""
    rows: list[Record] = []

    def add(what: str, dump: str, gross: float | None, net: float | None) -> None:
        if gross is not None or net is not None:
            rows.append({"ratio": what, "dump": dump, "with start-up": gross, "less start-up": net})

    for dump in results.dumps:
        pairs = [(OURS[n], WIKIPEDIA2VEC[n]) for n in (1, 2)]
        pairs += [(OURS[1], other) for other in (MWPARSERFROMHELL, WIKIEXTRACTOR, BZ2)]
        for ours, other in pairs if dump != EMPTY else ():
            gross, net = (
                divide(results.speed(dump, ours, net=flag), results.speed(dump, other, net=flag))
                for flag in (False, True)
            )
            add(f"MB/s: {ours} / {other}", dump, gross, net)
        oracle = divide(results.phase(dump, ORACLE, "wikitext"), results.phase(dump, PHASES, "wikitext"))
        add("wikitext to paragraphs: ours / oracle", dump, None, oracle)
        gross, net = (
            divide(
                results.seconds(dump, OURS[1], "wall", net=flag),
                results.seconds(dump, OURS[2], "wall", net=flag),
            )
            for flag in (False, True)
        )
        add("wall seconds: 1 process / 2 processes", dump, gross, net if dump != EMPTY else None)
    return rows


def targets(results: Results, table: Sequence[Record]) -> list[Record]:
    """Each target with what was found; `met` is None where it was not measured."""
    rows: list[Record] = []

    def add(target: str, dump: str, least: float, found: float | None, *, below: bool = False) -> None:
        met = None if found is None else found <= least if below else found >= least
        rows.append({"target": target, "dump": dump, "wanted": least, "found": found, "met": met})

    def ratio(what: str, dump: str, kind: str) -> float | None:
        return next((row[kind] for row in table if row["ratio"] == what and row["dump"] == dump), None)

    for dump in filter(results.has, (SMALL, LARGE)):
        for kind, net in (("less start-up", True), ("with start-up", False)):
            versus = f"MB/s: {OURS[1]} / {WIKIPEDIA2VEC[1]}"
            add(f"times wikipedia2vec's MB/s, {kind}, at least", dump, 5, ratio(versus, dump, kind))
            add(f"MB/s, {kind}, at least", dump, 4.5, results.speed(dump, OURS[1], net=net))
        bare = results.speed_in_process(dump)
        versus_net = divide(bare, results.speed(dump, WIKIPEDIA2VEC[1], net=True))
        add("times wikipedia2vec's MB/s less start-up, phases without Beam, at least", dump, 5, versus_net)
        add("MB/s, phases without Beam, at least", dump, 4.5, bare)
        what = "wikitext to paragraphs: ours / oracle"
        add(
            "times the oracle's wikitext to paragraphs, at least", dump, 8, ratio(what, dump, "less start-up")
        )
    for layout in ("", "-multistream"):
        names = [f"{SMALL}-{copies}x{layout}" for copies in COPIES]
        for kind in ("less start-up", "with start-up"):
            found = ratio("wall seconds: 1 process / 2 processes", names[-1], kind)
            add(f"2 processes over 1, wall, {kind}, at least", names[-1], 1.8, found)
        for program in OURS.values():
            sizes = [results.memory(name, program) for name in names]
            most = max((size for size in sizes if size is not None), default=None)
            growth = f"the same, {COPIES[-1]}x over {COPIES[0]}x, at most"
            add(f"MB a worker, {program}, at most", f"{SMALL}-*x{layout}", 400, most, below=True)
            add(growth, f"{SMALL}-*x{layout}", FLAT, divide(sizes[-1], sizes[0]), below=True)
    return rows


def checks(results: Results) -> list[Record]:
    """Whether equal input gave equal bytes, and repeated pages as many times the rows."""
    rows: list[Record] = []
    first: dict[str, dict[str, int]] = {}
    for name in results.dumps:
        runs = [r for r in results.records if r["dump"] == name and r["program"] in OURS.values()]
        outputs = [record["output"] for record in runs if not record["failure"]]
        first[name] = outputs[0]["rows"] if outputs else {}
        whole = len(outputs) == len(runs) and first[name].get("pages", 0) > 0
        same = len({output["sha256"] for output in outputs}) == 1
        what = f"{len(runs)} runs with 1 and 2 processes: the same Parquet files (SHA-256)"
        rows.append({"check": what, "dump": name, "rows": first[name], "passed": whole and same})
    for name, dump in results.dumps.items():
        if dump.copies > 1 and SMALL in first:
            expected = {table: count * dump.copies for table, count in first[SMALL].items()}
            what = f"{dump.copies} times the rows of {SMALL}"
            rows.append({"check": what, "dump": name, "rows": first[name], "passed": first[name] == expected})
    return rows


def table(rows: Sequence[Record]) -> str:
    """Rows as a Markdown table that can be read as it is."""
    if not rows:
        return "(nothing measured)\n"
    cells = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [all(isinstance(row[key], int | float | None) for row in rows) for key in rows[0]]
    cells.insert(
        1, ["-" * (width - 1) + (":" if n else "-") for width, n in zip(widths, numeric, strict=True)]
    )
    return "".join(
        "| "
        + " | ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        + " |\n"
        for line in cells
    )


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {count:,}" for key, count in value.items())
    return str(value).replace("|", "\\|")


def markdown(report: Record) -> str:
    """The report for reading."""
    facts = report["environment"]
    state = ", with changes that are not committed" if facts["changed"] else ""
    lines = [
        f"# Extraction, {report['date']}\n",
        f"`{report['command']}`\n",
        f"Commit {facts['commit'] or 'unknown'}{state}.",
        "Machine: " + "; ".join(f"{key} {value}" for key, value in facts["machine"].items()) + ".",
        "Versions: " + "; ".join(f"{key} {value}" for key, value in facts["versions"].items()) + ".\n",
        "MB are 10^6 bytes; MB/s are MB of uncompressed XML a CPU second (user and system, all processes). Start-up is",
        f"what the same command takes on the dump `{EMPTY}`. Medians over the runs of one interleaved session.\n",
    ]
    for title in ("targets", "medians", "phases", "ratios", "checks", "dumps"):
        lines += [f"## {title.capitalize()}\n", table(report[title])]
    if report["notes"]:
        lines += ["## Notes\n", *(f"- {note}" for note in report["notes"]), ""]
    return "\n".join(lines)


def write(path: Path, report: Record) -> None:
    """The JSON, and the Markdown beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(markdown(report), encoding="utf-8")
