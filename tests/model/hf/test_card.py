"""The model card: the figures are there, and nothing in them is Markdown."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from model.hf.card import escape, fine_tuned_card, model_card, read_figures, read_training
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
    assert card.startswith('---\nlibrary_name: "transformers"\n')
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


TRAINING: dict[str, dict[str, Any]] = {
    "pretraining": {
        "preset": "tiny",
        "base_model": "someone/roberta",
        "base_model_is_folder": False,
        "entities": True,
        "profile": "fixed",
        "seed": 42,
        "recipe": {"num_hidden_layers": 2, "steps": [100, 100], "learning_rate": [1e-4, 1e-5]},
        "changes": {"steps": [100, 100]},
    },
    "evaluation": {"step": 200, "masked_word_perplexity": 12.345678, "known_entity_top_1": 0.25},
}


def test_the_head_is_what_the_hub_reads(tmp_path: Path) -> None:
    """Every field of it, by the hub's own reader; nothing that is not known."""
    from huggingface_hub import ModelCard, metadata_load

    path = tmp_path / "README.md"
    path.write_text(model_card(TINY, 1, FIGURES | TRAINING, lite=False), encoding="utf-8")
    found = metadata_load(path)
    assert {name: value for name, value in found.items() if name != "model-index"} == {
        "library_name": "transformers",
        "pipeline_tag": "fill-mask",
        "tags": ["luke"],
        "language": ["en"],
        "datasets": ["wikipedia"],
        "base_model": "someone/roberta",
        "metrics": ["accuracy", "perplexity"],
    }
    results = ModelCard.load(path).data.eval_results
    assert results is not None
    assert [(each.metric_type, each.metric_name, each.metric_value) for each in results] == [
        ("perplexity", "perplexity of masked words", 12.3457),
        ("accuracy", "accuracy of masked entities", 0.25),
    ]
    assert {each.dataset_name for each in results} == {"Wikipedia, a_b.xml | [x](http://y)"}
    path.write_text(model_card(TINY, 1, {}, lite=False))
    assert metadata_load(path).keys() == {"library_name", "pipeline_tag", "tags", "datasets"}
    own = {"pretraining": TRAINING["pretraining"] | {"base_model": "mine", "base_model_is_folder": True}}
    path.write_text(model_card(TINY, 1, own, lite=False))
    assert "base_model" not in metadata_load(path)


def test_card_says_what_was_trained_and_how() -> None:
    lines = model_card(TINY, 1, TRAINING, lite=False).splitlines()
    for line in (
        "Other than the preset tiny: steps 100/100.",
        "| base model | someone/roberta |",
        "| learning\\_rate | 0.0001/1e-05 |",
        "| masked word perplexity | 12.346 |",
        "Nothing was said about the corpus when this folder was written.",
    ):
        assert line in lines
    assert "## Training" not in model_card(TINY, 1, FIGURES, lite=False)


def test_a_word_head_that_nothing_trained_is_told() -> None:
    recipe = TRAINING["pretraining"]["recipe"] | {"masked_word_share": 0.0}
    whole = {"pretraining": TRAINING["pretraining"] | {"recipe": recipe, "word_head": False}}
    card = model_card(TINY, 1, whole, lite=False)
    assert 'pipeline_tag: "feature-extraction"' in card
    assert "pretrained on masked entities alone, words whole; nothing ever trained its word head" in card
    assert "nothing ever trained" not in model_card(TINY, 1, TRAINING, lite=False)


def test_training_is_read_from_the_model_s_folder(tmp_path: Path) -> None:
    assert read_training(tmp_path) == {}
    (tmp_path / "pretraining.json").write_text(json.dumps(TRAINING["pretraining"]))
    (tmp_path / "evaluation.jsonl").write_text('{"step": 1}\n' + json.dumps(TRAINING["evaluation"]) + "\n")
    assert read_training(tmp_path) == TRAINING


def test_card_of_a_fine_tuned_model(tmp_path: Path) -> None:
    from huggingface_hub import metadata_load

    values = {"task": "ner", "variant": "luke", "preset": "base", "profile": "fixed", "seed": 1}
    values |= {"labels": ["O", "A_B"], "hyperparameters": {"learning_rate": 1e-5, "betas": [0.9, 0.98]}}
    scores = {"dev": {"f1": 0.5, "precision": 0.25}, "test": {"f1": 1 / 3}}
    card = fine_tuned_card(
        "LukeForEntitySpanClassification", "token-classification", values, scores, "Give it a text.\n"
    )
    for line in (
        "| dev | f1 | 0.5 |",
        "Give it a text.",
        "| test | f1 | 0.33333 |",
        "Labels: O, A\\_B.",
        "| betas | 0.9/0.98 |",
    ):
        assert line in card.splitlines()
    (tmp_path / "README.md").write_text(card)
    assert metadata_load(tmp_path / "README.md") == {
        "library_name": "transformers",
        "pipeline_tag": "token-classification",
        "tags": ["luke"],
        "metrics": ["f1", "precision"],
    }


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
