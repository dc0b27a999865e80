"""How fast `ExtractPages` is, beside other programs, in one run: `python benchmarks/extract.py --help`.

Speed is 10^6 bytes of uncompressed XML a CPU second, from bz2 to what the program writes. README.md in this folder
says what is measured and how.
"""

import argparse
import datetime
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import corpora
import pyarrow.parquet as pq
from corpora import Dump
from measure import ROOT, Measurement, adopt_orphans, environment_facts, measure
from processes import command_line
from report import (
    BZ2,
    COPIES,
    EMPTY,
    LARGE,
    MWPARSERFROMHELL,
    ORACLE,
    OURS,
    PHASES,
    SMALL,
    WIKIEXTRACTOR,
    WIKIPEDIA2VEC,
    Record,
    Results,
    checks,
    markdown,
    medians,
    phases,
    ratios,
    targets,
    write,
)

TIMEOUT_SECONDS = 3600


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
            return [sys.executable, str(ROOT / "benchmarks/workloads.py"), workload, json.dumps(values)]

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
    from workflows.stages.dump import AUTO, CorpusStage

    size = dump.path.stat().st_size
    if dump.name == EMPTY:
        return -(-size // 2)  # two blocks, so that two workers start
    fetched = SimpleNamespace(manifest=lambda: SimpleNamespace(rows={"bytes": size}))
    stage = SimpleNamespace(block_size=AUTO, fetched=lambda: fetched)
    return CorpusStage.block_bytes(cast(CorpusStage, stage))


def dumps_to_measure(data: Path, scratch: Path, names: Sequence[str]) -> list[Dump]:
    """The named dumps, and the almost empty one before them."""
    real = {name: data / f"{name}.xml.bz2" for name in (SMALL, LARGE)}
    for name, path in real.items():
        if not path.is_file() and (name == SMALL or name in names):
            raise SystemExit(f"--data: no {path.name} in {data}; its README.md describes it")
    source = real[SMALL]
    dumps = [corpora.almost_empty(source, scratch)]
    dumps += [corpora.real_dump(path) for name, path in real.items() if name in names]
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
    measured = asdict(result)
    del measured["moments"]
    return {"dump": dump.name, "program": contestant.name, **measured, **facts}


def run_all(dumps: Sequence[Dump], entrants: Sequence[Contestant], most: int, scratch: Path) -> list[Record]:
    """Every contestant in turn, round after round; start-up is measured anew in each round of a small dump."""
    empty, *others = dumps
    records: list[Record] = []
    for dump, repetition in ((dump, number) for dump in others for number in range(1, most + 1)):
        chosen = [(dump, entrant) for entrant in entrants if wanted(entrant, dump)]
        if dump.copies <= COPIES[0]:
            chosen = [(empty, entrant) for entrant in entrants if wanted(entrant, empty)] + chosen
        for measured, entrant in chosen:
            if repetition <= repetitions(entrant, measured, most):
                record = {"repetition": repetition, **run(entrant, measured, scratch)}
                records.append(record)
                state = record["failure"] or f"{record['cpu_seconds']:.2f} CPU s"
                print(f"{measured.name} {repetition} {entrant.name}: {state}", file=sys.stderr, flush=True)
    return records


def read_output(folder: Path) -> Record:
    """Rows of each table, and one SHA-256 over the names and contents of all Parquet files."""
    rows: dict[str, int] = {}
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.parquet")):
        rows[path.parent.name] = rows.get(path.parent.name, 0) + pq.read_metadata(path).num_rows
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return {"rows": rows, "sha256": digest.hexdigest()}


# The command


def read_options() -> argparse.Namespace:
    shared = Path(os.environ.get("LUKE_SHARED", ROOT.parent / "shared"))
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "luke-from-wikipedia"
    results = ROOT / f"benchmarks/results/{datetime.date.today().isoformat()}-extract.json"
    names = [SMALL, LARGE, *(f"{copies}x" for copies in COPIES)]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=shared / "data/wikipedia", help="folder of the real dumps")
    add("--peers", type=Path, help="Python, or its environment, that has wikipedia2vec and wikiextractor")
    add("--quick", action="store_true", help=f"{SMALL} only, once: for trying, not for results")
    add("--dumps", default=",".join(names), help="which dumps (default: %(default)s)")
    add("--repetitions", type=int, default=3, help="rounds of the small dumps (default: %(default)s)")
    add("--scratch", type=Path, default=cache, help="folder for made dumps (kept) and outputs (removed)")
    add("--note", action="append", default=[], dest="notes", help="a line for the report")
    add("--output", type=Path, default=results, help="the results as JSON; Markdown goes beside it")
    options = parser.parse_args()
    options.data, options.scratch = options.data.resolve(), options.scratch.resolve()
    options.dumps = [SMALL] if options.quick else options.dumps.split(",")
    if unknown := set(options.dumps) - set(names):
        parser.error(f"--dumps: {', '.join(sorted(unknown))}; wanted some of {','.join(names)}")
    if options.repetitions < 1:
        parser.error("--repetitions: wanted 1 or more")
    if options.peers:
        options.peers = python_of(options.peers) or parser.error(f"--peers: no python in {options.peers}")
    return options


def python_of(place: Path) -> Path | None:
    """The interpreter itself, or the one of a folder; a link stays one, as it tells the environment."""
    found = [path for path in (place, place / "python", place / "bin/python") if path.is_file()]
    return found[0].absolute() if found else None


def main() -> None:
    sys.path.insert(0, str(ROOT))  # this checkout is measured, whatever is installed
    options = read_options()
    options.scratch.mkdir(parents=True, exist_ok=True)
    environment = environment_facts(options.peers)  # before orphans come here, too
    adopt_orphans()
    dumps = dumps_to_measure(options.data, options.scratch, options.dumps)
    most = 1 if options.quick else options.repetitions
    records = run_all(dumps, contestants(options.peers), most, options.scratch)
    results = Results(dumps, records)
    compared = ratios(results)
    report = {
        "date": datetime.date.today().isoformat(),
        "command": command_line("extract.py", options.notes),
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
