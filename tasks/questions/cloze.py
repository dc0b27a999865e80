"""Cloze-style question answering: which entity of a passage a placeholder stands for (section 4.4 of the paper).

`python -m tasks.cloze_qa score DATA PREDICTIONS` prints scores as JSON.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.luke.batch import Batch, mention_positions, pad
from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.excerpts import boundaries, context_window
from tasks.io.records import CharacterSpan, Record, children, is_one_object, read_object, read_records
from tasks.io.score_command import score_command
from tasks.questions.answers import (
    Answer,
    answer_object,
    answer_scores,
    best_texts,
    check_ids,
    check_no_classes,
    filled_text,
    prediction_object,
    score_answers,
)
from tasks.questions.windows import Integers, joined, passage_room, question_limit, windows
from tasks.task import MAX_MENTION_POSITIONS, Classifier, Features, Hyperparameters, presets

PRESETS = presets(
    paper=Hyperparameters(learning_rate=1e-5, head_learning_rate=1e-5, batch_size=32, epochs=2),
    demo=Hyperparameters(learning_rate=1e-3, head_learning_rate=1e-3, batch_size=4, epochs=20, max_words=128),
    # ReCoRD is licensed, so these are the values of extractive_qa.
    small_encoder=Hyperparameters(learning_rate=1e-4, head_learning_rate=1e-3, batch_size=16, epochs=3),
)
WORD_MARKERS: Mapping[str, str] = {"[HIGHLIGHT]": "@", "[PLACEHOLDER]": "#", "[ENTITY]": "*"}
ENTITY_ROWS: tuple[int, ...] = (0, 2)  # [PAD] and [MASK] of the pretrained entity vocabulary
MASK_ENTITY = 1  # where [MASK] stands once only ENTITY_ROWS are kept
DEV_METRIC = "exact_match"
BEST_EPOCH_IN_PAPER = True
PREDICTIONS_SUFFIX = ".json"
FIRST_CLASS: Sequence[str] = ()
ARCHITECTURE = None
PLACEHOLDER = "@placeholder"
HIGHLIGHT = "@highlight"
MAX_QUESTION = 90
N_BEST = 20


# Reader


@dataclass(frozen=True)
class Example:
    """A question with a placeholder, a passage, and the characters of the entities in it, in its order.

    `answers` (characters where each is said to be, text) is empty where it is asked for.
    """

    id: str
    question: str
    passage: str
    entities: tuple[CharacterSpan, ...]
    answers: tuple[tuple[CharacterSpan, str], ...]
    record: Record

    def texts(self) -> list[str]:
        """The texts of the entities."""
        return [self.passage[start:end] for start, end in self.entities]


@dataclass(frozen=True)
class Dataset:
    """The questions of a file, in its order; those of SuperGLUE are numbered (`idx`)."""

    path: Path
    examples: tuple[Example, ...]
    is_superglue: bool = False


def read(path: Path) -> Dataset:
    """The questions of ReCoRD: its own JSON object, or SuperGLUE's line for each passage.

    Raises: ValueError naming the place and the field of what is wrong.
    """
    is_superglue = not is_one_object(path)
    passages = read_records(path) if is_superglue else children(read_object(path), "data")
    after_end = 1 if ends_are_included(passages) else 0
    examples = tuple(
        parse(question, passage, after_end)
        for record in passages
        for passage in [Record(f"{record.where}: passage", record.field("passage", dict, "an object"))]
        for question in children(record, "qas")
    )
    if not examples:
        raise ValueError(f"{path}: no questions; wanted at least one in qas")
    check_ids((example.id, example.record) for example in examples)
    return Dataset(path, examples, is_superglue)


def ends_are_included(passages: Sequence[Record]) -> bool:
    """Whether `end` is an answer's last character, as it is in both releases, or the one after it."""
    votes: Counter[int] = Counter()
    for record in passages:
        text = record.field("passage", dict, "an object").get("text")
        for question in children(record, "qas"):
            for answer in children(question, "answers") if "answers" in question.values else ():
                start, end, found = (answer.values.get(name) for name in ("start", "end", "text"))
                if isinstance(text, str) and isinstance(start, int) and isinstance(end, int):
                    votes[1] += text[start : end + 1] == found
                    votes[0] += text[start:end] == found
    return votes[1] >= votes[0]


def parse(record: Record, passage: Record, after_end: int) -> Example:
    """The example of an object of `qas`. Raises: ValueError naming its place and the field."""
    text = filled_text(passage, "text")
    answers = [
        (characters(answer, len(text), after_end), answer.text("text"))
        for answer in children(record, "answers")
    ]
    if not answers:
        raise record.error("answers is empty; wanted at least one")
    number = record.field("idx", int, "the question's number") if "idx" in record.values else None
    return Example(
        id=record.text("id") if number is None else str(number),
        question=with_placeholder(record, "query"),
        passage=text,
        entities=in_order(characters(each, len(text), after_end) for each in children(passage, "entities")),
        answers=tuple(answers),
        record=record,
    )


