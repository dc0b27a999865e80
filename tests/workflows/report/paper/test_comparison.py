"""Our results beside the paper's: the figures, what is marked, what is missing, and how they are printed."""

import html
import re
from itertools import pairwise, product

import jinja2
import numpy as np
import pytest

from tasks.finetuning.paper import DATASETS, TABLES, VARIANT_OF_ROW, Measure
from tests.support.compared import HOSTILE, cell
from tests.support.properties import given, st
from workflows.report.paper.caveats import EXAMPLE_DATA, NO_ENTITIES, OTHER_DATA, OTHER_SETTINGS, OTHER_SIZE, TINY_SIZE
from workflows.report.paper.comparison import HIDDEN_TEST, OurFigure, compare, our_figure
from workflows.report.rendering import environment, markdown_cell

VARIANTS = tuple(dict.fromkeys(VARIANT_OF_ROW.values()))
RESULTS = [table for table in TABLES if table.measures]
DEMO = {"data": "ner", "is_example": True, "own_preset": "tiny", "model": "tiny", "preset": "tiny"}
DEMO |= {"weights": "Pretrain, preset tiny", "base_model": "scratch", "corpus": "enwiki-2006-12k.xml.bz2"}
F1 = Measure("ner", "test", "f1")


def row_of(compared, number, name):
    (table,) = (table for table in compared.results if table.number == number)
    (row,) = (row for row in table.rows if row.name == name)
    return row


def with_f1(*values, **options):
    return [cell(seed=n, scores={"test": {"f1": value}}, **options) for n, value in enumerate(values, 1)]


def page_of(compared):
    """The view of the tasks."""
    page = environment(autoescape=True, undefined=jinja2.StrictUndefined)
    show = page.get_template("macros.html").module
    values = {"show": show, "charts": {}, "named": lambda start: [], "workdir": HOSTILE}
    return page.get_template("results.html").render(compared=compared, **values)


def markdown_of(compared):
    text = environment()
    text.filters["cell"] = markdown_cell
    return text.get_template("results.md").render(compared=compared)


def rows_of(page):
    """The tables' rows as texts, and the classes of each row and its cells."""
    rows, classes = [], []
    for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL):
        cells = re.findall(r"<t[dh][ >].*?</t[dh]>", row, re.DOTALL)
        rows.append([html.unescape(re.sub("<[^>]*>", "", cell)) for cell in cells])
        heads = [re.match(r"<[^>]*>", each)[0] for each in (row, *cells)]
        classes.append([set(" ".join(re.findall(r'class="([^"]*)"', each)).split()) for each in heads])
    return rows, classes


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10), st.floats(0, 100))
def test_statistics_are_those_of_numpy(values, paper) -> None:
    figure = our_figure(with_f1(*values), F1, paper)
    assert figure.mean == pytest.approx(100 * np.mean(values))
    if len(values) > 1:
        assert figure.deviation == pytest.approx(100 * np.std(values, ddof=1), abs=1e-9)
        assert figure.best == 100 * max(values)
    else:
        assert figure.deviation is figure.best is None
    assert figure.difference == pytest.approx(100 * np.mean(values) - paper, abs=1e-9)
    assert (figure.seeds, figure.state) == (len(values), "done")


# The paper's side


@pytest.mark.parametrize("cells", [[], with_f1(0.9, 0.8)], ids=["nothing", "ner"])
def test_every_row_of_the_paper_is_there_with_its_numbers(cells) -> None:
    compared = compare(cells)
    assert [table.number for table in compared.results] == [*range(1, 9)]
    for table, ours in zip(RESULTS, compared.results, strict=True):
        assert ours.columns == table.columns
        assert [(row.name, tuple(figure.percent for figure in row.figures)) for row in ours.rows] == [
            (row.name, row.values) for row in table.rows
        ]
        bold = [[figure.is_best for figure in row.figures] for row in ours.rows]
        assert bold == [[table.is_best(row, column) for column in table.columns] for row in table.rows]
        assert [row.name for row in ours.rows if row.ours] == [
            row.name for row in table.rows if row.name in VARIANT_OF_ROW
        ]


