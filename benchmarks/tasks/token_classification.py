"""The peer of entity recognition: transformers' token classifier, fine-tuned as its documentation does.

The first sub-word of a word has the word's tag and the others none; AdamW and a rate that falls linearly to 0 are
those of its loop in plain PyTorch. The epochs, the batch size and the best epoch on dev are as in our fine-tuning.
"""

import copy
import os
import resource
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import seqeval.metrics
import torch
from torch.utils.data import DataLoader
from transformers import AutoModelForTokenClassification, AutoTokenizer, get_scheduler
from transformers import DataCollatorForTokenClassification as Collator

from benchmarks.harness.workloads import Record, serve
from benchmarks.tasks.splits import SPLITS, weights_folder, write_data
from tasks.ner.columns import read_columns
from tasks.ner.spans import tags_of_spans
from tasks.ner.task import PRESETS

OUTSIDE, IGNORED = "O", -100


@dataclass(frozen=True)
class Sentence:
    """Words with a tag each, in IOB2."""

    words: Sequence[str]
    tags: Sequence[str]


@dataclass(frozen=True)
class Run:
    """A model with the sub-words and labels of each split; `names` are the tags by their numbers."""

    model: Any
    sentences: Mapping[str, Sequence[Sentence]]
    inputs: Mapping[str, Sequence[Record]]
    names: Sequence[str]
    collate: Collator
    hyper: Any
    device: torch.device

    def outputs(self, batch: Any) -> Any:
        """What the model says of a batch of inputs, in the precision that was asked for."""
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.hyper.precision == "bf16"):
            return self.model(**batch.to(self.device))


def read(path: Path) -> list[Sentence]:
    """The sentences of a column file."""
    found = read_columns(path).sentences
    return [Sentence(each.words, tags_of_spans(each.spans, len(each.words), "IOB2")) for each in found]


def prepare(data: Path, weights: Path, hyper: Any, seed: int, device: str) -> Run:
    """The model, whose classifier the seed draws, and its inputs."""
    torch.manual_seed(seed)
    sentences = {split: read(data / f"{split}.txt") for split in SPLITS}
    types = {tag[2:] for each in sentences["train"] for tag in each.tags if tag != OUTSIDE}
    names = [OUTSIDE, *(f"{prefix}-{name}" for name in sorted(types) for prefix in "BI")]
    tokenizer = AutoTokenizer.from_pretrained(weights)
    model = AutoModelForTokenClassification.from_pretrained(
        weights,
        num_labels=len(names),
        id2label=dict(enumerate(names)),
        label2id={name: number for number, name in enumerate(names)},
    )
    room = model.config.max_position_embeddings
    inputs = {
        split: [encode(tokenizer, each, names, room) for each in found] for split, found in sentences.items()
    }
    return Run(model.to(device), sentences, inputs, names, Collator(tokenizer), hyper, torch.device(device))


def encode(tokenizer: Any, sentence: Sentence, names: Sequence[str], room: int) -> Record:
    """At most `room` sub-words, and a label at the first one of each word; a type that train lacks is no entity."""
    encoded = tokenizer([*sentence.words], is_split_into_words=True, truncation=True, max_length=room)
    numbers = {name: number for number, name in enumerate(names)}
    previous, labels = None, []
    for word in encoded.word_ids():
        begins = word is not None and word != previous
        labels.append(numbers.get(sentence.tags[word], 0) if begins else IGNORED)
        previous = word
    return {**encoded, "labels": labels}


def train(run: Run, seed: int) -> tuple[list[Record], int]:
    """The F1 on dev after each epoch, and the best epoch, counted from 1, whose weights the model is left with."""
    hyper = run.hyper
    order = torch.Generator().manual_seed(seed)
    loader = DataLoader(
        run.inputs["train"],  # type: ignore[arg-type]
        shuffle=True,
        batch_size=hyper.batch_size,
        collate_fn=run.collate,
        generator=order,
    )
    optimizer = torch.optim.AdamW(run.model.parameters(), lr=hyper.learning_rate)
    steps = hyper.epochs * len(loader)
    schedule = get_scheduler("linear", optimizer, num_warmup_steps=0, num_training_steps=steps)
    history: list[Record] = []
    best: Record = {}
    for epoch in range(hyper.epochs):
        run.model.train()
        for batch in loader:
            run.outputs(batch).loss.backward()
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        history.append({"epoch": epoch + 1, "f1": evaluate(run, "dev")["f1"]})
        if history[-1]["f1"] > best.get("f1", -1):
            best = {**history[-1], "state": copy.deepcopy(run.model.state_dict())}
    run.model.load_state_dict(best["state"])
    return history, best["epoch"]


@torch.inference_mode()
def evaluate(run: Run, split: str) -> Record:
    """Precision, recall and F1 by seqeval, over whole sentences: a word that was cut off is no entity."""
    run.model.eval()
    found: list[list[str]] = []
    inputs, size = run.inputs[split], run.hyper.batch_size
    for start in range(0, len(inputs), size):
        part = inputs[start : start + size]
        batch = run.collate(part)
        best = run.outputs(batch).logits.argmax(-1)
        for numbers, each in zip(best.tolist(), part, strict=True):
            known = zip(numbers, each["labels"], strict=False)
            found.append([run.names[number] for number, label in known if label != IGNORED])
    gold = [each.tags for each in run.sentences[split]]
    found = [
        [*tags, *[OUTSIDE] * (len(wanted) - len(tags))] for tags, wanted in zip(found, gold, strict=True)
    ]
    scores = ("precision", "recall", "f1")
    return {name: getattr(seqeval.metrics, f"{name}_score")(gold, found, zero_division=0) for name in scores}


def fine_tune(
    cell: Mapping[str, Any],
    weights: str,
    shared: str,
    output: str = "",
    mentions: str = "",
    device: str = "cpu",
) -> Record:
    """Fine-tunes as the cell says (see `Cell` in tasks.py) and returns its metrics; no model is kept."""
    if output or mentions:
        sys.exit("transformers' token classifier takes no mention table, and its model is not kept")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    hyper = replace(PRESETS[cell["preset"]], **cell["changes"])
    hyper = replace(hyper, head_learning_rate=hyper.learning_rate)
    with tempfile.TemporaryDirectory() as scratch:
        write_data(cell["data"], Path(shared) / "data", Path(scratch), cell["shares"])
        run = prepare(Path(scratch), weights_folder(weights), hyper, cell["seed"], device)
    history, kept = train(run, cell["seed"])
    metrics = {split: evaluate(run, split) for split in ("dev", "test")}
    names = ("learning_rate", "head_learning_rate", "batch_size", "epochs", "precision")
    found: Record = {"hyperparameters": {name: getattr(hyper, name) for name in names}, "metrics": metrics}
    found |= {"epochs": history, "kept_epoch": kept}
    used = resource.getrusage(resource.RUSAGE_SELF)
    return found | {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1e3}


if __name__ == "__main__":
    serve(fine_tune)
