"""Extractive question answering: the answer is a span of a Wikipedia passage (section 4.5 of the paper).

`python -m tasks.extractive_qa score DATA PREDICTIONS` prints scores as JSON.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import torch
from torch import Tensor, nn

from model.luke.batch import Batch, mention_positions, pad
from model.luke.config import PAD_ENTITY
from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.entities.annotations import Annotate, Annotation, Mention, given_mentions, known_mentions
from tasks.io.records import Record, children, read_object
from tasks.io.score_command import score_command
from tasks.questions.answers import (
    Answer,
    answer_object,
    answer_scores,
    best_spans,
    best_texts,
    check_ids,
    check_no_classes,
    filled_text,
    prediction_object,
    score_answers,
)
from tasks.questions.windows import (
    Integers,
    Text,
    encode,
    joined,
    passage_room,
    question_limit,
    token_spans,
    widest_windows,
    windows,
)
from tasks.task import IGNORED, MAX_MENTION_POSITIONS, Classifier, Features, Hyperparameters, presets

PRESETS = presets(
    paper=Hyperparameters(learning_rate=15e-6, head_learning_rate=15e-6, batch_size=48, epochs=2),
    demo=Hyperparameters(learning_rate=1e-3, head_learning_rate=1e-3, batch_size=4, epochs=20, max_words=128),
    small_encoder=Hyperparameters(learning_rate=1e-4, head_learning_rate=1e-3, batch_size=16, epochs=3),
)
ENTITY_ROWS = None  # Wikipedia's entities are the input: the table stays whole, and is not trained
WORD_MARKERS: Mapping[str, str] = {}
DEV_METRIC = "f1"
BEST_EPOCH_IN_PAPER = False
PREDICTIONS_SUFFIX = ".json"
FIRST_CLASS: Sequence[str] = ()
ARCHITECTURE = "LukeForQuestionAnswering"
MAX_QUESTION = 64
MAX_ANSWER = 30
MAX_ENTITIES = 128
N_BEST = 20


# Reader


@dataclass(frozen=True)
class Example:
    """A question on a passage; `answers` (characters where each begins, text) is empty where it is asked for.

    `page` is the title of the Wikipedia page that the passage is from, if known.
    """

    id: str
    question: str
    passage: str
    page: str | None
    answers: tuple[tuple[int, str], ...]
    record: Record
    question_mentions: tuple[Mention, ...] = ()
    passage_mentions: tuple[Mention, ...] = ()

    @property
    def texts(self) -> tuple[str, str]:
        return self.question, self.passage

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The characters of the answers that are where they are said to be."""
        return [
            (start, start + len(text))
            for start, text in self.answers
            if text and start >= 0 and self.passage.startswith(text, start)
        ]


@dataclass(frozen=True)
class Dataset:
    """The questions of a file, in its order; `entity_counts` are of those that an annotator found, if any."""

    path: Path
    examples: tuple[Example, ...]
    entity_counts: Mapping[str, int] = field(default_factory=dict)


def read(path: Path) -> Dataset:
    """The questions of a SQuAD 1.1 file. Raises: ValueError for version 2.0 and anything else."""
    record = read_object(path)
    if str(record.values.get("version", "")).lstrip("v").startswith("2"):
        raise refusal(record, "version")
    examples = tuple(
        parse(question, filled_text(paragraph, "context"), article)
        for article in children(record, "data")
        for paragraph in children(article, "paragraphs")
        for question in children(paragraph, "qas")
    )
    if not examples:
        raise ValueError(f"{path}: no questions; wanted at least one in data, paragraphs, qas")
    check_ids((example.id, example.record) for example in examples)
    return Dataset(path, examples)


def refusal(record: Record, name: str) -> ValueError:
    return record.error(
        f"{name} is {record.values[name]!r}: this is SQuAD 2.0, whose unanswerable questions have no span that the "
        "model could point at; give the files of version 1.1"
    )


def parse(record: Record, passage: str, article: Record) -> Example:
    """The example of an object of `qas`. Raises: ValueError naming its place and the field."""
    if "is_impossible" in record.values:
        raise refusal(record, "is_impossible")
    answers = [
        (answer.field("answer_start", int, "a character's number"), answer.text("text"))
        for answer in children(record, "answers")
    ]
    if not answers:
        raise record.error("answers is empty; wanted at least one")
    title = article.text("title") if "title" in article.values else ""
    page = unquote(title).replace("_", " ") or None
    question = filled_text(record, "question")
    return Example(record.text("id"), question, passage, page, tuple(answers), record)


