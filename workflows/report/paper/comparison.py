"""Our results beside the paper's: the report's tables as data; pure functions of experiments.json.

In the paper's 8 tables of results each row of a model that this project has is followed by ours: means and sample
deviations over seeds, in percent. What was not run, or did not end well, is shown as that. A row made without the
paper's data, size of model or hyper-parameters is marked; `caveats` says which marks leave a difference to the paper.
There is none to its figures on hidden test sets. The list of all experiments ends the results.
"""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.finetuning.paper import TABLES, VARIANT_OF_ROW, Measure, Row, Table
from workflows.report.paper import caveats
from workflows.report.paper.caveats import DONE, Cell

SCORES = ("precision", "recall", "f1", "exact_match", "semeval_macro_f1")
COUNTS = ("gold", "predicted", "correct")
HIDDEN_TEST = ("cloze_qa", "extractive_qa")


@dataclass(frozen=True)
class PaperFigure:
    """The figure that the paper prints, in percent, None where it has "-"; `is_best` where it prints it bold."""

    percent: float | None
    is_best: bool


@dataclass(frozen=True)
class OurFigure:
    """Ours for a figure of the paper, over the seeds that are done."""

    mean: float | None  # in percent; None where no seed is done, and for the project's examples
    deviation: float | None  # of two seeds or more
    best: float | None  # likewise
    seeds: int
    difference: float | None  # the mean less the paper's figure of the same row; None where these are unlike things
    # "done", the state of all cells ("failed", "no data", "example data", ...), or how many seeds of how many are done.
    state: str

    @property
    def text(self) -> str:
        if self.mean is None:
            return self.state
        deviation = "" if self.deviation is None else f" ± {self.deviation:.1f}"
        return f"{self.mean:.1f}{deviation}" + f" ({self.state})" * (self.state != DONE)

    @property
    def is_problem(self) -> bool:
        return self.state not in (DONE, caveats.EXAMPLE_DATA)


@dataclass(frozen=True)
class OurRow:
    """Ours for a row of the paper."""

    variant: str
    figures: tuple[OurFigure, ...]  # one for each column
    origins: tuple[caveats.Origin, ...]  # one for each task that the table has
    marks: tuple[str, ...]  # with the data sets that they are true of, unless they are true of all

    @property
    def has_results(self) -> bool:
        """Return whether this row has a figure."""
        return any(figure.mean is not None for figure in self.figures)

    @property
    def is_problem(self) -> bool:
        """Return whether a figure is missing, or lacks seeds."""
        return any(figure.is_problem for figure in self.figures)


@dataclass(frozen=True)
class ResultRow:
    """A system of the paper, and ours where this project has the same."""

    name: str
    figures: tuple[PaperFigure, ...]
    ours: OurRow | None


@dataclass(frozen=True)
class ResultTable:
    """A table of the paper with ours: `headers` are what stands above its columns, `tasks` what fills it."""

    number: int
    label: str
    title: str
    columns: tuple[str, ...]
    headers: tuple[str, ...]
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...]
    tasks: tuple[str, ...]

    @property
    def has_results(self) -> bool:
        """Return whether a row of ours has a figure."""
        return any(row.ours and row.ours.has_results for row in self.rows)


Experiment = Mapping[str, Any]
"""A cell of the grid with its scores in percent by split; `types` has by split those of each class and counts."""


@dataclass(frozen=True)
class Compared:
    """All that the report shows of the results; `caveat`, if any, and `notes` come above the tables."""

    caveat: str
    notes: tuple[str, ...]
    results: tuple[ResultTable, ...]
    experiments: tuple[Experiment, ...]


def compare(cells: Sequence[Cell]) -> Compared:
    """The paper's tables with ours beside them, from the cells of a grid."""
    results = tuple(result_table(table, cells) for table in TABLES if table.measures)
    ours = [row.ours for table in results for row in table.rows if row.ours]
    marks = dict.fromkeys(mark for row in ours for origin in row.origins for mark in origin.marks)
    notes = (caveats.NOTES["rows"], *[caveats.NOTES["problems"]] * any(row.is_problem for row in ours))
    return Compared(caveats.meaning([*marks]), notes, results, tuple(map(experiment, cells)))


