"""SQuAD's questions: reading version 1.1, the Wikipedia entities of their texts, counting, writing predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from model.luke.config import SPECIAL_ENTITIES
from tasks.io.annotations import Annotate, EntityMention
from tasks.io.records import Examples, Record, children, is_one_object, read_object, read_records
from tasks.io.tables import is_table
from tasks.questions import answers as common


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
    question_mentions: tuple[EntityMention, ...] = ()
    passage_mentions: tuple[EntityMention, ...] = ()

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

    @property
    def is_learnable(self) -> bool:
        """Return whether an answer is where it is said to be."""
        return bool(self.spans)


@dataclass(frozen=True)
class Dataset(Examples[Example]):
    """The questions of a file, in its order; `entity_counts` are of those that an annotator found, if any."""

    entity_counts: Mapping[str, int] = field(default_factory=dict)


def read(path: Path) -> Dataset:
    """The questions of SQuAD, in its own JSON or a question a row, as Hugging Face has them.

    Raises: ValueError naming an impossible question of version 2.0, or the place and field of what is wrong.
    """
    rows = [] if is_one_object(path) else read_records(path)
    if len(rows) > 1 or (rows and (is_table(path) or "context" in rows[0].values)):
        examples = tuple(parse(row, common.filled_text(row, "context"), row) for row in rows)
    else:
        examples = tuple(
            parse(question, common.filled_text(paragraph, "context"), article)
            for article in children(read_object(path), "data")
            for paragraph in children(article, "paragraphs")
            for question in children(paragraph, "qas")
        )
    if not examples:
        raise ValueError(f"{path}: no questions; wanted at least one in data, paragraphs, qas")
    common.check_ids((example.id, example.record) for example in examples)
    return Dataset(path, examples)


def parse(record: Record, passage: str, article: Record) -> Example:
    """The example of an object of `qas`. Raises: ValueError naming its place and the field."""
    if record.values.get("is_impossible"):
        raise record.error(
            f"question {record.identifier()!r} is impossible (is_impossible): it has no span that the model could "
            "point at; remove the impossible questions of SQuAD 2.0"
        )
    given = common.listed_objects(record, "answers", ("text", "answer_start"))
    answers = [(each.field("answer_start", int, "a character's number"), each.text("text")) for each in given]
    if not answers:
        raise record.error(
            f"answers of question {record.identifier()!r} is empty; wanted at least one; remove the question"
        )
    title = article.text("title") if "title" in article.values else ""
    page = unquote(title).replace("_", " ") or None
    question = common.filled_text(record, "question")
    return Example(record.identifier(), question, passage, page, tuple(answers), record)


def from_records(records: Sequence[Record]) -> Dataset:
    """Questions without answers: `question` and `text` (or `context`), perhaps `page`, the page's title.

    Entities may be given, `entities` of the text and `question_entities`, each with `start`, `end` (characters) and
    `entity_id`.
    """
    examples = []
    for number, record in enumerate(records):
        question = common.filled_text(record, "question")
        passage = common.filled_text(record, record.first_of("text", "context"))
        page = record.text("page") if "page" in record.values else None
        mentions = given_mentions(record, "question_entities", question), given_mentions(record, "entities", passage)
        examples.append(Example(str(number), question, passage, page, (), record, *mentions))
    return Dataset(Path("input"), tuple(examples))


def given_mentions(record: Record, name: str, text: str) -> tuple[EntityMention, ...]:
    """The mentions in a list of a record; those without an id, or with that of a special entity, are left out."""
    found = children(record, name) if name in record.values else []
    mentions = []
    for each in found:
        span = [each.values.get("start"), each.values.get("end")]
        start, end = each.span("start, end", span, len(text), "characters")
        entity_id = each.values.get("entity_id")
        if entity_id is not None and each.field("entity_id", int, "an entity's number") >= SPECIAL_ENTITIES:
            mentions.append(EntityMention(start, end, entity_id))
    return tuple(mentions)


def annotated(dataset: Dataset, annotate: Annotate, entity_count: int) -> Dataset:
    """The data set with the Wikipedia entities that an annotator finds in its questions and passages.

    Those outside the vocabulary are left out and counted; examples that come with entities keep those. Raises:
    ValueError for an entity that is not among the `entity_count` of the model.
    """
    keys = dict.fromkeys((text, each.page) for each in dataset.examples for text in each.texts)
    found = {key: annotate(*key) for key in keys}
    mentions = {key: tuple(each for each in some if each.entity_id >= SPECIAL_ENTITIES) for key, some in found.items()}
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
