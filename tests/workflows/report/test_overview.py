"""The first screen: each figure equals its source, and reports without one have no place for it."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from pipeline import storage
from tests.support import linked
from tests.support import report as report_for_tests
from tests.support.stages import run_in_process, run_of
from workflows import BuildSequences
from workflows.report.linking import shown_document
from workflows.report.overview import PARAGRAPH, funnel, headline, paragraph
from workflows.stages.pages import ExtractPages
from workflows.stages.tables import BuildEntityVocab, ResolveLinks

WIKI = Path(__file__).parents[2] / "data/wiki-40.xml"


def test_the_funnel_equals_the_manifests(tmp_path: Path) -> None:
    made = BuildSequences(settings=run_of(tmp_path, corpus={"dump": str(WIKI)}, machine={"processes": 1}))
    run_in_process(made)
    stages = {type(each).__name__: each for each in (*made.upstream(), made)}
    pages, links, sequences = funnel(stages)
    read, articles = pages["steps"]
    extracted = stages[ExtractPages.__name__].manifest()
    assert read["count"] == articles["count"] + sum(articles["lost"].values()), "each page has an end"
    paths = extracted.paths(stages[ExtractPages.__name__].folder, "pages/")
    assert articles["count"] == sum(1 for path in paths for _ in storage.read_rows(path))
    in_vocab = stages[BuildEntityVocab.__name__].manifest().facts["links_in_vocab"]
    facts = made.manifest().facts
    assert [each["count"] for each in links["steps"]] == [
        extracted.rows["links"] + sum(count for name, count in extracted.drops.items() if name.startswith("links:")),
        extracted.rows["links"],
        stages[ResolveLinks.__name__].manifest().rows["links"],
        in_vocab,
        facts["annotations"] - facts["unknown_entities"],
    ]  # fmt: skip
    assert sequences["steps"][-1]["count"] == facts["sequences"] == sum(made.manifest().rows.values())
    for group in (pages, links, sequences):
        for before, after in itertools.pairwise(group["steps"]):
            assert before["count"] - after["count"] == sum(after["lost"].values())
    assert [each["unit"] for each in funnel({name: stages[name] for name in stages if name != "BuildSequences"})] == [
        "pages", "links",
    ]  # fmt: skip
    assert funnel({}) == []


def test_the_figures_equal_their_sources() -> None:
    content = report_for_tests.content()
    steps = [{"step": step, "words_per_second": float(step)} for step in range(1, 102)]
    speeds = {"Pretrain": {"starts": [{"device": "a card"}], "steps": steps}}
    group = content["training"]["Pretrain"]["held_out"]["known_entity"]
    content["training"]["Pretrain"]["held_out"] = {"known_entity": group | {"count": 8}}
    known, mentions, error, words = headline(content, speeds)
    assert known["value"] == group["top_1"]
    assert (known["low"], known["high"]) == pytest.approx((0.13684, 0.69426), abs=1e-5), "3 of 8, by Wilson"
    assert "; 6.2 points above equal titles; 12.5 points above commonest." in known["sentence"]
    local = content["linking"]["sets"][0]["methods"]["local"]
    assert (mentions["value"], mentions["low"], mentions["high"]) == (0.5, 0.375, 0.625)
    assert mentions["sentence"].startswith("Of 1,200")
    assert "by local; 12.5 points below the prior alone." in mentions["sentence"]
    assert error["value"] == local["calibration"]["expected_calibration_error"]
    assert [error["low"], error["high"]] == local["calibration"]["expected_calibration_error_interval"]
    assert (words["value"], words["low"], words["high"]) == (51, 6, 96), "nine of ten lines lie between"


@pytest.mark.parametrize("missing", ["training", "linking"])
def test_what_was_not_made_has_no_figure(missing: str) -> None:
    content = report_for_tests.content() | {missing: None}
    assert len(headline(content, {})) == {"training": 2, "linking": 1}[missing]
    assert headline(content | {"training": None, "linking": {"sets": []}}, {}) == []


def test_a_text_is_cut_between_words_and_never_in_a_mention() -> None:
    text = "word " * 81 + "Rome was large and the sentence goes on and on and on"
    gold = linked.gold("one", text, {"Rome": "Rome"})
    document: dict[str, Any] = shown_document(gold, {}, lambda mention: mention.title)
    shown = paragraph({"documents": [document]})
    assert shown
    said = "".join(part if isinstance(part, str) else part[0] for part in shown["text"])
    assert len(said) <= PARAGRAPH + 2
    assert said.endswith(" …")
    assert text.startswith(said.removesuffix(" …"))
    assert paragraph({"documents": []}) is None
    long = linked.gold("two", "x" * PARAGRAPH + " y", {"x" * PARAGRAPH: "Rome"})
    cut = paragraph({"documents": [shown_document(long, {}, lambda mention: mention.title)]})
    assert cut
    assert cut["text"] == [], "a mention is shown whole or not at all"
