"""Each figure of the documents stands in the row of a result that a link beside it selects.

The title of a link to a result is the way to the row: `[2026-11-26](FILE "Means>wikigold;luke")`. Each part, up to
a ">", leads to the next line of the file of which a cell, or the line itself, begins so; the last one is the row.
Cells are parted by semicolons. A figure is a number with a point, or any number in a column that is set to the right.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from tests.support import ROOT

RESULTS = ROOT / "benchmarks" / "results"
# Here each line with a figure has to select a row; elsewhere a line that selects one is held to it.
HELD = [ROOT / name for name in ("README.md", "docs/explanation/evidence.md", "docs/explanation/measured.md")]
OTHERS = [
    path
    for path in [ROOT / "benchmarks" / "LOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if path not in HELD and "results" not in path.parts
]
LINK = re.compile(r'\]\([^)\s]*benchmarks/results/([\w.-]+) "([^"]*)"\)')
# Targets of links, code, and versions of programs.
NO_FIGURE = re.compile(r'\]\(\S+( "[^"]*")?\)|`[^`]*`|(Python|torch|wikipedia2vec|wikiextractor) \d\.\d+')
NUMBER = re.compile(r"(?<![\w.,-])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w,.-]*\d)(?!\w)")


def value(figure: str) -> Decimal:
    return Decimal(figure.replace(",", ""))


def unit(figure: str) -> Decimal:
    """One in the last digit."""
    return Decimal(1).scaleb(-len(figure.partition(".")[2]))


@cache
def row(name: str, title: str) -> list[Decimal]:
    """The numbers of the row to which a title leads."""
    lines = iter((RESULTS / name).read_text(encoding="utf-8").splitlines())
    cells: list[str] = []
    for part in title.split(">"):
        for line in lines:
            cells = [" ".join(cell.split()) for cell in line.strip("|# ").split("|")]
            if any(";".join(cells[at:]).startswith(part) for at in range(len(cells))):
                break
        else:
            raise AssertionError(f"{name}: {title!r} leads nowhere")
    return [value(number) for number in re.findall(r"-?\d+(?:,\d{3})*(?:\.\d+)?", ";".join(cells))]


def stands(figure: str, numbers: list[Decimal]) -> bool:
    """Return whether a figure is one of some numbers, perhaps rounded or without its minus ("4.72 points below")."""
    if "-" not in figure:
        numbers = [*numbers, *map(abs, numbers)]
    return any(abs(number - value(figure)) <= unit(figure) / 2 for number in numbers)


def lines_of(text: str) -> Iterator[tuple[int, str, list[bool]]]:
    """The lines of a page outside of code: number, text, and of a table which columns are set to the right."""
    right: list[bool] = []
    is_code = False
    for number, line in enumerate(text.splitlines()):
        is_code ^= line.startswith("```")
        if re.fullmatch(r"\|[-:| ]+\|", line):
            right = [cell.strip().endswith("-:") for cell in line.strip("|").split("|")]
        elif not is_code:
            right = right if line.startswith("|") else []
            yield number, line, right


def figures(line: str, right: list[bool]) -> Iterator[re.Match[str]]:
    shown = NO_FIGURE.sub(lambda found: " " * len(found[0]), line)
    for number in NUMBER.finditer(shown):
        column = shown[: number.start()].count("|") - 1
        if "." in number[0] or (0 <= column < len(right) and right[column]):
            yield number


def faults(line: str, right: list[bool], is_held: bool = True) -> list[str]:
    """The figures of a line that stand in none of the rows that it selects."""
    links = LINK.findall(line)
    numbers = [number for name, title in links for number in row(name, title)]
    found = figures(line, right) if links or is_held else ()
    return [figure[0] for figure in found if not stands(figure[0], numbers)]


@pytest.mark.parametrize("page", [*HELD, *OTHERS], ids=lambda page: page.stem)
def test_each_figure_stands_in_the_row_that_is_selected_beside_it(page: Path) -> None:
    for number, line, right in lines_of(page.read_text(encoding="utf-8")):
        wrong = faults(line, right, page in HELD)
        assert not wrong, f"{page.relative_to(ROOT)}:{number + 1}: no row beside it has {', '.join(wrong)}"


def test_a_figure_that_is_moved_by_one_in_its_last_digit_is_noticed() -> None:
    """At least 95 % of them: some rows happen to have the next number, too."""
    noticed = []
    for page in HELD:
        for _, line, right in lines_of(page.read_text(encoding="utf-8")):
            for figure in figures(line, right):
                for step in (-1, 1):
                    moved = value(figure[0]) + step * unit(figure[0])
                    shown = f"{moved:,}" if "," in figure[0] else str(moved)
                    noticed.append(bool(faults(line[: figure.start()] + shown + line[figure.end() :], right)))
    assert len(noticed) > 500
    assert sum(noticed) / len(noticed) >= 0.95, f"{sum(noticed)} of {len(noticed)}"
