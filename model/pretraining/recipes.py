"""The hyper-parameters of a pretraining: those of each preset (appendix of the paper), with others over them.

In a run file a recipe is the table [pretraining]: the names of `Recipe` with lists for its phases, and those of
LukeConfig in SIZES. `choose` puts such a table over a preset's.
"""

import difflib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from model.luke.config import MASKED_SHARE, LukeConfig, check_type, preset
from model.luke.config import check_value as check
from model.presets import PRESET_TABLES
from model.training.precision import PRECISIONS

SCRATCH = "scratch"
TRAINABLE = ("new", "all")
AUTO = "auto"
TITLES, RANDOM = STARTS = "titles", "random"
# A micro-batch on a GPU: what keeps one busy, where half of its memory holds what is kept for the way back.
GPU_TOKENS = 32_768
_MEMORY_SHARE = 0.5
# Bytes of each token, layer and hidden unit: counted in bf16 (tests/model/luke/test_flat.py); in float32 each is twice
# as wide, and there are copies of what its kernel reads.
_KEPT_BYTES = {"bf16": 42, "float32": 110}
_ROUND_TOKENS = 1024


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
        for name, wanted in (("steps", int), ("learning_rate", float), ("warmup_steps", int)):
            check_type(name, getattr(self, name), wanted)
        check(self.trainable in TRAINABLE, "trainable", self.trainable, f"one of {', '.join(TRAINABLE)}")
        check(self.steps >= 1, "steps", self.steps, "at least 1")
        check(0 < self.learning_rate < math.inf, "learning_rate", self.learning_rate, "above 0")
        said = f"from 0 to the {self.steps} steps of its phase; give it with the steps"
        check(0 <= self.warmup_steps <= self.steps, "warmup_steps", self.warmup_steps, said)


