"""How a model is pretrained: the phases and hyper-parameters of each preset (appendix of the paper)."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from model.luke.config import MASKED_SHARE

TRAINABLE = ("new", "all")
PRECISIONS = ("float32", "bf16")


@dataclass(frozen=True)
class Phase:
    """A stretch of training with its own optimiser and warm-up; `trainable` is "new" or "all".

    "new" trains what the base model did not initialise: everything, when there is no base model.
    """

    steps: int
    learning_rate: float
    warmup_steps: int
    trainable: str

    def __post_init__(self) -> None:
        if self.trainable not in TRAINABLE:
            raise ValueError(f"trainable is {self.trainable!r}, but must be one of {', '.join(TRAINABLE)}")


@dataclass(frozen=True)
class Recipe:
    """The hyper-parameters of a pretraining; micro-batches bound the memory, not the result's meaning.

    `tokens_per_batch` bounds the words and entities of a micro-batch instead of its sequences; 0 does not.
    `precision` is that of matrix products (weights are float32), float32 or bf16; with `gradient_checkpointing` a
    layer's inner states are computed twice instead of kept; `compiled` has torch compile the encoder.
    `masked_entity_share` of a sequence's entities are hidden in training, at least one (of its words: MASKED_SHARE).
    At 1 no entity but [MASK] is ever an input. Evaluation hides MASKED_SHARE of both, whatever the recipe.
    With `begins_at_own_place` a model without a base does not begin with plain random weights, but with attention to a
    token's own place (`model.pretraining.own_place`).
    """

    phases: tuple[Phase, ...]
    batch_size: int
    micro_batch_size: int
    log_every: int
    checkpoint_every: int
    tokens_per_batch: int = 0
    precision: str = "float32"
    gradient_checkpointing: bool = False
    compiled: bool = False
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-6
    masked_entity_share: float = MASKED_SHARE
    begins_at_own_place: bool = False

    def __post_init__(self) -> None:
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision {self.precision!r} is unknown; use one of {', '.join(PRECISIONS)}")
        if self.tokens_per_batch < 0:
            raise ValueError(f"tokens_per_batch is {self.tokens_per_batch}, but must be at least 0")
        if not 0 < self.masked_entity_share <= 1:
            raise ValueError(
                f"masked_entity_share is {self.masked_entity_share}, but must be above 0, at most 1"
            )

    def without_entities(self) -> "Recipe":
        """As many steps of the last phase's kind: the baseline "RoBERTa with extra training"."""
        steps = sum(phase.steps for phase in self.phases)
        return replace(self, phases=(replace(self.phases[-1], steps=steps, trainable="all"),))


def read_recipes(path: Path) -> dict[str, Recipe]:
    """The recipes of a TOML file by their names; what one does not name is the default."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {
        name: Recipe(tuple(Phase(**phase) for phase in phases), **values)
        for name, table in tables.items()
        for phases, values in [(table.pop("phases"), table)]
    }


RECIPES = read_recipes(Path(__file__).with_name("recipes.toml"))
PAPER_RECIPE = RECIPES["base"]
RECIPES["large"] = PAPER_RECIPE  # the paper has no other one
