"""How fast `ExtractPages` is, beside other programs, in one run: `python benchmarks/extract.py --help`.

Speed is 10^6 bytes of uncompressed XML a CPU second, from bz2 to what the program writes. README.md in this folder
says what is measured and how.
"""

import argparse
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import corpora
import psutil
import pyarrow.parquet as pq
from corpora import Dump
from measure import ROOT, Measurement, adopt_orphans, measure

SMALL, LARGE, EMPTY = "enwiki-2016-206", "enwiki-2006-12k", "almost-empty"
COPIES = (5, 20, 80)
OURS = {count: f"ExtractPages --processes {count}" for count in (1, 2)}
WIKIPEDIA2VEC = {count: f"wikipedia2vec build-dump-db --pool-size {count}" for count in (1, 2)}
MWPARSERFROMHELL, WIKIEXTRACTOR, BZ2 = "mwparserfromhell", "wikiextractor --json --links", "bz2 alone"
PHASES, ORACLE = "phases of ExtractPages", "oracle"
TIMEOUT_SECONDS = 3600
FLAT = 1.1  # memory at 80x over memory at 5x
PACKAGES = ("apache-beam", "mwparserfromhell", "psutil", "pyarrow")
PEER_PACKAGES = ("lmdb", "mwparserfromhell", "wikiextractor", "wikipedia2vec")

Record = dict[str, Any]


# What is run on which dump


@dataclass(frozen=True)
class Contestant:
    """A program; `command` gives its words for a dump and a folder to write to, or None where it is absent."""

    name: str
    command: Callable[[Dump, str], list[str] | None]
    is_peer: bool = False


def contestants(peers: Path | None) -> list[Contestant]:
    """All of them, in the order in which a round runs them: others and ours in turn."""

    def ours(workload: str, **arguments: Any) -> Callable[[Dump, str], list[str]]:
        def command(dump: Dump, folder: str) -> list[str]:
            values = {"dump": str(dump.path), **arguments}
            if workload in ("extract_pages", "phases"):
                values |= {"folder": folder, "block_bytes": block_bytes(dump)}
            return [sys.executable, str(ROOT / "benchmarks/measure.py"), workload, json.dumps(values)]

        return command

    def wikipedia2vec(pool_size: int) -> Callable[[Dump, str], list[str] | None]:
        words = ["build-dump-db", "--pool-size", str(pool_size)]
        if not peers:
            return lambda dump, folder: None
        script = str(peers.with_name("wikipedia2vec"))
        return lambda dump, folder: [script, *words, str(dump.path), f"{folder}/dump.db"]

    def wikiextractor(dump: Dump, folder: str) -> list[str] | None:
        options = ["--json", "--processes", "1", "-o", f"{folder}/out", "--links"]
        module = ["-m", "wikiextractor.WikiExtractor"]
        return [str(peers), *module, *options, str(dump.path)] if peers else None

    return [
        Contestant(WIKIPEDIA2VEC[1], wikipedia2vec(1), is_peer=True),
        Contestant(OURS[1], ours("extract_pages", processes=1)),
        Contestant(WIKIPEDIA2VEC[2], wikipedia2vec(2), is_peer=True),
        Contestant(OURS[2], ours("extract_pages", processes=2)),
        Contestant(MWPARSERFROMHELL, ours("plain_mwparserfromhell")),
        Contestant(PHASES, ours("phases")),
        Contestant(ORACLE, ours("oracle")),
        Contestant(WIKIEXTRACTOR, wikiextractor, is_peer=True),
        Contestant(BZ2, ours("decompress")),
    ]


