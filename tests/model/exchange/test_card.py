"""The model card: the figures are there, and nothing in them is Markdown."""

import itertools
import json
from pathlib import Path

import pytest

from model.exchange.card import escape, model_card, read_figures
from tests.support.models import TINY

COUNTS = {"sequences": 1200, "words": 3_400_000, "annotations": 56, "unknown_entities": 7}
FIGURES = {
    "sequences": COUNTS,
    "held_out": COUNTS | {"sequences": 12},
    "drops": {"links:crosses_sentence": 1281, "links:<b>": 3},
    "corpus": {"dump": "a_b.xml | [x](http://y)", "language": "en"},
}


def test_card_shows_architecture_parameters_and_corpus() -> None:
    card = model_card(TINY, 123_456, FIGURES, lite=False)
    assert card.startswith("---\nlibrary_name: transformers\n")
    for line in (
        "# LUKE, 2 layers of width 16",
        "| parameters | 123,456 |",
        "| hidden\\_size | 16 |",
        "| sequences | 1,200 | 12 |",
        "| unknown entities | 7 | 7 |",
        "| links\\:crosses\\_sentence | 1,281 |",
        "| links\\:&lt;b&gt; | 3 |",
        "| dump | a\\_b.xml \\| \\[x\\]\\(http\\://y\\) |",
        "| language | en |",
    ):
        assert line in card.splitlines()
    assert "CC BY-SA" in card
    assert "word_encoder" not in card


def test_tables_have_as_many_cells_in_each_row() -> None:
    lines = model_card(TINY, 1, FIGURES, lite=True).splitlines()
    rows = [line.replace("\\|", "") for line in lines]
    for above, row in itertools.pairwise(rows):
        if above.startswith("|") and row.startswith("|"):
            assert above.count("|") == row.count("|"), row


def test_card_without_figures_says_so() -> None:
    assert "Nothing was said about the corpus" in model_card(TINY, 1, {}, lite=False)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", "a\\|b"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert\\(1\\)&lt;/script&gt;"),
        ("x\n# y", "x \\# y"),
        ("`*_~$!`", "\\`\\*\\_\\~\\$\\!\\`"),
        ("www.example.org me@example.org &amp;", "www\\.example.org me\\@example.org &amp;amp;"),
        ("1e-05 0.1, 3 + 4", "1e-05 0.1, 3 + 4"),
        ("\\", "\\\\"),
    ],
)
def test_text_is_shown_as_it_is(text: str, escaped: str) -> None:
    assert escape(text) == escaped


def test_figures_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "statistics.json"
    with pytest.raises(ValueError, match=r"statistics\.json: no such file; give statistics\.json of the seq"):
        read_figures(path)
    path.write_text(json.dumps(FIGURES))
    assert read_figures(path) == FIGURES
    path.write_text(json.dumps(FIGURES | {"held_out": {"sequences": 1}}))
    with pytest.raises(ValueError, match=r"statistics\.json: held_out: words is None, wanted a count"):
        read_figures(path)
    path.write_text(json.dumps(FIGURES | {"drops": {"a": "b"}}))
    with pytest.raises(ValueError, match=r"statistics\.json: drops: a is 'b', wanted a count"):
        read_figures(path)
    path.write_text("[]")
    with pytest.raises(ValueError, match=r"statistics\.json: list found, a JSON object wanted"):
        read_figures(path)
