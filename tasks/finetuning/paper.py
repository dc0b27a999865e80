"""The 12 tables of the paper: 8 of results (in percent), 4 of hyper-parameters, with all their rows.

Their cells are in paper.json; a test compares each with the paper's LaTeX. `fine_tuning` says how a task was trained,
and `Table.measures` what a column of results is.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Cell = float | str | None

_PAPER = json.loads(Path(__file__).with_name("paper.json").read_text(encoding="utf-8"))
DATASETS: Mapping[str, str] = _PAPER["datasets"]  # of each task
VARIANT_OF_ROW: Mapping[str, str] = _PAPER["variant_of_row"]


@dataclass(frozen=True)
class Measure:
    """A figure that is measured: `split` is dev or test, `metric` a score of the task."""

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
    """`label` is the LaTeX label; `columns` has not the column of names. Of results `measures` says what each is."""

    number: int
    label: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    measures: tuple[Measure, ...]

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


def _table(values: Mapping[str, Any]) -> Table:
    """A table of the file; every row has a value for each column."""
    rows = tuple(Row(name, tuple(cells)) for name, *cells in values["rows"])
    measures = tuple(Measure(*each) for each in values.get("measures", ()))
    return Table(**{**values, "columns": tuple(values["columns"]), "rows": rows, "measures": measures})


TABLES = tuple(map(_table, _PAPER["tables"]))
FINE_TUNING, FINE_TUNING_COMMON = TABLES[10:]