def result_table(table: Table, cells: Sequence[Cell]) -> ResultTable:
    """A table of the paper with ours; a star stands at columns whose test set was hidden."""
    hidden = [*map(_is_hidden, table.measures)]
    notes = [caveats.NOTES["hidden"]] * any(hidden)
    notes += [caveats.NOTES["choice"]] * any(measure.task == "cloze_qa" for measure in table.measures)
    headers = [column + "*" * each for column, each in zip(table.columns, hidden, strict=True)]
    rows = []
    for row in table.rows:
        printed = [
            PaperFigure(value if isinstance(value, float) else None, table.is_best(row, column))
            for column, value in zip(table.columns, row.values, strict=True)
        ]
        rows.append(ResultRow(row.name, tuple(printed), our_row(table, row, cells)))
    named = (table.number, table.label, table.title, table.columns)
    tasks = tuple(dict.fromkeys(measure.task for measure in table.measures))
    return ResultTable(*named, tuple(headers), tuple(rows), tuple(notes), tasks)


def _is_hidden(measure: Measure) -> bool:
    return measure.task in HIDDEN_TEST and measure.split == "test"


def our_row(table: Table, row: Row, cells: Sequence[Cell]) -> OurRow | None:
    """Ours for a row of the paper; None for a system that this project has not."""
    variant = VARIANT_OF_ROW.get(row.name)
    if variant is None:
        return None
    chosen = {
        task: [cell for cell in cells if (cell["task"], cell["variant"]) == (task, variant)]
        for task in dict.fromkeys(measure.task for measure in table.measures)
    }
    origins = {task: caveats.origin_of(task, found) for task, found in chosen.items()}
    figures = []
    for measure, value in zip(table.measures, row.values, strict=True):
        is_alike = origins[measure.task].has_difference and not _is_hidden(measure)
        paper = value if isinstance(value, float) and is_alike else None
        figures.append(our_figure(chosen[measure.task], measure, paper))
    found = tuple(origins.values())
    return OurRow(variant, tuple(figures), found, caveats.marks_of(found))


def our_figure(cells: Sequence[Cell], measure: Measure, paper: float | None) -> OurFigure:
    """Mean, deviation, best and difference to `paper` (percent) of the cells that differ in their seeds alone."""
    done = [100.0 * float(cell["metrics"][measure.split][measure.metric]) for cell in cells if cell["state"] == DONE]
    if not done:
        states = Counter(cell["state"] for cell in cells)
        return OurFigure(None, None, None, 0, None, ", ".join(states) or "not run")
    state = DONE if len(done) == len(cells) else f"{len(done)} of {len(cells)} seeds"
    if any(cell["data"]["is_example"] for cell in cells):
        return OurFigure(None, None, None, len(done), None, caveats.EXAMPLE_DATA if state == DONE else state)
    mean = statistics.fmean(done)
    deviation, best = (statistics.stdev(done), max(done)) if len(done) > 1 else (None, None)
    return OurFigure(mean, deviation, best, len(done), None if paper is None else mean - paper, state)


def experiment(cell: Cell) -> Experiment:
    """A cell as the list of all experiments shows it."""
    metrics, hyper = cell["metrics"], cell["configuration"].get("hyperparameters", {})
    splits = {split: metrics[split] for split in ("dev", "test") if split in metrics}
    own = ("task", "variant", "seed", "state", "reason", "folder", "preset")
    return {
        **{name: cell[name] for name in own},
        "data": cell["data"]["name"],
        "is_example": cell["data"]["is_example"],
        "weights": caveats.weights_text(cell["weights"]),
        "kept_epoch": metrics.get("kept_epoch"),
        **{name: hyper.get(name) for name in ("epochs", "learning_rate", "batch_size")},
        "scores": {split: _scores(scores) for split, scores in splits.items()},
        "types": {
            split: {
                name: _scores(of_type) | {count: of_type[count] for count in COUNTS if count in of_type}
                for name, of_type in sorted(scores.get("types", {}).items())
            }
            for split, scores in splits.items()
        },
    }


def _scores(scores: Mapping[str, Any]) -> dict[str, float]:
    return {name: 100.0 * float(scores[name]) for name in SCORES if name in scores}
