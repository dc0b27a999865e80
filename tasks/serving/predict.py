"""A fine-tuned model that answers questions; docs/reference/tasks.md has the fields of these and of the answers."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from model.files import CONFIG, read_json, read_optional, read_weights
from model.hf.fine_tuned import load_fine_tuned, read_temperature
from model.hf.load import entity_vocabulary, load_strictly
from model.luke.config import LukeConfig
from model.luke.encoder import LukeModel
from model.training.devices import resolve_device
from pipeline.lookup.entities import MASK, PAD, SECOND_MASK
from pipeline.sequences.tokenizer import ByteLevelBPE, WordTokenizer
from tasks.finetuning import TOKENIZER
from tasks.finetuning.entities import check_order, check_takes_entities, keep_entities
from tasks.finetuning.inference import logits_of
from tasks.finetuning.registry import TASKS
from tasks.io.annotations import Annotate
from tasks.io.records import Record
from tasks.markers import marker_ids
from tasks.ner import task as ner
from tasks.task import Classifier, InputSettings, Outputs, Task

logger = logging.getLogger(__name__)

BATCH_SIZE = 16  # where there is no budget of tokens
TOKENS_PER_BATCH = 2048
THEIR_MARKERS = ("<ent>", "<ent2>")
THEIR_ENTITIES = (PAD, MASK, SECOND_MASK)


@dataclass(frozen=True)
class Predictor:
    """A fine-tuned model with all that it needs to answer.

    Probabilities are those of its logits divided by `temperature`. `top` is how many alternatives an answer names.
    """

    task: Task[Any, Any]
    module: Classifier
    inputs: InputSettings
    entities: bool
    device: str = "cpu"
    tokens_per_batch: int = TOKENS_PER_BATCH
    precision: str = "float32"
    annotate: Annotate | None = None
    temperature: float = 1.0
    top: int | None = None

    def predict(self, inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The answer to each input: `labels`, `relation`, `entities` or `answer`, with probabilities.

        Where the model did not see all of an input, `cut` names what it did not see whole, as values of
        `tasks.task.CUT`. Raises: ValueError naming the input.
        """
        return self.answer([Record(f"input {number}", each) for number, each in enumerate(inputs, start=1)])

    def answer(self, records: Sequence[Record]) -> list[dict[str, Any]]:
        """As `predict`, for inputs that know where they stand."""
        dataset = self.task.from_records(records)
        if self.annotate and self.entities:
            size = self.module.luke.config.entity_vocab_size
            dataset = self.task.annotated(dataset, self.annotate, size)
        features = self.task.featurize(dataset, self.inputs)
        logits = logits_of(
            self.task,
            self.module,
            features.items,
            entities=self.entities,
            device=self.device,
            batch_size=BATCH_SIZE,
            tokens_per_batch=self.tokens_per_batch,
            precision=self.precision,
        )
        outputs = Outputs(dataset, features.items, logits, self.inputs.labels)
        found = self.task.answers(outputs, temperature=self.temperature, top=self.top)
        return [answer | ({"cut": cut} if cut else {}) for answer, cut in zip(found, features.cut(), strict=True)]


def load(folder: Path, *, device: str = "auto", annotate: Annotate | None = None) -> Predictor:
    """The model of a folder that fine-tuning wrote, or of one that transformers reads as a fine-tuned LUKE.

    `annotate` finds the Wikipedia entities of questions and passages, as `open_annotator` does. Raises: ValueError
    for any other folder.
    """
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder / CONFIG}: no such file; give the folder of a fine-tuned model")
    values = read_json(folder / CONFIG)
    chosen = str(resolve_device(device))
    if "model_type" not in values and values.get("task") not in TASKS:
        raise ValueError(
            f"{folder / CONFIG}: task is {values.get('task')!r}; wanted one of {', '.join(TASKS)}: "
            "a pretrained model is fine-tuned before it is asked, but it links texts: python -m tasks.linking link"
        )
    try:
        predictor = load_transformers(folder) if "model_type" in values else load_ours(folder, values)
    except (KeyError, TypeError, OSError, SafetensorError) as error:
        raise ValueError(
            f"{folder}: incomplete or damaged ({type(error).__name__}: {error}); copy the whole folder again"
        ) from error
    check_takes_entities(predictor.task, annotate)
    return replace(predictor, module=predictor.module.to(chosen).eval(), device=chosen, annotate=annotate)


