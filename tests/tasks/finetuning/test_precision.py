"""What bf16 costs on a real task: its scores are those of float32 within what another seed changes."""

import json
import statistics
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.files import save_model
from model.luke.config import PRESETS
from model.luke.heads import LukeForPretraining
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.task import Hyperparameters
from tests.support.fine_tuned import finetune

# Three relations of SemEval-2010 task 8, which a small model learns from a few sentences.
RELATIONS = ("Cause-Effect(e2,e1)", "Entity-Destination(e1,e2)", "Message-Topic(e1,e2)")
FILES = {"train": ("train", 80), "dev": ("val", 40), "test": ("test", 40)}
QUICK = Hyperparameters(2e-3, 2e-3, batch_size=16, epochs=4, max_words=96)


@pytest.fixture(scope="module")
def folder(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of the three relations, a tokenizer of theirs, and random weights."""
    folder = tmp_path_factory.mktemp("relations")
    (folder / "data").mkdir()
    for split, (name, count) in FILES.items():
        known = (shared / f"data/relation/semeval2010-task8/{name}.txt").read_text().splitlines()
        of_each = ([line for line in known if f'"{relation}"' in line][:count] for relation in RELATIONS)
        (folder / f"data/{split}.txt").write_text("".join(f"{line}\n" for lines in of_each for line in lines))
    texts = [
        " ".join(json.loads(line)["token"]) for line in (folder / "data/train.txt").read_text().splitlines()
    ]
    train_tokenizer(texts, folder / "tokenizer", 1500)
    words = len(json.loads((folder / "tokenizer" / "vocab.json").read_text()))
    config = replace(
        PRESETS["tiny"], vocab_size=words, entity_vocab_size=6, hidden_size=64, entity_emb_size=32,
        num_hidden_layers=1, intermediate_size=128, max_position_embeddings=98, initializer_range=0.1,
    )  # fmt: skip
    torch.manual_seed(0)
    save_model(folder / "weights", LukeForPretraining(config))
    return folder


def test_scores_in_bf16_are_those_of_float32_within_what_a_seed_changes(folder: Path, tmp_path: Path) -> None:
    scores: dict[str, list[float]] = {"float32": [], "bf16": []}
    losses: dict[tuple[str, int], str] = {}
    for precision, seeds in (("float32", (1, 2, 3)), ("bf16", (1, 2))):
        for seed in seeds:
            output = tmp_path / f"{precision}{seed}"
            given = {"task": "relation_classification", "data": folder / "data", "keeps_weights": False}
            metrics = finetune(folder, output, QUICK, seed=seed, changes={"precision": precision}, **given)
            scores[precision].append(metrics["test"]["f1"])
            losses[precision, seed] = (output / "training.jsonl").read_text()
    assert losses["float32", 1] != losses["bf16", 1]
    assert min(scores["float32"]) > 0.5, "the task is learnt, so that something could be lost"
    noise = max(scores["float32"]) - min(scores["float32"])
    assert noise > 0
    difference = statistics.fmean(scores["bf16"]) - statistics.fmean(scores["float32"][:2])
    assert abs(difference) <= noise, scores
