"""The recipe of pretraining, and its computation."""

from typing import Any

import luigi

from model.pretraining.configuration import FLAGS
from model.training.precision import PRECISIONS
from workflows.base import parameters
from workflows.base.parameters import AUTO
from workflows.settings.sequences import SequenceSettings

SEED = 42
# A stage of fine-tuning has values of its own by these names: the pretraining before it has those of its recipe.
PRETRAINED = {"learning_rate": AUTO, "batch_size": AUTO, "seed": SEED}


def recipe_value(name: str) -> Any:
    """The parameter for a single value of pretraining's recipe; `auto` is what the file or the preset says."""
    flag = FLAGS[name]
    options: dict[str, Any] = {"or_auto": True, "default": AUTO, "description": flag.text}
    item: parameters.Checked
    for_one = {} if flag.each_phase else options
    if flag.kind is int:
        item = parameters.WholeNumber(least=int(flag.least), **for_one)
    elif isinstance(flag.kind, tuple):
        item = parameters.OneOf(*flag.kind, **for_one)
    else:
        item = (parameters.PositiveNumber if flag.each_phase else parameters.Share)(**for_one)
    return parameters.ListOf(item, repeats=True, **options) if flag.each_phase else item


class RecipeSettings:
    """The values of a recipe, over those of the preset."""

    recipe = luigi.Parameter(
        default="", description="TOML file of values of pretraining over the preset's; single ones go over it"
    )
    steps = recipe_value("steps")
    warmup_steps = recipe_value("warmup_steps")
    phases = recipe_value("phases")
    masked_words = recipe_value("masked_words")
    layers = recipe_value("layers")
    hidden_size = recipe_value("hidden_size")


class RunSettings:
    """The values of pretraining that fine-tuning has, too, by the same names."""

    learning_rate = recipe_value("learning_rate")
    batch_size = recipe_value("batch_size")
    seed = parameters.WholeNumber(default=SEED, description="seed of pretraining")


class EntitySettings:
    """The values of a recipe for entities."""

    entity_head = recipe_value("entity_head")
    entity_start = recipe_value("entity_start")


class PretrainingSettings(SequenceSettings, RecipeSettings):
    """PretrainRoberta and its upstream stages; Pretrain needs those of the mention table and of entities, too."""

    tokens_per_batch = parameters.WholeNumber(
        default=0,
        description="words and entities that training computes at once; 0: a number of sequences, or, in pretraining "
        "on a GPU, what its memory takes",
    )
    precision = parameters.OneOf(
        AUTO,
        *PRECISIONS,
        default=AUTO,
        description="of the matrix products of pretraining and fine-tuning; auto: what --recipe says, or bf16 for "
        "pretraining on a GPU or a processor that has it, else float32",
    )
    gradient_checkpointing = luigi.BoolParameter(
        description="less memory for more work, in pretraining and fine-tuning"
    )
    tracker = luigi.Parameter(
        default="",
        significant=False,
        description="module:function of your own, which gets (figures, step) of training as TensorBoard does",
    )
    checkpoint_minutes = parameters.WholeNumber(
        default=30, significant=False, description="minutes between training's checkpoints, at most"
    )
    device = parameters.Matching(
        r"auto|cpu|cuda(:\d+)?",
        "auto, cpu, cuda or cuda:N",
        default=AUTO,
        significant=False,
        description="auto, cpu, cuda or cuda:N, for training",
    )


class LukeSettings(EntitySettings, PretrainingSettings):
    """Pretrain and its upstream stages."""
