"""The speed of `ExtractPages` beside wikipedia2vec, in one run.

Speed is 10^6 bytes of uncompressed XML a CPU second, from bz2 to what the program writes. README.md says what is
measured and how.
"""

import argparse
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain, product
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.corpus import dumps
from benchmarks.corpus.dumps import EMPTY, LARGE, SMALL, Dump
from benchmarks.harness.measure import Measurement, adopt_orphans, measure
from benchmarks.harness.options import Options
from benchmarks.harness.report import Number, Report, divide, equal_outputs, median, progress
from benchmarks.harness.workloads import Record, command, environment

PACKAGES = ("apache-beam", "marisa-trie", "psutil", "pyarrow")
TIMEOUT_SECONDS = 3600
COPIES = (5, 20, 80)
OURS = {f"ExtractPages --processes {count}": count for count in (1, 2)}
WIKIPEDIA2VEC = {f"wikipedia2vec build-dump-db --pool-size {count}": count for count in (1, 2)}
PAIRS = tuple(zip(WIKIPEDIA2VEC, OURS, strict=True))  # in the order of a round: theirs and ours in turn
# What has to be left when the start-up is taken off, as a share of the start-up: less is noise. Wall time is noisier.
LEAST_WORK = {"cpu": 0.25, "wall": 1.0}
HEAD = f"""MB are 10^6 bytes; MB/s are MB of uncompressed XML a CPU second (user and system, all processes). Start-up is
what the same command takes on the dump `{EMPTY}`. Medians over the runs of one interleaved session.
"""


def words_of(program: str, dump: Dump, folder: str, peers: Path | None) -> list[str]:
    """Return the command of a program for a dump and a folder to write to."""
    if count := OURS.get(program):
        given = {"dump": str(dump.path), "folder": folder, "block_bytes": block_bytes(dump), "processes": count}
        return command("corpus.extract_workloads", "extract_pages", given)
    options = ["build-dump-db", "--pool-size", str(WIKIPEDIA2VEC[program])]
    return [f"{peers.parent if peers else ''}/wikipedia2vec", *options, str(dump.path), f"{folder}/dump.db"]


