"""The report's page and tables: hostile titles stay text, missing figures do not break it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from workflows.report import held_out_rows, render, training_plots

HOSTILE = '<script>alert(1)</script> | [x](javascript:y) "\n'
SCORES = {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "gold": 4, "predicted": 2, "correct": 1}

HELD_OUT = {
    "masked_word": {"count": 4321, "loss": 3.25, "accuracy": 0.5, "perplexity": 25.75},
    "masked_entity": {"count": 9, "loss": 1.5, "top_1": 0.875, "top_10": 1.0, "mean_reciprocal_rank": 0.9}
    | {"most_frequent_top_1": 0.75, "commonest_top_1": 0.625},
    "known_entity": {"count": 2, "loss": 4.5, "top_1": 0.375, "top_1_among_known": 0.5, "top_10": 1.0}
    | {"mean_reciprocal_rank": 0.4, "most_frequent_top_1": 0.125, "commonest_top_1": 0.25},
    "known_entity_seen_0": {"count": 0},
}

SIZES = {"mean": 1.25, "median": 1, "p95": 2, "largest": 3}


@pytest.fixture
def content() -> dict[str, Any]:
    scores = {**SCORES, "types": {HOSTILE: SCORES}}
    answers = {"exact_match": 0.625, "f1": 0.75, "questions": 8, "predicted": 8, "missing": 0}
    setting = {
        "dump": [HOSTILE],
        "language": "en",
        "preset": "demo",
        "profile": "fixed",
        "base_model": HOSTILE,
        "seed": 1,
    }
    stage = {
        "stage": "ExtractPages",
        "folder": "pages-1",
        "rows": {"pages": 1234567},
        "drops": {HOSTILE: 2},
        "files": 1,
        "bytes": 10,
        "parameters": {"x": HOSTILE},
        "inputs": {},
    }
    return {
        "setting": setting,
        "dump_parts": [{"name": HOSTILE, "bytes": 1000, "sha256": "00"}],
        "stages": [stage],
        "links_by_status": {"page": 3, "missing": 1},
        "links_in_vocab": 2,
        "top_entities": [{"title": HOSTILE, "link_count": 3}],
        "sequences": [
            {
                "part": "held out",
                "sequences": 2,
                "words": 7654,
                "annotations": 9,
                "unknown_share": 0.125,
                "sizes": {"words_per_sequence": SIZES, "entities_per_sequence": SIZES},
            }
        ],
        "training": {"Pretrain": [{"step": 5, "masked_word_loss": 2.5, "masked_word_accuracy": 0.5}]},
        "held_out": {"Pretrain": HELD_OUT, "PretrainRoberta": {"masked_word": HELD_OUT["masked_word"]}},
        "results": [
            {"task": "ner", "variant": "luke", "dev": scores, "test": scores},
            {"task": "cloze_qa", "variant": "luke", "dev": answers, "test": answers},
        ],
    }


def test_titles_stay_text(content: dict[str, Any]) -> None:
    page, markdown = render(content)
    assert "<script>alert(1)" not in page
    assert page.count("&lt;script&gt;alert(1)") >= 5
    assert "<script>" not in markdown
    entity = next(line for line in markdown.splitlines() if "alert" in line and line.endswith("| 3 |"))
    assert len(re.findall(r"(?<!\\)\|", entity)) == 3, "a title does not end its cell"


def test_figures_are_shown(content: dict[str, Any]) -> None:
    page, markdown = render(content)
    for text in ("1,234,567 pages", "75.0%", "50.0%", "A demo shows that every stage works"):
        assert text in page
    assert "| ner | luke | test | 50.0 | 25.0 | 33.3 |  |  |" in markdown
    assert "| cloze_qa | luke | dev |  |  | 75.0 | 62.5 |  |" in markdown
    assert ">62.5</td>" in page
    assert "| held out | 2 | 7,654 | 9 | 12.5% | 1.2 | 1.2 |" in markdown
    assert "7,654" in page
    content["setting"]["preset"] = "large"
    assert "A demo shows" not in render(content)[0]


def test_semevals_macro_f1_stands_beside_micro_f1(content: dict[str, Any]) -> None:
    assert not any("macro" in page for page in render(content)[:1])
    scores = {**SCORES, "types": {}, "semeval_macro_f1": 0.4321}
    content["results"].append(
        {"task": "relation_classification", "variant": "luke", "dev": {**SCORES, "types": {}}, "test": scores}
    )
    page, markdown = render(content)
    assert "| relation_classification | luke | test | 50.0 | 25.0 | 33.3 |  | 43.2 |" in markdown
    assert "| relation_classification | luke | dev | 50.0 | 25.0 | 33.3 |  |  |" in markdown
    table = re.search(r"SemEval's macro-F1</th></tr>(.*?)</table>", page, re.DOTALL)
    assert table is not None
    assert re.findall(r">([^<>\n]+)<", table[1]) == [
        "relation_classification",
        "luke",
        "test",
        "33.3",
        "43.2",
    ]


def test_held_out_figures_stand_beside_the_baselines(content: dict[str, Any]) -> None:
    page, markdown = render(content)
    assert "| Pretrain | 4,321 | 3.250 | 50.0% | 25.8 |" in markdown
    assert "| masked entity | 9 | 87.5% |  | 100.0% | 75.0% | 62.5% |" in markdown
    assert "| known entity | 2 | 37.5% | 50.0% | 100.0% | 12.5% | 25.0% |" in markdown
    assert "| known entity seen 0 | 0 |  |  |  |  |  |" in markdown
    for text in ("Held-out pages", "PretrainRoberta", "known entity seen 0", "37.5%", "25.0%"):
        assert text in page


def test_a_dump_without_held_out_pages_has_no_such_figures(content: dict[str, Any]) -> None:
    content["held_out"] = {"Pretrain": {}, "PretrainRoberta": {}}
    assert not any("Held-out" in text for text in render(content))


def test_groups_of_held_out_figures(tmp_path: Path) -> None:
    assert held_out_rows(str(tmp_path)) == {}
    line = {"step": 9, "masked_word_count": 3, "masked_word_loss": 2.0, "known_entity_count": 4}
    line |= {"known_entity_top_1": 0.5, "known_entity_seen_0_count": 1, "known_entity_seen_0_top_1": 0.25}
    (tmp_path / "evaluation.jsonl").write_text(f'{{"step": 1}}\n{json.dumps(line)}\n')
    assert held_out_rows(str(tmp_path)) == {
        "masked_word": {"count": 3, "loss": 2.0},
        "known_entity": {"count": 4, "top_1": 0.5},
        "known_entity_seen_0": {"count": 1, "top_1": 0.25},
    }


def test_plots_work_offline(content: dict[str, Any]) -> None:
    plots = training_plots(content["training"])
    assert 'src="http' not in plots
    assert "Pretrain: masked word loss" in plots
    assert "masked entity loss" not in plots, "a run without entities has no such figure"


def test_the_tasks_that_stages_know_are_all_there_are() -> None:
    """Their names stand twice, since Luigi's command line must not wait for torch."""
    from tasks import run
    from workflows import training

    assert set(training.TASKS) == set(run.TASKS)
    assert all((training.EXAMPLES / task).is_dir() for task in training.TASKS)