def characters(record: Record, length: int, after_end: int) -> CharacterSpan:
    """`start` and `end` of a record as a half-open span of a text."""
    start, end = (record.field(side, int, "a character's number") for side in ("start", "end"))
    return record.span("start, end", [start, end + after_end], length, "characters")


def in_order(spans: Any) -> tuple[CharacterSpan, ...]:
    """The spans from left to right, each once."""
    return tuple(sorted(set(spans)))


def with_placeholder(record: Record, name: str) -> str:
    """A question. Raises: ValueError where it has no placeholder."""
    question = filled_text(record, name)
    if PLACEHOLDER not in question:
        raise record.error(f"{name} is {question[:40]!r}; wanted a question with {PLACEHOLDER} in it")
    return question


def describe(dataset: Dataset) -> dict[str, Any]:
    """Sizes, and how many answers are not where they are said to be."""
    examples = dataset.examples
    return {
        "questions": len(examples),
        "passages": len({example.passage for example in examples}),
        "entities": sum(len(example.entities) for example in examples),
        "answers": sum(len(example.answers) for example in examples),
        "answers_not_at_offset": sum(
            example.passage[slice(*span)] != text for example in examples for span, text in example.answers
        ),
    }


def label_names(datasets: Mapping[str, Dataset], listed: Sequence[str]) -> tuple[str, ...]:
    """What the row of the classifier finds. Raises: ValueError where a label file lists classes."""
    check_no_classes(listed, "")
    return ("answer",)


def negative_label(labels: Sequence[str], given: str) -> str | None:
    """None. Raises: ValueError for a given one."""
    check_no_classes((), given)
    return None


# Features


@dataclass(frozen=True, eq=False)
class ClozeFeature:
    """A question with a window of its passage that has at least one entity.

    `word_ids` (words) with special tokens and markers; `entities` (entities), the numbers of those in the window;
    `ends` (1 + entities, 2), half-open word positions of the placeholder and of each entity with its markers;
    `label` (entities) float32, 1 for entities with the text of an answer.
    """

    example: int
    word_ids: Integers
    entities: Integers
    ends: Integers
    label: np.ndarray


def featurize(
    dataset: Dataset,
    tokenizer: WordTokenizer,
    labels: Sequence[str],
    *,
    markers: Mapping[str, int],
    max_words: int,
    profile: str,
) -> Features[ClozeFeature]:
    """Each question with all windows of its passage that have an entity as a whole.

    [PLACEHOLDER] stands for the placeholder, [HIGHLIGHT] for each @highlight, [ENTITY] on both sides of an entity.
    Of a question of more than 90 tokens remains what is around the placeholder. The counts tell how often that was,
    how many entities no window holds, and which questions no entity answers.
    """
    counts = Counter(questions_cut=0, entities_out_of_reach=0, questions_out_of_reach=0)
    limit = question_limit(MAX_QUESTION, max_words, tokenizer)
    passages: dict[tuple[str, tuple[CharacterSpan, ...]], tuple[Integers, Integers]] = {}
    items: list[ClozeFeature] = []
    for number, example in enumerate(dataset.examples):
        key = example.passage, example.entities
        if key not in passages:
            passages[key] = passage_input(example, tokenizer, markers)
        question, place = question_input(example.question, tokenizer, markers, limit, counts)
        room = passage_room(len(question), max_words, tokenizer)
        found = features_of(number, example, question, place, *passages[key], room, tokenizer)
        reached = {entity for item in found for entity in item.entities.tolist()}
        counts["entities_out_of_reach"] += len(example.entities) - len(reached)
        counts["questions_out_of_reach"] += not any(item.label.any() for item in found)
        items += found
    return Features(items, counts | Counter(windows=len(items)))


def passage_input(
    example: Example, tokenizer: WordTokenizer, markers: Mapping[str, int]
) -> tuple[Integers, Integers]:
    """The tokens of a passage with all markers, and those of each entity (entities, 2), half open."""
    marks = boundaries(example.entities)
    places = [0, *(place for place, _, _ in marks), len(example.passage)]
    pieces = [example.passage[start:end] for start, end in pairwise(places)]
    segments = [marked_words(piece, HIGHLIGHT, markers["[HIGHLIGHT]"], tokenizer) for piece in pieces]
    ids = [*segments[0]]
    ends = np.zeros((len(example.entities), 2), dtype=np.int64)
    for segment, (_, entity, side) in zip(segments[1:], marks, strict=True):
        ends[entity, side] = len(ids) + side
        ids += [markers["[ENTITY]"], *segment]
    return np.array(ids, dtype=np.int64), ends