def annotated(dataset: Dataset, annotate: Annotate, entity_count: int) -> Dataset:
    """The data set with the Wikipedia entities that an annotator finds in its questions and passages.

    Those outside the vocabulary are left out and counted; examples that come with entities keep those. Raises:
    ValueError for an entity that is not among the `entity_count` of the model.
    """
    found: dict[tuple[str, str | None], Sequence[Annotation]] = {}
    mentions: dict[tuple[str, str | None], tuple[Mention, ...]] = {}
    for key in dict.fromkeys((text, each.page) for each in dataset.examples for text in each.texts):
        found[key] = annotate(*key)
        mentions[key] = known_mentions(found[key])
    largest = max((mention.entity_id for each in mentions.values() for mention in each), default=0)
    if largest >= entity_count:
        raise ValueError(
            f"the annotator gave entity {largest}, but the model has {entity_count} entities; give the mention table "
            "of the run that the model was pretrained in"
        )
    examples = tuple(
        each
        if each.question_mentions or each.passage_mentions
        else replace(
            each,
            question_mentions=mentions[each.question, each.page],
            passage_mentions=mentions[each.passage, each.page],
        )
        for each in dataset.examples
    )
    outside = sum(len(found[key]) - len(mentions[key]) for key in found)
    counts = {"entities": sum(map(len, mentions.values())), "entities_outside_vocabulary": outside}
    return Dataset(dataset.path, examples, counts)


def describe(dataset: Dataset) -> dict[str, Any]:
    """Sizes; how many answers are not where they are said to be; and of annotated texts the entities."""
    examples = dataset.examples
    return {
        "questions": len(examples),
        "passages": len({example.passage for example in examples}),
        "answers": sum(len(example.answers) for example in examples),
        "answers_not_at_offset": sum(len(example.answers) - len(example.spans) for example in examples),
        **dataset.entity_counts,
    }


def label_names(datasets: Mapping[str, Dataset], listed: Sequence[str]) -> tuple[str, ...]:
    """What the two rows of the classifier find. Raises: ValueError where a label file lists classes."""
    check_no_classes(listed, "")
    return ("start", "end")


def negative_label(labels: Sequence[str], given: str) -> str | None:
    """None. Raises: ValueError for a given one."""
    check_no_classes((), given)
    return None


# Features


@dataclass(frozen=True, eq=False)
class WindowFeature:
    """A question with a window of its passage.

    `word_ids` (words) with special tokens; `characters` (tokens, 2) of the window's tokens, which begin at word
    `first`; `is_start` (tokens) where an answer may start; `entity_ids` (entities) and their word positions
    `entity_ends` (entities, 2), half open; `label` (2): the answer's first and last word position, 0 where the
    window has none of it, IGNORED where the answer is not known.
    """

    example: int
    word_ids: Integers
    first: int
    characters: Integers
    is_start: np.ndarray
    entity_ids: Integers
    entity_ends: Integers
    label: Integers


def featurize(
    dataset: Dataset,
    tokenizer: WordTokenizer,
    labels: Sequence[str],
    *,
    markers: Mapping[str, int],
    max_words: int,
    profile: str,
) -> Features[WindowFeature]:
    """Each question with all windows of its passage.

    Questions are cut after 64 tokens. In the profile `fixed` no token holds different punctuation marks, so that an
    answer can end between two of them; in `paper` the tokens are the tokenizer's own. The counts tell how often
    questions were cut and which answers are out of reach: those of more than 30 tokens, those that begin or end
    inside a token, and those that are not where they are said to be.
    """
    counts = Counter(
        windows=0, questions_cut=0, questions_without_span=0, answers_too_long=0, answers_inside_tokens=0,
        entities_cut=0,
    )  # fmt: skip
    limit = question_limit(MAX_QUESTION, max_words, tokenizer)
    split_marks = profile == "fixed"
    asked = encode(
        [(each.question, each.question_mentions) for each in dataset.examples],
        tokenizer,
        split_marks=split_marks,
    )
    passages = encode(
        [(each.passage, each.passage_mentions) for each in dataset.examples],
        tokenizer,
        split_marks=split_marks,
    )
    items: list[WindowFeature] = []
    for number, example in enumerate(dataset.examples):
        question = asked[example.question, example.question_mentions]
        passage = passages[example.passage, example.passage_mentions]
        counts["questions_cut"] += len(question.ids) > limit
        gold = gold_tokens(example, passage, counts)
        room = passage_room(min(limit, len(question.ids)), max_words, tokenizer)
        items.extend(features_of(number, question, passage, gold, limit, room, tokenizer, counts))
    return Features(items, counts | Counter(windows=len(items)))


