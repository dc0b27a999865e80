"""The variants differ in exactly what the paper says: attention, entity inputs, weights."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.luke.attention import ENTITY_AWARE_QUERIES
from tasks.finetuning.inference import collate
from tasks.finetuning.prepare import Prepared
from tasks.finetuning.registry import TASKS
from tasks.finetuning.results import configuration
from tasks.finetuning.variants import VARIANTS, WEIGHTS
from tasks.io.annotations import EntityMention
from tests.support.fine_tuned import CONFIG, prepared, pretrained

# What the paper compares in section 5, word for word: which weights, whether entities are given, which attention.
PAPER = {
    "luke": ("luke", True, True),
    "luke_original_attention": ("luke", True, False),
    "luke_no_entities": ("luke", False, False),
    "roberta": ("roberta", False, False),
    "roberta_extra_training": ("roberta_extra_training", False, False),
}
GRID = [(task, variant) for task in TASKS for variant in VARIANTS]


def test_rows_are_those_of_the_paper() -> None:
    assert {name: tuple(asdict(row).values()) for name, row in VARIANTS.items()} == PAPER
    assert {row.weights for row in VARIANTS.values()} == set(WEIGHTS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Weights for each kind; those of another kind are other numbers."""
    made = {}
    for number, kind in enumerate(WEIGHTS):
        made[kind] = tmp_path_factory.mktemp(kind)
        pretrained(made[kind])
        weights = load_file(made[kind] / "weights" / "model.safetensors")
        moved = {name: tensor + number for name, tensor in weights.items()}
        save_file(moved, made[kind] / "weights" / "model.safetensors")
    return made


@pytest.fixture(scope="module")
def runs(folders: dict[str, Path]) -> dict[tuple[str, str], Prepared]:
    """Each cell of the grid, resolved."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tasks.finetuning.prepare.open_annotator", lambda table, weights: annotate)
        return {
            (task, variant): prepared(
                folders["luke"], task=task, variant=variant, weights=folders[VARIANTS[variant].weights] / "weights",
                mentions=Path("a table") if task == "extractive_qa" and VARIANTS[variant].entities else None,
            )
            for task, variant in GRID
        }  # fmt: skip


def annotate(text: str, page: str | None) -> list[EntityMention]:
    """The first word is an entity."""
    return [EntityMention(0, len(text.split()[0]), 3)]


@pytest.mark.parametrize(("task", "variant"), GRID)
def test_words_start_from_the_variants_weights(
    runs: dict[tuple[str, str], Prepared], folders: dict[str, Path], task: str, variant: str
) -> None:
    module = runs[task, variant].module
    given = load_file(folders[VARIANTS[variant].weights] / "weights" / "model.safetensors")
    found = {f"luke.{name}": tensor for name, tensor in module.luke.state_dict().items()}
    new = {name for name in found if name not in given}
    assert all("query" in name for name in new)
    for name in found.keys() - new:
        if name != "luke.entity_embeddings.token.weight":
            assert torch.equal(found[name][: len(given[name])], given[name]), name


@pytest.mark.parametrize(("task", "variant"), GRID)
def test_attention_and_entity_inputs(runs: dict[tuple[str, str], Prepared], task: str, variant: str) -> None:
    run, row = runs[task, variant], VARIANTS[variant]
    names = {part for name, _ in run.module.named_parameters() for part in name.split(".")}
    assert [name in names for name in ENTITY_AWARE_QUERIES] == [row.entity_aware_attention] * 3
    inputs = collate(run, run.features["train"].items[:4]).inputs
    assert (inputs.shape.entities > 0) is row.entities


@pytest.mark.parametrize(("task", "variant"), GRID)
def test_configurations_differ_in_nothing_else(runs: dict[tuple[str, str], Prepared], task: str, variant: str) -> None:
    """Compared with LUKE: the row itself, the model's attention and the rows of its entity table, nothing more."""
    luke, other = (flat(configuration(runs[task, name])) for name in ("luke", variant))
    assert luke.keys() == other.keys()
    row, ours = asdict(VARIANTS[variant]), asdict(VARIANTS["luke"])
    expected = {name for name in row if row[name] != ours[name]}
    if not row["entity_aware_attention"]:
        expected.add("model.use_entity_aware_attention")
    if not row["entities"] and task == "extractive_qa":
        expected.add("model.entity_vocab_size")
        assert (luke["model.entity_vocab_size"], other["model.entity_vocab_size"]) == (CONFIG.entity_vocab_size, 1)
    assert {name for name in luke if luke[name] != other[name]} == expected


def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested keys joined by dots."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found
