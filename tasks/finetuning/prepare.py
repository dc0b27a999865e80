"""A task with its data and its model, ready to be trained or scored."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from model.exchange.load import entity_vocabulary, load_luke, read_fine_tuned
from model.luke.config import PAD_ENTITY
from model.luke.encoder import LukeModel
from model.luke.new_entities import hide_entities
from model.pretraining.start import title_vectors
from pipeline.lookup.entities import PAD, SPECIAL_ENTITIES
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.entities.annotations import Annotate, open_annotator
from tasks.entities.disambiguation.titles import words_of
from tasks.finetuning.registry import TASKS
from tasks.finetuning.variants import Variant
from tasks.io.data_folder import SPLITS, label_file, read_label_file, split_file
from tasks.ner import task as ner
from tasks.questions.extractive_format import annotated
from tasks.task import Classifier, Features, Hyperparameters, InputSettings, Task
from tasks.typing_and_relations.markers import add_word_markers, marker_ids, remove_word_markers

logger = logging.getLogger(__name__)
SOME_INPUTS = 32  # by which the attention of words to new entities is set
OUR_ROWS = {name: row for row, name in enumerate(SPECIAL_ENTITIES)}


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
    def parts_per_step(self) -> int:
        """Parts of a batch that count alike: one, and of profile `paper` the micro-batches of the authors' code."""
        hyper = self.hyperparameters
        is_cut = self.profile == "paper" and hyper.micro_batch_size
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
    mentions: Path | None = None,
    tag_column: str = "",
) -> Run:
    """Reads the data and the weights, and builds the model and its inputs; `finetune` says what the arguments are."""
    annotate = open_annotator(mentions, weights) if mentions else None
    check_annotator(task, annotate)
    datasets = {split: reader(task, tag_column)(split_file(data, split)) for split in SPLITS}
    listed = label_file(data)
    labels = task.label_names(datasets, read_label_file(listed) if listed else ())
    negative = task.negative_label(labels, negative_label)
    words = WordTokenizer.load(tokenizer)
    torch.manual_seed(seed)
    luke, markers = load_pretrained(task, variant, weights, words, tokenizer)
    if annotate and variant.entities:
        if luke.entities_are_new:
            add_entities(luke, words, MentionTable(str(mentions)))
        size = luke.config.entity_vocab_size
        datasets = {split: annotated(each, annotate, size) for split, each in datasets.items()}
    luke.gradient_checkpointing = hyperparameters.gradient_checkpointing
    max_words = min(hyperparameters.max_words, luke.config.max_words)
    inputs = InputSettings(words, labels, markers, max_words, profile)
    features = {split: task.featurize(dataset, inputs) for split, dataset in datasets.items()}
    if not features["train"].items:
        raise ValueError(
            f"{datasets['train'].path}: none of its examples fits into the model; give shorter ones"
        )
    module = task.head(luke, len(labels), entities=variant.entities)
    if profile == "fixed":
        start_at_frequencies(task, module, features["train"].items)
        if variant.entities and (luke.entities_are_new or task.BEGINS_WITHOUT_ENTITIES):
            begin_without_entities(task, module, features["train"].items, words.pad_id)
    run = Run(
        task=task,
        variant=variant,
        hyperparameters=replace(hyperparameters, max_words=max_words),
        profile=profile,
        labels=labels,
        negative=negative,
        tokenizer=tokenizer,
        datasets=datasets,
        features=features,
        module=module.to(device),
        pad_id=words.pad_id,
        seed=seed,
        device=device,
        progress=progress,
    )
    check_parts(run)
    return run


@torch.no_grad()
def start_at_frequencies(task: Task[Any, Any], module: Classifier, train: Sequence[Any]) -> None:
    """Sets the classifier's bias, where it has one, to what the classes' frequencies in train call for.

    It would start at 0, and the first steps would teach it nothing but these frequencies.
    """
    bias = task.starting_bias(train, module.classifier.out_features)
    if bias is not None:
        module.classifier.bias.copy_(torch.from_numpy(bias))


