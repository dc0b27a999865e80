"""LUKE on a GPU: speed, memory and where the time goes, beside transformers, within a few minutes.

    python -m benchmarks.model.gpu --sequences DIR          # `make gpu` runs it behind the tests of tests/gpu
    python -m benchmarks.model.gpu --device cpu --tiny      # a rehearsal

Every measurement is a process of its own; what fails is written down, and the rest goes on. README.md says what is
counted.
"""

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks.harness.options import Options, absolute, count
from benchmarks.harness.report import Report, divide, median, progress, target
from benchmarks.harness.workloads import Record, run
from benchmarks.model.pretrain import training_rows
from model.pretraining.throughput import published_rate
from tests.support.shards import ENTITIES, random_rows, write_sequences

MODULE = "model.gpu_workloads"
PACKAGES = ("torch", "triton", "transformers", "numpy", "pyarrow")
OURS, THEIRS, AWARE, ORIGINAL = "ours", "transformers", "entity-aware", "original"
MOST_SECONDS = 150  # of a measurement
TARGET_SHARE, TARGET_ATTENTION, TARGET_TRANSFORMERS = 0.45, 1.25, 3.0
WORDS_A_MENTION, MOST_WORDS, MADE = 14, 510, 3000


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

    def micro_batches(self, modes: list[str]) -> Iterator[Record]:
        """Micro-batches, in the order of what one wants to know first."""
        pairs = [(size, tokens) for tokens in self.tokens for size in self.sizes]
        kinds = [(OURS, AWARE, "eager"), (OURS, ORIGINAL, "eager"), (THEIRS, AWARE, "eager")]
        later = [(OURS, AWARE, "compiled"), (OURS, ORIGINAL, "compiled"), (THEIRS, ORIGINAL, "eager")]
        last = [(THEIRS, AWARE, "compiled")]
        for chosen, among in ((kinds, pairs), (later, pairs), (last, pairs[:1])):
            for size, tokens in among:
                for who, attention, mode in chosen:
                    if mode in modes:
                        row = {"who": who, "size": size, "attention": attention, "tokens": tokens}
                        yield row | {"compiled": mode == "compiled"}

    def training(self, modes: list[str], device: str) -> Iterator[Record]:
        """Steps of pretraining, from the loader to the optimiser."""
        common = {"who": OURS, "phase": "all", "first_step": 0, "warm_steps": 1, "steps": self.steps}
        common |= {"workers": self.workers, "longest": False, "compare": False}
        for mode in modes:
            for size in self.sizes:
                recipe = {"batch_size": self.step_size, "tokens_per_batch": self.tokens[0]}
                recipe |= {"precision": "float32" if device == "cpu" else "bf16"}
                yield common | {"size": size, "recipe": recipe | {"compiled": mode == "compiled"}}


FULL = Plan()
TINY = Plan(("demo",), (256,), batch_size=64, rounds=2, steps=2, step_size=32, workers=0)


class Budget:
    """So many minutes for all measurements; what would begin later is left out, and says so."""

    def __init__(self, minutes: float) -> None:
        self.minutes = minutes
        self.end = time.monotonic() + 60 * minutes

    def run(self, workload: str, arguments: Record) -> Record:
        """What the workload answers, or why it does not."""
        left = self.end - time.monotonic()
        if left <= 0:
            return {"failure": f"left out: the {self.minutes:g} minutes were over"}
        return run(MODULE, workload, arguments, seconds=min(MOST_SECONDS, left + 30))


def measure(
    options: argparse.Namespace,
    plan: Plan,
    sequences: Path,
    keep: Callable[[list[Record], list[Record]], None],
) -> None:
    """Measure micro-batches, and steps behind the first few of them; `keep` is given the rows of both so far."""
    budget = Budget(options.minutes)
    micro: list[Record] = []
    steps: list[Record] = []
    common = {"device": options.device, "sequences": str(sequences), "threads": options.threads}
    sizes = {"batch_size": plan.batch_size, "rounds": plan.rounds}
    first = 3 * len(plan.sizes)  # ours twice and transformers' of each size
    for number, row in enumerate(plan.micro_batches(options.modes)):
        micro.append(row | budget.run("micro_batch", row | common | sizes))
        progress(f"{row}: {micro[-1].get('failure', 'measured')}")
        if number + 1 == first:
            for step in plan.training(options.modes, options.device):
                steps.append(step | budget.run("train", step | common))
                progress(f"training, {step['size']}: {steps[-1].get('failure', 'measured')}")
        keep(micro, steps)


def kind_of(row: Record) -> Record:
    """The columns that say what was measured."""
    mode = "compiled" if row["compiled"] else "eager"
    kind = {"model": row["who"], "preset": row["size"], "attention": row["attention"]}
    return kind | {"tokens at most": row["tokens"], "mode": mode}


