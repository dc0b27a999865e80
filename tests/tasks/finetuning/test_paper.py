"""The paper's tables cell by cell against its LaTeX, and what is looked up in them."""

import contextlib
import re
from pathlib import Path

import pytest

from tasks.finetuning.finetune import TASKS
from tasks.finetuning.paper import DATASETS, TABLES, VARIANT_OF_ROW, Cell, Table
from tasks.finetuning.variants import VARIANTS

TABLE = re.compile(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", re.DOTALL)
TABULAR = re.compile(r"\\begin\{tabular\}\{[lc|]+\}(.*?)\\end\{tabular\}", re.DOTALL)
BOLD = re.compile(r"\\textbf\{([^{}]*)\}")
SYMBOLS = {r"$\beta_1$": "β1", r"$\beta_2$": "β2", r"$\epsilon$": "ε", r"\%": "%"}


Printed = tuple[str, list[str], list[tuple[str, list[tuple[Cell, bool]]]]]
"""Label, columns and rows of a table; a row is a name, and its cells with whether they are bold."""


@pytest.fixture(scope="module")
def latex(shared: Path) -> str:
    found = sorted((shared / "paper").glob("*.txt"))
    if not found:
        pytest.skip(f"the paper's LaTeX is not in {shared / 'paper'}")
    (path,) = found
    return re.sub(r"(?<!\\)%.*", "", path.read_text(encoding="utf-8"))


def plain(text: str) -> str:
    """A cell without its mark-up; what this does not know is an error, so that nothing is lost."""
    text = re.sub(r"\\newcite\{([A-Z][a-z]+)(\d{4})\w*(?:-\w+)*\}", r"\1 et al. (\2)", text)
    text = re.sub(r"\\cite\{[^{}]*\}", "", text)
    text = BOLD.sub(r"\1", text)
    for command, character in SYMBOLS.items():
        text = text.replace(command, character)
    assert not re.search(r"[\\{}$]", text), f"unknown mark-up in a table's cell: {text!r}"
    return " ".join(text.split())


def printed_cell(text: str) -> tuple[Cell, bool]:
    value, is_bold = plain(text), BOLD.fullmatch(text.strip()) is not None
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(value), is_bold
    return None if value == "-" else value, is_bold


def printed_tables(latex: str) -> list[Printed]:
    return [printed_table(match.group()) for match in TABLE.finditer(latex)]


def printed_table(latex: str) -> Printed:
    (label,) = re.findall(r"\\label\{(.+?)\}", latex)
    (body,) = TABULAR.findall(latex)
    flat = re.sub(r"\\makecell\{([^{}]*)\}", lambda match: match[1].replace(r"\\", " "), body)
    *lines, end = (line.replace(r"\hline", "").strip() for line in flat.split(r"\\"))
    assert not end, f"{label}: a last row that does not end: {end!r}"
    header, *rows = (re.split(r"(?<!\\)&", line) for line in lines)
    name, *columns = map(plain, header)
    assert name == "Name", label
    assert all(len(row) == len(header) for row in rows), label
    return label, columns, [(plain(row[0]), [*map(printed_cell, row[1:])]) for row in rows]


def as_printed(table: Table) -> Printed:
    bold = [[table.is_best(row, column) for column in table.columns] for row in table.rows]
    rows = zip(table.rows, bold, strict=True)
    return (table.label, [*table.columns], [(row.name, [*zip(row.values, of, strict=True)]) for row, of in rows])


def test_all_tables_are_there(latex: str) -> None:
    assert latex.count(r"\begin{tabular}") == latex.count(r"\begin{table") == 12
    assert [table.label for table in TABLES] == [label for label, *_ in printed_tables(latex)]
    assert [table.number for table in TABLES] == [*range(1, 13)]
    assert len({table.title for table in TABLES}) == 12
    assert sum(bool(table.measures) for table in TABLES) == 8


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.label)
def test_every_cell_is_as_printed(table: Table, latex: str) -> None:
    (printed,) = (other for other in printed_tables(latex) if other[0] == table.label)
    assert as_printed(table) == printed
    assert repr(as_printed(table)) == repr(printed), "also that 1 is not 1.0"


def test_every_row_of_ours_is_one_of_the_paper() -> None:
    assert set(VARIANTS) <= set(VARIANT_OF_ROW.values())
    assert set(TASKS) <= set(DATASETS)
