"""LUKE on a GPU: its tests, then speed, memory and where the time goes, beside transformers, within nine minutes.

    python -m benchmarks.model.gpu --tests --sequences DIR  # what `make gpu` runs; without --tests five minutes
    python -m benchmarks.model.gpu --device cpu --tiny      # a rehearsal

Every measurement is a process of its own; what fails is written down, and the rest goes on. README.md says what is
counted.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch

from benchmarks.harness.options import Options, absolute, count
from benchmarks.harness.report import Report, progress
from benchmarks.harness.workloads import ROOT, Record, run
from benchmarks.model import gpu_tables as tables
from benchmarks.model.gpu_tables import AWARE, ORIGINAL, OURS, THEIRS
from benchmarks.tasks import ner
from model.pretraining.recipes import PRECISIONS
from model.pretraining.throughput import has_bf16, published_rate
from tests.support.shards import ENTITIES, random_rows, write_sequences

MODULE, NER_MODULE = "model.gpu_workloads", "tasks.ner_workloads"
PACKAGES = ("torch", "triton", "transformers", "numpy", "pyarrow")
MOST_SECONDS, TEST_SECONDS = 150, 200  # of a measurement, and of all tests
WORDS_A_MENTION, MOST_WORDS, MADE = 14, 510, 3000
NER_DATA = "examples/ner/train.txt"  # from the repository's root, where workloads run


@dataclass(frozen=True)
class Plan:
    """What is measured: sizes of models, tokens of micro-batches and sequences of a step."""

    sizes: tuple[str, ...] = ("large", "base")
    tokens: tuple[int, ...] = (16384, 32768)
    batch_size: int = 2048
    rounds: int = 6
    steps: int = 3
    step_size: int = 512
    workers: int = 2
    sentences: int = 74  # all of the examples'
    ner_rounds: int = 3

    def micro_batches(self, modes: list[str]) -> Iterator[Record]:
        """Micro-batches, in the order of what one wants to know first."""
        pairs = [(size, tokens) for tokens in self.tokens for size in self.sizes]
        first, others = pairs[: len(self.sizes)], pairs[len(self.sizes) :]
        eager = [(OURS, AWARE, "eager"), (OURS, ORIGINAL, "eager"), (THEIRS, AWARE, "eager")]
        compiled = [(OURS, AWARE, "compiled"), (OURS, ORIGINAL, "compiled")]
        theirs = [(THEIRS, ORIGINAL, "eager")], [(THEIRS, AWARE, "compiled")]
        order = [(eager, first), (compiled, first[:1]), (eager, others), (compiled, first[1:] + others)]
        for chosen, among in (*order, (theirs[0], pairs), (theirs[1], first[:1])):
            for size, tokens in among:
                for who, attention, mode in chosen:
                    if mode in modes:
                        row = {"who": who, "size": size, "attention": attention, "tokens": tokens}
                        yield row | {"compiled": mode == "compiled"}

    def training(self, modes: list[str], precision: str) -> Iterator[Record]:
        """Steps of pretraining, from the loader to the optimiser."""
        common = {"who": OURS, "phase": "all", "first_step": 0, "warm_steps": 1, "steps": self.steps}
        common |= {"workers": self.workers, "longest": False, "compare": False}
        for mode in modes:
            for size in self.sizes:
                recipe = {"batch_size": self.step_size, "tokens_per_batch": self.tokens[0]}
                recipe |= {"precision": precision, "compiled": mode == "compiled"}
                yield common | {"size": size, "recipe": recipe}

    def entity_recognition(self, precision: str) -> Record:
        """Answers of entity recognition: words to logits."""
        asked = {"size": self.sizes[-1], "data": NER_DATA, "sentences": self.sentences}
        return asked | {"rounds": self.ner_rounds, "chosen": NER[precision]}


# The first is what others are set against.
NER = {
    "float32": [ner.ONE, "transformers, batches of 4", "ours, 2048 tokens"],
    "bf16": [f"{ner.ONE}, bf16", "transformers, batches of 32, bf16", "ours, 16384 tokens, bf16"],
}
FULL = Plan()
TINY = Plan(("tiny",), (256,), 64, rounds=2, steps=2, step_size=32, workers=0, sentences=4, ner_rounds=1)


class Budget:
    """So many minutes for all measurements; what would begin later is left out, and says so."""

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes
        self.end = time.monotonic() + 60 * minutes

    def run(self, workload: str, arguments: Record, module: str = MODULE) -> Record:
        """What the workload answers, or why it does not."""
        left = self.end - time.monotonic()
        if left <= 0:
            return {"failure": f"left out: the {self.minutes:g} minutes were over"}
        return run(module, workload, arguments, seconds=min(MOST_SECONDS, left))


@dataclass
class Found:
    """What was measured so far."""

    tests: list[Record] = field(default_factory=list)
    micro: list[Record] = field(default_factory=list)
    steps: list[Record] = field(default_factory=list)
    ner: Record = field(default_factory=dict)


def measure(
    options: argparse.Namespace, plan: Plan, folder: Path, found: Found, keep: Callable[[], None]
) -> None:
    """Measure micro-batches, and steps and entity recognition behind the first few of them, into `found`.

    `keep` is called after each measurement. What is measured of lies in `folder`, or is made there.
    """
    budget = Budget(options.minutes)
    machine = {"device": options.device, "threads": options.threads}
    sequences = options.sequences or make_sequences(folder / "sequences", options.quick)
    common = machine | {"sequences": str(sequences)}
    sizes = {"batch_size": plan.batch_size, "rounds": plan.rounds, "precision": options.precision}
    first = 3 * len(plan.sizes)  # ours twice and transformers' of each size
    for number, row in enumerate(plan.micro_batches(options.modes)):
        found.micro.append(row | budget.run("micro_batch", row | common | sizes))
        progress(f"{row}: {found.micro[-1].get('failure', 'measured')}")
        keep()
        if number + 1 == first:
            for step in plan.training(options.modes, options.precision):
                found.steps.append(step | budget.run("train", step | common))
                progress(f"training, {step['size']}: {found.steps[-1].get('failure', 'measured')}")
                keep()
            asked = plan.entity_recognition(options.precision)
            found.ner = asked | budget.run("speed", asked | machine, NER_MODULE)
            progress(f"entity recognition: {found.ner.get('failure', 'measured')}")
            keep()


def run_tests(folder: Path) -> list[Record]:
    """The tests of tests/gpu with their outcomes and seconds; what they print is seen at once.

    One row says so where they did not run, or not to their end.
    """
    report = folder / "tests.xml"
    limit = ["timeout", "--signal=INT", "--kill-after=10", str(TEST_SECONDS)]
    pytest = [sys.executable, "-m", "pytest", "-rs", "--durations=5", "tests/gpu", f"--junitxml={report}"]
    status = subprocess.run([*limit, *pytest], cwd=ROOT, stdout=sys.stderr).returncode
    rows = read_tests(report) if report.is_file() else []
    if status not in (0, 1):
        rows.append({"test": "tests/gpu", "outcome": "failed", "s": None, "why": f"exit status {status}"})
    return rows


def read_tests(report: Path) -> list[Record]:
    """A row a test of a report in JUnit's form, but for one that was interrupted: pytest gives it no name."""
    rows = []
    for case in ElementTree.parse(report).iterfind(".//testcase[@name]"):  # noqa: S314  pytest has just written it
        bad = next((part for part in case if part.tag in ("failure", "error", "skipped")), None)
        outcome = "passed" if bad is None else "skipped" if bad.tag == "skipped" else "failed"
        name = f"{case.get('classname')}.{case.get('name')}"
        why = "" if bad is None else bad.get("message", "")[:300]
        rows.append({"test": name, "outcome": outcome, "s": float(case.get("time", 0)), "why": why})
    return rows