def test_every_measure_of_the_paper_has_a_place_for_ours() -> None:
    """Each cell of the grid has a score of its own, so that a figure in the wrong place is seen."""
    grid = [*product(DATASETS, VARIANTS, ("dev", "test"), ("precision", "recall", "f1", "exact_match"))]
    number = {key: n / 1000 for n, key in enumerate(grid)}
    cells = [
        cell(
            task,
            variant,
            scores={
                split: {name: number[task, variant, split, name] for *_, name in grid[:4]} for split in ("dev", "test")
            },
        )
        for task in DATASETS
        for variant in VARIANTS
    ]
    compared, seen = compare(cells), 0
    for table, ours in zip(RESULTS, compared.results, strict=True):
        for row in (row for row in ours.rows if row.ours):
            for measure, figure in zip(table.measures, row.ours.figures, strict=True):
                key = (measure.task, VARIANT_OF_ROW[row.name], measure.split, measure.metric)
                assert figure.mean == pytest.approx(100 * number[key])
                seen += 1
    assert seen == sum(len(table.measures) for table in RESULTS for row in table.rows if row.name in VARIANT_OF_ROW)


def test_a_difference_is_to_the_row_of_the_same_name() -> None:
    compared = compare([*with_f1(0.95, 0.93), cell(variant="roberta", scores={"test": {"f1": 0.9}})])
    differences = ((3, "LUKE", -0.3), (3, "RoBERTa", -2.4), (6, "LUKE", -0.3), (8, "RoBERTa", -2.4))
    for number, name, difference in differences:
        assert row_of(compared, number, name).ours.figures[0].difference == pytest.approx(difference)
    assert row_of(compared, 3, "Akbik et al. (2018)").ours is None


def test_hidden_test_sets_are_labelled_and_never_subtracted_from() -> None:
    compared = compare([cell(task, data="squad") for task in HIDDEN_TEST])
    for number in (4, 5):
        (table,) = (table for table in compared.results if table.number == number)
        assert table.headers == ("Dev EM", "Dev F1", "Test EM*", "Test F1*")
        assert "hidden test set" in table.notes[0]
        differences = [figure.difference for figure in row_of(compared, number, "LUKE").ours.figures]
        assert [each is None for each in differences] == [False, False, True, True]
    assert all("*" not in header for table in compared.results[5:] for header in table.headers)


# What may not be taken for the paper's


def test_demo_and_examples_are_marked_and_have_no_figure() -> None:
    """Scores of a few examples are noise; the list of all experiments alone has them."""
    compared = compare([cell(**DEMO)])
    row = row_of(compared, 3, "LUKE").ours
    assert row.marks == ("example data", "tiny model", "other hyper-parameters")
    assert row.figures == (OurFigure(None, None, None, 1, None, EXAMPLE_DATA),)
    assert row.figures[0].text == "example data"
    assert not row.has_results
    assert not row.is_problem
    assert "are left out" in compared.caveat
    assert compared.experiments[0]["scores"]["test"]["f1"] == 50.0
    own = "weights the pipeline's own (Pretrain, preset tiny, from scratch, corpus enwiki-2006-12k.xml.bz2)"
    for part in ("CoNLL-2003: data ner", own, "2 layers of 128 units, not 24 of 1,024"):
        assert part in row.origins[0].text