def gold_tokens(example: Example, passage: Text, counts: Counter[str]) -> tuple[int, int] | None:
    """The tokens (half open) of the first answer that is at its offset, as training wants them."""
    if not example.spans:
        counts["questions_without_span"] += bool(example.answers)
        return None
    characters = np.array(example.spans[:1])
    [(first, last)] = token_spans(passage.characters, characters).tolist()
    if first >= last:  # blanks alone
        counts["questions_without_span"] += 1
        return None
    counts["answers_too_long"] += last - first > MAX_ANSWER
    found = passage.characters[first, 0], passage.characters[last - 1, 1]
    counts["answers_inside_tokens"] += found != example.spans[0]
    return first, last


def features_of(
    number: int,
    question: Text,
    passage: Text,
    gold: tuple[int, int] | None,
    limit: int,
    room: int,
    tokenizer: WordTokenizer,
    counts: Counter[str],
) -> list[WindowFeature]:
    """The features of an example, one for each window."""
    spans = windows(len(passage.ids), room)
    widest = widest_windows(spans) if spans else None
    passage_ids = np.array(passage.ids, dtype=np.int64)
    items = []
    for window, (start, end) in enumerate(spans):
        word_ids, first = joined(question.ids[:limit], passage_ids[start:end], tokenizer)
        parts = question.entities(0, limit, 1), passage.entities(start, end, first)
        entity_ids, entity_ends = (np.concatenate(both) for both in zip(*parts, strict=True))
        counts["entities_cut"] += max(0, len(entity_ids) - MAX_ENTITIES)
        label = (IGNORED, IGNORED) if gold is None else (0, 0)
        if gold and start <= gold[0] and gold[1] <= end:
            label = gold[0] - start + first, gold[1] - 1 - start + first
        assert widest is not None
        items.append(
            WindowFeature(
                example=number,
                word_ids=word_ids,
                first=first,
                characters=passage.characters[start:end],
                is_start=widest[start:end] == window,
                entity_ids=entity_ids[:MAX_ENTITIES],
                entity_ends=entity_ends[:MAX_ENTITIES],
                label=np.array(label, dtype=np.int64),
            )
        )
    return items


def feature_size(feature: WindowFeature) -> int:
    """Length of a window in words and entities together."""
    return len(feature.word_ids) + len(feature.entity_ids)


def loss_terms(feature: WindowFeature) -> int:
    """Start and end, where they are known, are terms of the loss."""
    return int((feature.label != IGNORED).sum())


@dataclass(frozen=True, eq=False)
class WindowBatch:
    """Padded windows: the model's input, and the first and last word of each answer, `labels` (batch, 2)."""

    inputs: Batch
    labels: Tensor

    def to(self, device: torch.device | str) -> "WindowBatch":
        return WindowBatch(self.inputs.to(device), self.labels.to(device))


def collate(features: Sequence[WindowFeature], *, entities: bool, pad_id: int) -> WindowBatch:
    """A padded batch, without entities where no window has one."""
    word_ids = pad([feature.word_ids for feature in features], pad_id)
    lengths = torch.tensor([len(feature.word_ids) for feature in features])
    inputs = Batch(word_ids=word_ids, word_mask=torch.arange(word_ids.shape[1]) < lengths[:, None])
    counts = torch.tensor([len(feature.entity_ids) for feature in features])
    if entities and counts.any():
        starts, ends = (pad([feature.entity_ends[:, side] for feature in features], 0) for side in (0, 1))
        inputs = replace(
            inputs,
            entity_ids=pad([feature.entity_ids for feature in features], PAD_ENTITY),
            entity_positions=mention_positions(starts, ends, MAX_MENTION_POSITIONS),
            entity_mask=torch.arange(starts.shape[1]) < counts[:, None],
        )
    return WindowBatch(inputs.unpadded(), torch.from_numpy(np.stack([each.label for each in features])))


# Head


class BoundaryClassifier(Classifier):
    """LUKE with two linear classifiers over the words, for the start and the end of the answer; no dropout."""

    def __init__(self, luke: LukeModel) -> None:
        super().__init__(luke)
        self.classifier = nn.Linear(luke.config.hidden_size, 2)
        nn.init.normal_(self.classifier.weight, std=luke.config.initializer_range)
        nn.init.zeros_(self.classifier.bias)

    def forward(self, batch: WindowBatch) -> Tensor:
        """Logits (batch, words, 2)."""
        word_states, _ = self.luke(batch.inputs)
        return self.classifier(word_states)