def begin_without_entities(
    task: Task[Any, Any], module: Classifier, train: Sequence[Any], pad_id: int
) -> None:
    """Lets words start as if there were no entities, by some inputs from all over train."""
    some = train[:: -(-len(train) // SOME_INPUTS)]
    hide_entities(module.luke, task.collate(some, entities=True, pad_id=pad_id).inputs)


@torch.no_grad()
def add_entities(luke: LukeModel, words: WordTokenizer, table: MentionTable) -> None:
    """Gives a model that has special entities alone those of a mention table, too.

    Each begins as what its title says in the model's words, as in pretraining (`model.pretraining.start`).
    """
    titles = [""] * table.manifest.facts["entities"]
    for entity_id, title in table.targets.entities():
        titles[entity_id] = title
    special = luke.entity_embeddings.token.weight
    rows = title_vectors(luke.word_embeddings.token.weight, words_of(titles, words))
    rows[: len(special)] = special
    luke.replace_entities(rows)
    logger.info("%s: its %d entities start as what their titles say", table.folder, len(rows) - len(special))


def check_parts(run: Run) -> None:
    """Raises: ValueError where the profile's micro-batches do not make up the batch, or the data no batch."""
    hyper = run.hyperparameters
    if run.profile == "paper" and hyper.micro_batch_size and hyper.batch_size % hyper.micro_batch_size:
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
    task: Task[Any, Any], variant: Variant, weights: Path, words: WordTokenizer, tokenizer: Path
) -> tuple[LukeModel, dict[str, int]]:
    """The encoder with the entities and the word markers of the task, and the markers' word ids.

    One that was fine-tuned for this task keeps its own; of one that was fine-tuned for another task they are left out,
    and start anew.
    """
    luke = load_luke(
        str(weights), use_entity_aware_attention=variant.entity_aware_attention, mask_word=words.mask_id
    )
    values = read_fine_tuned(weights)
    earlier = fine_tuned_task(values, weights) if values else None
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


def fine_tuned_task(values: Mapping[str, Any], source: Path) -> Task[Any, Any]:
    """The task that a model was fine-tuned for, by its configuration. Raises: ValueError for one that is unknown."""
    if values["task"] not in TASKS:
        raise ValueError(f"{source}: fine-tuned for {values['task']!r}; wanted one of {', '.join(TASKS)}")
    return TASKS[values["task"]]


def kept_entities(rows: Sequence[int]) -> dict[str, int]:
    """Special entity -> its row in a table of which fine-tuning kept these; the first where one is there twice."""
    return {SPECIAL_ENTITIES[kept]: row for row, kept in reversed([*enumerate(rows)])}


def reader(task: Task[Any, Any], tag_column: str) -> Callable[[Path], Any]:
    """What reads a task's files. Raises: ValueError for a column of tags where the task has none."""
    if not tag_column:
        return task.read
    if task is not ner:
        raise ValueError(f"--tag-column {tag_column}: files of ner alone have tags; leave it out")
    return partial(ner.read, tag_column=tag_column)


def check_annotator(task: Task[Any, Any], annotate: Annotate | None) -> None:
    """Raises: ValueError for an annotator where the task takes no entities of Wikipedia."""
    if annotate and task.ENTITY_ROWS is not None:
        raise ValueError(
            "an annotator finds Wikipedia's entities, which extractive_qa alone takes; give none"
        )


def shrink_entities(
    luke: LukeModel, task: Task[Any, Any], variant: Variant, vocabulary: Mapping[str, int], source: str
) -> None:
    """Leaves of the entity table the task's rows or, where it takes all, freezes it; [PAD] where it has no use.

    `vocabulary` is that of `source`, empty where its rows stand as ours do.
    """
    if task.ENTITY_ROWS is None and variant.entities:
        check_order(vocabulary, source)
        luke.entity_embeddings.token.requires_grad_(False)
    else:
        names = [SPECIAL_ENTITIES[row] for row in task.ENTITY_ROWS or (PAD_ENTITY,)]
        keep_entities(luke, vocabulary or OUR_ROWS, names, source)


def keep_entities(luke: LukeModel, vocabulary: Mapping[str, int], names: Sequence[str], source: str) -> None:
    """Leaves these special entities of the table of `source`, [PAD] first. Raises: ValueError for one that it lacks."""
    if missing := [name for name in (PAD, *names) if name not in vocabulary]:
        raise ValueError(f"{source}: no entity {missing[0]} in entity_vocab.json or tokenizer_config.json")
    try:
        luke.keep_entities([vocabulary[name] for name in names], pad=vocabulary[PAD])
    except ValueError as error:
        raise ValueError(
            f"{source}: {error}; give the weights with the entity vocabulary that is theirs"
        ) from error


def check_order(vocabulary: Mapping[str, int], source: str) -> None:
    """Raises: ValueError where a table that keeps all rows does not begin with the special entities as ours do."""
    found = {name: vocabulary.get(name) for name in SPECIAL_ENTITIES}
    if vocabulary and found != OUR_ROWS:
        raise ValueError(
            f"{source}: entity_vocab.json or tokenizer_config.json has the special entities at {found}; wanted "
            f"{OUR_ROWS}, since the task takes the whole table; give weights with that order"
        )