def make_sequences(folder: Path, tiny: bool) -> Path:
    """Random sequences, for where there is no corpus: few ids, lengths that are drawn evenly."""
    if tiny:
        return write_sequences(folder, random_rows(80))
    generator, rows = np.random.default_rng(0), []
    for page in range(MADE):
        size = int(generator.integers(20, MOST_WORDS + 1))
        starts = np.arange(0, size - 3, WORDS_A_MENTION)
        ends = starts + generator.integers(1, 4, size=len(starts))
        row = {"word_ids": generator.integers(4, 59, size=size), "entity_starts": starts, "entity_ends": ends}
        row["entity_ids"] = generator.integers(1, ENTITIES, size=len(starts))
        rows.append({name: value.tolist() for name, value in row.items()} | {"page_id": page})
    facts = {"max_words": MOST_WORDS + 2, "max_entities": MOST_WORDS // WORDS_A_MENTION + 1}
    return write_sequences(folder, rows, **facts)


def read_options() -> argparse.Namespace:
    parser = Options("model.gpu", __doc__)
    parser.take("device", "threads")
    add = parser.add_argument
    add("--sequences", type=absolute, help="folder of BuildSequences (default: random sequences, made here)")
    add("--tests", action="store_true", help="first run tests/gpu, for at most 200 seconds")
    add("--minutes", type=float, default=5.0, help="for all measurements (default: %(default)g)")
    add("--rounds", type=count, default=6, help="micro-batches of a measurement (default: %(default)s)")
    add(
        "--tiny",
        action="store_true",
        dest="quick",
        help="a rehearsal: the preset tiny, two rounds, nothing compiled",
    )
    modes = ("eager", "compiled")
    add("--modes", nargs="+", choices=modes, help="(default: both; eager with --tiny)")
    add(
        "--precision",
        choices=PRECISIONS,
        help="of products (default: bf16; float32 on a processor that has no bf16)",
    )
    parser.set_defaults(device="cuda")
    options = parser.read()
    is_narrow = options.device != "cpu" or has_bf16(torch.device("cpu"))
    options.precision = options.precision or ("bf16" if is_narrow else "float32")
    options.modes = options.modes or list(modes[:1] if options.quick else modes)
    return options


def fill(report: Report, found: Found, notes: list[str]) -> None:
    """The tables of what was measured so far, and the notes: these, and why something is missing."""
    report.notes = list(notes)
    micro, steps = found.micro, found.steps
    if micro:
        report.add("Targets", tables.targets(micro, micro[0]["size"]))
    report.add("Micro-batches", tables.speed_rows(micro))
    report.add("Where the time goes", tables.time_rows(micro))
    published = published_rate(report.environment["machine"].get("gpu", ""))
    report.add("Steps of pretraining", tables.step_rows(steps, published))
    report.add("Entity recognition", tables.ner_rows(found.ner), tables.NER_TEXT)
    report.add("Checks", tables.checks(micro) + tables.test_checks(found.tests))
    report.add("Tests", tables.test_rows(found.tests))
    for row in micro:
        report.note_failure(", ".join(str(value) for value in tables.kind_of(row).values()), row)
    for row in steps:
        report.note_failure(f"pretraining {row['size']}, {row['recipe']}", row)
    report.note_failure("entity recognition", found.ner)
    report.measured |= {
        "measurements": micro,
        "training": steps,
        "recognition": found.ner,
        "of tests": found.tests,
    }


def main() -> None:
    options = read_options()
    plan = TINY if options.quick else replace(FULL, rounds=options.rounds)
    report = Report("On a GPU" if options.device != "cpu" else "Rehearsal on a CPU", options, PACKAGES)
    report.head.append(f"Products are in {options.precision}.\n")
    notes, found = list(report.notes), Found()
    if not options.sequences:
        notes.append("The sequences are random, of few ids and of lengths that are drawn evenly.")

    def keep() -> None:
        fill(report, found, notes)
        report.write()  # at once: a machine that is lent may be taken back

    with tempfile.TemporaryDirectory() as name:
        if options.tests:
            found.tests = run_tests(Path(name))
            keep()
        measure(options, plan, Path(name), found, keep)
    report.finish()


if __name__ == "__main__":
    main()
