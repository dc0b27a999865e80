"""Tiny fine-tuned models of every task, made of the example data.

Their weights are large and all but random, so that they predict a lot.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from model.checkpoint import save_model
from model.config import PRESETS, LukeConfig
from model.heads import LukeForPretraining
from pipeline.tokens import train_tokenizer
from tasks.finetune import finetune
from tasks.run import TASKS
from tasks.task import Hyperparameters

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
CONFIG: LukeConfig = replace(
    PRESETS["demo"], vocab_size=600, entity_vocab_size=6, hidden_size=32, entity_emb_size=16,
    num_hidden_layers=1, intermediate_size=64, max_position_embeddings=98, initializer_range=0.4,
)  # fmt: skip
QUICK = Hyperparameters(learning_rate=1e-4, head_learning_rate=1e-4, batch_size=16, epochs=1)


def pretrained(folder: Path) -> None:
    """Random weights (`weights`) and a tokenizer of the example data (`tokenizer`)."""
    texts = (EXAMPLES / "relation_classification" / "train.json").read_text().splitlines()
    train_tokenizer(texts, folder / "tokenizer", CONFIG.vocab_size)
    words = len(json.loads((folder / "tokenizer" / "vocab.json").read_text()))
    torch.manual_seed(0)
    save_model(folder / "weights", LukeForPretraining(replace(CONFIG, vocab_size=words)))


def fine_tune(task: str, folder: Path, variant: str = "luke") -> Path:
    """Fine-tunes what `pretrained` wrote into `folder` and returns the new folder."""
    output = folder / f"{task}-{variant}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TASKS[task].PRESETS, "quick", QUICK)
        finetune(
            task, EXAMPLES / task, folder / "weights", folder / "tokenizer", output, variant=variant,
            preset="quick", seed=1, device="cpu", profile="fixed", progress=False,
        )  # fmt: skip
    return output
