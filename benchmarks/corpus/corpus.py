"""From the dump to the shards: time and memory of every stage, beside LUKE's own method.

README.md says what is measured and how.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from operator import eq
from pathlib import Path
from typing import Any

from benchmarks.corpus.dumps import FEW, LARGE, Dump, real_dump, repeated
from benchmarks.corpus.full_dump import (
    CORE_HOURS,
    DRIVERS,
    MENTION_HOURS,
    amounts,
    full_dump_rows,
    mention_hours,
)
from benchmarks.corpus.stages import ALL, ROLES, STAGES, run_stages, stage_folder
from benchmarks.harness.measure import adopt_orphans
from benchmarks.harness.options import Options, count, python_of
from benchmarks.harness.report import Number, Report, divide, equal_outputs, median, progress, target
from benchmarks.harness.workloads import ROOT, Record, ask, environment, run

PACKAGES = ("apache-beam", "pyspark", "marisa-trie", "psutil", "pyarrow", "sentencex", "tokenizers")
COPIES = (1, 4, 8)
# Java begins quickly for small dumps and works fast for large ones: what grows is measured with one setting for all.
AS_LARGE = ("--spark-conf", "spark.driver.extraJavaOptions=-XX:+UseG1GC")
LIMITS = {"max_words": 512, "max_entities": 128, "max_mention_words": 30, "min_sentence_words": 5}
EVERY = 8  # the speed of one method is measured on a page in so many
WORKLOADS, LUKES_METHOD = "corpus.corpus_workloads", ROOT / "benchmarks/corpus/lukes_method.py"
MINUTES, MENTION_SPEED, TIMES_LUKE, SEQUENCE_SPEED = 4, 0.8, 2.5, 200_000
FLAT = 1.1  # memory of a process at the largest dump over the smallest
KINDS = {"first": "words still to be learnt", "again": "every word in its memory"}
OUTSIDE = "start-up and between stages"
SPLITTING = "sentence splitting alone"
COUNTED = ("ExtractPages", "ResolveRedirects", "BuildSequences")


def stages_of(dump: Dump, workdir: Path, options: argparse.Namespace, *flags: str) -> Record:
    """Run the stages in a work directory, which is made empty."""
    shutil.rmtree(workdir, ignore_errors=True)
    workdir.mkdir()
    record = run_stages(dump, workdir, options.tokenizer, *flags, processes=options.processes)
    progress(f"{dump.name}: {record['failure'] or round(record['stages'][ALL]['seconds'], 1)}")
    return record


def sequence_speed(workdir: Path, scratch: Path, options: argparse.Namespace) -> Record:
    """The pipeline's sequences, LUKE's method with each slow tokenizer there is, and the fast one alone."""
    pages_file, tokenizer = str(scratch / "pages.jsonl"), str(options.tokenizer)
    more = {"limits": LIMITS, "rounds": options.rounds, "pages_file": pages_file, "tokenizer": tokenizer}
    more |= {"pages": str(stage_folder(workdir, "ExtractPages")), "every": options.every}
    more["aliases"] = str(stage_folder(workdir, "BuildEntityVocab") / "aliases.tries")
    record = run(WORKLOADS, "sequences", more, threads=1)
    if "failure" in record:
        return record
    given = (pages_file, tokenizer, json.dumps(LIMITS), str(options.rounds))
    own = environment(threads=1, ours=False)
    record["slow"] += [ask([python, LUKES_METHOD, *given], own) for python in options.transformers]
    ours = record.pop("digests")
    for told in record["slow"]:
        told["equal_pages"] = sum(map(eq, told.pop("digests", []), ours))
    return record


def mention_speed(workdir: Path, scratch: Path, options: argparse.Namespace) -> Record:
    """Counting the mention table's names in the pages."""
    pages, table = (str(stage_folder(workdir, stage)) for stage in ("ExtractPages", "BuildMentionTable"))
    more = {"candidates": f"{table}/candidates.arrow", "names": str(scratch / "names")}
    more |= {"pages": pages, "every": options.every, "rounds": options.rounds}
    return run(WORKLOADS, "mention_counting", more, threads=1)


