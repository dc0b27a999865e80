"""From the dump to the shards: time and memory of every stage; README.md says what is measured and how."""

import argparse
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.corpus.dumps import FEW, LARGE, Dump, real_dump, repeated
from benchmarks.corpus.stages import ALL, ROLES, STAGES, run_stages
from benchmarks.harness.measure import adopt_orphans
from benchmarks.harness.options import Options, count
from benchmarks.harness.report import Number, Report, divide, equal_outputs, median, progress
from benchmarks.harness.workloads import Record

PACKAGES = ("apache-beam", "pyspark", "marisa-trie", "psutil", "pyarrow", "sentencex", "tokenizers")
COPIES = (1, 4, 8)
# Java begins quickly for small dumps and works fast for large ones: what grows is measured with one setting for all.
AS_LARGE = ("--set", "machine.spark_conf.spark.driver.extraJavaOptions=-XX:+UseG1GC")
OUTSIDE = "start-up and between stages"
COUNTED = ("ExtractPages", "ResolveRedirects", "BuildSequences")


def stages_of(dump: Dump, workdir: Path, options: argparse.Namespace, *flags: str) -> Record:
    """Run the stages in a work directory, which is made empty."""
    shutil.rmtree(workdir, ignore_errors=True)
    workdir.mkdir()
    record = run_stages(dump, workdir, options.tokenizer, *flags, processes=options.processes)
    progress(f"{dump.name}: {record['failure'] or round(record['stages'][ALL]['seconds'], 1)}")
    return record


def run_all(options: argparse.Namespace, scratch: Path) -> Record:
    """Measure everything; no tables yet. A failure is kept as a record."""
    dump = real_dump(options.data / f"{FEW if options.quick else LARGE}.xml.bz2")
    made = [repeated(dump.path, scratch, copies, linked=True) for copies in COPIES]
    runs = [stages_of(dump, scratch / "real", options) for _ in range(options.rounds)]
    runs += [stages_of(copied, scratch / "made", options, *AS_LARGE) for copied in made]
    return {"dumps": [each.describe() for each in (dump, *made)], "runs": runs}


class Runs:
    """The successful runs of the stages, by dump."""

    def __init__(self, runs: Iterable[Record]) -> None:
        self.runs = list(runs)

    def of(self, dump: str) -> list[Record]:
        return [run for run in self.runs if (run["dump"], run["failure"]) == (dump, "")]

    def median(self, dump: str, stage: str, figure: str) -> Number:
        return median(run["stages"][stage][figure] for run in self.of(dump))

    def rss(self, dump: str, stage: str, role: str) -> Number:
        return median(run["stages"][stage]["rss_mb"].get(role) for run in self.of(dump))


def stage_rows(runs: Runs, dump: str) -> list[Record]:
    """Return a row for each stage, for what is outside of them and for all: medians over the runs of a dump."""
    if not runs.of(dump):
        return []
    rows = []
    for stage in (*STAGES, ALL):
        first, seconds = runs.of(dump)[0]["stages"][stage], runs.median(dump, stage, "seconds")
        read, written = first.get("rows_read"), first.get("rows_written")
        row: Record = {"stage": stage, "s": seconds, "share": runs.median(dump, stage, "share")}
        row |= {"CPU s": runs.median(dump, stage, "cpu_seconds"), "rows read": read, "rows written": written}
        speed = divide(read + (written or 0), seconds) if read else None
        row["rows/s"] = speed and round(speed)
        row["all PSS MB"] = runs.median(dump, stage, "tree_pss_mb")
        row |= {f"{role} MB": runs.rss(dump, stage, role) if stage != ALL else None for role in ROLES}
        row["disk MB"] = divide(runs.median(dump, stage, "bytes"), 1e6)
        rows.append({**row, "scratch MB": runs.median(dump, stage, "scratch_mb")})
    left = rows[-1]["s"] - sum(row["s"] for row in rows[:-1])
    outside = {**dict.fromkeys(rows[0]), "stage": OUTSIDE, "s": left, "share": left / rows[-1]["s"]}
    return [*rows[:-1], outside, rows[-1]]