def head(luke: LukeModel, label_count: int, *, entities: bool) -> BoundaryClassifier:
    """LUKE with the classifiers of start and end."""
    return BoundaryClassifier(luke)


def loss(module: nn.Module, batch: WindowBatch) -> dict[str, Tensor]:
    """Half the cross-entropies of start and end over the words, the mean over the windows of known answers."""
    scores = module(batch).masked_fill(~batch.inputs.word_mask[..., None], float("-inf"))
    total = nn.functional.cross_entropy(scores, batch.labels, ignore_index=IGNORED, reduction="sum")
    return {"loss": total / (batch.labels != IGNORED).sum().clamp(min=1)}


def logits(module: nn.Module, batch: WindowBatch) -> list[np.ndarray]:
    """Logits (words, 2) of each window."""
    scores = module(batch).float().cpu().numpy()
    sizes = batch.inputs.word_mask.sum(dim=1).tolist()
    return [row[:size] for row, size in zip(scores, sizes, strict=True)]


# Score


def decode(
    dataset: Dataset, features: Sequence[WindowFeature], logits: Sequence[np.ndarray], labels: Sequence[str]
) -> list[tuple[Answer, ...]]:
    """The 20 best answers to each question over all its windows, cut out of the passage; none for no tokens.

    An answer's score is the sum of its two logits; it starts in the window where the start has the most context.
    """
    found: list[list[Answer]] = [[] for _ in dataset.examples]
    for feature, scores in zip(features, logits, strict=True):
        passage = dataset.examples[feature.example].passage
        rows = scores[feature.first : feature.first + len(feature.characters)]
        has_text = feature.characters[:, 0] < feature.characters[:, 1]
        starts = np.where(feature.is_start & has_text, rows[:, 0], -np.inf)
        for score, first, last in best_spans(
            starts, np.where(has_text, rows[:, 1], -np.inf), MAX_ANSWER, N_BEST
        ):
            start, end = int(feature.characters[first, 0]), int(feature.characters[last, 1])
            found[feature.example].append(Answer(passage[start:end], start, end, score))
    return [tuple(sorted(each, key=lambda answer: -answer.score)[:N_BEST]) for each in found]


def gold_answers(dataset: Dataset) -> dict[str, list[str]]:
    """The texts of the right answers to each question, by id."""
    return {example.id: [text for _, text in example.answers] for example in dataset.examples}


def score(
    dataset: Dataset, predictions: Sequence[Sequence[Answer]], labels: Sequence[str], negative: str | None
) -> dict[str, Any]:
    """Exact match and F1 as in SQuAD 1.1's own script, as fractions of 1."""
    return answer_scores(gold_answers(dataset), best_texts(gold_answers(dataset), predictions))


def from_records(records: Sequence[Record]) -> Dataset:
    """Questions without answers: `question` and `text` (or `context`), perhaps `page`, the page's title.

    Entities may be given, as `python -m tasks.annotate` prints them: `entities` of the text and
    `question_entities`, each with `start`, `end` (characters) and `entity_id`.
    """
    examples = []
    for number, record in enumerate(records):
        question = filled_text(record, "question")
        passage = filled_text(record, "text" if "text" in record.values else "context")
        examples.append(
            Example(
                id=str(number),
                question=question,
                passage=passage,
                page=record.text("page") if "page" in record.values else None,
                answers=(),
                record=record,
                question_mentions=given_mentions(record, "question_entities", question),
                passage_mentions=given_mentions(record, "entities", passage),
            )
        )
    return Dataset(Path("input"), tuple(examples))


def answers(records: Sequence[Record], predictions: Sequence[Sequence[Answer]]) -> list[dict[str, Any]]:
    """`answer`, `start`, `end`, `score` of each record, and `n_best`, a list of the same."""
    return [answer_object(best) for best in predictions]


def prediction_lines(dataset: Dataset, predictions: Sequence[Sequence[Answer]]) -> list[str]:
    """SQuAD's own layout: a JSON object of answers by question id."""
    return prediction_object(best_texts(gold_answers(dataset), predictions))


def score_files(gold_path: Path, predictions_path: Path) -> dict[str, Any]:
    """Scores of a JSON object of answers by question id for a SQuAD 1.1 file."""
    return score_answers(gold_answers(read(gold_path)), predictions_path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: `score DATA PREDICTIONS`."""
    score_command("tasks.extractive_qa", score_files, {}, arguments)


if __name__ == "__main__":
    main()