def run_all(options: argparse.Namespace, scratch: Path) -> Record:
    """Measure everything; no tables yet. A failure is kept as a record and ends only what needs it."""
    dump = real_dump(options.data / f"{FEW if options.quick else LARGE}.xml.bz2")
    made = [repeated(dump.path, scratch, copies, linked=True) for copies in COPIES]
    workdirs = [scratch / f"real-{number}" for number in range(options.rounds)]
    runs = [stages_of(dump, workdir, options) for workdir in workdirs]
    runs += [stages_of(copied, scratch / "made", options, *AS_LARGE) for copied in made]
    good = [workdir for workdir, record in zip(workdirs, runs, strict=False) if not record["failure"]]
    found: Record = {"dumps": [each.describe() for each in (dump, *made)], "runs": runs}
    for name, speed in (("sequences", sequence_speed), ("mention_counting", mention_speed)):
        found[name] = speed(good[-1], scratch, options) if good else {"failure": "no run of the stages"}
    return found


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
    """A row for each stage, for what is outside of them and for all: medians over the runs of a dump."""
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
    """Seconds of each stage on the made dumps, and the last over the first in proportion to the XML."""
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
    """The largest process of each role on the made dumps, by the kernel's high-water mark, in MB."""
    found = {role: [runs.rss(dump["name"], ALL, role) for dump in made] for role in ROLES}
    found["all PSS"] = [runs.median(dump["name"], ALL, "tree_pss_mb") for dump in made]
    return [
        {"process": role}
        | {f"{dump['copies']}x, MB": size for dump, size in zip(made, sizes, strict=True)}
        | {"last over first": divide(sizes[-1], sizes[0])}
        for role, sizes in found.items()
        if any(sizes)
    ]


def speed_rows(sequences: Record) -> list[Record]:
    """Tokens a CPU second of each method, and bytes of text; new tokenizers are set against new ones."""
    if "failure" in sequences:
        return []
    taken: dict[str, list[float]] = {}
    for row in sequences["rows"]:
        taken.setdefault(row["variant"], []).append(row["cpu_seconds"])
    rows, speeds, splitting = [], {}, median(taken[SPLITTING]) or 0.0

    def add(method: str, tokens: int, seconds: Number, against: str = "", same: Any = None) -> Number:
        speed = divide(tokens, seconds) if tokens else None
        row = {
            "method": method,
            "tokens": tokens or None,
            "CPU s": seconds,
            "tokens/s": speed and round(speed),
        }
        row["MB of text/s"] = divide(sequences["text_bytes"] / 1e6, seconds)
        row["build_page over it"] = divide(speeds.get(against), speed)
        rows.append({**row, "pages with equal sequences": same})
        return speed

    for name, seconds in taken.items():
        method = f"build_page, {KINDS[name]}" if name in KINDS else name
        speeds[name] = add(method, sequences["tokens"].get(name, 0), median(seconds))
    for told in (told for told in sequences["slow"] if "seconds" in told):
        same = f"{told['equal_pages']} of {sequences['pages']}"
        for kind, words in KINDS.items():
            seconds = (median(told["seconds"][kind]) or 0.0) + splitting
            add(f"LUKE's method, {told['name']}, {words}", told["tokens"], seconds, kind, same)
    return rows


def mention_rows(found: Record) -> list[Record]:
    if "failure" in found:
        return []
    seconds, megabytes = median(row["cpu_seconds"] for row in found["rows"]), found["text_bytes"] / 1e6
    row: Record = {"pages": found["pages"], "MB of text": megabytes, "CPU s": seconds}
    row |= {"MB/s": divide(megabytes, seconds), "occurrences": found["occurrences"], "names": found["names"]}
    each = divide(found["names_bytes"], found["names"])
    return [{**row, "bytes of keys": found["names_bytes"], "bytes a name": each}]


def targets(
    seconds: Number, dump: str, growth: Any, full: Any, memory: Any, speeds: Any, mentions: Any
) -> list[Record]:
    """Each target with what was found; `met` is None where it was not measured. `seconds`: of the real dump."""
    rows = [
        target(f"{dump}, dump to shards, minutes", divide(seconds, 60), most=MINUTES),
        *(
            target(f"time at {COPIES[-1]}x over 1x, {row['stage']}, over the dump's growth", each, most=1)
            for row in growth
            if (each := row["over the dump's growth"])
        ),
        target(
            "the full English dump, core-hours", full[-1]["core-hours"] if full else None, most=CORE_HOURS
        ),
        target(
            "the full English dump, BuildMentionTable, core-hours", mention_hours(full), most=MENTION_HOURS
        ),
    ]
    for row in memory:
        if row["process"] != "all PSS":
            what = f"memory of a process, {row['process']}, {COPIES[-1]}x over 1x"
            rows.append(target(what, row["last over first"], most=FLAT))
    counted = next((row["MB/s"] for row in mentions), None)
    rows.append(target("mention counting, MB of text a second and core", counted, least=MENTION_SPEED))
    ours = {row["method"]: row["tokens/s"] for row in speeds}.get(f"build_page, {KINDS['first']}")
    rows.append(target("sequences, tokens a second and core", ours, least=SEQUENCE_SPEED))
    told = [row for row in speeds if row["method"].startswith("LUKE's method")]
    # The plain tokenizer is faster than any that LUKE's authors had: it stands for them only where they are absent.
    for row in [row for row in told if "transformers" in row["method"]] or told:
        rows.append(target(f"sequences over {row['method']}", row["build_page over it"], least=TIMES_LUKE))
    return rows