def marked_words(text: str, word: str, marker: int, tokenizer: WordTokenizer) -> list[int]:
    """The tokens of a text, with the marker in place of a word."""
    pieces = text.split(word)
    first, *others = tokenizer.encode(pieces, [True] * len(pieces))
    return [*first, *(token for ids in others for token in (marker, *ids))]


def question_input(
    question: str, tokenizer: WordTokenizer, markers: Mapping[str, int], limit: int, counts: Counter[str]
) -> tuple[list[int], int]:
    """The tokens of a question, at most `limit`, and the place of the placeholder, the first of several."""
    marker = markers["[PLACEHOLDER]"]
    ids = marked_words(question, PLACEHOLDER, marker, tokenizer)
    place = ids.index(marker)
    if len(ids) > limit:
        counts["questions_cut"] += 1
        start, end = context_window(place, place + 1, len(ids), limit)
        ids, place = ids[start:end], place - start
    return ids, place


def features_of(
    number: int,
    example: Example,
    question: Sequence[int],
    place: int,
    passage_ids: Integers,
    entity_ends: Integers,
    room: int,
    tokenizer: WordTokenizer,
) -> list[ClozeFeature]:
    """The features of an example, one for each window that has an entity."""
    right = {text for _, text in example.answers}
    label = np.array([text in right for text in example.texts()], dtype=np.float32)
    items = []
    for start, end in windows(len(passage_ids), room):
        [entities] = np.nonzero((entity_ends[:, 0] >= start) & (entity_ends[:, 1] <= end))
        if len(entities):
            word_ids, first = joined(question, passage_ids[start:end], tokenizer)
            ends = np.concatenate([[[place + 1, place + 2]], entity_ends[entities] - start + first])
            items.append(ClozeFeature(number, word_ids, entities, ends, label[entities]))
    return items


def feature_size(feature: ClozeFeature) -> int:
    """Length of a window in words and entities together."""
    return len(feature.word_ids) + len(feature.ends)


def loss_terms(feature: ClozeFeature) -> int:
    """Each entity is a term of the loss."""
    return len(feature.entities)


@dataclass(frozen=True, eq=False)
class ClozeBatch:
    """Padded windows: the model's input, where the placeholder and each entity begins (batch, 1 + entities), labels.

    `labels` (batch, entities) float32 is -1 at padding. `inputs` has no entities where the model is to see none.
    """

    inputs: Batch
    starts: Tensor
    labels: Tensor

    def to(self, device: torch.device | str) -> "ClozeBatch":
        return ClozeBatch(self.inputs.to(device), self.starts.to(device), self.labels.to(device))


def collate(features: Sequence[ClozeFeature], *, entities: bool, pad_id: int) -> ClozeBatch:
    """A padded batch; the placeholder and all entities are [MASK] entities."""
    word_ids = pad([feature.word_ids for feature in features], pad_id)
    lengths = torch.tensor([len(feature.word_ids) for feature in features])
    starts, ends = (pad([feature.ends[:, side] for feature in features], 0) for side in (0, 1))
    inputs = Batch(word_ids=word_ids, word_mask=torch.arange(word_ids.shape[1]) < lengths[:, None])
    mask = torch.arange(starts.shape[1]) < torch.tensor([len(feature.ends) for feature in features])[:, None]
    if entities:
        positions = mention_positions(starts, ends, MAX_MENTION_POSITIONS)
        inputs = replace(inputs, entity_ids=mask * MASK_ENTITY, entity_positions=positions, entity_mask=mask)
    labels = torch.full((len(features), starts.shape[1] - 1), -1.0)
    labels[mask[:, 1:]] = torch.from_numpy(np.concatenate([feature.label for feature in features]))
    return ClozeBatch(inputs.unpadded(), starts, labels)


# Head


class EntityScorer(Classifier):
    """LUKE with a linear classifier over [h_placeholder; h_entity].

    Without entities these are the states of [PLACEHOLDER] and of the [ENTITY] before the entity.
    """

    def __init__(self, luke: LukeModel) -> None:
        super().__init__(luke)
        self.dropout = nn.Dropout(luke.config.hidden_dropout_prob)
        self.classifier = nn.Linear(2 * luke.config.hidden_size, 1)
        nn.init.normal_(self.classifier.weight, std=luke.config.initializer_range)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, batch: ClozeBatch) -> Tensor:
        """Logits (batch, entities)."""
        word_states, states = self.luke(batch.inputs)
        if states is None:
            rows = torch.arange(len(word_states), device=word_states.device)[:, None]
            states = word_states[rows, batch.starts]
        entities = states[:, 1:]  # (batch, entities, hidden)
        pairs = torch.cat([states[:, :1].expand_as(entities), entities], dim=-1)
        return self.classifier(self.dropout(pairs)).squeeze(-1)


