"""A task with its data and its model, ready to be trained or scored."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from model.files import pretrained_words
from model.hf.load import entity_vocabulary, load_luke, read_fine_tuned
from model.luke.encoder import LukeModel
from model.luke.new_entities import hide_entities
from model.training.devices import resolve_device
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning.entities import add_entities, check_takes_entities, kept_entities, shrink_entities
from tasks.finetuning.registry import TASKS
from tasks.finetuning.variants import Variant
from tasks.io.annotations import open_annotator
from tasks.io.data_folder import SPLITS, label_file, read_label_file, split_file
from tasks.markers import add_word_markers, marker_ids, remove_word_markers
from tasks.task import Classifier, Features, Hyperparameters, InputSettings, Task

logger = logging.getLogger(__name__)
SOME_INPUTS = 32  # by which the attention of words to new entities is set


@dataclass(frozen=True)
class FineTuningSettings:
    """The start of a fine-tuning, and its way."""

    # Our folder of a pretraining or a fine-tuning, or a transformers LUKE, RoBERTa or BERT, as the variant wants. The
    # latter two have no entities: these start as the word [MASK] (`model.luke.new_entities.start_entities_as_words`),
    # and those of `mentions` as what their titles say.
    weights: Path
    tokenizer: Path  # the folder with its tokenizer's files
    variant: str = "luke"  # a row of `tasks.finetuning.variants`
    preset: str = "base"  # of the task's hyperparameters
    # Values of `Hyperparameters` that replace the preset's.
    changes: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 42  # of order, dropout and new weights
    device: str = "auto"  # auto, cpu, cuda or cuda:N
    # `fixed` uses AdamW with bias correction, keeps the best epoch on dev, and moves the classifier's bias as
    # `Task.bias_shift` says; `paper` does what the authors' code did.
    profile: str = "fixed"
    negative_label: str = ""  # the class of relations that is not scored, where the task does not know it
    # Where files of entity recognition have the tags, where the format does not (`tasks.ner.task.read`).
    tag_column: str = ""
    mentions: Path | None = None  # folder of the mention table that finds the entities of extractive question answering
    checkpoint_minutes: float = 30.0  # between two checkpoints within an epoch; 0: there is one after each epoch alone
    allow_no_predictions: bool = False  # whether a model passes that predicts nothing at all
    # Whether there is a model.safetensors: a search of hyperparameters needs the scores alone.
    keeps_weights: bool = True
    tracker: str = ""  # the module:function that gets figures as they come
    progress: bool = False  # whether a bar shows how far it is


@dataclass(frozen=True)
class Prepared:
    """Everything that training and scoring need, resolved: nothing below looks at names or files."""

    task: Task[Any, Any]
    variant: Variant
    hyperparameters: Hyperparameters
    settings: FineTuningSettings
    labels: tuple[str, ...]
    negative: str | None
    datasets: Mapping[str, Any]
    features: Mapping[str, Features[Any]]
    module: Classifier
    device: str

    @property
    def parts_per_step(self) -> int:
        """Parts of a batch that count alike: one, and of profile `paper` the micro-batches of the authors' code."""
        hyper = self.hyperparameters
        is_cut = self.settings.profile == "paper" and hyper.micro_batch_size
        return hyper.batch_size // hyper.micro_batch_size if is_cut else 1

    @property
    def part_size(self) -> int:
        """Features of such a part."""
        return self.hyperparameters.batch_size // self.parts_per_step

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in profile `paper`, by integer division; the last one may be short otherwise."""
        return -(-len(self.features["train"].items) // self.part_size) // self.parts_per_step

    @property
    def keeps_best_epoch(self) -> bool:
        return self.settings.profile == "fixed" or self.task.BEST_EPOCH_IN_PAPER


def prepare(
    task: Task[Any, Any], variant: Variant, hyperparameters: Hyperparameters, data: Path, settings: FineTuningSettings
) -> Prepared:
    """Read the data and the weights, and build the model and its inputs; the settings name no task or preset here."""
    weights, tokenizer, mentions = settings.weights, settings.tokenizer, settings.mentions
    annotate = open_annotator(mentions, weights) if mentions else None
    check_takes_entities(task, annotate)
    datasets = read_splits(task, data, settings.tag_column)
    listed = label_file(data)
    labels = task.label_names(datasets, read_label_file(listed) if listed else ())
    negative = task.negative_label(labels, settings.negative_label)
    words = WordTokenizer.load(tokenizer)
    torch.manual_seed(settings.seed)
    luke, markers = load_pretrained(task, variant, weights, words, tokenizer, hyperparameters.dropout)
    if annotate and variant.entities:
        if luke.entities_are_new:
            add_entities(luke, words, MentionTable(str(mentions)))
        size = luke.config.entity_vocab_size
        datasets = {split: task.annotated(each, annotate, size) for split, each in datasets.items()}
    luke.gradient_checkpointing = hyperparameters.gradient_checkpointing
    seen = (pretrained_words(weights) if task.READS_IN_WINDOWS else None) or hyperparameters.max_words
    max_words = min(hyperparameters.max_words, luke.config.max_words, seen)
    inputs = InputSettings(words, labels, markers, max_words, settings.profile)
    features = {split: task.featurize(dataset, inputs) for split, dataset in datasets.items()}
    if not features["train"].items:
        raise ValueError(f"{datasets['train'].path}: no example fits into the model; give shorter ones")
    warn_of_length(weights, features["train"].items)
    module = task.head(luke, len(labels), entities=variant.entities)
    if settings.profile == "fixed":
        start_at_frequencies(task, module, features["train"].items)
        if variant.entities and (luke.entities_are_new or task.BEGINS_WITHOUT_ENTITIES):
            train = features["train"].items
            some = train[:: -(-len(train) // SOME_INPUTS)]  # from all over it
            hide_entities(luke, task.collate(some, entities=True).inputs)
    device = str(resolve_device(settings.device))
    hyper, module = replace(hyperparameters, max_words=max_words), module.to(device)
    run = Prepared(task, variant, hyper, settings, labels, negative, datasets, features, module, device)
    check_parts(run)
    return run


def warn_of_length(weights: Path, train: Sequence[Any]) -> None:
    """Warns where inputs are longer than those of pretraining, which taught entities no place behind these."""
    sizes, most = [len(item.word_ids) for item in train], pretrained_words(weights)
    if most and (longer := sum(size > most for size in sizes)):
        logger.warning(
            "%s: pretrained on up to %d words, but %d of %d inputs of train are longer, up to %d; what stands behind "
            "that is learnt in fine-tuning alone",
            weights, most, longer, len(sizes), max(sizes),
        )  # fmt: skip


def read_splits(task: Task[Any, Any], data: Path, tag_column: str) -> dict[str, Any]:
    """Return the data sets of a folder. Raises: ValueError for a column of tags where the task has none."""
    if tag_column and task is not TASKS["ner"]:
        raise ValueError(f"fine_tuning.tag_column {tag_column}: files of ner alone have tags; leave it out")
    options = {"tag_column": tag_column} if tag_column else {}
    return {split: task.read(split_file(data, split), **options) for split in SPLITS}


@torch.no_grad()
def start_at_frequencies(task: Task[Any, Any], module: Classifier, train: Sequence[Any]) -> None:
    """Sets the classifier's bias, where it has one, to what the classes' frequencies in train call for.

    It would start at 0, and the first steps would teach it nothing but these frequencies.
    """
    bias = task.starting_bias(train, module.classifier.out_features)
    if bias is not None:
        module.classifier.bias.copy_(torch.from_numpy(bias))


def check_parts(run: Prepared) -> None:
    """Raises: ValueError where the profile's micro-batches do not make up the batch, or the data no batch."""
    hyper = run.hyperparameters
    if run.settings.profile == "paper" and hyper.micro_batch_size and hyper.batch_size % hyper.micro_batch_size:
        raise ValueError(
            f"batch_size is {hyper.batch_size}, but profile paper computes {hyper.micro_batch_size} examples at once, "
            f"as the authors' code; wanted a multiple of {hyper.micro_batch_size}, or --profile fixed"
        )
    if run.features["train"].items and run.steps_per_epoch == 0:
        raise ValueError(
            f"train has {len(run.features['train'].items)} inputs, too few for a batch of {hyper.batch_size} in "
            "profile paper; give more, a smaller --batch-size, or --profile fixed"
        )


