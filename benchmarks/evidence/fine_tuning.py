"""What entities bring to fine-tuning: arms of pretraining, held against that of words alone.

    python -m benchmarks.evidence.fine_tuning --weights DIR --arm words DIR... --arm "words and entities" DIR...

Probes 3 to 5 of docs/explanation/evidence.md. The models of an arm are its pretrainings, in the order of their seeds.
The first arm is what the others are held against. Each fine-tuning is a cell, in a process of its own. The results are
written after each one, and the same command goes on where it was stopped.
"""

import itertools
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.evidence.disambiguation import SAMPLES, SEED
from benchmarks.harness.facts import commit
from benchmarks.harness.options import SHARED, Options, absolute, count
from benchmarks.harness.report import Record, Report, progress
from benchmarks.harness.workloads import run
from benchmarks.tasks.tasks import NARROW, PACKAGES, Cell
from model.files import CONFIG
from model.luke.config import SPECIAL_ENTITIES

SEEDS = (1, 2, 3, 4, 5)
WORDS_ALONE, WITH_ENTITIES = "roberta", "luke"
EXACT = 1 << 16  # so many permutations are tried one by one
Floats = NDArray[np.float64]


class Probe(NamedTuple):
    """A data set, its task, the figure of its test split, how many pretrainings of an arm it has, and its epochs.

    None stands for all of them, and for the preset's.
    """

    data: str
    task: str
    figure: str
    pretrainings: int | None
    epochs: int | None = None


PROBES = (
    Probe("wiki80-0.01", "relation_classification", "f1", None, epochs=15),  # of 13 steps
    Probe("wiki80-0.1", "relation_classification", "f1", None),
    Probe("wikigold-500", "ner", "f1", 1),
    Probe("wnut17-500", "ner", "f1", 1),
    Probe("semeval2010-task8", "relation_classification", "semeval_macro_f1", 1),
)


class Job(NamedTuple):
    """A cell of the table: the pretraining of an arm, by its place, with which a fine-tuning begins."""

    arm: str
    pretraining: int
    probe: Probe
    seed: int
    variant: str

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return f"{self.probe.data}: {self.arm}, pretraining {self.pretraining + 1}, seed {self.seed}"


def jobs_of(arms: dict[str, list[Path]], probes: Sequence[Probe]) -> list[Job]:
    """All cells: probe by probe, and seed by seed, so that what is there first is of all arms alike."""
    variants = {name: variant_of(folders[0]) for name, folders in arms.items()}
    return [
        Job(arm, place, probe, seed, variants[arm])
        for probe in probes
        for seed in SEEDS
        for arm, folders in arms.items()
        for place in range(len(folders[: probe.pretrainings]))
    ]


def variant_of(folder: Path) -> str:
    """The model's own: with entities where it has more than the special ones, and by words alone otherwise."""
    config: Record = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    return WITH_ENTITIES if config.get("entity_vocab_size", 0) > SPECIAL_ENTITIES else WORDS_ALONE


def fine_tuned(job: Job, folder: Path, *, weights: Path, shared: Path, device: str) -> Record:
    """What came of a cell, or its failure."""
    changes = NARROW | ({"epochs": job.probe.epochs} if job.probe.epochs else {})
    cell = Cell(job.probe.data, job.probe.task, job.variant, job.seed, changes=changes)
    given = {
        "cell": asdict(cell) | {"name": "cell"},
        "weights": str(weights),
        "shared": str(shared),
        "device": device,
    }
    found = run("tasks.splits", "fine_tune", given | {"pretrained": str(folder)}, threads=1)
    record = {"name": job.name, "arm": job.arm, "pretraining": job.pretraining, "data": job.probe.data}
    return record | {"seed": job.seed, "variant": job.variant, "commit": commit()} | found


# What the scores say


def scores_of(records: Sequence[Record], probe: Probe, arm: str) -> Floats:
    """(pretrainings, seeds): the figure in per cent; NaN where a cell is not done."""
    own = [each for each in records if (each["data"], each["arm"]) == (probe.data, arm) and "metrics" in each]
    table = np.full((1 + max((each["pretraining"] for each in own), default=0), len(SEEDS)), np.nan)
    for each in own:
        table[each["pretraining"], SEEDS.index(each["seed"])] = 100 * each["metrics"]["test"][probe.figure]
    return table


def interval(scores: Floats) -> tuple[float, float]:
    """95 % of the means of samples: of pretrainings, and of seeds within each of these (pretrainings, seeds)."""
    generator = np.random.default_rng(SEED)
    models, seeds = scores.shape
    drawn = generator.integers(models, size=(SAMPLES, models, 1))
    within = generator.integers(seeds, size=(SAMPLES, models, seeds))
    low, high = np.percentile(scores[drawn, within].mean(axis=(1, 2)), [2.5, 97.5])
    return float(low), float(high)