def load_ours(folder: Path, values: Mapping[str, Any]) -> Predictor:
    """The model of a folder of this project, from its configuration's values."""
    task = TASKS[values["task"]]
    config = LukeConfig(**values["model"])
    module = task.head(LukeModel(config), len(values["labels"]), entities=values["entities"])
    load_strictly(module, read_weights(folder), source=str(folder), optional=set())
    words, markers = WordTokenizer.load(folder / TOKENIZER), marker_ids(config, task.WORD_MARKERS)
    most = values["hyperparameters"]["max_words"]
    inputs = InputSettings(words, tuple(values["labels"]), markers, most, values["profile"])
    temperature = read_temperature(values, str(folder / CONFIG))
    return Predictor(task, module, inputs, values["entities"], temperature=temperature)


def load_transformers(folder: Path) -> Predictor:
    """The model of a folder of transformers; its markers are <ent> and <ent2>, its entities [MASK] and [MASK2]."""
    fine_tuned = load_fine_tuned(str(folder))
    task = next(task for task in TASKS.values() if fine_tuned.architecture == task.ARCHITECTURE)
    luke, (tokenizer, words) = fine_tuned.luke, their_words(folder)
    names = dict(zip(task.WORD_MARKERS, THEIR_MARKERS, strict=False))
    if missing := [name for name in names.values() if name not in words]:
        raise ValueError(f"{folder}: the tokenizer has no word {missing[0]}; give it beside the model")
    vocabulary = entity_vocabulary(str(folder))
    if task.ENTITY_ROWS is None:
        check_order(vocabulary, str(folder))
    else:
        titles = THEIR_ENTITIES[: len(task.ENTITY_ROWS)]  # [PAD], and one for each mention
        keep_entities(luke, vocabulary, titles, str(folder))
    first = ner.FIRST_CLASS if task is TASKS["ner"] else ()
    order = class_order(fine_tuned.labels, first, str(folder))
    module = task.head(luke, len(order), entities=True)
    head = {name: tensor[order] for name, tensor in fine_tuned.head.items()}
    load_strictly(module.classifier, head, source=str(folder), optional=set())
    labels = tuple(fine_tuned.labels[row] for row in order)
    markers = {marker: words[name] for marker, name in names.items()}
    inputs = InputSettings(tokenizer, labels, markers, luke.config.max_words, "fixed")
    return Predictor(task, module, inputs, entities=True, temperature=fine_tuned.temperature)


def class_order(labels: Sequence[str], first: Sequence[str], source: str) -> list[int]:
    """The rows of a classifier with the class that has one of the names `first`, in any case, before the others.

    Where none has, the rows stay as they are, and a warning says what the first one is taken for.
    """
    rows = list(range(len(labels)))
    named = [row for row in rows if labels[row].lower() in first]
    if first and not named:
        names = " or ".join(first)
        logger.warning("%s: no class of id2label is named %s; class 0, %s, is taken for it", source, names, labels[0])
    return named[:1] + [row for row in rows if row not in named[:1]]


def their_words(folder: Path) -> tuple[WordTokenizer, dict[str, int]]:
    """The tokenizer of a folder, and all of its words with those that were added to its vocabulary.

    Versions of transformers write vocab.json, merges.txt and added_tokens.json, or tokenizer.json alone.
    """
    values = read_optional(folder / "tokenizer.json")
    if (folder / "vocab.json").is_file() or not values:
        tokenizer = WordTokenizer.load(folder)
        return tokenizer, tokenizer.vocab | read_optional(folder / "added_tokens.json")
    added = {token["content"]: token["id"] for token in values.get("added_tokens", [])}
    if values["model"].get("type") != "BPE":
        pieces = WordTokenizer.load(folder)
        return pieces, pieces.vocab | added
    merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in values["model"]["merges"]]
    vocabulary: dict[str, int] = values["model"]["vocab"]
    tokenizer = ByteLevelBPE(vocabulary, [(left, right) for left, right in merges], str(folder / "tokenizer.json"))
    return tokenizer, vocabulary | added
