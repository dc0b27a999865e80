"""The configuration of a pretraining: a preset's values, with others over them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from model.luke.config import check_type, preset
from model.luke.config import check_value as check
from model.pretraining.recipes import (
    AROUND_A_BASE,
    DROPOUT,
    RECIPE_NAMES,
    RECIPES,
    SCRATCH,
    SIZES,
    TITLES,
    Recipe,
    as_list,
    as_typed,
    changed_phases,
    check_names,
)

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
    check_names(given)
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
        check(
            start != TITLES, "entity_start", start, "random: without a base model words have no meaning yet"
        )
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
