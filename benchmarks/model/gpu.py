"""LUKE on a GPU: its tests, then speed and memory beside transformers, within nine minutes.

    python -m benchmarks.model.gpu --tests --sequences DIR  # what `make gpu` runs; without --tests five minutes
    python -m benchmarks.model.gpu --device cpu --tiny      # a rehearsal

Every measurement is a process of its own; what fails is written down, and the rest goes on. README.md says what is
counted.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from benchmarks.harness.options import Options, absolute
from benchmarks.harness.report import Report, progress
from benchmarks.harness.workloads import ROOT, Record, run
from benchmarks.model import gpu_tables as tables
from benchmarks.model.gpu_workloads import MODES
from benchmarks.model.workloads import AWARE, ORIGINAL, OURS, THEIRS
from model.training.devices import has_bf16, published_rate
from tests.support.shards import random_rows, write_long_sequences, write_sequences

WORKLOADS = ("micro_batch", "train")
PACKAGES = ("torch", "triton", "transformers", "numpy", "pyarrow")
MOST_SECONDS, TEST_SECONDS = 150, 200  # of a measurement, and of all tests


@dataclass(frozen=True)
class Plan:
    """The measurements: sizes of models, tokens of micro-batches and sequences of a step."""

    sizes: tuple[str, ...] = ("large", "base")
    tokens: tuple[int, ...] = (16384, 32768)
    batch_size: int = 2048
    rounds: int = 6
    steps: int = 3
    step_size: int = 512
    workers: int = 2

    def all(self, modes: list[str], precision: str) -> Iterator[tuple[str, Record]]:
        """Yield workloads and their arguments, in the order of what one wants to know first."""
        pairs = [(size, tokens) for tokens in self.tokens for size in self.sizes]
        first, others = pairs[: len(self.sizes)], pairs[len(self.sizes) :]
        eager = [(OURS, AWARE, "eager"), (OURS, ORIGINAL, "eager"), (THEIRS, AWARE, "eager")]
        plain, compiled = ([(OURS, each, mode) for each in (AWARE, ORIGINAL)] for mode in MODES[1:])
        order = [(eager, first), (plain, first), (None, []), (compiled, first[:1]), (eager, others)]
        order += [(compiled, first[1:] + others), ([(THEIRS, ORIGINAL, "eager")], pairs)]
        common = {"batch_size": self.batch_size, "rounds": self.rounds, "precision": precision}
        for chosen, among in (*order, ([(THEIRS, AWARE, "compiled")], first[:1])):
            if chosen is None:
                yield from self.steps_of_pretraining(modes, precision)
            for size, tokens in among:
                for who, attention, mode in (each for each in chosen if each[2] in modes):
                    row = {"who": who, "size": size, "attention": attention, "tokens": tokens, "mode": mode}
                    yield "micro_batch", row | common

    def steps_of_pretraining(self, modes: list[str], precision: str) -> Iterator[tuple[str, Record]]:
        """Yield steps of pretraining, from the loader to the optimiser."""
        common = {"who": OURS, "first_step": 0, "warm_steps": 1, "steps": self.steps}
        common |= {"workers": self.workers, "compare": False}
        for mode in (each for each in modes if each != "plain"):
            for size in self.sizes:
                recipe = {"batch_size": self.step_size, "tokens_per_batch": self.tokens[0]}
                recipe |= {"precision": precision, "compiled": mode == "compiled"}
                yield "train", common | {"size": size, "recipe": recipe}


FULL = Plan()
TINY = Plan(("tiny",), (256,), 64, rounds=2, steps=2, step_size=32, workers=0)


@dataclass
class Found:
    """The measurements so far: the tests' words, and a row for each call of a workload."""

    tests: Record = field(default_factory=dict)
    rows: dict[str, list[Record]] = field(default_factory=lambda: {name: [] for name in WORKLOADS})


def measure(options: argparse.Namespace, plan: Plan, folder: Path, found: Found, keep: Callable[[], None]) -> None:
    """Measure into `found`, and call `keep` after each measurement; made sequences lie in `folder`.

    A workload that would begin after the minutes are over is left out, and says so.
    """
    end = time.monotonic() + 60 * options.minutes
    sequences = options.sequences
    if not sequences and options.quick:
        sequences = write_sequences(folder / "sequences", random_rows(80))
    elif not sequences:
        sequences = write_long_sequences(folder / "sequences")
    machine = {"device": options.device, "threads": options.threads}
    for workload, row in plan.all(options.modes, options.precision):
        given = row | machine | {"sequences": str(sequences)}
        answer = {"failure": f"left out: the {options.minutes:g} minutes were over"}
        if (left := end - time.monotonic()) > 0:
            answer = run("model.gpu_workloads", workload, given, seconds=min(MOST_SECONDS, left))
        found.rows[workload].append(row | answer)
        progress(f"{workload}, {row}: {answer.get('failure', 'measured')}")
        keep()


def run_tests() -> Record:
    """Run tests/gpu and print their words: the exit status, each test that was skipped or failed, and the last line."""
    limit = ["timeout", "--signal=INT", "--kill-after=10", str(TEST_SECONDS)]
    pytest = [sys.executable, "-m", "pytest", "-rsfE", "--durations=5", "tests/gpu"]
    done = subprocess.run([*limit, *pytest], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    print(done.stdout, file=sys.stderr)
    lines = [line.strip("= ") for line in done.stdout.splitlines() if line.strip("= ")] or ["no words"]
    named = [line for line in lines[:-1] if re.match(r"(SKIPPED|FAILED|ERROR) ", line)]
    return {"status": done.returncode, "lines": [*named, lines[-1]]}


def read_options() -> argparse.Namespace:
    parser = Options("model.gpu", __doc__, "device", "threads")
    add = parser.add_argument
    add("--sequences", type=absolute, help="folder of BuildSequences (default: random sequences, made here)")
    add("--tests", action="store_true", help="first run tests/gpu, for at most 200 seconds")
    add("--minutes", type=float, default=5.0, help="for all measurements (default: %(default)g)")
    add("--tiny", action="store_true", dest="quick", help="a rehearsal: preset tiny, two rounds, nothing compiled")
    add("--modes", nargs="+", choices=MODES, help="plain: without Triton's kernels (default: all; eager with --tiny)")
    parser.set_defaults(device="cuda")
    options = parser.read()
    options.precision = "bf16" if options.device != "cpu" or has_bf16(torch.device("cpu")) else "float32"
    options.modes = options.modes or list(MODES[:1] if options.quick else MODES)
    return options


def fill(report: Report, found: Found, notes: list[str]) -> None:
    """Add the tables of what was measured so far, and the notes: these, and why something is missing."""
    report.notes = list(notes)
    micro, steps = (found.rows[name] for name in WORKLOADS)
    report.add("Micro-batches", tables.speed_rows(micro))
    published = published_rate(report.environment["machine"].get("gpu", ""))
    report.add("Steps of pretraining", tables.step_rows(steps, published))
    report.add("Checks", tables.checks(micro, found.tests))
    report.add("Tests", [{"test": line} for line in found.tests.get("lines", [])])
    for row in micro:
        report.note_failure(tables.name_of(row), row)
    for row in steps:
        report.note_failure(f"pretraining {row['size']}, {row['recipe']}", row)
    report.measured |= {"measurements": micro, "training": steps}


def main() -> None:
    options = read_options()
    plan = TINY if options.quick else FULL
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
            found.tests = run_tests()
            keep()
        measure(options, plan, Path(name), found, keep)
    report.finish()


if __name__ == "__main__":
    main()
