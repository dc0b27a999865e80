"""Each stage has the parameters that it and its upstream stages use, and no others."""

import inspect
from typing import Any

import pytest
from luigi.cmdline_parser import CmdlineParser
from luigi.parameter import UnknownParameterException

import workflows
from workflows import (
    ExtractPages,
    FetchDump,
    FineTune,
    FineTuneGrid,
    Pretrain,
    PretrainRoberta,
    ReadTemplates,
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
# What is not handed on: RunAll says itself what of the corpus is shown, and exports the entities, too.
SET_DOWNSTREAM = {"corpus", "lite"}


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
    set_by_grid = {"task", "variant", "pretraining_seed"}
    of_one_fine_tuning = {"data", "weights", "mentions", "negative_label"}
    of_the_preset = {"learning_rate", "batch_size", "epochs", "patience"}
    assert names(FineTune) - names(FineTuneGrid) == set_by_grid | of_one_fine_tuning | of_the_preset
    assert names(TunedFineTune) - names(FineTuneGrid) == set_by_grid | of_one_fine_tuning | {"patience"}
    assert names(Tune) - names(FineTuneGrid) == set_by_grid | of_one_fine_tuning


def test_a_stage_has_no_parameter_that_it_does_not_use() -> None:
    assert names(FetchDump) == {"workdir", "dump", "allow_truncated"}
    blocks = {"block_size", "processes", "beam_options"}
    assert names(ReadTemplates) == names(FetchDump) | blocks
    assert names(ExtractPages) == names(ReadTemplates) | {"profile", "max_rejected", "dump_templates"}
    assert names(Pretrain) - names(PretrainRoberta) == {"min_links", "max_mention_characters"}
    with pytest.raises(UnknownParameterException, match="seed"):
        ExtractPages(seed=1)


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
