"""The report's page and tables: hostile titles stay text, missing figures do not break it."""

import base64
import functools
import hashlib
import json
import operator
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sequences.tokenizer import WordPiece
from pipeline.sequences.tokenizer_files import Normalizer
from tests.support import linked
from tests.support import report as report_for_tests
from tests.support.report import HOSTILE, WORDS
from tests.support.stages import run_of
from workflows.report.charts import POINTS, charts, held_out_words, known_entities, losses, reliability
from workflows.report.drawing import CHART
from workflows.report.linking import shown_document
from workflows.report.paper.comparison import compare
from workflows.report.rendering import as_data, render_page, render_tables
from workflows.report.several import shown_settings
from workflows.report.training_curves import answers, by_group, pretraining, speed
from workflows.run.tables import TASKS
from workflows.stages.task_stage import EXAMPLES

LINKED_GOLD = linked.gold(HOSTILE, f"In {HOSTILE}.", {HOSTILE: HOSTILE})
LINKED_ANSWER = linked.answer(LINKED_GOLD, {HOSTILE: [(HOSTILE, 0.5), ("Rome", 0.25)]})
LINKED = {
    "of": 9,
    "characters": 4000,
    "documents": [shown_document(LINKED_GOLD, LINKED_ANSWER, lambda mention: mention.title)],
}
RUN = {"seconds": 4000.0, "started": "2026-01-01T00:00:00Z", "platform": "Linux", "python": "3.11.7"}
RUN |= {"versions": {"torch": "2.0", HOSTILE: "1"}}
START = {"step": 0, "device": HOSTILE, "measured_flops_per_second": 1.5e12, "published_flops_per_second": None}
STEP = {"step": 5, "seconds_per_step": 0.25, "words_per_second": 98765.4, "share_of_measured_peak": 0.5}
SPEED = {"starts": [START], "steps": [STEP | {"memory_bytes": 2_500_000_000}]}