def block_bytes(dump: Dump) -> int:
    """Return what `corpus.block_size` auto gives dumps of up to 128 MiB; of the almost empty one a block a worker."""
    return -(-dump.path.stat().st_size // 2) if dump.name == EMPTY else 2 << 20


def dumps_to_measure(data: Path, scratch: Path, *, quick: bool) -> list[Dump]:
    """Return the almost empty dump, the real ones, and copies of the small one; `quick`: the small one alone."""
    source = data / f"{SMALL}.xml.bz2"
    found = [dumps.real_dump(source)]
    if not quick:
        found.append(dumps.real_dump(data / f"{LARGE}.xml.bz2"))
        pairs = [(copies, multistream) for copies in COPIES for multistream in (False, True)]
        found += [dumps.repeated(source, scratch, copies, multistream=many) for copies, many in pairs]
    return [dumps.almost_empty(source, scratch), *found]


def repetitions(program: str, dump: Dump, most: int) -> int:
    """Return how often a program runs: wikipedia2vec on few copies, and on large copies ours once."""
    if dump.copies > 1 and program not in OURS:
        return most if dump.copies == COPIES[0] and dump.layout == "one stream" else 0
    return 1 if dump.copies > COPIES[0] else most


def run(program: str, dump: Dump, scratch: Path, peers: Path | None) -> Record:
    """Measure a program on a dump once; what ours wrote is counted and hashed outside of the measurement."""
    own, output = environment(threads=1, ours=program not in WIKIPEDIA2VEC), {}
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        result = Measurement(failure="absent: no --peers")
        if peers or program not in WIKIPEDIA2VEC:
            result = measure(words_of(program, dump, folder, peers), own, timeout=TIMEOUT_SECONDS)
        if not result.failure and program in OURS:
            output = read_output(Path(folder))
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    measured = {name: value for name, value in asdict(result).items() if name != "moments"}
    measured |= {"worker_rss_mb": result.worker_rss_mb(), "output_bytes": size, "output": output}
    return {"dump": dump.name, "program": program, **measured}


def run_all(measured: Sequence[Dump], most: int, scratch: Path, peers: Path | None) -> Iterator[Record]:
    """Run every program in turn, round after round; start-up is measured anew in each round of a small dump."""
    empty, *others = measured
    for dump, repetition in product(others, range(1, most + 1)):
        of_round = [empty, dump] if dump.copies <= COPIES[0] else [dump]
        for each, program in product(of_round, chain(*PAIRS)):
            if repetition <= repetitions(program, each, most):
                record = run(program, each, scratch, peers)
                told = record["failure"] or f"{record['cpu_seconds']:.2f} CPU s"
                progress(f"{each.name} {repetition} {program}: {told}")
                yield {"repetition": repetition, **record}


def read_output(folder: Path) -> Record:
    """Return the rows of each table, and one SHA-256 over the names and contents of all Parquet files."""
    rows: dict[str, int] = {}
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.parquet")):
        if path.parent.name != "templates":  # a name has a row in each block
            rows[path.parent.name] = rows.get(path.parent.name, 0) + pq.read_metadata(path).num_rows
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return {"rows": rows, "sha256": digest.hexdigest()}


class Results:
    """Medians over the repetitions of every program on every dump."""

    def __init__(self, measured: Iterable[Dump], records: Sequence[Record]) -> None:
        self.dumps = {dump.name: dump for dump in measured}
        self.records = records

    def runs(self, dump: str, *names: str) -> list[Record]:
        return [r for r in self.records if r["dump"] == dump and r["program"] in names]

    def median(self, dump: str, program: str, figure: str) -> Number:
        """Return None where the program has no successful run."""
        return median(record[figure] for record in self.runs(dump, program) if not record["failure"])

    def seconds(self, dump: str, program: str, kind: str = "cpu", *, net: bool = False) -> Number:
        """Return CPU or wall seconds; net: less the start-up, where enough is left to mean anything."""
        seconds = self.median(dump, program, f"{kind}_seconds")
        start_up = self.seconds(EMPTY, program, kind) if net else 0.0
        if seconds is None or start_up is None or seconds - start_up < LEAST_WORK[kind] * start_up:
            return None
        return seconds - start_up

    def speed(self, dump: str, program: str, *, net: bool = False) -> Number:
        """Return MB of XML a CPU second."""
        return divide(self.dumps[dump].xml_bytes / 1e6, self.seconds(dump, program, net=net))


def medians(results: Results) -> list[Record]:
    """Return a row for every program on every dump."""
    rows = []
    for dump, program in product(results.dumps, chain(*PAIRS)):
        if not (runs := results.runs(dump, program)):
            continue
        good = [record for record in runs if not record["failure"]]
        times = [record["cpu_seconds"] for record in good]
        row = {"dump": dump, "program": program, "runs": len(good)}
        row["CPU s"] = results.seconds(dump, program)
        row["spread"] = divide(max(times) - min(times), median(times)) if len(times) > 1 else None
        row["wall s"] = results.seconds(dump, program, "wall")
        row["MB/s"] = results.speed(dump, program)
        row["MB/s less start-up"] = results.speed(dump, program, net=True) if dump != EMPTY else None
        row["worker RSS MB"] = results.median(dump, program, "worker_rss_mb")
        row["all PSS MB"] = results.median(dump, program, "tree_pss_mb")
        row["others' cores"] = results.median(dump, program, "other_cores")
        failures = dict.fromkeys(record["failure"] for record in runs if record["failure"])
        rows.append({**row, "failure": "; ".join(failures)})
    return rows


def ratios(results: Results) -> list[Record]:
    """Set ours against the others, with and without each one's start-up, and two processes against one."""
    rows: list[Record] = []
    for dump in [name for name in results.dumps if name != EMPTY]:
        found = [
            (f"MB/s: {a} / {b}", *(divide(*(results.speed(dump, x, net=n) for x in (a, b))) for n in (0, 1)))
            for b, a in PAIRS
        ]
        walls = [divide(*(results.seconds(dump, own, "wall", net=n) for own in OURS)) for n in (0, 1)]
        for what, gross, net in [*found, ("wall seconds: 1 process / 2 processes", *walls)]:
            if gross is not None or net is not None:
                rows.append({"ratio": what, "dump": dump, "with start-up": gross, "less start-up": net})
    return rows


def checks(results: Results) -> list[Record]:
    """Check that equal input gave equal bytes, with 1 and 2 processes, and repeated pages as many times the rows."""
    outputs = {name: [run["output"] for run in results.runs(name, *OURS)] for name in results.dumps}
    found = [{"name": dump.name, "copies": dump.copies} for dump in results.dumps.values()]
    return equal_outputs(found, outputs, SMALL)


def fill(report: Report, options: argparse.Namespace, scratch: Path) -> None:
    """Measure everything, and add the tables that follow."""
    measured = dumps_to_measure(options.data, scratch, quick=options.quick)
    records = list(run_all(measured, options.rounds, scratch, options.peers))
    results = Results(measured, records)
    for table in (medians, ratios, checks):
        report.add(table.__name__.capitalize(), table(results))
    report.add("Dumps", [dump.describe() for dump in measured])
    report.measured["measurements"] = records


def main() -> None:
    shared = ("data", "peers", "rounds", "scratch")
    parser = Options("corpus.extract", __doc__, *shared, quick=f"{SMALL} only, once: not for results")
    options = parser.read()
    report = Report("Extraction", options, PACKAGES, options.peers)  # before orphans come here, too
    report.head.append(HEAD)
    adopt_orphans()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        fill(report, options, Path(scratch))
    report.finish()


if __name__ == "__main__":
    main()
