"""From the dump to the shards: time and memory of every stage, beside LUKE's own method.

README.md says what is measured and how.
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Sequence
from operator import eq
from pathlib import Path
from typing import Any

from benchmarks.corpus import corpus_report as tables
from benchmarks.corpus.dumps import FEW, LARGE, Dump, real_dump, repeated
from benchmarks.corpus.stages import ALL, TIMEOUT_SECONDS, run_stages, stage_folder
from benchmarks.harness.measure import adopt_orphans, measure
from benchmarks.harness.options import CACHE, DATA, Options, absolute, count, python_of
from benchmarks.harness.report import Report, progress
from benchmarks.harness.workloads import ROOT, Record, command, environment

PACKAGES = ("apache-beam", "pyspark", "marisa-trie", "psutil", "pyarrow", "sentencex", "tokenizers")
COPIES = (1, 2, 4)
LIMITS = {"max_words": 512, "max_entities": 128, "max_mention_words": 30, "min_sentence_words": 5}
EVERY = 8  # the speed of one method is measured on a page in so many
LUKES_METHOD = ROOT / "benchmarks/corpus/lukes_method.py"


class Benchmark:
    """One run of everything; a failure is kept as a record and ends only what needs it."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options, self.scratch = options, scratch
        self.every = 2 if options.quick else EVERY
        self.runs: list[Record] = []

    def stages(self, dump: Dump, name: str) -> Path | None:
        """Run the stages in an empty work directory and keep it; None where they failed."""
        workdir, options = self.scratch / name, self.options
        shutil.rmtree(workdir, ignore_errors=True)
        workdir.mkdir()
        record = run_stages(dump, workdir, options.tokenizer, processes=options.processes)
        self.runs.append(record)
        seconds = record["stages"][ALL]["seconds"]
        progress(f"{dump.name}: {record['failure'] or f'{seconds:.1f}'}")
        return None if record["failure"] else workdir

    def workload(self, name: str, **arguments: Any) -> Record:
        """What a workload answers, with how it was measured; {"failure": why} where it failed."""
        return self.peer(name, command("corpus.corpus_workloads", name, arguments), ours=True)

    def peer(self, name: str, words: Sequence[str | Path], *, ours: bool = False) -> Record:
        """The same for any command, such as a script that another Python runs."""
        result = measure(list(map(str, words)), environment(threads=1, ours=ours), timeout=TIMEOUT_SECONDS)
        progress(f"{name}: {result.failure or round(result.wall_seconds, 1)}")
        sizes = {"cpu_seconds": result.cpu_seconds, "other_cores": result.other_cores}
        return {"failure": result.failure} | ({} if result.failure else sizes | result.answer)

    def sequence_speed(self, workdir: Path) -> Record:
        """The pipeline's sequences, LUKE's method with each slow tokenizer there is, and the fast one alone."""
        options, pages_file = self.options, self.scratch / "pages.jsonl"
        more = {"limits": LIMITS, "rounds": options.repetitions, "pages_file": str(pages_file)}
        more |= {"tokenizer": str(options.tokenizer), "pages": str(stage_folder(workdir, "ExtractPages"))}
        aliases = str(stage_folder(workdir, "BuildEntityVocab") / "aliases.tries")
        record = self.workload("sequences", every=self.every, aliases=aliases, **more)
        if record["failure"]:
            return record
        given = (pages_file, options.tokenizer, json.dumps(LIMITS), str(options.repetitions))
        for python in options.transformers:
            record["slow"].append(self.peer("LUKE's method", [python, LUKES_METHOD, *given]))
        ours = record.pop("digests")
        for told in record["slow"]:
            told["equal_pages"] = sum(map(eq, told.pop("digests", []), ours))
        return record

    def mention_speed(self, workdir: Path) -> Record:
        names, rounds = str(self.scratch / "names.tries"), self.options.repetitions
        pages, table = (str(stage_folder(workdir, stage)) for stage in ("ExtractPages", "BuildMentionTable"))
        more = {"candidates": f"{table}/candidates.arrow", "names": names, "rounds": rounds}
        return self.workload("mention_counting", pages=pages, every=self.every, **more)


def run_all(options: argparse.Namespace, scratch: Path) -> Record:
    """Measure everything; no tables yet."""
    dump = real_dump(options.data / f"{FEW if options.quick else LARGE}.xml.bz2")
    made = [repeated(dump.path, options.scratch, copies, linked=True) for copies in COPIES]
    bench, dumps = Benchmark(options, scratch), [dump, *made]
    workdir = None
    for number in range(options.repetitions):
        workdir = bench.stages(dump, f"real-{number}") or workdir
    for copied in made:
        bench.stages(copied, "made")
    shutil.rmtree(scratch / "made", ignore_errors=True)
    missing = {"failure": "no run of the stages"}
    sequences = bench.sequence_speed(workdir) if workdir else missing
    mention_counting = bench.mention_speed(workdir) if workdir else missing
    measured = {"sequences": sequences, "mention_counting": mention_counting}
    return {"dumps": [each.describe() for each in dumps], "runs": bench.runs, **measured}


def fill(report: Report, found: Record) -> None:
    """The tables that follow from what was measured."""
    dumps, sequences, counting = found["dumps"], found["sequences"], found["mention_counting"]
    runs, real = tables.Runs(found["runs"]), dumps[0]["name"]
    made = [dump for dump in dumps if "-linked-" in dump["name"]]
    growth, memory = tables.growth_rows(runs, made), tables.memory_rows(runs, made)
    speeds, mentions = tables.speed_rows(sequences), tables.mention_rows(counting)
    seconds = runs.median(real, ALL, "seconds")
    report.add("Targets", tables.targets(seconds, real, growth, memory, speeds, mentions))
    report.add(f"Stages on {real}", tables.stage_rows(runs, real))
    report.add("Growth", growth)
    report.add("Largest process of each kind", memory)
    report.add("Sequences: speed", speeds, sequences["failure"])
    report.add("Mention counting: speed", mentions, counting["failure"])
    report.add("Commands", [tables.run_row(run) for run in found["runs"]])
    report.add("Checks", tables.checks(runs, dumps))
    report.add("Dumps", dumps)
    failed = [told["failure"] for told in sequences.get("slow", ()) if told.get("failure")]
    report.notes += [f"LUKE's method: {failure}" for failure in failed]
    report.measured |= found


def read_options() -> argparse.Namespace:
    parser = Options("corpus.corpus", __doc__, quick=f"{FEW} only, once: for trying, not for results")
    add = parser.add_argument
    slow = "Python, or its environment, whose transformers has a slow RobertaTokenizer"
    add("--data", type=absolute, default=DATA / "wikipedia", help="folder of the real dumps")
    add("--tokenizer", type=absolute, default=DATA / "roberta-tokenizer", help="RoBERTa's tokenizer")
    add("--transformers", type=python_of, action="append", default=[], help=f"{slow}; may be repeated")
    add("--processes", type=count, default=2, help="of every stage (default: %(default)s)")
    add("--repetitions", type=count, default=3, help="runs of the real dump, rounds of the methods")
    add("--scratch", type=absolute, default=CACHE, help="folder for made dumps (kept) and outputs (removed)")
    options = parser.read()
    options.repetitions = 1 if options.quick else options.repetitions
    return options


def main() -> None:
    options = read_options()
    options.scratch.mkdir(parents=True, exist_ok=True)
    report = Report("From the dump to the shards", options, PACKAGES)  # before orphans come, too
    adopt_orphans()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        fill(report, run_all(options, Path(scratch)))
    report.finish()


if __name__ == "__main__":
    main()