def load_pretrained(
    task: Task[Any, Any], variant: Variant, weights: Path, words: WordTokenizer, tokenizer: Path, dropout: float
) -> tuple[LukeModel, dict[str, int]]:
    """The encoder with the entities and the word markers of the task, and the markers' word ids.

    One that was fine-tuned for this task keeps its own; of one that was fine-tuned for another task they are left out,
    and start anew.
    """
    attention = variant.entity_aware_attention
    luke = load_luke(str(weights), use_entity_aware_attention=attention, mask_word=words.mask_id, dropout=dropout)
    values = read_fine_tuned(weights)
    if values and values["task"] not in TASKS:
        raise ValueError(f"{weights}: fine-tuned for {values['task']!r}; wanted one of {', '.join(TASKS)}")
    earlier = TASKS[values["task"]] if values else None
    if earlier and earlier is not task:
        remove_word_markers(luke, earlier.WORD_MARKERS)
    has_own = earlier is task
    if words.vocab_size > luke.config.vocab_size - len(task.WORD_MARKERS) * has_own:
        raise ValueError(
            f"{tokenizer}: vocabulary of {words.vocab_size}, but {weights} has {luke.config.vocab_size} word "
            "embeddings; give the tokenizer that the weights were trained with"
        )
    rows = earlier.ENTITY_ROWS if earlier and values.get("entities") else None
    if rows and task.ENTITY_ROWS is None and variant.entities:
        raise ValueError(
            f"{weights}: fine-tuned for {values['task']}, which keeps no entity of Wikipedia; give the pretrained model"
        )
    if not (rows and has_own):
        vocabulary = kept_entities(rows) if rows else entity_vocabulary(str(weights))
        shrink_entities(luke, task, variant, vocabulary, str(weights))
    if has_own:
        return luke, marker_ids(luke.config, task.WORD_MARKERS)
    return luke, add_word_markers(luke, words, task.WORD_MARKERS, str(tokenizer))