def block_bytes(dump: Dump) -> int:
    """What `--block-size auto` gives for the dump, as the stage itself says."""
    from workflows.extraction import AUTO, CorpusStage

    size = dump.path.stat().st_size
    if dump.name == EMPTY:
        return -(-size // 2)  # two blocks, so that two workers start
    fetched = SimpleNamespace(manifest=lambda: SimpleNamespace(rows={"bytes": size}))
    stage = SimpleNamespace(block_size=AUTO, fetched=lambda: fetched)
    return CorpusStage.block_bytes(cast(CorpusStage, stage))


def dumps_to_measure(data: Path, scratch: Path, names: Sequence[str]) -> list[Dump]:
    """The named dumps, and the almost empty one before them."""
    source = data / f"{SMALL}.xml.bz2"
    if not source.is_file():
        raise SystemExit(f"--data: no {source.name} in that folder; see ../shared/data/README.md")
    dumps = [corpora.almost_empty(source, scratch)]
    for name in (SMALL, LARGE):
        if name in names and (data / f"{name}.xml.bz2").is_file():
            dumps.append(corpora.real_dump(data / f"{name}.xml.bz2"))
    for copies in COPIES:
        if f"{copies}x" in names:
            print(f"dump of {copies}x ...", file=sys.stderr, flush=True)
            dumps += corpora.repeated(source, scratch, copies)
    return dumps


def wanted(contestant: Contestant, dump: Dump) -> bool:
    """Whether the contestant runs on the dump."""
    if contestant.name in OURS.values():
        return True
    if dump.copies > 1:
        return dump.copies == COPIES[0] and dump.layout == "one stream" and contestant.name != ORACLE
    return dump.name != EMPTY or contestant.name not in (PHASES, ORACLE)


def repetitions(contestant: Contestant, dump: Dump, most: int) -> int:
    """Large copies run once, and so do the slow yardsticks on a large dump."""
    slow = contestant.name in (MWPARSERFROMHELL, ORACLE) and dump.megabytes > 50
    return 1 if slow or dump.copies > COPIES[0] else most


def run(contestant: Contestant, dump: Dump, scratch: Path) -> Record:
    """Measure a contestant on a dump once; what ours wrote is counted and hashed outside of the measurement."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment["OMP_NUM_THREADS"] = "1"
    if not contestant.is_peer:
        environment["PYTHONPATH"] = str(ROOT)
    output: Record = {}
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        command = contestant.command(dump, folder)
        result = Measurement(failure="absent: no --peers")
        if command:
            result = measure(command, environment, timeout=TIMEOUT_SECONDS)
        if not result.failure and contestant.name in OURS.values():
            output = read_output(Path(folder))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    facts = {"worker_rss_mb": result.worker_rss_mb(), "output_bytes": size, "output": output}
    return {"dump": dump.name, "program": contestant.name, **asdict(result), **facts}


def read_output(folder: Path) -> Record:
    """Rows of each table, and one SHA-256 over the names and contents of all Parquet files."""
    rows: dict[str, int] = {}
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.parquet")):
        rows[path.parent.name] = rows.get(path.parent.name, 0) + pq.read_metadata(path).num_rows
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return {"rows": rows, "sha256": digest.hexdigest()}


# What follows from the measurements


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
        """CPU or wall seconds; net: less those of the almost empty dump, which are the start-up."""
        seconds = self.median(dump, program, lambda record: record[f"{kind}_seconds"])
        start_up = self.seconds(EMPTY, program, kind) if net else 0.0
        return None if seconds is None or start_up is None else max(seconds - start_up, 1e-3)

    def phase(self, dump: str, program: str, phase: str) -> float | None:
        return self.median(dump, program, lambda record: record["answer"]["seconds"].get(phase, 0.0))

    def speed(self, dump: str, program: str, *, net: bool = False) -> float | None:
        """MB of XML a CPU second."""
        return divide(self.dumps[dump].megabytes, self.seconds(dump, program, net=net))

    def memory(self, dump: str, program: str) -> float | None:
        return self.median(dump, program, lambda record: record["worker_rss_mb"])

    def programs(self, dump: str) -> list[str]:
        return list(dict.fromkeys(record["program"] for record in self.records if record["dump"] == dump))

    def has(self, dump: str) -> bool:
        return dump in self.dumps


def divide(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


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
                    "wall s": results.seconds(dump, program, "wall"),
                    "MB/s": results.speed(dump, program),
                    "MB/s less start-up": results.speed(dump, program, net=True) if dump != EMPTY else None,
                    "worker RSS MB": results.memory(dump, program),
                    "all PSS MB": results.median(dump, program, lambda record: record["tree_pss_mb"]),
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
        outputs = [r["output"] for r in results.records if r["dump"] == name and r["output"]]
        if not outputs:
            continue
        digests = {output["sha256"] for output in outputs}
        first[name] = outputs[0]["rows"]
        what = f"{len(outputs)} runs with 1 and 2 processes: the same Parquet files (SHA-256)"
        rows.append({"check": what, "dump": name, "rows": first[name], "passed": len(digests) == 1})
    for name, dump in results.dumps.items():
        if dump.copies > 1 and SMALL in first and name in first:
            expected = {table: count * dump.copies for table, count in first[SMALL].items()}
            what = f"{dump.copies} times the rows of {SMALL}"
            rows.append({"check": what, "dump": name, "rows": first[name], "passed": first[name] == expected})
    return rows


# The report


def environment_facts(peers: Path | None) -> Record:
    """Machine, versions and the state of the code; no paths, no names of hosts."""
    cpu = platform.processor()
    if sys.platform == "linux":
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        cpu = found[1] if found else cpu
    machine = {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "usable cores": len(psutil.Process().cpu_affinity()) if sys.platform == "linux" else None,
        "memory GB": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.platform(),
    }
    versions = {"python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in PACKAGES}
    if peers:
        code = (
            "import importlib.metadata as m, json, platform; "
            "found = {d.metadata['Name']: d.version for d in m.distributions()}; "
            f"print(json.dumps({{'python': platform.python_version()}} | "
            f"{{n: found[n] for n in {PEER_PACKAGES!r} if n in found}}))"
        )
        versions |= {
            f"peers: {name}": version
            for name, version in json.loads(ask([str(peers), "-c", code]) or "{}").items()
        }
    changed = bool(ask(["git", "status", "--porcelain", "--", "pipeline", "workflows"]))
    return {
        "machine": machine,
        "versions": versions,
        "commit": ask(["git", "rev-parse", "HEAD"]),
        "changed": changed,
    }


def ask(command: list[str]) -> str:
    """What a command prints; "" where it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


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


# The command


def read_options() -> argparse.Namespace:
    today = datetime.date.today().isoformat()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    shared = Path(os.environ.get("LUKE_SHARED", ROOT.parent / "shared"))
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "luke-from-wikipedia"
    everything = [SMALL, LARGE, *(f"{copies}x" for copies in COPIES)]
    add = parser.add_argument
    add("--data", type=Path, default=shared / "data/wikipedia", help="folder of the real dumps")
    add(
        "--peers",
        type=Path,
        help="Python (or its environment's folder) that has wikipedia2vec and wikiextractor",
    )
    add("--quick", action="store_true", help=f"{SMALL} only, once: for trying, not for results")
    add("--dumps", default=",".join(everything), help="which dumps (default: %(default)s)")
    add(
        "--repetitions",
        type=int,
        default=3,
        help="of small dumps; large copies run once (default: %(default)s)",
    )
    add(
        "--scratch",
        type=Path,
        default=cache,
        help="folder for made dumps, which stay, and for outputs, which go",
    )
    add(
        "--note",
        action="append",
        default=[],
        dest="notes",
        help="a line for the report, such as what did not help",
    )
    add(
        "--output",
        type=Path,
        default=ROOT / f"benchmarks/results/{today}-extract.json",
        help="where results go",
    )
    options = parser.parse_args()
    options.dumps = [SMALL] if options.quick else options.dumps.split(",")
    if unknown := set(options.dumps) - set(everything):
        parser.error(f"--dumps: {', '.join(sorted(unknown))}; wanted some of {','.join(everything)}")
    if options.repetitions < 1:
        parser.error("--repetitions: wanted 1 or more")
    if options.peers:
        options.peers = _python(options.peers) or parser.error(f"--peers: no python in {options.peers}")
    return options


def _python(place: Path) -> Path | None:
    """The interpreter itself, or the one of a folder; a link stays one, as it tells the environment."""
    found = [path for path in (place, place / "python", place / "bin/python") if path.is_file()]
    return found[0].absolute() if found else None


def command_line() -> str:
    """This command, with the last part of each path alone."""
    words = [Path(word).name if os.path.isabs(word) else word for word in sys.argv[1:]]
    return " ".join(["python benchmarks/extract.py", *words])


def main() -> None:
    sys.path.insert(0, str(ROOT))  # this checkout is measured, whatever is installed
    options = read_options()
    options.scratch.mkdir(parents=True, exist_ok=True)
    environment = environment_facts(options.peers)  # before orphans come here, too
    adopt_orphans()
    dumps = dumps_to_measure(options.data, options.scratch, options.dumps)
    records: list[Record] = []
    most = 1 if options.quick else options.repetitions
    for dump in dumps:
        entrants = [one for one in contestants(options.peers) if wanted(one, dump)]
        for repetition in range(1, most + 1):
            for contestant in entrants:
                if repetition <= repetitions(contestant, dump, most):
                    record = {"repetition": repetition, **run(contestant, dump, options.scratch)}
                    records.append(record)
                    state = record["failure"] or f"{record['cpu_seconds']:.2f} CPU s"
                    print(f"{dump.name} {repetition} {contestant.name}: {state}", file=sys.stderr, flush=True)
    results = Results(dumps, records)
    compared = ratios(results)
    report = {
        "date": datetime.date.today().isoformat(),
        "command": command_line(),
        "environment": environment,
        "targets": targets(results, compared),
        "medians": medians(results),
        "phases": phases(results),
        "ratios": compared,
        "checks": checks(results),
        "dumps": [dump.describe() for dump in dumps],
        "notes": options.notes,
        "measurements": records,
    }
    write(options.output, report)
    print(markdown(report))
    if failed := [row for row in report["checks"] if not row["passed"]]:
        raise SystemExit(f"{len(failed)} checks failed: what was measured is wrong")


if __name__ == "__main__":
    main()
