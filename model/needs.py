"""What a pretraining needs of GPUs: days and bytes, computed from its sizes and not measured."""

from model.config import LukeConfig, parameter_counts
from model.recipes import MASKED_SHARE, Recipe
from model.speed import Work, training_flops

GPU_RATE = 790e12  # bf16 products of an H200, FLOP/s, as measured
SHARE = 0.45  # of that rate
ENTITIES = 20  # of a sequence of 512 words, as in enwiki-2006-12k
FLOAT = 4  # bytes
# Bytes that a layer keeps for its backward pass for each token and hidden unit (Korthikanti et al., 2022).
KEPT_BY_LAYER = 34


def step_work(recipe: Recipe, words: int = 512) -> Work:
    """What is in a step of full sequences."""
    masked = round(MASKED_SHARE * (words - 2)), round(recipe.masked_entity_share * ENTITIES)
    one = Work(1, words, ENTITIES, (words + ENTITIES) ** 2, *masked)
    return sum((one for _ in range(recipe.batch_size)), Work())


def training_days(config: LukeConfig, recipe: Recipe, gpus: int = 1) -> list[float]:
    """Days of each phase; "new" is taken to leave the words' weights as they are."""
    work, rate = step_work(recipe), GPU_RATE * SHARE * gpus
    return [
        phase.steps * training_flops(config, work, encoder_trains=phase.trainable == "all") / rate / 86400
        for phase in recipe.phases
    ]


def memory_bytes(config: LukeConfig, tokens: int, *, gradient_checkpointing: bool) -> dict[str, int]:
    """Bytes on each GPU, whatever their number: float32 weights, gradients, AdamW's two moments, inner states.

    `tokens` are those of a micro-batch. With `gradient_checkpointing` a layer keeps its input, and one at a time
    all that it computed.
    """
    weights = FLOAT * sum(parameter_counts(config).values())
    inputs = FLOAT * tokens * config.hidden_size * config.num_hidden_layers
    layer = KEPT_BY_LAYER * tokens * config.hidden_size
    states = inputs + layer if gradient_checkpointing else config.num_hidden_layers * layer
    return {"weights": weights, "gradients": weights, "moments": 2 * weights, "states": states}


def checkpoint_bytes(config: LukeConfig) -> int:
    """Weights and AdamW's two moments, as they are when everything is trained."""
    return 3 * FLOAT * sum(parameter_counts(config).values())