@pytest.mark.parametrize(
    ("options", "marks", "has_difference"),
    [
        ({}, (), True),
        ({"own_preset": "large"}, (), True),
        ({"own_preset": "base", "model": "base"}, (OTHER_SIZE,), True),
        ({"own_preset": "small", "model": "small"}, (OTHER_SIZE, OTHER_SETTINGS), True),  # it has no dropout
        ({"weights": "named-luke-large", "model": "base"}, (OTHER_SIZE,), True),
        ({"weights": "named-luke-large", "model": "tiny"}, (TINY_SIZE,), False),
        ({"own_preset": "tiny", "model": "base"}, (TINY_SIZE,), False),
        ({"is_example": True}, (EXAMPLE_DATA,), False),
        ({"sizes": {"train": 100, "dev": 3250, "test": 3453}}, (OTHER_DATA,), False),
        ({"sizes": {"test": 12}, "model": "base"}, (OTHER_DATA, OTHER_SIZE), False),
        ({"sizes": {}}, (), True),
    ],
)
def test_what_is_marked(options, marks, has_difference) -> None:
    ours = row_of(compare([cell(**options)]), 3, "LUKE").ours
    assert ours.marks == marks
    assert (ours.figures[0].difference is not None) is has_difference


FOUND = {"learning_rate": 3e-5, "head_learning_rate": 3e-5, "batch_size": 64, "epochs": 3, "patience": 2}


@pytest.mark.parametrize(
    ("preset", "changes", "said"),
    [
        ("large", {}, ""),
        ("small-encoder", FOUND | {"learning_rate": 1e-5, "head_learning_rate": 1e-5, "batch_size": 8, "epochs": 5,
                                   "patience": 0}, ""),
        ("base", {"tokens_per_batch": 4096}, ""),
        ("base", {"learning_rate": 2e-5, "head_learning_rate": 2e-5}, "Learning rate 2e-05, not 1e-05"),
        ("base", {"head_learning_rate": 5e-5}, "Learning rate of the classifier 5e-05, not 1e-05"),
        ("base", {"batch_size": 16, "epochs": 3}, "Batch size 16, not 8, Training epochs 3, not 5"),
        ("base", {"patience": 1}, "Patience 1, not 0"),
        ("base", {"betas": [0.9, 0.999], "epsilon": 1e-8}, "Adam β2 0.999, not 0.98, Adam ε 1e-08, not 1e-06"),
        ("base", {"warmup_ratio": 0.1, "weight_decay": 0.0}, "Warmup ratio 0.1, not 0.06, Weight decay 0, not 0.01"),
        ("tuned", FOUND, ""),
        ("tuned", FOUND | {"max_words": 96}, "Maximum word length 96, not 512"),
        ("tuned", FOUND | {"head_learning_rate": 7.5e-5}, "Learning rate of the classifier 7.5e-05, not 3e-05"),
    ],
)  # fmt: skip
def test_hyper_parameters_are_those_that_were_used(preset, changes, said) -> None:
    """A preset's name says neither what was changed nor, of a search, what the rest was."""
    ours = row_of(compare([cell(preset=preset, changes=changes)]), 3, "LUKE").ours
    assert ours.marks == ((OTHER_SETTINGS,) if said else ())
    assert ours.origins[0].text.endswith(f"{OTHER_SETTINGS}: preset {preset}: {said}" if said else "1 done")
    assert ours.figures[0].difference is not None


def test_a_bias_that_dev_has_moved_is_marked() -> None:
    moved, same = cell(preset="large"), cell(preset="large")
    moved["metrics"]["bias_shift"], same["metrics"]["bias_shift"] = {"O": -1.5}, {}
    ours = row_of(compare([moved]), 3, "LUKE").ours
    assert ours.marks == (OTHER_SETTINGS,)
    assert ours.origins[0].text.endswith("preset large: the bias of O moved by dev's F1")
    assert row_of(compare([same]), 3, "LUKE").ours.marks == ()


def test_the_papers_presets_are_marked_on_no_task() -> None:
    for task, preset in product(DATASETS, ("base", "large", "tuned")):
        for table in compare([cell(task, preset=preset)]).results:
            assert not any(row.ours.marks for row in table.rows if row.ours)


