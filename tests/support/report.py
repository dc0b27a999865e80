"""The content of a report, with hostile text wherever text comes from outside."""

from typing import Any

from tests.support import linked
from tests.support.compared import cell
from workflows.report.overview import step

HOSTILE = '<script>alert(1)</script> | [x](javascript:y) "\n'
EVALUATION = {"step": 9, "sequences": 3, "masked_word_count": 4321, "masked_word_loss": 3.25}
EVALUATION |= {"masked_word_accuracy": 0.5, "masked_word_perplexity": 25.75, "known_entity_top_1": 0.375}
EVALUATION |= {"known_entity_commonest_top_1": 0.25, "known_entity_most_frequent_top_1": 0.125}
EVALUATION |= {"known_entity_title_top_1": 0.3125}
WORDS = {"count": 4321, "loss": 3.25, "accuracy": 0.5, "perplexity": 25.75}
HELD_OUT = {
    "masked_word": WORDS,
    "masked_entity": {"count": 9, "loss": 1.5, "top_1": 0.875, "top_10": 1.0, "mean_reciprocal_rank": 0.9}
    | {"most_frequent_top_1": 0.75, "commonest_top_1": 0.625, "title_top_1": 0.8125},
    "known_entity": {"count": 2, "loss": 4.5, "top_1": 0.375, "top_1_among_known": 0.5, "top_10": 1.0}
    | {"mean_reciprocal_rank": 0.4, "most_frequent_top_1": 0.125, "commonest_top_1": 0.25, "title_top_1": 0.3125},
    "known_entity_seen_0": {"count": 0},
}


def corpus() -> dict[str, Any]:
    part = {"sequences": 2, "words": 7654, "annotations": 9, "unknown_share": 0.125}
    return {
        "dump_parts": [{"name": HOSTILE, "bytes": 1000, "sha256": "00"}],
        "language": "en",
        "pages": 4321,
        "lost_text": {
            "tags": {"<tabs>": 1234, "<aside>": 2},
            "templates": 3,
            "uses": 8642,
            "words": 97531,
            "links": 0,
            "top": [{"template": HOSTILE, "uses": 2, "words": 6543, "links": 0, "example": "{{" + HOSTILE + "}}"}],
        },
        "links_by_status": {"page": 3, "missing": 1},
        "links_in_vocab": 2,
        "entities": {"entities": 2, "never_linked": 1, "top": [{"title": HOSTILE, "link_count": 3}]},
        "names": 1,
        "sequences": [{"part": "training", **part}, {"part": "held out", **part}],
    }


def content() -> dict[str, Any]:
    stage = {
        "stage": "ExtractPages", "version": 3, "folder": "pages-1", "rows": {"pages": 1234567},
        "drops": {HOSTILE: 2}, "files": 1, "bytes": 10, "parameters": {"x": HOSTILE},
        "inputs": {"FetchDump": "abcd"},
    }  # fmt: skip
    log = [{"step": step, "masked_word_loss": 2.5, "masked_word_accuracy": 0.5} for step in (5, 10)]
    kept = [step("in running text", 4, {HOSTILE: 4})]
    return {
        "setting": {
            "dump": [HOSTILE], "language": "en", "preset": "tiny", "changes": "batch_size 64",
            "profile": "fixed", "base_model": HOSTILE, "seed": 1,
        },
        "stages": [stage],
        "corpus": corpus(),
        "funnel": [{"unit": "links", "steps": [step("links in the wikitext", 8), *kept]}],
        "training": {
            "Pretrain": {"log": log, "evaluations": [EVALUATION], "held_out": HELD_OUT},
            "PretrainRoberta": {"log": log, "evaluations": [], "held_out": {"masked_word": WORDS}},
        },
        "answers": [answer(HOSTILE, 0.9), answer("Rome", 0.25, said="Paris")],
        "cells": cells(),
        "linking": linked.scores(),
    }  # fmt: skip


def answer(entity: str, certainty: float, said: str = "") -> dict[str, Any]:
    """A model's prediction for a mention."""
    text = {"before": "Here is", "mention": HOSTILE, "after": "to be seen"}
    known = {"entity": entity, "said": said or entity, "certainty": certainty, "right": not said}
    return text | known | {"commonest": entity if said else ""}


def cells() -> list[dict[str, Any]]:
    found = [
        cell("ner", "luke", 1, types=[HOSTILE]),
        cell("ner", "luke", 2, state="failed", reason=HOSTILE),
        cell("ner", "roberta", 1, weights=HOSTILE, data=HOSTILE),
    ]
    found[0]["metrics"]["epochs"] = [{"epoch": 1, "dev_f1": 0.5}, {"epoch": 2, "dev_f1": 0.6}]
    found[2]["metrics"]["epochs"] = [{"epoch": 1, "dev_f1": 0.4}]
    return found
