"""From the dump to the shards: time and memory of every stage, beside LUKE's own method and builder.

README.md in this folder says what is measured and how; `python benchmarks/corpus.py --help` lists the options.
"""

import argparse
import datetime
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from operator import eq
from pathlib import Path
from typing import Any

import corpora
import stages
from corpora import Dump
from corpus_markdown import markdown
from corpus_report import COPIES, LIMITS, make_report
from extract import python_of
from measure import ROOT, adopt_orphans, environment_facts, measure
from processes import command_line
from report import LARGE, SMALL
from stages import Record

QUICK = "enwiki-2006-500"
# Shares of the pages that the speed of one method is measured on: a page in so many.
EVERY_SEQUENCES, EVERY_MENTIONS = 8, 8


def progress(what: str) -> None:
    print(f"{datetime.datetime.now():%H:%M:%S} {what}", file=sys.stderr, flush=True)


class Benchmark:
    """One run of everything; a failure is kept as a record and ends only what needs it."""

    def __init__(self, options: argparse.Namespace, scratch: Path) -> None:
        self.options, self.scratch = options, scratch
        self.runs: list[Record] = []

    def stages(self, dump: Dump, name: str, profile: str = "fixed") -> Path | None:
        """Run the stages in an empty work directory and keep it; None where they failed."""
        workdir = self.scratch / name
        shutil.rmtree(workdir, ignore_errors=True)
        workdir.mkdir()
        record = stages.run_stages(
            dump, workdir, self.options.tokenizer, processes=self.options.processes, profile=profile
        )
        self.runs.append(record)
        progress(f"{dump.name} ({profile}): {record['failure'] or round(record['wall_seconds'], 1)}")
        return None if record["failure"] else workdir

    def workload(self, name: str, **arguments: Any) -> Record:
        """What a workload answers, with how it was measured; {"failure": why} where it failed."""
        script = str(ROOT / "benchmarks/corpus_workloads.py")
        command = [sys.executable, script, name, json.dumps(arguments)]
        return self._answer(name, command, stages.clean_environment())

    def peer(self, name: str, python: Path, *arguments: str) -> Record:
        """The same for a script that another Python runs."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        return self._answer(name, [str(python), *arguments], environment)

    def _answer(self, name: str, command: Sequence[str], environment: dict[str, str]) -> Record:
        result = measure(command, {**environment, "OMP_NUM_THREADS": "1"}, timeout=stages.TIMEOUT_SECONDS)
        progress(f"{name}: {result.failure or round(result.wall_seconds, 1)}")
        if result.failure:
            return {"failure": result.failure}
        sizes = {"cpu_seconds": result.cpu_seconds, "other_cores": result.other_cores}
        return {"failure": "", **sizes, **result.answer}

    def sequence_speed(self, workdir: Path) -> Record:
        """The pipeline's sequences, LUKE's method with each slow tokenizer there is, and the fast one alone."""
        extracted = stages.stage_folder(workdir, "ExtractPages")
        vocab = stages.stage_folder(workdir, "BuildEntityVocab")
        pages_file = str(self.scratch / "pages.jsonl")
        options = self.options
        record = self.workload(
            "sequences",
            paragraphs=sorted(map(str, (extracted / "paragraphs").glob("*.parquet"))),
            every=2 if options.quick else EVERY_SEQUENCES,
            tokenizer=str(options.tokenizer),
            aliases=str(vocab / "aliases.tries"),
            language="en",
            limits=LIMITS,
            rounds=options.repetitions,
            pages_file=pages_file,
        )
        if record["failure"]:
            return record
        script = str(ROOT / "benchmarks/luke_method.py")
        arguments = (pages_file, str(options.tokenizer), json.dumps(LIMITS), str(options.repetitions))
        slow = [self.peer("LUKE's method", python, script, *arguments) for python in options.transformers]
        slow = record["slow"] + slow
        for told in slow:
            theirs = told.pop("digests", [])
            told["equal_pages"] = sum(map(eq, theirs, record["digests"]))
        del record["digests"]
        return {**record, "slow": slow}

    def mention_speed(self, workdir: Path) -> Record:
        extracted = stages.stage_folder(workdir, "ExtractPages")
        table = stages.stage_folder(workdir, "BuildMentionTable")
        return self.workload(
            "mention_counting",
            paragraphs=sorted(map(str, (extracted / "paragraphs").glob("*.parquet"))),
            every=2 if self.options.quick else EVERY_MENTIONS,
            candidates=str(table / "candidates.arrow"),
            names=str(self.scratch / "names.tries"),
            rounds=self.options.repetitions,
        )

    def luke_builder(self, dump: Dump, workdir: Path) -> Record:
        """wikipedia2vec's database of the dump, LUKE's counting and page processing over it, beside ours."""
        if not self.options.peers:
            return {"failure": "absent: no --peers"}
        python = self.options.peers
        database, exported = self.scratch / f"{dump.name}.db", self.scratch / f"{dump.name}.jsonl"
        words = ("build-dump-db", "--pool-size", str(self.options.processes), str(dump.path), str(database))
        built = self.peer("build-dump-db", python.with_name("wikipedia2vec"), *words)
        script = str(ROOT / "benchmarks/luke_export.py")
        if not built["failure"]:
            done = self.peer("export", python, script, str(database), str(exported))
            built["failure"] = done["failure"]
        database.unlink(missing_ok=True)
        if built["failure"]:
            return built
        found = self.workload(
            "luke_builder",
            exported=str(exported),
            workdir=str(workdir),
            dump=str(dump.path),
            tokenizer=str(self.options.tokenizer),
            limits=LIMITS,
        )
        exported.unlink()
        return {**built, **found}


def run_all(options: argparse.Namespace, scratch: Path) -> Record:
    """Measure everything; the parts of the report that are no tables yet."""
    name, small = (QUICK, QUICK) if options.quick else (LARGE, SMALL)
    dump = corpora.real_dump(options.data / f"{name}.xml.bz2")
    made = [corpora.linked(dump.path, options.scratch, copies) for copies in COPIES]
    bench, dumps = Benchmark(options, scratch), [dump, *made]
    workdir = None
    for number in range(options.repetitions):
        workdir = bench.stages(dump, f"real-{number}") or workdir
    for copied in made:
        bench.stages(copied, "made")
    shutil.rmtree(scratch / "made", ignore_errors=True)
    sequences = bench.sequence_speed(workdir) if workdir else {"failure": "no run of the stages"}
    mention_counting = bench.mention_speed(workdir) if workdir else {"failure": "no run of the stages"}
    luke: dict[str, Record] = {}
    bench.stages(dump, "paper", "paper")
    if workdir:
        luke[dump.name] = bench.luke_builder(dump, workdir)
    if small != name:
        little = corpora.real_dump(options.data / f"{small}.xml.bz2")
        dumps.append(little)
        bench.stages(little, "paper", "paper")
        if place := bench.stages(little, "little"):
            luke[small] = bench.luke_builder(little, place)
    return {
        "dumps": [each.describe() for each in dumps],
        "runs": bench.runs,
        "sequences": sequences,
        "mention_counting": mention_counting,
        "luke": luke,
        "processes": options.processes,
    }


# The command


def read_options() -> argparse.Namespace:
    shared = Path(os.environ.get("LUKE_SHARED", ROOT.parent / "shared"))
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "luke-from-wikipedia"
    results = ROOT / f"benchmarks/results/{datetime.date.today().isoformat()}-corpus.json"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=shared / "data/wikipedia", help="folder of the real dumps")
    add("--tokenizer", type=Path, default=shared / "data/roberta-tokenizer", help="RoBERTa's tokenizer")
    add("--peers", type=Path, help="Python, or its environment, that has wikipedia2vec")
    add(
        "--transformers",
        type=Path,
        action="append",
        default=[],
        help="Python, or its environment, that has a transformers with a slow RobertaTokenizer; may be repeated",
    )
    add("--processes", type=int, default=2, help="of every stage (default: %(default)s)")
    add("--repetitions", type=int, default=3, help="runs of the real dump, rounds of the methods")
    add("--quick", action="store_true", help=f"{QUICK} only, once: for trying, not for results")
    add("--scratch", type=Path, default=cache, help="folder for made dumps (kept) and outputs (removed)")
    add("--note", action="append", default=[], dest="notes", help="a line for the report")
    add("--output", type=Path, default=results, help="the results as JSON; Markdown goes beside it")
    options = parser.parse_args()
    for name in ("data", "scratch", "tokenizer"):
        setattr(options, name, getattr(options, name).resolve())
    options.repetitions = 1 if options.quick else options.repetitions
    if min(options.repetitions, options.processes) < 1:
        parser.error("--repetitions, --processes: wanted 1 or more")
    if options.peers:
        options.peers = python_of(options.peers) or parser.error(f"--peers: no python in {options.peers}")
    found = {place: python_of(place) for place in options.transformers}
    if missing := [str(place) for place, python in found.items() if not python]:
        parser.error(f"--transformers: no python in {', '.join(missing)}")
    options.transformers = list(found.values())
    return options


def main() -> None:
    sys.path.insert(0, str(ROOT))  # this checkout is measured, whatever is installed
    options = read_options()
    options.scratch.mkdir(parents=True, exist_ok=True)
    facts = {
        "date": datetime.date.today().isoformat(),
        "command": command_line("corpus.py", options.notes),
        "environment": environment_facts(options.peers),  # before orphans come here, too
        "notes": options.notes,
    }
    adopt_orphans()
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        report = make_report({**facts, **run_all(options, Path(scratch))})
    options.output.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    options.output.write_text(text, encoding="utf-8")
    options.output.with_suffix(".md").write_text(markdown(report), encoding="utf-8")
    print(markdown(report))
    if failed := [row for row in report["checks"] if not row["passed"]]:
        raise SystemExit(f"{len(failed)} checks failed: what was measured is wrong")


if __name__ == "__main__":
    main()