class Page(HTMLParser):
    """A page as a browser takes it: elements with attributes, texts by where they stand."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def data(self, name: str) -> Any:
        at = [script.get("id") for script in self.all("script")].index(f"data-{name}")
        return json.loads(self.scripts[at])


@pytest.fixture
def content() -> dict[str, Any]:
    return report_for_tests.content()


def whole(content: dict[str, Any]) -> str:
    return render_page(
        content,
        compare(content["cells"]),
        linked=LINKED,
        runs={"pages-1": RUN},
        speeds={"Pretrain": SPEED},
        settings={"dump": HOSTILE, "seed": "1", "workdir": HOSTILE},
    )


def bare(content: dict[str, Any]) -> str:
    """The page without what differs from run to run."""
    return render_page(content, compare(content["cells"]))


def tables(content: dict[str, Any]) -> str:
    return render_tables(content, compare(content["cells"]))


def test_commands_name_the_work_directory(content: dict[str, Any]) -> None:
    def commands(preset: dict[str, str]) -> list[str]:
        content["setting"] = {"profile": "fixed", "seed": 1, "base_model": "scratch"} | preset
        page = render_page(content, compare([]), settings={"workdir": "demo"})
        return re.findall("<dt><code>(luke .*?)</code></dt>", page)

    assert all(" demo" in command for command in commands({"preset": "small"}))
    assert "hour.toml" in commands({"preset": "demo"})[-1]
    assert commands({}) == ["luke look demo"]


def test_titles_stay_text(content: dict[str, Any]) -> None:
    page, markdown = Page(whole(content)), tables(content)
    assert [script.get("id") for script in page.all("script")] == ["data-linked", None]
    assert page.text.count("<script>alert(1)") >= 13 + 4, "each place, and those of the results"
    assert not {"onclick", "onerror"} & {name for _, attributes in page.elements for name in attributes}
    assert page.data("linked") == LINKED
    assert page.text.count(linked.HOSTILE) >= 13, "four methods in three tables, once in words, and charts"
    assert not page.all("img")
    assert "<script>" not in markdown
    entity = next(line for line in markdown.splitlines() if "alert" in line and line.endswith("| 3 |"))
    assert len(re.findall(r"(?<!\\)\|", entity)) == 3, "a title does not end its cell"


def test_charts_hold_no_markup_of_names() -> None:
    """Vega escapes the names that it draws, and what a point tells."""
    log = [{"step": step, "masked_word_accuracy": 0.5} for step in (1, 2)]
    drawn = held_out_words({HOSTILE: log, "other": log})
    assert drawn
    svg = ElementTree.fromstring(drawn.svg)
    assert {each.tag.rpartition("}")[2] for each in svg.iter()} <= {"svg", "g", "path", "line", "text", "title"}
    texts = [each.text or "" for each in svg.iter()]
    assert sum("<script>alert(1)" in text for text in texts) == 1 + 2, "the legend and two points"
    assert not {"onclick", "onerror", "href", "style"} & {name for each in svg.iter() for name in each.attrib}


def test_a_chart_of_many_lines_is_no_wider_than_its_place() -> None:
    log = [{"step": step, "masked_word_loss": 2.0} for step in (1, 2)]
    drawn = losses({f"variant, seed {seed}": log for seed in range(40)}, "word")
    assert drawn
    _, _, width, _ = str(ElementTree.fromstring(drawn.svg).get("viewBox")).split()
    assert float(width) < 1.6 * CHART["width"]


def test_long_logs_are_drawn_to_their_end() -> None:
    log = [{"step": step, "masked_word_loss": 2.0} for step in range(2 * POINTS + 1)]
    drawn = losses({"Pretrain": log}, "word")
    assert drawn
    assert drawn.title.endswith(f"at step {2 * POINTS:,}")


def test_charts_have_the_colours_of_the_page(content: dict[str, Any]) -> None:
    for chart in charts(content).values():
        shades = {
            each.attrib[name]
            for each in ElementTree.fromstring(chart.svg).iter()
            for name in ("fill", "stroke")
            if name in each.attrib
        }
        assert {shade for shade in shades if not shade.startswith("var(--")} <= {"none", "transparent", "#000"}
        assert len({len(row) for row in (chart.columns, *chart.rows)}) == 1


@given(st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.text()))
def test_data_end_no_script(value: Any) -> None:
    text = as_data(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_a_page_asks_for_nothing(content: dict[str, Any]) -> None:
    page = Page(whole(content))
    assert not any({"src", "srcset", "action"} & set(attributes) for _, attributes in page.elements)
    assert all(str(link["href"]).startswith("#") for link in page.all("a"))
    targets = {attributes.get("id") for _, attributes in page.elements}
    assert {str(link["href"])[1:] for link in page.all("a")} <= targets
    assert not page.all("link")
    policy = next(meta for meta in page.all("meta") if meta.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy["content"]).split(";"))
    assert rules["default-src"] == "'none'"
    digests = (hashlib.sha256(script.encode()).digest() for script in page.scripts[-1:])
    hashes = [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests]
    assert rules["script-src"].split() == hashes


def test_figures_are_shown(content: dict[str, Any]) -> None:
    page, markdown = whole(content), tables(content)
    for text in ("1,234,567 pages", "75.0%", "50.0%", "links in the wikitext"):
        assert text in page
    for text in ("1 h 06 min", "98,765", "2.5 GB", "1.5 TFLOP/s", "A tiny model shows", "7,654"):
        assert text in page
    assert "| held out | 2 | 7,654 | 9 | 12.5% |" in markdown
    assert "Preset <b>tiny</b> with batch_size 64, profile" in page
    assert r"Preset tiny with batch\_size 64, profile fixed" in markdown  # as Markdown escapes it
    content["setting"] |= {"preset": "large", "changes": ""}
    assert "Preset large, profile fixed" in tables(content)
    assert "A tiny model shows" not in whole(content)
    assert "A tiny model shows" not in tables(content)


def test_what_templates_cost_is_shown(content: dict[str, Any]) -> None:
    page, markdown = whole(content), tables(content)
    assert "8,642 uses of 3 templates cost 97,531 words\nand 0 links" in page
    assert "the 1 with most words" in page
    (row,) = [line for line in markdown.splitlines() if "6,543" in line]
    assert len(re.findall(r"(?<!\\)\|", row)) == 6, "neither name nor example ends its cell"
    assert "<bdi>&lt;tabs&gt;</bdi> (1,234), <bdi>&lt;aside&gt;</bdi> (2).</p>" in page
    content["corpus"]["lost_text"]["tags"] = {}
    assert "tags that are not known" not in whole(content)
    content["corpus"]["lost_text"]["templates"] = 1
    assert "with most words" not in whole(content), "all are shown"
    content["corpus"]["lost_text"]["top"] = []
    assert "## Text lost, by template\n\nNone was counted.\n" in tables(content)


def test_times_are_in_the_page_alone(content: dict[str, Any]) -> None:
    assert "1 h 06 min" not in bare(content)
    assert "98,765" not in bare(content)


def test_held_out_figures_stand_beside_the_baselines(content: dict[str, Any]) -> None:
    page, markdown = whole(content), tables(content)
    assert "| Pretrain | 4,321 | 3.250 | 50.0% | 25.8 |" in markdown
    assert "| masked entity | 9 | 87.5% |  | 100.0% | 75.0% | 62.5% | 81.2% |" in markdown
    assert "| known entity | 2 | 37.5% | 50.0% | 100.0% | 12.5% | 25.0% | 31.2% |" in markdown
    assert "| known entity seen 0 | 0 |  |  |  |  |  |  |" in markdown
    for text in ("Held-out pages", "PretrainRoberta", "known entity never annotated", "37.5%", "25.0%"):
        assert text in page
    assert known_entities(content["training"]["Pretrain"]["evaluations"]).columns == (
        "step", "model", "equal titles", "commonest",
    )  # fmt: skip
    assert known_entities(content["training"]["Pretrain"]["evaluations"]).rows == (
        ("9", "37.5%", "31.2%", "25.0%"),
    )  # fmt: skip


def test_what_the_model_says_is_shown(content: dict[str, Any]) -> None:
    text, hostile = ("".join(each.split()) for each in (Page(whole(content)).text, HOSTILE))
    assert "amongknownentities;right:1" in text
    assert f"Hereis{hostile}tobeseen{hostile}thesame90.0%none" in text
    assert f"Hereis{hostile}tobeseenRomeParis25.0%thesame" in text
    content["answers"] = []
    assert "What LUKE says" not in whole(content)


def test_links_are_scored(content: dict[str, Any]) -> None:
    page, markdown = Page(whole(content)), tables(content)
    text = " ".join(page.text.split())
    assert "7 of 8 documents with 1,234 mentions, 1,200 of them of pages that the dump has" in text
    assert "links to elsewhere, 31 of others, 3 of no page." in text
    assert "global 1,20075.0%62.5%87.5%87.5%62.5%67875.0%62.5%" in text
    assert "global40.062 0.0310.094" in text
    assert "global 31.2%43.8%36.5%31.2%43.8%36.5%" in text
    assert "1 of 9 documents" in text
    assert "| global | 1,200 | 75.0% | 87.5% | 62.5% | 678 | 75.0% | 62.5% | 0.062 |" in markdown
    assert "| global | 31.2% | 43.8% | 36.5% | 31.2% | 43.8% | 36.5% |" in markdown
    assert "A tiny model has learnt next to nothing, and its documents are few." in text
    content["setting"]["preset"] = "small"
    assert "next to nothing" not in whole(content)


def test_reliability_is_drawn_by_method(content: dict[str, Any]) -> None:
    (scored,) = content["linking"]["sets"]
    drawn = reliability(scored)
    assert drawn
    assert [row for row in drawn.rows if row[0] == "global"] == [
        ("global", "35.0%", "100.0%", "1"), ("global", "96.0%", "75.0%", "3"),
    ], "empty groups are left out"  # fmt: skip
    assert drawn.title.endswith("off by so much on average: local 0.062, contexts 0.062, prior 0.062")
    nothing = {"mentions": 0, "expected_calibration_error": None, "bins": linked.BINS}
    for scores in scored["methods"].values():
        scores["calibration"] = nothing
    assert reliability(scored) is None
    content["linking"] |= linked.scores(calibration=False)
    page = Page(whole(content))
    assert "expected calibration error is" not in page.text
    assert "global 1,20075.0%" in " ".join(page.text.split())


def test_a_report_without_links_has_no_such_view(content: dict[str, Any]) -> None:
    content["linking"] = None
    page = bare(content)
    assert "ntity linking" not in page
    assert "ntity linking" not in tables(content)
    assert not [link for link in Page(page).all("a") if "link" in str(link["href"]).removeprefix("#links")]


def test_answers_are_told_in_words(tmp_path: Path) -> None:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "he", "saw", "san", "##ta", "fe", "."]
    tokenizer = WordPiece({word: number for number, word in enumerate(words)}, Normalizer())
    titles = ["[PAD]", "[UNK]", "[MASK]", "Santa Fe", "Rome"]
    line = {"word_ids": [5, 6, 7, 8, 9, 10], "start": 2, "end": 5, "label": 3, "said": 4, "certainty": 0.5}
    lines = [line | {"of_label": 0.1, "commonest": -1}, line | {"of_label": 0.5, "commonest": 3, "said": 3}]
    (tmp_path / "answers.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    shown = {"before": "he saw", "mention": "santa fe", "after": ".", "entity": "Santa Fe", "certainty": 0.5}
    assert answers(str(tmp_path), tokenizer, titles) == [
        shown | {"said": "Rome", "right": False, "commonest": ""},
        shown | {"said": "Santa Fe", "right": True, "commonest": "Santa Fe"},
    ]
    assert answers(str(tmp_path / "none"), tokenizer, titles) == []


def test_a_model_that_is_asked_for_no_words_has_its_entities(content: dict[str, Any]) -> None:
    for record in content["training"].values():
        groups = {group: row for group, row in record["held_out"].items() if group != "masked_word"}
        lines = [
            {name: value for name, value in line.items() if not name.startswith("masked_word_")}
            for line in record["evaluations"]
        ]
        record |= {"evaluations": lines, "held_out": groups}
    page, markdown = whole(content), tables(content)
    assert "| masked entity | 9 | 87.5% |  | 100.0% | 75.0% | 62.5% |" in markdown
    assert "4,321" not in markdown
    assert "87.5%" in page
    assert "perplexity" not in markdown
    assert "perplexity" not in page


def test_a_dump_without_held_out_pages_has_no_such_figures(content: dict[str, Any]) -> None:
    for record in content["training"].values():
        record |= {"evaluations": [], "held_out": {}}
    assert "No page was held out." in whole(content)
    assert "Held-out" not in tables(content)


@pytest.mark.parametrize(
    ("place", "empty", "sentence"),
    [
        ("corpus", None, "Nothing was made from a dump"),
        ("training", None, "Nothing was pretrained: weights were given."),
        ("cells", [], "No task was fine-tuned."),
        ("corpus.sequences", [], "No sequences were made."),
        ("corpus.links_by_status", {}, "There is no link."),
        ("corpus.lost_text.top", [], "<p>None was counted.</p>"),
        ("corpus.entities.top", [], "A tiny model shows"),
        ("stages", [], "A tiny model shows"),
        ("setting.dump", [], "<h1>LUKE</h1>"),
        ("linking.sets", [], "No document was linked."),
    ],
)
def test_what_is_missing_is_said(content: dict[str, Any], place: str, empty: Any, sentence: str) -> None:
    *steps, last = place.split(".")
    functools.reduce(operator.getitem, steps, content)[last] = empty
    page = bare(content)
    assert sentence in page
    assert page.count("<figure") == page.count("<svg") == page.count("</figure>"), "no empty frame"
    assert tables(content).startswith("# LUKE")


def test_groups_of_held_out_figures(tmp_path: Path) -> None:
    assert pretraining(str(tmp_path)) == {"log": [], "evaluations": [], "held_out": {}}
    line = {"step": 9, "masked_word_count": 3, "masked_word_loss": 2.0, "known_entity_count": 4}
    line |= {"known_entity_top_1": 0.5, "known_entity_seen_0_count": 1, "known_entity_seen_0_top_1": 0.25}
    (tmp_path / "evaluation.jsonl").write_text(f'{{"step": 1}}\n{json.dumps(line)}\n')
    found = pretraining(str(tmp_path))
    assert found["evaluations"] == [{"step": 1}, line]
    assert found["held_out"] == by_group(line)
    assert by_group(line) == {
        "masked_word": {"count": 3, "loss": 2.0},
        "known_entity": {"count": 4, "top_1": 0.5},
        "known_entity_seen_0": {"count": 1, "top_1": 0.25},
    }
    assert by_group({f"masked_word_{name}": value for name, value in WORDS.items()}) == {"masked_word": WORDS}


def test_of_steps_that_were_done_twice_the_last_speed_counts(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    first = [{"step": 0, "device": "x"}, *({"step": 5 * n, "words_per_second": n} for n in (1, 2))]
    lines = [*first, {"step": 5, "device": "x"}, {"step": 10, "words_per_second": 3.0}]
    (tmp_path / "log/speed.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = speed(str(tmp_path))
    assert [line["step"] for line in found["starts"]] == [0, 5]
    assert [line["words_per_second"] for line in found["steps"]] == [1.0, 3.0]
    assert speed(str(tmp_path / "nothing")) == {"starts": [], "steps": []}


def test_the_report_shows_no_path_of_the_machine() -> None:
    run = run_of("/home/ada/work/", corpus={"dump": "a/b"}, fine_tuning={"data": {"ner": "/home/ada/conll"}})
    shown = shown_settings(run)
    found = [shown[name] for name in ("workdir", "corpus.dump", "fine_tuning.data.ner", "fine_tuning.seeds")]
    assert found == ["work", "a/b", "conll", "42"]


def test_the_tasks_that_stages_know_are_all_there_are() -> None:
    """Their names stand twice, since Luigi's command line must not wait for torch."""
    from tasks.finetuning import registry

    assert set(TASKS) == set(registry.TASKS)
    assert all((EXAMPLES / task).is_dir() for task in TASKS)