LEFT_OUT, NOTHING, UNLIKE = "are left out", "they say nothing about the paper's model", "not like for like"
NO_DIFFERENCE, COMES_OF = "With other data no difference is shown", "A difference that is shown with"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([{}], ()),
        ([{"is_example": True, "model": "tiny"}], (LEFT_OUT, NOTHING)),
        ([{"sizes": {"test": 12}}], (UNLIKE, NO_DIFFERENCE)),
        ([{"model": "base"}, {"variant": "roberta", "is_example": True}], (LEFT_OUT, UNLIKE, COMES_OF)),
    ],
)
def test_what_marks_mean(options, said) -> None:
    """That a figure says nothing is said only where none is subtracted."""
    compared = compare([cell(**each) for each in options])
    parts = (LEFT_OUT, NOTHING, UNLIKE, NO_DIFFERENCE, COMES_OF)
    assert tuple(part for part in parts if part in compared.caveat) == said


def test_marks_of_some_tasks_name_them() -> None:
    cells = [cell("ner"), cell("cloze_qa", is_example=True), cell("extractive_qa", model="base")]
    compared = compare(cells)
    row = row_of(compared, 7, "Entity-aware Attention").ours
    assert row.marks == ("example data (ReCoRD)", "other model size (SQuAD)")
    assert [figure.difference is not None for figure in row.figures] == [
        False, False, True, False, False, True, True,
    ]  # fmt: skip
    assert row_of(compared, 4, "LUKE").ours.marks == ("example data",)


def test_each_state_is_shown_with_its_reason() -> None:
    found = [
        cell("ner", state="failed", reason=f"went wrong: {HOSTILE}"),
        cell("entity_typing", state="no data", reason="no folder", data=""),
        cell("relation_classification", state="no weights", reason="nothing given", weights=""),
    ]
    compared = compare(found)
    for number, state, reason in (
        (3, "failed", "went wrong"),
        (1, "no data", "no folder"),
        (2, "no weights", "nothing given"),
    ):
        ours = row_of(compared, number, "LUKE").ours
        shown = {(figure.mean, figure.difference, figure.text) for figure in ours.figures}
        assert shown == {(None, None, state)}
        assert f"seed 1: {state} ({reason}" in ours.origins[0].text
        assert ours.is_problem
    not_run = row_of(compared, 4, "LUKE").ours
    assert {figure.text for figure in not_run.figures} == {"not run"}
    assert not_run.origins[0].text == "ReCoRD: not among these experiments"
    columns = [figure.text for figure in row_of(compared, 7, "Entity-aware Attention").ours.figures]
    assert columns == ["no data", "no weights", "failed", *["not run"] * 4]
    for text in (page_of(compared), markdown_of(compared)):
        assert all(word in text for word in ("no folder", "nothing given", "went wrong", "not run"))


def test_seeds_that_did_not_end_well_are_counted() -> None:
    failed = [cell(seed=3, state="failed", reason="out of memory"), cell(seed=4, state="failed")]
    ours = row_of(compare([*with_f1(0.9, 0.8), *failed]), 3, "LUKE").ours
    assert ours.figures[0].text == "85.0 ± 7.1 (2 of 4 seeds)"
    assert ours.is_problem
    assert ours.origins[0].done == (1, 2)
    assert ours.origins[0].problems == ("seed 3: failed (out of memory)", "seed 4: failed")
    only = [cell(seed=1, state="failed"), cell(seed=2, state="no data")]
    assert row_of(compare(only), 3, "LUKE").ours.figures[0].text == "failed, no data"
    examples = [cell(**DEMO, seed=1), cell(**DEMO, seed=2, state="failed")]
    ours = row_of(compare(examples), 3, "LUKE").ours
    assert ([figure.text for figure in ours.figures], ours.is_problem) == (["1 of 2 seeds"], True)


def test_questions_without_a_mention_table_are_marked() -> None:
    """LUKE on SQuAD takes Wikipedia's entities; without them its row is nearly the one without entity inputs."""
    for variant, row, mentions, marks in (
        ("luke", "LUKE", True, ()),
        ("luke", "LUKE", False, (NO_ENTITIES,)),
        ("roberta", "RoBERTa", False, ()),
    ):
        found = compare([cell("extractive_qa", variant, data="squad", mentions=mentions)])
        assert row_of(found, 5, row).ours.marks == marks