def head(luke: LukeModel, label_count: int, *, entities: bool) -> EntityScorer:
    """LUKE with the classifier of entities."""
    return EntityScorer(luke)


def loss(module: nn.Module, batch: ClozeBatch) -> dict[str, Tensor]:
    """Binary cross-entropy, the mean over all entities of the batch."""
    is_entity = batch.labels >= 0
    scores = module(batch)[is_entity]
    return {"loss": nn.functional.binary_cross_entropy_with_logits(scores, batch.labels[is_entity])}


def logits(module: nn.Module, batch: ClozeBatch) -> list[np.ndarray]:
    """Logits (entities) of each window."""
    scores = module(batch).float().cpu().numpy()
    sizes = (batch.labels >= 0).sum(dim=1).tolist()
    return [row[:size] for row, size in zip(scores, sizes, strict=True)]


# Score


def decode(
    dataset: Dataset, features: Sequence[ClozeFeature], logits: Sequence[np.ndarray], labels: Sequence[str]
) -> list[tuple[Answer, ...]]:
    """The 20 best entities for each question, of equals the first; an entity's score is its best in any window."""
    best = [np.full(len(example.entities), -np.inf) for example in dataset.examples]
    for feature, scores in zip(features, logits, strict=True):
        found = best[feature.example]
        found[feature.entities] = np.maximum(found[feature.entities], scores)
    return [ranked(example, found) for example, found in zip(dataset.examples, best, strict=True)]


def ranked(example: Example, scores: np.ndarray) -> tuple[Answer, ...]:
    """The best entities that any window holds."""
    places = list(zip(example.texts(), example.entities, strict=True))
    order = np.argsort(-scores, kind="stable")[:N_BEST].tolist()
    return tuple(
        Answer(text, start, end, float(scores[entity]))
        for entity in order
        if np.isfinite(scores[entity])
        for text, (start, end) in [places[entity]]
    )


def gold_answers(dataset: Dataset) -> dict[str, list[str]]:
    """The texts of the right answers to each question, by id."""
    return {example.id: [text for _, text in example.answers] for example in dataset.examples}


def score(
    dataset: Dataset, predictions: Sequence[Sequence[Answer]], labels: Sequence[str], negative: str | None
) -> dict[str, Any]:
    """Exact match and F1 as in ReCoRD's own script, as fractions of 1."""
    gold = gold_answers(dataset)
    return answer_scores(gold, best_texts(gold, predictions))


def from_records(records: Sequence[Record]) -> Dataset:
    """Questions without answers: `question` with @placeholder in it, `text`, and `entities` of the text.

    An entity is [start, end] or an object that has both, in characters; the end is excluded.
    """
    examples = []
    for number, record in enumerate(records):
        text = filled_text(record, "text")
        given = record.field("entities", list, "a list of [start, end]")
        spans = [[each.get("start"), each.get("end")] if isinstance(each, dict) else each for each in given]
        entities = [
            record.span(f"entities[{place}]", span, len(text), "characters")
            for place, span in enumerate(spans)
        ]
        question = with_placeholder(record, "question")
        examples.append(Example(str(number), question, text, in_order(entities), (), record))
    return Dataset(Path("input"), tuple(examples))


def answers(records: Sequence[Record], predictions: Sequence[Sequence[Answer]]) -> list[dict[str, Any]]:
    """`answer`, `start`, `end`, `score` of each record, and `n_best`, a list of the same."""
    return [answer_object(best) for best in predictions]


def prediction_lines(dataset: Dataset, predictions: Sequence[Sequence[Answer]]) -> list[str]:
    """In the layout of the release that the data set is of: answers by question id, or lines of idx and label."""
    texts = best_texts(gold_answers(dataset), predictions)
    if not dataset.is_superglue:
        return prediction_object(texts)
    return [json.dumps({"idx": int(name), "label": text}, ensure_ascii=False) for name, text in texts.items()]


def score_files(gold_path: Path, predictions_path: Path) -> dict[str, Any]:
    """Scores of a file of predictions, in either release's layout, for a file of ReCoRD."""
    return score_answers(gold_answers(read(gold_path)), predictions_path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: `score DATA PREDICTIONS`."""
    score_command("tasks.cloze_qa", score_files, {}, arguments)


if __name__ == "__main__":
    main()