def speed_rows(rows: list[Record]) -> list[Record]:
    """Each measurement: tokens a second, shares of both rates, memory, and the ratio to transformers' eager model."""
    speeds = [median(each["tokens"] / each["seconds"] for each in row.get("rows", [])) for row in rows]
    theirs = {
        (row["size"], row["attention"], row["tokens"]): speed
        for row, speed in zip(rows, speeds, strict=True)
        if row["who"] == THEIRS and not row["compiled"]
    }
    table = []
    for row, speed in zip(rows, speeds, strict=True):
        flops = median(each["flops"] / each["seconds"] for each in row.get("rows", []))
        line = kind_of(row) | {"tokens/s": speed}
        line["TFLOP/s"] = divide(flops, 1e12)
        line["x transformers"] = divide(speed, theirs.get((row["size"], row["attention"], row["tokens"])))
        line["share of the product rate"] = divide(flops, row.get("matrix_flops"))
        line["share of the published rate"] = divide(flops, row.get("published_flops"))
        real = sum(each["tokens"] for each in row.get("rows", []))
        line["real of padded places"] = divide(real, sum(each["places"] for each in row.get("rows", [])))
        line["peak MB"] = row.get("peak_mb") and round(row["peak_mb"])
        table.append(line | {"kernel of attention": row.get("kernel")})
    return table


def targets(rows: list[Record], size: str) -> list[Record]:
    """The best of what was measured of the largest model, beside what is wanted."""
    lines = [line for line in speed_rows(rows) if line["preset"] == size and line["model"] == OURS]

    def best(column: str, attention: str) -> float | None:
        found = [line[column] for line in lines if line["attention"] == attention]
        return max((value for value in found if value is not None), default=None)

    original, aware = (best("tokens/s", attention) for attention in (ORIGINAL, AWARE))
    shares = [best("share of the product rate", attention) for attention in (ORIGINAL, AWARE)]
    share = max((value for value in shares if value is not None), default=None)
    return [
        target(f"{size}, share of the product rate", share, least=TARGET_SHARE),
        target(f"{size}, time of entity-aware / original", divide(original, aware), most=TARGET_ATTENTION),
        target(f"{size}, x transformers", best("x transformers", AWARE), least=TARGET_TRANSFORMERS),
    ]


def time_rows(rows: list[Record]) -> list[Record]:
    """The parts' shares of a step of one micro-batch, and the milliseconds of both."""
    table = []
    for row in rows:
        if "shares" in row:
            line = kind_of(row)
            for name, key in (("micro-batch, ms", "seconds"), ("optimiser, ms", "optimiser_seconds")):
                line[name] = 1e3 * (median(each[key] for each in row["rows"]) or 0.0)
            table.append(line | {f"{part}, share": share for part, share in row["shares"].items()})
    return table


def step_rows(rows: list[Record], published: float | None) -> list[Record]:
    """Steps of pretraining as `benchmarks.model.pretrain` tells them, by mode."""
    table = []
    for row in rows:
        line = training_rows([row])[0]
        flops = [work / time for work, time in zip(row.get("flops", []), row.get("seconds", []), strict=True)]
        line["share of the published rate"] = divide(median(flops), published)
        table.append({"mode": "compiled" if row["recipe"]["compiled"] else "eager"} | line)
    return table


def checks(rows: list[Record]) -> list[Record]:
    """Every loss that was measured is a number."""
    found = []
    for row in rows:
        if losses := [each["loss"] for each in row.get("rows", [])]:
            name = ", ".join(str(value) for value in kind_of(row).values())
            found.append({"check": f"finite losses, {name}", "passed": all(map(math.isfinite, losses))})
    return found


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
    add("--minutes", type=float, default=5.0, help="for all measurements (default: %(default)g)")
    add("--rounds", type=count, default=6, help="micro-batches of a measurement (default: %(default)s)")
    add(
        "--tiny",
        action="store_true",
        dest="quick",
        help="a rehearsal: the preset demo, two rounds, nothing compiled",
    )
    modes = ("eager", "compiled")
    add("--modes", nargs="+", choices=modes, help="(default: both; eager with --tiny)")
    parser.set_defaults(device="cuda")
    options = parser.read()
    options.modes = options.modes or list(modes[:1] if options.quick else modes)
    return options


def fill(report: Report, micro: list[Record], steps: list[Record], notes: list[str]) -> None:
    """The tables of what was measured so far, and the notes: these, and why something is missing."""
    report.notes = list(notes)
    if micro:
        report.add("Targets", targets(micro, micro[0]["size"]))
    report.add("Micro-batches", speed_rows(micro))
    report.add("Where the time goes", time_rows(micro))
    published = published_rate(report.environment["machine"].get("gpu", ""))
    report.add("Steps of pretraining", step_rows(steps, published))
    report.add("Checks", checks(micro))
    for row in micro:
        report.note_failure(", ".join(str(value) for value in kind_of(row).values()), row)
    for row in steps:
        report.note_failure(f"pretraining {row['size']}, {row['recipe']}", row)
    report.measured |= {"measurements": micro, "steps": steps}


def main() -> None:
    options = read_options()
    plan = TINY if options.quick else replace(FULL, rounds=options.rounds)
    report = Report("On a GPU" if options.device != "cpu" else "Rehearsal on a CPU", options, PACKAGES)
    notes = list(report.notes)
    if not options.sequences:
        notes.append("The sequences are random, of few ids and of lengths that are drawn evenly.")

    def keep(micro: list[Record], steps: list[Record]) -> None:
        fill(report, micro, steps, notes)
        report.write()  # at once: a machine that is lent may be taken back

    with tempfile.TemporaryDirectory() as name:
        sequences = options.sequences or make_sequences(Path(name) / "sequences", options.quick)
        measure(options, plan, sequences, keep)
    report.finish()


if __name__ == "__main__":
    main()
