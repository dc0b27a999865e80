"""How fast `ExtractPages` is, beside other programs, in one run.

Speed is 10^6 bytes of uncompressed XML a CPU second, from bz2 to what the program writes. README.md says what is
measured and how.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.corpus import dumps
from benchmarks.corpus import extract_report as tables
from benchmarks.corpus.dumps import EMPTY, LARGE, SMALL, Dump
from benchmarks.corpus.extract_report import (
    BZ2,
    COPIES,
    MWPARSERFROMHELL,
    ORACLE,
    OURS,
    PHASES,
    WIKIEXTRACTOR,
    WIKIPEDIA2VEC,
)
from benchmarks.harness.measure import Measurement, adopt_orphans, measure
from benchmarks.harness.options import Options
from benchmarks.harness.report import Report, progress
from benchmarks.harness.workloads import Record, command, environment

PACKAGES = ("apache-beam", "marisa-trie", "mwparserfromhell", "psutil", "pyarrow")
TIMEOUT_SECONDS = 3600
HEAD = f"""MB are 10^6 bytes; MB/s are MB of uncompressed XML a CPU second (user and system, all processes). Start-up is
what the same command takes on the dump `{EMPTY}`. Medians over the runs of one interleaved session.
"""


@dataclass(frozen=True)
class Contestant:
    """A program; `command` gives its words for a dump and a folder to write to, or None where it is absent."""

    name: str
    command: Callable[[Dump, str], list[str] | None]
    is_peer: bool = False


def contestants(peers: Path | None) -> list[Contestant]:
    """All of them, in the order in which a round runs them: others and ours in turn."""

    def ours(name: str, workload: str, *, blocks: bool = False, **arguments: Any) -> Contestant:
        def words(dump: Dump, folder: str) -> list[str]:
            more = {"folder": folder, "block_bytes": block_bytes(dump)} if blocks else {}
            given = {"dump": str(dump.path), **arguments, **more}
            return command("corpus.extract_workloads", workload, given)

        return Contestant(name, words)

    def wikipedia2vec(pool_size: int) -> Contestant:
        def words(dump: Dump, folder: str) -> list[str] | None:
            options = ["build-dump-db", "--pool-size", str(pool_size), str(dump.path), f"{folder}/dump.db"]
            return [str(peers.with_name("wikipedia2vec")), *options] if peers else None

        return Contestant(WIKIPEDIA2VEC[pool_size], words, is_peer=True)

    def wikiextractor(dump: Dump, folder: str) -> list[str] | None:
        options = ["--json", "--processes", "1", "-o", f"{folder}/out", "--links", str(dump.path)]
        return [str(peers), "-m", "wikiextractor.WikiExtractor", *options] if peers else None

    return [
        wikipedia2vec(1),
        ours(OURS[1], "extract_pages", blocks=True, processes=1),
        wikipedia2vec(2),
        ours(OURS[2], "extract_pages", blocks=True, processes=2),
        ours(MWPARSERFROMHELL, "plain_mwparserfromhell"),
        ours(PHASES, "phases", blocks=True),
        ours(ORACLE, "oracle"),
        Contestant(WIKIEXTRACTOR, wikiextractor, is_peer=True),
        ours(BZ2, "decompress"),
    ]


def block_bytes(dump: Dump) -> int:
    """What `--block-size auto` gives dumps of up to 128 MiB; two blocks of the almost empty one, for two workers."""
    return -(-dump.path.stat().st_size // 2) if dump.name == EMPTY else 2 << 20


def dumps_to_measure(data: Path, scratch: Path, *, quick: bool) -> list[Dump]:
    """The almost empty dump, the real ones, and copies of the small one; `quick`: the small one alone."""
    source = data / f"{SMALL}.xml.bz2"
    found = [dumps.real_dump(source)]
    if not quick:
        found.append(dumps.real_dump(data / f"{LARGE}.xml.bz2"))
        pairs = [(copies, multistream) for copies in COPIES for multistream in (False, True)]
        found += [dumps.repeated(source, scratch, copies, multistream=many) for copies, many in pairs]
    return [dumps.almost_empty(source, scratch), *found]


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
    own, output = environment(threads=1, ours=not contestant.is_peer), {}
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        words, result = contestant.command(dump, folder), Measurement(failure="absent: no --peers")
        if words:
            result = measure(words, own, timeout=TIMEOUT_SECONDS)
        if not result.failure and contestant.name in OURS.values():
            output = read_output(Path(folder))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    measured = {name: value for name, value in asdict(result).items() if name != "moments"}
    measured |= {"worker_rss_mb": result.worker_rss_mb(), "output_bytes": size, "output": output}
    return {"dump": dump.name, "program": contestant.name, **measured}


def run_all(
    measured: Sequence[Dump], entrants: Sequence[Contestant], most: int, scratch: Path
) -> Iterator[Record]:
    """Every contestant in turn, round after round; start-up is measured anew in each round of a small dump."""
    empty, *others = measured
    for dump, repetition in product(others, range(1, most + 1)):
        of_round = [empty, dump] if dump.copies <= COPIES[0] else [dump]
        for each, entrant in product(of_round, entrants):
            if wanted(entrant, each) and repetition <= repetitions(entrant, each, most):
                record = run(entrant, each, scratch)
                told = record["failure"] or f"{record['cpu_seconds']:.2f} CPU s"
                progress(f"{each.name} {repetition} {entrant.name}: {told}")
                yield {"repetition": repetition, **record}


def read_output(folder: Path) -> Record:
    """Rows of each table, and one SHA-256 over the names and contents of all Parquet files."""
    rows: dict[str, int] = {}
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.parquet")):
        if path.parent.name != "templates":  # a name has a row in each block
            rows[path.parent.name] = rows.get(path.parent.name, 0) + pq.read_metadata(path).num_rows
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return {"rows": rows, "sha256": digest.hexdigest()}


def fill(report: Report, options: argparse.Namespace, scratch: Path) -> None:
    """Measure everything, and add the tables that follow."""
    rounds = 1 if options.quick else options.rounds
    measured = dumps_to_measure(options.data, scratch, quick=options.quick)
    records = list(run_all(measured, contestants(options.peers), rounds, scratch))
    results = tables.Results(measured, records)
    for table in (tables.targets, tables.medians, tables.phases, tables.ratios, tables.checks):
        report.add(table.__name__.capitalize(), table(results))
    report.add("Dumps", [dump.describe() for dump in measured])
    report.measured["measurements"] = records


def main() -> None:
    parser = Options("corpus.extract", __doc__, quick=f"{SMALL} only, once: for trying, not for results")
    parser.take("dumps", "peers", "rounds", "scratch")
    options = parser.read()
    report = Report("Extraction", options, PACKAGES, options.peers)  # before orphans come here, too
    report.head.append(HEAD)
    adopt_orphans()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        fill(report, options, Path(scratch))
    report.finish()


if __name__ == "__main__":
    main()