@dataclass(frozen=True)
class Recipe:
    """The hyper-parameters of a pretraining; help.toml says what each is.

    Micro-batches bound the memory, not the result, but in profile `paper`. What is left to the device is said by
    `on_device`; weights are float32 whatever the precision of products. With `gradient_checkpointing` a layer's inner
    states are computed twice instead of kept. Where the share of words or entities that are masked in training is not
    0, at least one is. Without `predicts_unknown` an [UNK] entity is always an input; at a share of 1 no other entity
    but [MASK] is ever one. Evaluation masks MASKED_SHARE of the entities in whole text and, where the recipe masks
    words, MASKED_SHARE of both.
    """

    phases: tuple[Phase, ...]
    batch_size: int
    micro_batch_size: int
    log_every: int
    checkpoint_every: int
    tokens_per_batch: int = 0
    precision: str = AUTO
    gradient_checkpointing: bool = False
    compiled: bool = False
    deterministic: bool = False
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    epsilon: float = 1e-6
    masked_word_share: float = MASKED_SHARE
    masked_entity_share: float = MASKED_SHARE
    predicts_unknown: bool = True
    min_entities: int = 0
    entity_start: str = AUTO

    def __post_init__(self) -> None:
        for name, kind in TYPES.items():
            if name in RECIPE_NAMES and kind in (int, float, bool, str):
                check_type(name, getattr(self, name), kind)
        check(len(self.phases) > 0, "phases", self.phases, "at least one phase")
        for name in ("batch_size", "micro_batch_size", "log_every", "checkpoint_every"):
            check(getattr(self, name) >= 1, name, getattr(self, name), "at least 1")
        for name in ("tokens_per_batch", "min_entities"):
            check(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        for name, known in (("precision", (AUTO, *PRECISIONS)), ("entity_start", (AUTO, *STARTS))):
            check(getattr(self, name) in known, name, getattr(self, name), f"one of {', '.join(known)}")
        check(self.epsilon > 0, "epsilon", self.epsilon, "above 0")
        is_pair = isinstance(self.betas, tuple) and len(self.betas) == 2
        is_pair = is_pair and all(isinstance(beta, float) and 0 <= beta < 1 for beta in self.betas)
        check(is_pair, "betas", self.betas, "two numbers, each at least 0 and below 1")
        for name in ("weight_decay", "masked_word_share", "masked_entity_share"):
            check(0 <= getattr(self, name) <= 1, name, getattr(self, name), "at least 0, at most 1")
        if not self.masked_word_share and not self.masked_entity_share:
            raise ValueError("masked_word_share and masked_entity_share are 0: there is nothing to learn")

    def on_device(self, config: LukeConfig, *, gpu_bytes: int, has_bf16: bool, profile: str) -> "Recipe":
        """The recipe with what it leaves open as a specialist would choose it; `gpu_bytes` is 0 on a CPU.

        Products are in bf16 where the device has that. On a GPU a micro-batch has as many tokens as its memory takes,
        up to GPU_TOKENS. In profile `paper`, whose result depends on them, micro-batches stay as they are.
        """
        suited = "bf16" if has_bf16 else "float32"
        precision = suited if self.precision == AUTO else self.precision
        changes: dict[str, Any] = {"precision": precision}
        if gpu_bytes and not self.tokens_per_batch and profile != "paper":
            layers = config.num_hidden_layers
            # Checkpointing keeps a layer's input, in float32 at most, and one layer's states.
            of_layer = _KEPT_BYTES[precision]
            kept = of_layer + 4 * layers if self.gradient_checkpointing else of_layer * layers
            fitting = int(_MEMORY_SHARE * gpu_bytes / (kept * config.hidden_size))
            changes["tokens_per_batch"] = max(_ROUND_TOKENS, min(GPU_TOKENS, fitting // _ROUND_TOKENS * _ROUND_TOKENS))
        return replace(self, **changes)

    def computing(self) -> dict[str, Any]:
        """The values that a recipe may leave to the device, and on which bits depend."""
        return {"precision": self.precision, "tokens_per_batch": self.tokens_per_batch}

    def start_of_entities(self, *, base_model: str, profile: str) -> str:
        """The start of entities: one of STARTS."""
        if self.entity_start == AUTO:
            return TITLES if base_model != SCRATCH and profile != "paper" else RANDOM
        return self.entity_start

    def without_entities(self) -> "Recipe":
        """As many steps of the last phase that trains all: the baseline "RoBERTa with extra training".

        It masks words, MASKED_SHARE of them where the recipe masks none.
        """
        steps = sum(phase.steps for phase in self.phases)
        whole = [phase for phase in self.phases if phase.trainable == "all"]
        if not whole:
            raise ValueError(
                "phases has no 'all': the baseline without entities has nothing new to train; add the phase all"
            )
        phase = replace(whole[-1], steps=steps)
        return replace(self, phases=(phase,), masked_word_share=self.masked_word_share or MASKED_SHARE)

    def table(self) -> dict[str, Any]:
        """All values as a recipe's file has them, of JSON's types: a list for each value of the phases.

        `deterministic` only where it is true: by what this returns runs know themselves, also those from before it.
        """
        kinds = {"phases": [phase.trainable for phase in self.phases]}
        columns = {name: [getattr(phase, name) for phase in self.phases] for name in COLUMNS}
        left_out = ("phases",) if self.deterministic else ("phases", "deterministic")
        rest = {name: value for name, value in asdict(self).items() if name not in left_out}
        return kinds | columns | rest | {"betas": list(self.betas)}


COLUMNS = ("steps", "learning_rate", "warmup_steps")
RECIPE_NAMES = tuple(field.name for field in fields(Recipe))
TYPES: Mapping[str, Any] = {field.name: field.type for each in (LukeConfig, Phase, Recipe) for field in fields(each)}
DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob")
# Fields of LukeConfig that a recipe may name.
SIZES = (
    *("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size"),
    *("entity_emb_size", "entity_head", *DROPOUT),
    *("hidden_act", "max_position_embeddings", "layer_norm_eps", "initializer_range"),
)
STEPS_AND_RATES = ("phases", *COLUMNS)  # one value for each phase
# What each value of a recipe is, for whoever gives it.
HELP: Mapping[str, str] = tomllib.loads(Path(__file__).with_name("help.toml").read_text(encoding="utf-8"))


def as_typed(name: str, value: Any) -> Any:
    """A whole number as a float where the field is one, also in lists; a list of two as the pair of `betas`."""
    if isinstance(value, list | tuple):
        found = [as_typed(name, each) for each in value]
        return tuple(found) if name == "betas" else found
    is_float = TYPES[name] is float or name == "betas"
    return float(value) if is_float and isinstance(value, int) and not isinstance(value, bool) else value


def changed_phases(phases: Sequence[Phase], given: Mapping[str, Any]) -> tuple[Phase, ...]:
    """The phases of the kinds that are given, each with its own values; other steps are shared out as before."""
    if "phases" in given:
        by_kind = {phase.trainable: phase for phase in phases}
        kinds = as_list(given["phases"])
        known = bool(kinds) and all(isinstance(kind, str) and kind in by_kind for kind in kinds)
        check(known, "phases", given["phases"], f"of the preset's: {', '.join(by_kind)}")
        phases = [by_kind[kind] for kind in kinds]
    columns = {name: for_each(name, given[name], phases) for name in COLUMNS if name in given}
    rows = ({name: column[number] for name, column in columns.items()} for number in range(len(phases)))
    return tuple(replace(phase, **row) for phase, row in zip(phases, rows, strict=True))


def for_each(name: str, value: Any, phases: Sequence[Phase]) -> list[Any]:
    """The value of each phase, from one or several."""
    values = as_list(value)
    if len(values) not in (1, len(phases)):
        wanted = "one value" if len(phases) == 1 else f"one value, or one for each of {len(phases)} phases"
        raise ValueError(f"{name} has {len(values)} values, wanted {wanted}")
    if len(values) > 1 or name != "steps":
        return values * (len(phases) // len(values))
    check_type(name, values[0], int)
    check(values[0] >= len(phases), name, values[0], f"at least {len(phases)}, a step for each phase")
    # A step for each, and the others in proportion.
    ends = list(accumulate((max(1, phase.steps - 1) for phase in phases), initial=0))
    places = [((values[0] - len(phases)) * end + ends[-1] // 2) // ends[-1] for end in ends]
    return [1 + end - start for start, end in pairwise(places)]


def as_list(value: Any) -> list[Any]:
    """One value or several as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


def of_table(table: Mapping[str, Any]) -> Recipe:
    """The recipe of a preset's table; what it does not name is the default."""
    values = {name: as_typed(name, value) for name, value in table.items() if name not in SIZES}
    blank = [Phase(1, 1.0, 0, kind) for kind in values.pop("phases")]
    columns = {column: values.pop(column) for column in COLUMNS}
    return Recipe(changed_phases(blank, columns), **values)


RECIPES = {name: of_table(tables["pretraining"]) for name, tables in PRESET_TABLES.items()}
PAPER_RECIPE = RECIPES["base"]
AROUND_A_BASE = ("demo", "small")  # presets that are too short to learn words from nothing
ENTITY_SIZES = ("entity_emb_size", "entity_head")
OF_ENTITIES = (*ENTITY_SIZES, "masked_entity_share", "predicts_unknown", "entity_start")
# What a base model brings itself.
OF_A_BASE = tuple(name for name in SIZES if name not in (*ENTITY_SIZES, *DROPOUT))


@dataclass(frozen=True)
class Configuration:
    """The model and the recipe of a pretraining: a preset's values, with others over them.

    `sizes` are fields of LukeConfig: all SIZES of a model from scratch. Around a base model, which has its own, those
    of its entities, and dropout.
    """

    preset: str
    base_model: str
    entities: bool
    sizes: Mapping[str, Any]
    recipe: Recipe

    def table(self) -> dict[str, Any]:
        """All values under the names of a run file, of JSON's types."""
        return {**self.sizes, **self.recipe.table()}

    def changes(self) -> dict[str, Any]:
        """The values that are not the preset's."""
        start = finished(of_preset(self.preset, self.base_model, self.entities)).table()
        return {name: value for name, value in self.table().items() if value != start.get(name)}


def choose(
    name: str, values: Mapping[str, Any] | None = None, *, base_model: str = SCRATCH, entities: bool = True
) -> Configuration:
    """The configuration of a preset with other values over its own.

    Without `entities` it is the baseline that learns words alone: values for entities do not matter, but for
    `min_entities`, so that both see the same sequences.
    Raises ValueError for values that cannot be, or make no sense together; it names the field.
    """
    given = values or {}
    for unknown in (each for each in given if each not in HELP):
        near = difflib.get_close_matches(unknown, HELP, 1)
        hint = f", did you mean {near[0]}?" if near else f" (there are {', '.join(HELP)})"
        raise ValueError(f"{unknown} is no value of a recipe{hint}")
    configuration = changed(of_preset(name, base_model, entities), given)
    if entities and base_model == SCRATCH and name in AROUND_A_BASE and not given.get("masked_word_share"):
        raise ValueError(
            f"preset {name} is too short to learn words from nothing; give a base model, or say with masked_word_share "
            "that words are to be learnt all the same"
        )
    return finished(configuration)


def of_preset(name: str, base_model: str, entities: bool) -> Configuration:
    """A preset's values."""
    config = preset(name)
    chosen = SIZES if base_model == SCRATCH else (*ENTITY_SIZES, *DROPOUT)
    sizes = {field: getattr(config, field) for field in chosen}
    return Configuration(name, base_model, entities, sizes, RECIPES[name])


def finished(configuration: Configuration) -> Configuration:
    """The configuration, its recipe that of the baseline where it has no entities."""
    if configuration.entities:
        return configuration
    return replace(configuration, recipe=configuration.recipe.without_entities())


def changed(configuration: Configuration, values: Mapping[str, Any]) -> Configuration:
    """The configuration with these values, and what follows from them."""
    given = {name: as_typed(name, value) for name, value in values.items()}
    if not configuration.entities:
        given = {name: value for name, value in given.items() if name not in OF_ENTITIES}
    check_together(configuration, given)
    sizes = {**configuration.sizes, **{name: value for name, value in given.items() if name in SIZES}}
    if "hidden_size" in given:
        sizes |= in_proportion(configuration.sizes, given)
    replace(preset(configuration.preset), **sizes)  # which looks at each
    rest = {name: value for name, value in given.items() if name in RECIPE_NAMES and name != "phases"}
    recipe = replace(configuration.recipe, phases=changed_phases(configuration.recipe.phases, given), **rest)
    return replace(configuration, sizes=sizes, recipe=recipe)


def check_together(configuration: Configuration, given: Mapping[str, Any]) -> None:
    """Raise a ValueError for values that make no sense with the configuration's base model, or without one."""
    if configuration.base_model == SCRATCH:
        start = given.get("entity_start")
        check(start != TITLES, "entity_start", start, "random: without a base model words mean nothing yet")
        if {"new"} == {each for each in as_list(given.get("phases", ())) if isinstance(each, str)}:
            raise ValueError(
                "phases has 'new' alone, which trains what a base model does not bring: without one that is "
                "everything; give all, or a base model"
            )
        return
    for name in OF_A_BASE:
        if name in given:
            raise ValueError(
                f"{name} is {given[name]!r}, but the base model {configuration.base_model} has its own; leave it "
                f"out, or train from {SCRATCH}"
            )


def in_proportion(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, int]:
    """Attention heads of the same width, and an inner layer as many times as wide, where they are not given."""
    check_type("hidden_size", given["hidden_size"], int)
    head = before["hidden_size"] // before["num_attention_heads"]
    found = {
        "num_attention_heads": given["hidden_size"] // head,
        "intermediate_size": given["hidden_size"] * before["intermediate_size"] // before["hidden_size"],
    }
    if "num_attention_heads" not in given:
        is_whole = given["hidden_size"] >= head and given["hidden_size"] % head == 0
        check(is_whole, "hidden_size", given["hidden_size"], f"a multiple of {head}, the width of a head")
    return {name: given.get(name, value) for name, value in found.items()}


def values_text(values: Mapping[str, Any]) -> str:
    """Values in a line, those of phases with a slash between them: "batch_size 64, steps 100/100"."""
    texts = {
        name: "/".join(f"{each:g}" if isinstance(each, float) else str(each) for each in as_list(value))
        for name, value in values.items()
    }
    return ", ".join(f"{name} {text}" for name, text in texts.items())
