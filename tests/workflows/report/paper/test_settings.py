"""The paper's hyper-parameters beside those that were used."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from model.luke.config import PRESETS
from model.pretraining.recipes import AROUND_A_BASE, RECIPES, SCRATCH, choose
from tasks.finetuning.paper import DATASETS, TABLES
from tests.support.compared import cell
from tests.support.properties import given, st
from workflows.report.paper.settings import number_text, setting_tables

STAGES = {"Pretrain": True, "PretrainRoberta": False}


def tables(cells=(), pretraining=None):
    return {table.number: table for table in setting_tables(cells, pretraining or {})}


def rows(table):
    return {row.name: row for row in table.rows}


def pretraining(preset, max_words=512, **values):
    used = {}
    for stage, entities in STAGES.items():
        base_model = "roberta-base" if preset in AROUND_A_BASE else SCRATCH
        configuration = choose(preset, values, entities=entities, base_model=base_model)
        # As a run resolves it.
        start = configuration.recipe.start_of_entities(base_model=base_model, profile="fixed")
        recipe = configuration.table() | {"entity_start": start}
        record = {"preset": preset, "recipe": recipe, "changes": configuration.changes()}
        config = asdict(replace(PRESETS[preset], **configuration.sizes))
        used[stage] = {**record, "model": config, "max_words": max_words}
    return used


def test_the_papers_values_are_all_there() -> None:
    for table in TABLES[8:]:
        ours = tables()[table.number]
        assert [row.name for row in ours.rows] == [row.name for row in table.rows]
        for mine, row in zip(ours.rows, table.rows, strict=True):
            assert mine.paper == tuple(map(number_text, row.values))
            assert set(mine.ours) == {"-"}
            assert not any(mine.differs)


def test_presets_of_the_paper_differ_in_nothing() -> None:
    """Every row that has a value of ours: all but times, GPUs and scores."""
    cells = [cell(task) for task in DATASETS]
    for table in tables(cells, pretraining("large")).values():
        for row in table.rows:
            if row.name in ("Training time", "Number of GPUs"):
                assert set(row.ours) == {"-"}
            elif row.name != "Dev score":
                assert row.ours == row.paper
                assert not any(row.differs)


@pytest.mark.parametrize(
    ("preset", "flags", "wanted"),
    [
        ("small", {}, "begin as what their titles say."),
        ("small", {"entity_start": "random"}, "begin at random."),
        ("tiny", {}, "begin at random."),
    ],
)
def test_how_entities_begin_is_told(preset: str, flags: dict[str, Any], wanted: str) -> None:
    [note] = tables(pretraining=pretraining(preset, **flags))[9].notes
    assert wanted in note


def test_what_a_demo_uses_is_marked() -> None:
    cells = [cell(task, preset="tiny", model="tiny") for task in DATASETS]
    found = tables(cells, pretraining("tiny", max_words=128))
    assert rows(found[11])["Learning rate"].ours[0] == "0.002, classifier 0.005"
    assert rows(found[11])["Learning rate"].differs == (True,) * 5
    assert rows(found[11])["Batch size"].differs == (False, True, True, True, True)
    assert rows(found[12])["Maximum word length"].ours == (
        "96 (entity_typing, relation_classification, ner); 128 (cloze_qa, extractive_qa)",
    )
    assert rows(found[12])["Adam β2"].differs == (False,)
    first, second = RECIPES["tiny"].phases
    for name, value in (
        ("Maximum word length", "128"),
        ("Batch size", str(RECIPES["tiny"].batch_size)),
        ("Peak learning rate", number_text(second.learning_rate)),
        ("Peak learning rate (first 100K steps)", number_text(first.learning_rate)),
        ("Warmup steps", str(first.warmup_steps)),
    ):
        assert (rows(found[9])[name].ours, rows(found[9])[name].differs) == ((value,), (True,))
    assert "preset tiny, 50 + 50 steps, 2 layers of 128 units" in found[9].notes[0]
    assert "preset tiny, 100 steps" in found[10].notes[0]


def test_what_a_recipe_changes_is_named_and_marked() -> None:
    recipe = {"masked_word_share": 0.3, "num_hidden_layers": 3}
    found = tables([], pretraining("large", steps=300, warmup_steps=9, batch_size=64, **recipe))
    note = found[9].notes[0]
    assert note.startswith(
        "Ours: preset large with num_hidden_layers 3, steps 150/150, warmup_steps 9/9, batch_size 64, "
        "masked_word_share 0.3, 150 + 150 steps, 3 layers of 1,024 units"
    )
    assert found[10].notes[0].startswith("Ours: preset large with num_hidden_layers 3, steps 300,")
    for name, value in (("Batch size", "64"), ("Mask probability for words", "30%"), ("Warmup steps", "9")):
        assert (rows(found[9])[name].ours, rows(found[9])[name].differs) == ((value,), (True,))


def test_warmups_that_differ_are_both_shown() -> None:
    row = rows(tables(pretraining=pretraining("tiny", warmup_steps=[5, 3]))[9])["Warmup steps"]
    assert row.ours == ("5 (phase 1); 3 (phase 2)",)
    assert rows(tables(pretraining=pretraining("small"))[9])["Dropout"].ours == ("0",)


def test_dev_scores_are_lukes_means() -> None:
    cells = [
        cell("cloze_qa", seed=seed, scores={"dev": {"exact_match": em, "f1": 0.914}})
        for seed, em in enumerate((0.90, 0.91))
    ]
    cells += [cell("ner", "roberta", scores={"dev": {"f1": 0.1}})]
    row = rows(tables(cells)[11])["Dev score"]
    assert row.ours == ("-", "-", "-", "90.5 EM/91.4 F1", "-")
    assert not any(row.differs), "a score is no setting"


def test_without_our_own_pretraining_nothing_is_said_of_it() -> None:
    table = tables([cell()])[9]
    assert {row.ours for row in table.rows} == {("-",)}
    assert table.notes == ("The pipeline's own pretraining was not used.",)


def test_cells_that_are_not_done_used_nothing() -> None:
    assert {row.ours for row in tables([cell(state="failed")])[12].rows} == {("-",)}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e-5, "1e-5"),
        (15e-6, "1.5e-5"),
        (0.001, "0.001"),
        (0.0, "0"),
        (100_000_000, "100000000"),
        ("15%", "15%"),
        (None, "-"),
    ],
)
def test_numbers_as_the_paper_prints_them(value, text) -> None:
    assert number_text(value) == text


@given(st.floats(1e-9, 1e5))
def test_no_digit_of_a_setting_is_lost(value) -> None:
    assert float(number_text(float(f"{value:.4g}"))) == float(f"{value:.4g}")