def growth_rows(runs: Runs, made: Sequence[Record]) -> list[Record]:
    """Return seconds of each stage on the made dumps, and the last over the first in proportion to the XML."""
    rows = []
    first, last = made[0]["xml_bytes"], made[-1]["xml_bytes"]
    for stage in (*STAGES, ALL):
        seconds = [runs.median(dump["name"], stage, "seconds") for dump in made]
        begin, end = seconds[0], seconds[-1]
        row: Record = {"stage": stage}
        row |= {f"{dump['copies']}x, s": value for dump, value in zip(made, seconds, strict=True)}
        row[f"{made[-1]['copies']}x over 1x"] = divide(end, begin)
        row["over the dump's growth"] = divide(divide(end, begin), last / first)
        more = None if begin is None or end is None else (end - begin) / (last - first) * 1e8
        rows.append({**row, "s more a 100 MB of XML": more})
    return rows


def memory_rows(runs: Runs, made: Sequence[Record]) -> list[Record]:
    """Return the largest process of each role on the made dumps, by the kernel's high-water mark, in MB."""
    found = {role: [runs.rss(dump["name"], ALL, role) for dump in made] for role in ROLES}
    found["all PSS"] = [runs.median(dump["name"], ALL, "tree_pss_mb") for dump in made]
    return [
        {"process": role}
        | {f"{dump['copies']}x, MB": size for dump, size in zip(made, sizes, strict=True)}
        | {"last over first": divide(sizes[-1], sizes[0])}
        for role, sizes in found.items()
        if any(sizes)
    ]


def checks(runs: Sequence[Record], dumps: Sequence[Record]) -> list[Record]:
    """Check that equal input gave equal bytes, and repeated pages as many times the rows.

    Links with a prefix lead to the same title in all copies, which the vocabulary and the mention table see.
    """
    outputs: dict[str, list[Record]] = {dump["name"]: [] for dump in dumps}
    for each in runs:
        stages = {} if each["failure"] else each["stages"]
        rows = {name: stages[name]["rows_written"] for name in COUNTED if stages}
        digests = [stages[name]["manifest_sha256"] for name in STAGES if stages]
        outputs[each["dump"]].append({"sha256": digests, "rows": rows} if stages else {})
    return equal_outputs(dumps, outputs, next(name for name in outputs if "linked-1x" in name))


def fill(report: Report, found: Record) -> None:
    """Add the tables that follow from what was measured."""
    dumps, runs = found["dumps"], Runs(found["runs"])
    made = [dump for dump in dumps if "-linked-" in dump["name"]]
    report.add(f"Stages on {dumps[0]['name']}", stage_rows(runs, dumps[0]["name"]))
    report.add("Growth", growth_rows(runs, made))
    report.add("Largest process of each kind", memory_rows(runs, made))
    rows = [
        {"dump": each["dump"], "wall s": each["stages"][ALL]["seconds"], "CPU s": each["stages"][ALL]["cpu_seconds"],
         "others' cores": each["other_cores"], "failure": each["failure"]}
        for each in found["runs"]
    ]  # fmt: skip
    report.add("Commands", rows)
    report.add("Checks", checks(found["runs"], dumps))
    report.add("Dumps", dumps)
    report.measured |= found | {"processes": report.options.processes}


def main() -> None:
    shared = ("data", "tokenizer", "rounds", "scratch")
    parser = Options("corpus.corpus", __doc__, *shared, quick=f"{FEW} only, once: not for results")
    parser.add_argument("--processes", type=count, default=2, help="of every stage (default: %(default)s)")
    options = parser.read()
    report = Report("From the dump to the shards", options, PACKAGES)  # before orphans come, too
    adopt_orphans()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        fill(report, run_all(options, Path(scratch)))
    report.finish()


if __name__ == "__main__":
    main()
