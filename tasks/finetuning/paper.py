"""The 12 tables of the paper: 8 of results (in percent), 4 of hyper-parameters, with all their rows.

Their cells are in paper.json; a test compares each with the paper's LaTeX. `fine_tuning` says how a task was trained,
and `Table.measures` what a column of results is.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

Cell = float | str | None

DATASETS: Mapping[str, str] = {
    "entity_typing": "Open Entity",
    "relation_classification": "TACRED",
    "ner": "CoNLL-2003",
    "cloze_qa": "ReCoRD",
    "extractive_qa": "SQuAD",
}
METRICS: Mapping[str, str] = {"Prec.": "precision", "Rec.": "recall", "F1": "f1", "EM": "exact_match"}
VARIANT_OF_ROW: Mapping[str, str] = {
    "LUKE": "luke",
    "Entity-aware Attention": "luke",
    "Original Attention": "luke_original_attention",
    "LUKE w/o entity inputs": "luke_no_entities",
    "RoBERTa": "roberta",
    "RoBERTa w/ extra training": "roberta_extra_training",
}
_RESULT_COLUMN = re.compile(r"(?:(?P<dataset>.+) \()?(?:(?P<split>Dev|Test) )?(?P<metric>Prec\.|Rec\.|F1|EM)\)?")


@dataclass(frozen=True)
class Measure:
    """A figure that is measured: `split` is dev or test, `metric` a value of METRICS."""

    task: str
    split: str
    metric: str


@dataclass(frozen=True)
class Row:
    """A system or a hyper-parameter, and a value for each column: a number, other text, None where it has "-"."""

    name: str
    values: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """`label` is the LaTeX label, `columns` has not the column of names; `task` where all results are of one."""

    number: int
    label: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    task: str

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Return what each column measures, on the test set where it names no split; empty for hyper-parameters."""
        tasks = {dataset: task for task, dataset in DATASETS.items()}
        matches = filter(None, map(_RESULT_COLUMN.fullmatch, self.columns))
        return tuple(
            Measure(
                tasks[match["dataset"]] if match["dataset"] else self.task,
                (match["split"] or "test").lower(),
                METRICS[match["metric"]],
            )
            for match in matches
        )

    def column(self, name: str) -> dict[str, Cell]:
        """The values of a column by the names of their rows."""
        index = self.columns.index(name)
        return {row.name: row.values[index] for row in self.rows}

    def is_best(self, row: Row, column: str) -> bool:
        """Return whether the paper prints the cell in bold: the highest value of a column of results."""
        values = [value for value in self.column(column).values() if isinstance(value, float)]
        return bool(self.measures) and row.values[self.columns.index(column)] == max(values)


def fine_tuning(task: str) -> dict[str, Cell]:
    """Return how LUKE was fine-tuned on a task, by the names of the rows of Tables 11 and 12.

    The presets `base` and `large` of each task repeat these values; a test compares them.
    """
    return FINE_TUNING.column(DATASETS[task]) | FINE_TUNING_COMMON.column("Value")


def read_tables(path: Path) -> tuple[Table, ...]:
    """Return the tables of a file; every row has a value for each column."""
    found = []
    for table in json.loads(path.read_text(encoding="utf-8")):
        rows = tuple(Row(name, tuple(values)) for name, *values in table["rows"])
        found.append(Table(**{"task": "", **table, "columns": tuple(table["columns"]), "rows": rows}))
    return tuple(found)


TABLES = read_tables(Path(__file__).with_name("paper.json"))
FINE_TUNING, FINE_TUNING_COMMON = TABLES[10:]