def test_the_list_of_experiments() -> None:
    (one, two) = compare(
        [cell(types=["PER"], scores={"test": {"semeval_macro_f1": 0.4321}}), cell(seed=2, state="failed")]
    ).experiments
    assert (one["task"], one["seed"], one["state"], one["folder"]) == ("ner", 1, "done", "finetune-00000001")
    assert (one["kept_epoch"], one["epochs"], one["learning_rate"], one["batch_size"]) == (2, 5, 1e-5, 8)
    spans = dict.fromkeys(("precision", "recall", "f1"), 50)
    assert one["scores"]["test"] == spans | {"semeval_macro_f1": pytest.approx(43.21)}
    assert (one["types"]["dev"]["PER"]["recall"], one["types"]["dev"]["PER"]["gold"]) == (25, 4)
    assert (two["kept_epoch"], two["scores"], two["types"]) == (None, {}, {})


# As HTML, and the rows of Markdown

TAGS = {
    "section", "h2", "h3", "h4", "p", "div", "table", "tr", "th", "td", "br", "small", "details", "summary",
}  # fmt: skip
TAGS |= {"ul", "li", "b", "code", "bdi", "thead"}

FULL = [
    *with_f1(0.95, 0.93, types=[HOSTILE], data=HOSTILE, weights=HOSTILE),
    cell(seed=3, data=HOSTILE, weights=HOSTILE, state="failed", reason=HOSTILE),
    cell("cloze_qa", **DEMO | {"data": "cloze_qa"}),
    cell("extractive_qa", "roberta", state="no data", data="", reason="not in experiments.toml"),
]


def test_the_page() -> None:
    page = page_of(compare(FULL))
    rows, classes = rows_of(page)
    assert "<script>" not in page
    assert set(re.findall(r"<(\w+)", page)) <= TAGS
    assert page.startswith('<section id="tasks" class="view">')
    assert page.rstrip().endswith("</section>")
    names = set().union(*(each for row in classes for each in row))
    assert names <= {"wide", "number", "text", "note", "ours", "demo", "best", "problem", "folded", "view"}
    assert ["LUKE", "94.3"] in rows
    (at,) = (n for n, row in enumerate(rows) if row[-1] == "94.0 ± 1.4 (2 of 3 seeds)" and len(row) == 2)
    assert rows[at][0] == f"LUKE (ours){HOSTILE}; {HOSTILE}"
    assert classes[at] == [{"ours"}, set(), {"number", "problem"}]
    assert rows[at + 1] == ["difference to the paper", "−0.3"]
    assert rows[at + 2] == ["best of the seeds", "95.0"]
    assert "other hyper-parameters: preset tiny: Learning rate 0.001, not 1e-05, Batch size 4, not 32," in page
    marked = "LUKE (ours)example data, tiny model, other hyper-parameters"
    (demo,) = (n for n, row in enumerate(rows) if row[0].strip() == marked and len(row) == 5)
    assert classes[demo] == [{"ours", "demo"}, set(), *[{"number"}] * 4]
    assert rows[demo][1:] == ["example data"] * 4
    folded = re.findall(r"<summary><b>Table (\d)[^<]*</b>[^<]*<code>([^<]*)</code>", page)
    assert [number for number, _ in folded] == ["1", "2", "4", "5"], "where ours has no figure"
    assert "--set fine_tuning.data.extractive_qa=DIR" in folded[-1][1]
    for row, next_row in pairwise(rows):
        if "(ours)" in row[0]:
            assert next_row[0].startswith("difference") is any("." in text for text in row[1:])


def test_every_row_has_as_many_cells_as_its_head() -> None:
    for table in re.findall(r"<table>(.*?)</table>", page_of(compare(FULL)), re.DOTALL):
        widths = {len(re.findall(r"<t[dh][ >]", row)) for row in re.findall(r"<tr.*?</tr>", table, re.DOTALL)}
        assert len(widths) == 1
    for table in re.findall(r"(?:^\|.*\n)+", markdown_of(compare(FULL)), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
        assert re.fullmatch(r"[|:-]+", table.splitlines()[1])