def driver_amounts(runs: Runs, made: Sequence[Record]) -> dict[str, dict[str, float]]:
    """How much of each driver the made dumps have, those that ran."""
    found = {}
    for dump in made:
        for each in runs.of(dump["name"])[:1]:
            pages, titles = (each["stages"][stage] for stage in ("ExtractPages", "ResolveRedirects"))
            rows = {"links": pages["rows"]["links"], "titles": titles["rows"]["titles"]}
            found[dump["name"]] = amounts(dump, rows, pages["text_bytes"])
    return found


def checks(runs: Sequence[Record], dumps: Sequence[Record]) -> list[Record]:
    """Whether equal input gave equal bytes, and repeated pages as many times the rows.

    Links with a prefix lead to the same title in all copies, which the vocabulary and the mention table see.
    """
    outputs: dict[str, list[Record]] = {dump["name"]: [] for dump in dumps}
    for each in runs:
        stages = {} if each["failure"] else each["stages"]
        rows = {name: stages[name]["rows_written"] for name in COUNTED if stages}
        digests = [stages[name]["manifest_sha256"] for name in STAGES if stages]
        outputs[each["dump"]].append({"sha256": digests, "rows": rows} if stages else {})
    return equal_outputs(dumps, outputs, next(name for name in outputs if "linked-1x" in name))


def run_row(each: Record) -> Record:
    """A run of the stages in a line."""
    whole = each["stages"][ALL]
    row = {"dump": each["dump"], "wall s": whole["seconds"]}
    row |= {"CPU s": whole["cpu_seconds"], "others' cores": each["other_cores"]}
    return {**row, "failure": each["failure"]}


def fill(report: Report, found: Record) -> None:
    """The tables that follow from what was measured."""
    dumps, sequences, counting = found["dumps"], found["sequences"], found["mention_counting"]
    runs, real = Runs(found["runs"]), dumps[0]["name"]
    made = [dump for dump in dumps if "-linked-" in dump["name"]]
    growth, memory = growth_rows(runs, made), memory_rows(runs, made)
    speeds, mentions = speed_rows(sequences), mention_rows(counting)
    seconds = runs.median(real, ALL, "seconds")
    full = full_dump_rows(made, runs.median, driver_amounts(runs, made))
    report.add("Targets", targets(seconds, real, growth, full, memory, speeds, mentions))
    report.add(f"Stages on {real}", stage_rows(runs, real))
    report.add("Growth", growth)
    report.add("Largest process of each kind", memory)
    report.add("The full English dump", full)
    report.add(
        "What drives the stages", [{"driver": name, **each._asdict()} for name, each in DRIVERS.items()]
    )
    report.add("Sequences: speed", speeds, sequences.get("failure", ""))
    report.add("Mention counting: speed", mentions, counting.get("failure", ""))
    report.add("Commands", map(run_row, found["runs"]))
    report.add("Checks", checks(found["runs"], dumps))
    report.add("Dumps", dumps)
    for told in sequences.get("slow", ()):
        report.note_failure("LUKE's method", told)
    report.measured |= found | {"processes": report.options.processes}


def read_options() -> argparse.Namespace:
    parser = Options("corpus.corpus", __doc__, quick=f"{FEW} only, once: for trying, not for results")
    parser.take("dumps", "tokenizer", "rounds", "scratch")
    slow = "Python, or its environment, whose transformers has a slow RobertaTokenizer; may be repeated"
    parser.add_argument("--transformers", type=python_of, action="append", default=[], help=slow)
    parser.add_argument("--processes", type=count, default=2, help="of every stage (default: %(default)s)")
    options = parser.read()
    options.every = 2 if options.quick else EVERY
    return options


def main() -> None:
    options = read_options()
    report = Report("From the dump to the shards", options, PACKAGES)  # before orphans come, too
    adopt_orphans()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        fill(report, run_all(options, Path(scratch)))
    report.finish()


if __name__ == "__main__":
    main()
