"""The words of rendered pages, and how what an extractor loses of them is counted."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.corpus.rendered import count_page, measure, read_page

HTML = """<div><p>Le mont a 892&#160;km<sup>2</sup><sup class="reference">[1]</sup> au <abbr>XX</abbr><sup>e</sup>
siècle.</p><table><tr><td><p>Boîte</p></td></tr></table><ul><li>Liste</li></ul>
<p style="x">Une <span style="display:none">cachée</span>route, dite <i>haute</i>, y mène<br>toujours.</p></div>"""
SOURCE = """Le mont a {{unité|892|km|2}}<ref>a</ref> au {{XXe siècle}}.

Une route{{incise|dite ''haute''}} y mène
toujours."""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    place = tmp_path / "fr" / "Mont.wikitext"
    place.parent.mkdir()
    place.write_text(SOURCE, "utf-8")
    place.with_suffix(".html").write_text(HTML, "utf-8")
    return place


def test_the_words_of_running_paragraphs(source: Path) -> None:
    page = read_page(source)
    assert page.language == "fr"
    assert " ".join(page.running) == "Le mont a 892 km2 au XXe siècle Une route dite haute y mène toujours"
    assert {"Boîte", "Liste"} <= page.shown
    assert "cachée" not in page.shown


@pytest.mark.parametrize(
    ("text", "lost", "foreign"),
    [
        ("Le mont a 892 km2 au XXe siècle. Une route, dite haute, y mène toujours.", {}, {}),
        ("Le mont a au. Une route y mène toujours.", {"unité": 2, "xXe siècle": 2, "incise": 2}, {}),
        (
            "Liste. Le mont a 892 km2 au 20e siècle. Une route, dite haute, y mène.",
            {"xXe siècle": 1, "(none)": 1},
            {"20e": 1},
        ),
    ],
)
def test_lost_and_foreign_words(source: Path, text: str, lost: dict[str, int], foreign: dict[str, int]) -> None:
    lost_by, foreign_by = Counter[str](), Counter[str]()
    counts = count_page(read_page(source), text, lost_by, foreign_by)
    assert (dict(lost_by), dict(foreign_by)) == (lost, foreign)
    assert (counts["words"], counts["lost"], counts["foreign"]) == (15, sum(lost.values()), sum(foreign.values()))


def test_a_row_has_shares(source: Path) -> None:
    row, details = measure([read_page(source)], lambda page: "Le mont a au nord. Une route y mène toujours.")
    assert (row["lost"], row["lost %"], row["foreign %"]) == (6, 40.0, 10.0)
    assert details[-1] == {"what": "foreign word", "name": "nord", "words": 1}