def p_value(differences: Floats) -> float:
    """How often a mean as far from zero comes about where the arms of each pair are exchanged at random.

    All ways are tried where they are few, else as many as there are samples.
    """
    values = differences.ravel()
    observed = abs(values.mean()) - 1e-9
    if 2 ** len(values) <= EXACT:
        signs = np.array([*itertools.product((1.0, -1.0), repeat=len(values))])
        return float((abs(signs @ values / len(values)) >= observed).mean())
    signs = np.random.default_rng(SEED).choice((1.0, -1.0), size=(SAMPLES, len(values)))
    return float((1 + (abs(signs @ values / len(values)) >= observed).sum()) / (1 + SAMPLES))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: each for how many are not smaller, and none below a smaller one."""
    order, found, largest = np.argsort(p_values, kind="stable"), [0.0] * len(p_values), 0.0
    for place, number in enumerate(order.tolist()):
        largest = max(largest, min(1.0, p_values[number] * (len(p_values) - place)))
        found[number] = largest
    return found


def tables(records: Sequence[Record], arms: Sequence[str]) -> tuple[list[Record], list[Record]]:
    """The score of each arm, and how each stands to the first one, where all cells of both are done."""
    rows, differences = list[Record](), list[Record]()
    for probe in PROBES:
        base = scores_of(records, probe, arms[0])
        for arm in arms:
            scores = scores_of(records, probe, arm)
            row: Record = {"data": probe.data, "arm": arm, "cells": int(np.isfinite(scores).sum())}
            if np.isfinite(scores).all():
                low, high = interval(scores)
                row |= {"mean": scores.mean(), "from": low, "to": high}
                row |= {"standard deviation": scores.std(ddof=1), "best": scores.max()}
                rows.append(row)
                if arm != arms[0] and scores.shape == base.shape and np.isfinite(base).all():
                    found = scores - base
                    low, high = interval(found)
                    line: Record = {"data": probe.data, "arms": f"{arm} less {arms[0]}", "mean": found.mean()}
                    differences.append(line | {"from": low, "to": high, "p": p_value(found)})
    for arm in {line["arms"] for line in differences}:
        own = [line for line in differences if line["arms"] == arm]
        # What is corrected for is all that was to be asked, so that nothing is said before the last one is done.
        corrected = holm([line["p"] for line in own]) if len(own) == len(PROBES) else [None] * len(own)
        for line, value in zip(own, corrected, strict=True):
            line["p by Holm"] = value
    return rows, differences


def fill(report: Report, records: list[Record], arms: Sequence[str], total: int) -> None:
    """The tables of what is done."""
    minutes = sum(each.get("cpu_seconds", 0) for each in records) / 60
    commits = ", ".join(sorted({each["commit"] for each in records}))
    counted = f"{len(records)} of {total} cells, {minutes:.0f} CPU minutes; a cell has one thread.\n"
    report.head = [f"Commits: {commits}.\n", counted]
    scores, differences = tables(records, arms)
    report.add("Scores", scores, "On test, in per cent, where all cells of an arm are done.")
    report.add("Differences", differences, "In points.")
    failed = [{"cell": each["name"], "failure": each["failure"]} for each in records if "failure" in each]
    report.add("Failures", failed)
    report.measured["cells"] = records


def main(arguments: list[str]) -> None:
    """Run the cells that are not done, and write the report after each."""
    options = Options("evidence.fine_tuning", __doc__)
    options.take("arms", "device")
    add = options.add_argument
    add("--weights", type=absolute, required=True, help="folder of the encoder and its tokenizer")
    add("--data", nargs="+", choices=[each.data for each in PROBES], help="these data sets alone")
    add("--jobs", type=count, default=os.cpu_count(), help="cells at a time (default: %(default)s)")
    add("--shared", type=absolute, default=SHARED, help="folder that holds data/ (default: LUKE_SHARED)")
    chosen = options.read(arguments)
    arms: dict[str, list[Path]] = chosen.arms
    output: Path = chosen.output
    known = json.loads(output.read_text()) if output.is_file() else {"cells": []}
    records = [each for each in known["cells"] if "failure" not in each]
    probes = [each for each in PROBES if not chosen.data or each.data in chosen.data]
    jobs, done = jobs_of(arms, probes), {each["name"] for each in records}
    report = Report("What entities bring to fine-tuning", chosen, PACKAGES)
    waiting = [job for job in jobs if job.name not in done]
    given = {name: getattr(chosen, name) for name in ("weights", "shared", "device")}
    with ThreadPoolExecutor(chosen.jobs) as pool:
        asked = [pool.submit(fine_tuned, job, arms[job.arm][job.pretraining], **given) for job in waiting]
        for future in as_completed(asked):
            records.append(future.result())
            fill(report, records, [*arms], len(jobs))
            report.write()
            progress(f"{future.result()['name']}: {future.result().get('failure', 'done')}")
    fill(report, records, [*arms], len(jobs))
    report.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
