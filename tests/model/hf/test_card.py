"""The model card: the figures are there, nothing in them is Markdown, and its program runs."""

import contextlib
import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from model.hf.card import escape, fine_tuned_card, model_card, read_training
from tests.support.models import TINY

COUNTS = {"sequences": 1200, "words": 3_400_000, "annotations": 56, "unknown_entities": 7}
CORPUS = {
    "sequences": COUNTS,
    "held_out": COUNTS | {"sequences": 12},
    "corpus": {"dump": "a_b.xml | [x](http://y)", "language": "en"},
}
TRAINING: dict[str, dict[str, Any]] = {
    "pretraining": {
        "preset": "tiny",
        "base_model": "someone/roberta@main",
        "base_model_is_folder": False,
        "profile": "fixed",
        "seed": 42,
        "recipe": {"masked_word_share": 0.15},
        "changes": {"steps": [100, 100], "learning_rate": [1e-4, 1e-5]},
    },
    "evaluation": {"step": 200, "masked_word_perplexity": 12.345678, "known_entity_seen_0_top_1": 0.25},
}


TEXT = "Ada Lovelace was born in London."  # of the programs


def answer(folder: Path, text: str = TEXT) -> str:
    """The line that the program of a folder's card prints, with another text than its own."""
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    assert TEXT in code or text == TEXT
    code = code.replace(repr(TEXT).replace("'", '"'), repr(text))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code.replace("this folder", str(folder)), str(folder / "README.md"), "exec"), {})
    return printed.getvalue().strip()


def head(path: Path, card: str) -> dict[str, Any]:
    """The head of a card by the hub's own reader."""
    from huggingface_hub import metadata_load

    path.write_text(card, encoding="utf-8")
    return dict(metadata_load(path))


def test_a_card_says_what_the_model_is_and_from_what_it_was_made(tmp_path: Path) -> None:
    card = model_card(TINY, 123_456, CORPUS | TRAINING, lite=False)
    lines = card.splitlines()
    for line in (
        "# LUKE, 2 layers of width 16",
        "| parameters | 123,456 |",
        "| sequences | 1,200 | 12 |",
        "| dump | a\\_b.xml \\| \\[x\\]\\(http\\://y\\) |",
        "| base model | someone/roberta\\@main |",
        "| masked word perplexity | 12.346 |",
        "Other than the preset tiny: steps 100/100, learning\\_rate 0.0001/1e-05.",
    ):
        assert line in lines
    assert "CC BY-SA" in card
    assert "seen" not in card
    for above, row in itertools.pairwise(line.replace("\\|", "") for line in lines):
        if above.startswith("|") and row.startswith("|"):
            assert above.count("|") == row.count("|"), row
    assert head(tmp_path / "README.md", card) == {
        "library_name": "transformers",
        "pipeline_tag": "fill-mask",
        "tags": ["luke"],
        "language": ["en"],
        "datasets": ["wikipedia"],
        "base_model": "someone/roberta",
    }


def test_what_is_not_known_is_not_in_a_card(tmp_path: Path) -> None:
    card = model_card(TINY, 1, {}, lite=False)
    assert "| corpus | unknown |" in card
    path = tmp_path / "README.md"
    assert head(path, card).keys() == {"library_name", "pipeline_tag", "tags", "datasets"}
    own = TRAINING["pretraining"] | {"base_model": "mine", "base_model_is_folder": True}
    assert "base_model" not in head(path, model_card(TINY, 1, {"pretraining": own}, lite=False))


def test_a_word_head_that_was_never_trained_is_told() -> None:
    whole = TRAINING["pretraining"] | {"recipe": {"masked_word_share": 0.0}, "word_head": False}
    card = model_card(TINY, 1, {"pretraining": whole}, lite=False)
    assert 'pipeline_tag: "feature-extraction"' in card
    assert "masked entities alone, words whole. Its word head was never trained" in card
    assert "never trained" not in model_card(TINY, 1, TRAINING, lite=False)


def test_training_is_read_from_the_model_s_folder(tmp_path: Path) -> None:
    assert read_training(tmp_path) == {"pretraining": {}, "evaluation": {}}
    (tmp_path / "pretraining.json").write_text(json.dumps(TRAINING["pretraining"]))
    (tmp_path / "evaluation.jsonl").write_text('{"step": 1}\n' + json.dumps(TRAINING["evaluation"]) + "\n")
    assert read_training(tmp_path) == TRAINING


def test_card_of_a_fine_tuned_model(tmp_path: Path) -> None:
    values = {"task": "ner", "variant": "luke", "preset": "base", "profile": "fixed", "seed": 1}
    values |= {"labels": ["O", "A_B"], "hyperparameters": {"learning_rate": 1e-5, "betas": [0.9, 0.98]}}
    scores = {"dev": {"f1": 0.5, "precision": 0.25}, "test": {"f1": 1 / 3}}
    name = "LukeForEntitySpanClassification"
    card = fine_tuned_card(name, name, values, scores, is_bert=False, has_entities=True)
    for line in ("| f1 | 0.5 | 0.33333 |", "| precision | 0.25 |  |", "| betas | 0.9/0.98 |"):
        assert line in card.splitlines()
    assert "Labels: O, A\\_B." in card
    assert head(tmp_path / "README.md", card) == {
        "library_name": "transformers",
        "tags": ["luke"],
        "metrics": ["precision", "f1"],
    }


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a|b", "a\\|b"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert\\(1\\)&lt;/script&gt;"),
        ("x\n# y", "x \\# y"),
        ("`*_~$!`", "\\`\\*\\_\\~\\$\\!\\`"),
        ("www.example.org me@example.org &amp;", "www\\.example.org me\\@example.org &amp;amp;"),
        ("1e-05 0.1, 3 + 4", "1e-05 0.1, 3 + 4"),
    ],
)
def test_text_is_shown_as_it_is(text: str, escaped: str) -> None:
    assert escape(text) == escaped
