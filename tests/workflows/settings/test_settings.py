"""Each stage has the parameters that it and its upstream stages use, and no others."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from luigi.cmdline_parser import CmdlineParser
from luigi.parameter import UnknownParameterException

import workflows
from model.pretraining.recipes import RECIPES
from workflows import (
    BuildEntityVocab,
    BuildSequences,
    ExtractPages,
    FetchDump,
    FetchQids,
    FineTune,
    FineTuneGrid,
    Pretrain,
    PretrainRoberta,
    ReadTemplates,
    Report,
    RunAll,
    Tune,
    TunedFineTune,
)
from workflows.base.stage import Step

STAGES = [stage for _, stage in inspect.getmembers(workflows, inspect.isclass) if issubclass(stage, Step)]
# Values with which stages require others than by default.
VALUES = [
    {},
    {"task": "extractive_qa"},
    {"variant": "roberta_extra_training"},
    {"tuned": True},
    {"corpus": "in"},
    {"dump_templates": True},
]
# What is not handed on: RunAll says itself what of the corpus is shown, and exports the entities, too. Where a
# fine-tuning follows, pretraining takes its seed's default, and its learning rate and batch from the recipe alone.
SET_DOWNSTREAM = {"corpus", "lite", "learning_rate", "batch_size", "seed"}


def names(stage: type[Step]) -> set[str]:
    return {name for name, _ in stage.get_params()}


def upstream(stage: type[Step]) -> set[type[Step]]:
    """All stages that one requires, directly or not, whatever its parameters."""
    found: set[type[Step]] = set()
    for values in VALUES:
        known: dict[str, Any] = {name: value for name, value in values.items() if name in names(stage)}
        found.update(type(each) for each in stage(**known).upstream())
    return found


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_lost_on_the_way_upstream(stage: type[Step]) -> None:
    for each in upstream(stage):
        assert names(each) - names(stage) <= SET_DOWNSTREAM, each


def test_what_the_grid_sets_in_its_cells() -> None:
    set_by_grid = {"task", "variant", "seed"}
    of_one_fine_tuning = {"data", "weights", "mentions", "negative_label", "tag_column"}
    of_the_preset = {"head_learning_rate", "learning_rate", "batch_size", "epochs", "patience"}
    assert names(FineTune) - names(FineTuneGrid) == set_by_grid | of_one_fine_tuning | of_the_preset
    assert names(TunedFineTune) - names(FineTuneGrid) == set_by_grid | of_one_fine_tuning | {"patience"}
    assert names(Tune) - names(FineTuneGrid) == set_by_grid | of_one_fine_tuning


def test_a_stage_has_no_parameter_that_it_does_not_use() -> None:
    assert names(FetchDump) == {"workdir", "dump", "allow_truncated"}
    blocks = {"block_size", "processes", "beam_options"}
    assert names(ReadTemplates) == names(FetchDump) | blocks
    assert names(ExtractPages) == names(ReadTemplates) | {"profile", "max_rejected", "dump_templates"}
    assert names(FetchQids) == names(ExtractPages) | {"page_props"}
    assert names(Pretrain) - names(PretrainRoberta) == {"entity_head", "entity_start"}
    with pytest.raises(UnknownParameterException, match="seed"):
        ExtractPages(seed=1)


RECIPE = {"steps": "200", "masked_words": 0.2, "layers": 3, "entity_head": "paper", "phases": "all"}


@pytest.mark.parametrize("stage", [FineTune, TunedFineTune, Tune, FineTuneGrid, Report, RunAll])
def test_what_is_pretrained_is_the_same_from_everywhere(tmp_path: Path, stage: type[Step]) -> None:
    """Also the values by the names of which fine-tuning has its own: a file has them, for every cell of a grid."""
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("learning_rate = 1e-3\nbatch_size = 7\n")
    given = {**RECIPE, "recipe": str(recipe)}
    alone = Pretrain(**given)
    assert alone.configuration.changes().keys() > {"steps", "learning_rate", "batch_size", "entity_head"}
    own = {"seed": 3} if "seed" in names(stage) else {}
    own |= {"learning_rate": 1e-5, "batch_size": 2} if stage is FineTune else {}
    found = [each for each in stage(**given, **own).upstream() if type(each) is Pretrain]
    assert [each.hash8 for each in found] == [alone.hash8]
    if stage is FineTuneGrid:
        cells = [cell.stage for cell in stage(**given).cells]  # type: ignore[attr-defined]
        assert {each.requires()["Pretrain"].hash8 for each in cells if each.variant == "luke"} == {
            alone.hash8
        }
        assert {each.learning_rate for each in cells} == {each.batch_size for each in cells} == {"auto"}


def test_what_the_command_line_says_is_what_is_trained() -> None:
    words = "Pretrain --steps 200 --batch-size 64 --learning-rate 1e-4 --device cpu"
    with CmdlineParser.global_instance(words.split()) as parser:
        recipe = parser.get_task_obj().configuration.recipe
    warmup = RECIPES["tiny"].phases[0].warmup_steps
    assert [(phase.steps, phase.learning_rate) for phase in recipe.phases] == [(100, 1e-4), (100, 1e-4)]
    assert [phase.warmup_steps for phase in recipe.phases] == [warmup, warmup]
    assert recipe.batch_size == 64


def test_a_fine_tuning_s_own_values_are_not_pretraining_s() -> None:
    plain, faster = FineTune(), FineTune(learning_rate=1e-4, batch_size=4, seed=7)
    assert plain.hash8 != faster.hash8
    assert plain.requires()["Pretrain"].hash8 == faster.requires()["Pretrain"].hash8 == Pretrain().hash8


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("steps", "40"),
        ("warmup_steps", "4,3"),
        ("learning_rate", "1e-4"),
        ("phases", "all"),
        ("batch_size", 64),
        ("masked_words", 0.2),
        ("layers", 3),
        ("hidden_size", 64),
        ("entity_head", "paper"),
        ("entity_start", "random"),
        ("precision", "bf16"),
        ("tokens_per_batch", 100),
        ("gradient_checkpointing", True),
    ],
)
def test_each_value_of_a_recipe_is_in_the_hash(flag: str, value: Any) -> None:
    stage = Pretrain(**{flag: value})
    assert stage.hash8 != Pretrain().hash8
    assert stage.requires()["BuildSequences"].hash8 == Pretrain().requires()["BuildSequences"].hash8
    if flag in names(PretrainRoberta):
        baseline = PretrainRoberta(**{flag: value})
        # It has one phase of the last one's kind in any case, of as many steps as all had.
        is_changed = flag != "phases" or baseline.configuration.changes()
        assert (baseline.hash8 != PretrainRoberta().hash8) == bool(is_changed)


def test_a_file_has_the_hash_of_the_same_values(tmp_path: Path) -> None:
    texts = {"same": "steps = 40\nlearning_rate = 1e-4\n", "other": "steps = 41\n", "wrong": "steps = 0\n"}
    same, other, wrong = (str(tmp_path / f"{name}.toml") for name in texts)
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text)
    assert Pretrain(recipe=same).hash8 == Pretrain(steps=40, learning_rate=1e-4).hash8
    assert Pretrain(recipe=other).hash8 != Pretrain(steps=40).hash8
    assert Pretrain(recipe=other, steps=40).hash8 == Pretrain(steps=40).hash8
    with pytest.raises(ValueError, match=r"^--recipe .*wrong\.toml: steps is 0, but must be at least 2"):
        _ = RunAll(recipe=wrong).report().hash8


def test_the_preset_follows_the_base_model() -> None:
    assert Pretrain().named_preset == "tiny"
    around = Pretrain(base_model="roberta-base")
    assert around.named_preset == "base"
    assert around.configuration.recipe == RECIPES["base"]
    assert Pretrain(base_model="roberta-base", preset="small").named_preset == "small"
    vocabulary = around.clone(BuildEntityVocab)
    assert vocabulary.bytes_parameters()["vocab_size"] == 500_000


@pytest.mark.parametrize("preset", ["demo", "small"])
def test_sequences_of_presets_around_a_small_base_are_short(preset: str) -> None:
    small = BuildSequences(preset=preset)
    assert small.limits()["max_words"] == 64
    assert BuildSequences().limits()["max_words"] == 512
    same, longer = (BuildSequences(preset=preset, max_words=count) for count in (64, 128))
    assert same.hash8 == small.hash8 != longer.hash8


def test_no_two_tasks_of_one_stage_in_a_run() -> None:
    stages = RunAll().upstream()
    assert len({stage.task_id for stage in stages}) == len(stages)
    assert len({stage.folder for stage in stages}) == len(stages)


def test_settings_of_spark_are_repeated_flags() -> None:
    flags = ["--spark-conf", "spark.executor.memory=8g", "--spark-conf=spark.a.b-c=x = [y], z"]
    with CmdlineParser.global_instance(["BuildMentionTable", *flags], allow_override=True) as parser:
        stage = parser.get_task_obj()
    wanted = ("spark.executor.memory=8g", "spark.a.b-c=x = [y], z")
    assert stage.spark_conf == wanted
    assert {each.spark_conf for each in stage.upstream() if hasattr(each, "spark_conf")} == {wanted}
    assert stage.hash8 == workflows.BuildMentionTable().hash8
    assert type(stage).from_str_params(stage.to_str_params()) is stage, "as another process makes it"
    for value in ("spark.a", "a=b", ["spark.a=1", "spark.a=2"]):
        with pytest.raises(ValueError, match=r"^--spark-conf \S+: wanted spark\.NAME=VALUE, each name once"):
            workflows.BuildMentionTable(spark_conf=value)


def test_the_size_of_the_sample_is_the_tokenizer_s_and_of_those_that_use_it() -> None:
    few = {"tokenizer_characters": 200_000}
    for stage in (workflows.TrainTokenizer, workflows.BuildSequences, Pretrain):
        assert stage(**few).hash8 != stage().hash8
    with pytest.raises(ValueError, match=r"--tokenizer-characters 5: wanted a whole number, 100000 or more"):
        workflows.TrainTokenizer(tokenizer_characters=5)
