"""Folders that transformers wrote: special entities and classes stand where their files say, and answers are theirs."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from fine_tuned_for_tests import EXAMPLES, pretrained
from models_for_tests import luke_of_transformers

from model.checkpoint import entity_vocabulary
from tasks.run import TASKS, Run, collate, prepare
from tasks.task import Hyperparameters
from tasks.variants import VARIANTS

OURS = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
THEIRS = {"[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "[MASK2]": 3}  # as in the "lite" models
TABLE = "entity_embeddings.entity_embeddings.weight"
MARKED = ["entity_typing", "relation_classification"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    pretrained(folder)
    return folder / "tokenizer"


def luke(kind: str, tokenizer: Path, **changes: Any) -> torch.nn.Module:
    """A random LUKE of transformers with the tokenizer's words, two more for <ent> and <ent2>, and four entities."""
    words = len(json.loads((tokenizer / "vocab.json").read_text()))
    sizes = {"vocab_size": words + 2, "max_position_embeddings": 98, "entity_vocab_size": len(OURS)}
    return luke_of_transformers(kind, **(sizes | changes))


def reordered(module: torch.nn.Module, vocabulary: dict[str, int]) -> torch.nn.Module:
    """The same model, whose entities stand at other rows."""
    table = next(tensor for key, tensor in module.state_dict().items() if key.endswith(TABLE))
    rows = table.clone()
    for name, row in vocabulary.items():
        table[row] = rows[OURS[name]]
    return module


def write_entities(folder: Path, vocabulary: dict[str, int], file: str = "entity_vocab.json") -> None:
    content = vocabulary if file == "entity_vocab.json" else {"entity_vocab": vocabulary}
    (folder / file).write_text(json.dumps(content))


def prepared(task: str, weights: Path, tokenizer: Path) -> Run:
    hyperparameters = Hyperparameters(1e-3, 1e-3, batch_size=4, epochs=1, max_words=96)
    return prepare(
        TASKS[task], VARIANTS["luke"], hyperparameters, EXAMPLES / task, weights, tokenizer,
        seed=1, device="cpu", profile="fixed", progress=False,
    )  # fmt: skip


@pytest.mark.parametrize("file", ["entity_vocab.json", "tokenizer_config.json"])
@pytest.mark.parametrize("task", [*MARKED, "ner", "cloze_qa"])
def test_fine_tuning_starts_from_special_entities_wherever_they_stand(
    tokenizer: Path, tmp_path: Path, task: str, file: str
) -> None:
    folders = {name: tmp_path / name for name in ("plain", "ours", "theirs")}
    for name, folder in folders.items():
        entities = THEIRS if name == "theirs" else OURS
        reordered(luke("LukeModel", tokenizer), entities).save_pretrained(folder)
        if name != "plain":
            write_entities(folder, entities, file)
    plain, *others = (prepared(task, folder, tokenizer) for folder in folders.values())
    losses = []
    for run in (plain, *others):
        for key, tensor in plain.module.state_dict().items():
            assert torch.equal(run.module.state_dict()[key], tensor), key
        batch = collate(run, run.features["train"].items[:4])
        losses.append([part.item() for part in run.task.loss(run.module.eval(), batch).values()])
    assert losses[0] == losses[1] == losses[2]


def test_a_table_that_is_kept_whole_must_begin_as_ours(tokenizer: Path, tmp_path: Path) -> None:
    luke("LukeModel", tokenizer).save_pretrained(tmp_path)
    for entities in ({}, OURS):
        write_entities(tmp_path, entities)
        prepared("extractive_qa", tmp_path, tokenizer)
    write_entities(tmp_path, THEIRS)
    message = (
        r"has the special entities at \{'\[PAD\]': 2, .*; wanted \{'\[PAD\]': 0, .*takes the whole table"
    )
    with pytest.raises(ValueError, match=message):
        prepared("extractive_qa", tmp_path, tokenizer)
    write_entities(tmp_path, {"[UNK]": 1, "[PAD]": 2})
    with pytest.raises(ValueError, match=r"no entity \[MASK\] in entity_vocab.json or tokenizer_config.json"):
        prepared("ner", tmp_path, tokenizer)


def test_only_lukes_of_transformers_have_a_vocabulary(tmp_path: Path) -> None:
    for values, wanted in (({"model_type": "luke"}, THEIRS), ({"model_type": "roberta"}, {}), ({}, {})):
        (tmp_path / "config.json").write_text(json.dumps(values))
        write_entities(tmp_path, THEIRS)
        assert entity_vocabulary(str(tmp_path)) == wanted
