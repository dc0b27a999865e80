"""The LaTeX document: whatever is in it, it is the tables and nothing else."""

import re
import shutil
import subprocess

import pytest

from tasks.finetuning.paper import DATASETS, TABLES, VARIANT_OF_ROW
from tests.support.compared import HOSTILE, cell
from tests.support.properties import given, st
from tests.workflows.report.paper.test_comparison import FULL
from workflows.report.paper.comparison import compare
from workflows.report.rendering import ACCENTS, BREAK, CHARACTERS, escape, render_latex

VARIANTS = tuple(dict.fromkeys(VARIANT_OF_ROW.values()))
# What escaping may leave: the replacements, an accent over a letter, a character's number, and plain characters.
REPLACED = "|".join(map(re.escape, sorted(CHARACTERS.values(), key=len, reverse=True)))
ACCENTED = rf"\\[{re.escape(''.join(ACCENTS.values()))}]\{{[A-Za-z]\}}"
ESCAPED = re.compile(
    rf"(?:{REPLACED}|{ACCENTED}|{re.escape(BREAK)}|\\texttt\{{U\+[0-9A-F]{{4,6}}\}}|[A-Za-z0-9 !()+,./:;=?@])*"
)


@given(st.text())
def test_any_text_is_only_text(text) -> None:
    assert ESCAPED.fullmatch(escape(text)), escape(text)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_no_character_is_lost(text) -> None:
    back = {replacement: character for character, replacement in CHARACTERS.items()}
    parts = re.findall(rf"{REPLACED}|\\texttt\{{U\+[0-9A-F]+\}}|.", escape(text).replace(BREAK, ""))
    numbers = re.compile(r"\\texttt\{U\+([0-9A-F]+)\}")
    plain = [
        chr(int(match[1], 16)) if (match := numbers.match(part)) else back.get(part, part) for part in parts
    ]
    assert "".join(plain) == " ".join(text.split())


def test_letters_of_other_languages() -> None:
    assert escape("é Ő ž ş Ą") == r"\'{e} \H{O} \v{z} \c{s} \k{A}"
    assert escape("東 \u0001 \u202e") == r"\texttt{U+6771} \texttt{U+0001} \texttt{U+202E}"


def test_tables_are_whole() -> None:
    document = render_latex(compare(FULL))
    assert document.isascii()
    depth = []
    for command, name in re.findall(r"\\(begin|end)\{(\w+)\}", document):
        if command == "begin":
            depth.append(name)
        else:
            assert depth.pop() == name
    assert not depth
    assert "table" not in re.findall(r"\\begin\{(\w+)\}", document), "a float cannot break over pages"
    bodies = re.findall(r"\\begin\{tabular\}\{(Lr+)\}(.*?)\\end\{tabular\}", document, re.DOTALL)
    tables = [table for table in TABLES if table.measures]
    assert len(bodies) == document.count(r"\titled{") == len(tables) == 8
    for (columns, body), table in zip(bodies, tables, strict=True):
        lines = [line for line in body.splitlines() if line.endswith(r" \\")]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(columns) - 1}
        assert len(lines) >= 1 + len(table.rows)
        rules = [line for line in body.splitlines() if line and not line.endswith(r" \\")]
        assert rules == [r"\toprule", r"\midrule", r"\bottomrule"]
    unescaped = re.sub(r"\\[{}]", "", document)
    assert unescaped.count("{") == unescaped.count("}")


def test_figures_are_there() -> None:
    document = render_latex(compare(FULL))
    assert r"LUKE & \textbf{94.3} \\" in document
    assert r"\textit{LUKE (ours)} & 94.0 $\pm$ 1.4 (2 of 3 seeds) \\" in document
    assert r"\textit{\quad difference to the paper} & $-$0.3 \\" in document
    assert r"\textit{LUKE (ours: example data, tiny model, other hyper{-}parameters)}" in document
    assert r"\input" not in document.replace(r"\usepackage[utf8]{inputenc}", "")


def test_notes_stand_below_their_table_as_text_that_pages_can_break() -> None:
    """Neither in a float nor in a box, all before the page ends."""
    reason = "it went wrong " * 40 + "at last"
    cells = [cell("ner", variant, state="failed", reason=reason) for variant in VARIANTS]
    document = render_latex(compare(cells))
    for page in document.split(r"\clearpage")[:-1]:
        table, notes = page.split(r"\end{center}")
        assert "at last" not in table
        assert notes.strip().startswith(r"{\raggedright\footnotesize")
        assert re.findall(r"\\(?:begin|parbox|resizebox|fitted|vbox)\b", notes) == []
    rows = sum(row.name in VARIANT_OF_ROW for table in TABLES for row in table.rows
               if any(measure.task == "ner" for measure in table.measures))  # fmt: skip
    assert document.count("at last") == rows


def test_long_words_may_be_broken() -> None:
    """Else a path runs over the edge of the page."""
    path = "/data/" + "a" * 300
    assert max(map(len, escape(path).split(BREAK))) < 40
    assert escape(path).replace(BREAK, "") == path
    assert BREAK not in escape("words of no great length " * 9)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_it_compiles(tmp_path) -> None:
    hostile = [cell(data=HOSTILE, weights=HOSTILE), cell(variant="roberta", state="failed", reason=HOSTILE)]
    reason = "/data/" + "a" * 500 + HOSTILE * 3 + chr(0x1F600) * 99 + " it went wrong" * 40
    long = [
        cell(task, variant, state="failed", reason=f"{reason} {task}")
        for task in DATASETS
        for variant in VARIANTS
    ]
    for name, cells in (("full", FULL), ("empty", []), ("hostile", hostile), ("long", long)):
        (tmp_path / f"{name}.tex").write_text(render_latex(compare(cells)), encoding="utf-8")
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            errors="replace",
        )
        assert done.returncode == 0, done.stdout[-3000:]
        log = (tmp_path / f"{name}.log").read_text(errors="replace")
        for loss in ("Missing character", "Float too large", r"Overfull \hbox", r"Overfull \vbox"):
            assert loss not in log
