"""A task with its data and its model, ready to be trained or scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from model.checkpoint import load_luke
from pipeline.tokens import WordTokenizer
from tasks import entity_typing, ner, relation_classification
from tasks.marked import add_word_markers
from tasks.records import read_label_file
from tasks.task import SPLITS, Classifier, Features, Hyperparameters, Task, label_file, split_file
from tasks.variants import Variant

TASKS: Mapping[str, Task[Any, Any]] = {
    "entity_typing": entity_typing,
    "relation_classification": relation_classification,
    "ner": ner,
}


@dataclass(frozen=True)
class Run:
    """Everything that training and scoring need, resolved: nothing below looks at names or files."""

    task: Task[Any, Any]
    variant: Variant
    hyperparameters: Hyperparameters
    profile: str
    labels: tuple[str, ...]
    negative: str | None
    tokenizer: Path
    datasets: Mapping[str, Any]
    features: Mapping[str, Features[Any]]
    module: Classifier
    pad_id: int
    seed: int
    device: str
    progress: bool

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.features["train"].items) // self.hyperparameters.batch_size)

    @property
    def keeps_best_epoch(self) -> bool:
        return self.profile == "fixed" or self.task.BEST_EPOCH_IN_PAPER


def prepare(
    task: Task[Any, Any],
    variant: Variant,
    hyperparameters: Hyperparameters,
    data: Path,
    weights: Path,
    tokenizer: Path,
    *,
    seed: int,
    device: str,
    profile: str,
    progress: bool,
    negative_label: str = "",
) -> Run:
    """Reads the data and the weights, and builds the model and its inputs."""
    datasets = {split: task.read(split_file(data, split)) for split in SPLITS}
    listed = label_file(data)
    labels = task.label_names(datasets, read_label_file(listed) if listed else ())
    negative = task.negative_label(labels, negative_label)
    words = WordTokenizer.load(tokenizer)
    torch.manual_seed(seed)
    luke = load_luke(str(weights), use_entity_aware_attention=variant.entity_aware_attention)
    if words.vocab_size > luke.config.vocab_size:
        raise ValueError(
            f"{tokenizer}: vocabulary of {words.vocab_size}, but {weights} has {luke.config.vocab_size} word "
            "embeddings; give the tokenizer that the weights were trained with"
        )
    luke.keep_entities(task.ENTITY_ROWS)
    markers = add_word_markers(luke, words, task.WORD_MARKERS, str(tokenizer))
    hyperparameters = replace(
        hyperparameters, max_words=min(hyperparameters.max_words, luke.config.max_words)
    )
    features = {
        split: task.featurize(
            dataset,
            words,
            labels,
            markers=markers,
            max_words=hyperparameters.max_words,
            profile=profile,
        )
        for split, dataset in datasets.items()
    }
    return Run(
        task=task,
        variant=variant,
        hyperparameters=hyperparameters,
        profile=profile,
        labels=labels,
        negative=negative,
        tokenizer=tokenizer,
        datasets=datasets,
        features=features,
        module=task.head(luke, len(labels), entities=variant.entities).to(device),
        pad_id=words.pad_id,
        seed=seed,
        device=device,
        progress=progress,
    )


def score(run: Run, split: str, predictions: Sequence[Any]) -> dict[str, Any]:
    """The scores of predictions for a split."""
    return run.task.score(run.datasets[split], predictions, run.labels, run.negative)


def collate(run: Run, items: Sequence[Any]) -> Any:
    """A batch of features on the run's device."""
    return run.task.collate(items, entities=run.variant.entities, pad_id=run.pad_id).to(run.device)


def predict(run: Run, split: str) -> Sequence[Any]:
    """The predictions for a split, one for each example."""
    items = run.features[split].items
    logits = logits_of(
        run.task,
        run.module,
        items,
        entities=run.variant.entities,
        pad_id=run.pad_id,
        device=run.device,
        batch_size=run.hyperparameters.batch_size,
    )
    return run.task.decode(run.datasets[split], items, logits, run.labels)


@torch.inference_mode()
def logits_of(
    task: Task[Any, Any],
    module: nn.Module,
    items: Sequence[Any],
    *,
    entities: bool,
    pad_id: int,
    device: str,
    batch_size: int,
) -> list[np.ndarray]:
    """The logits of each feature, in their order; features of like size share a batch."""
    order = sorted(range(len(items)), key=lambda index: task.feature_size(items[index]))
    logits: dict[int, np.ndarray] = {}
    module.eval()
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        batch = task.collate([items[index] for index in chosen], entities=entities, pad_id=pad_id)
        logits.update(zip(chosen, task.logits(module, batch.to(device)), strict=True))
    return [logits[index] for index in range(len(items))]
