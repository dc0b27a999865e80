"""ReCoRD's questions, in its own JSON, SuperGLUE's lines or Hugging Face's rows: reading, writing predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.io.records import Examples, Record, children, is_one_object, read_object, read_records
from tasks.io.windows import CharacterSpan
from tasks.questions import answers as common

PLACEHOLDER = "@placeholder"


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

    @property
    def is_learnable(self) -> bool:
        """Return whether an answer is the text of an entity."""
        return not {text for _, text in self.answers}.isdisjoint(self.texts())


@dataclass(frozen=True)
class Dataset(Examples[Example]):
    """The questions of a file, in its order; those of SuperGLUE are numbered (`idx`)."""

    is_superglue: bool = False


def read(path: Path) -> Dataset:
    """The questions of ReCoRD: its own JSON object, SuperGLUE's line for each passage, or a row for each question.

    Raises: ValueError naming the place and the field of what is wrong.
    """
    is_superglue = not is_one_object(path)
    passages = read_records(path) if is_superglue else children(read_object(path), "data")
    if is_superglue and "query" in passages[0].values:
        examples = tuple(map(parse_row, passages))
    else:
        examples = tuple(
            parse(question, passage)
            for record in passages
            for passage in [Record(f"{record.where}: passage", record.field("passage", dict, "an object"))]
            for question in children(record, "qas")
        )
    if not examples:
        raise ValueError(f"{path}: no questions; wanted at least one in qas")
    common.check_ids((example.id, example.record) for example in examples)
    return Dataset(path, examples, is_superglue)


def parse(record: Record, passage: Record) -> Example:
    """The example of an object of `qas`. Raises: ValueError naming its place and the field."""
    text = common.filled_text(passage, "text")
    given = children(record, "answers")
    answers = [(characters(answer, len(text)), answer.text("text")) for answer in given]
    if not answers:
        raise record.error("answers is empty; wanted at least one; remove the question")
    name = str(record.field("idx", int, "the question's number")) if "idx" in record.values else record.identifier()
    entities = in_order(characters(each, len(text)) for each in children(passage, "entities"))
    return Example(name, with_placeholder(record, "query"), text, entities, tuple(answers), record)


def parse_row(record: Record) -> Example:
    """The example of a row as Hugging Face has them: `passage`, `query`, `entity_spans`, `answers` (texts), `idx`.

    An answer is at every entity that has its text. Raises: ValueError naming the row and the field.
    """
    passage = common.filled_text(record, "passage")
    spans = common.listed_objects(record, "entity_spans", ("text", "start", "end"))
    entities = in_order(entity_span(each, passage) for each in spans)
    texts = record.texts("answers")
    if not all(text.strip() for text in texts) or not texts:
        raise record.error("answers is empty, or has an empty text; wanted at least one; remove the question")
    idx = Record(f"{record.where}: idx", record.field("idx", dict, "the numbers of passage and query"))
    name = str(idx.field("query", int, "the question's number"))
    answers = tuple((span, text) for text in texts for span in places_of(text, passage, entities))
    return Example(name, with_placeholder(record, "query"), passage, entities, answers, record)


def entity_span(record: Record, passage: str) -> CharacterSpan:
    """The characters of an entity, whose `text` shows whether `end` is its last character or the one after it."""
    start, end = (record.field(side, int, "a character's number") for side in ("start", "end"))
    text = record.text("text")
    for after in (end, end + 1):
        if 0 <= start < after <= len(passage) and passage[start:after] == text:
            return start, after
    raise record.error(f"text is {text!r}, not the passage's from {start} to {end}; correct them")


def places_of(text: str, passage: str, entities: Sequence[CharacterSpan]) -> list[CharacterSpan]:
    """The entities with this text; else where the passage has it first; else no characters at all."""
    found = [span for span in entities if passage[slice(*span)] == text]
    start = passage.find(text)
    return found or [(start, start + len(text)) if start >= 0 else (0, 0)]


def from_records(records: Sequence[Record]) -> Dataset:
    """Questions without answers: `question` with @placeholder in it, `text`, and `entities` of the text.

    An entity is [start, end] or an object that has both, in characters; the end is excluded.
    """
    examples = []
    for number, record in enumerate(records):
        text = common.filled_text(record, "text")
        given = record.field("entities", list, "a list of [start, end]")
        spans = [[each.get("start"), each.get("end")] if isinstance(each, dict) else each for each in given]
        entities = [
            record.span(f"entities[{place}]", span, len(text), "characters") for place, span in enumerate(spans)
        ]
        question = with_placeholder(record, "question")
        examples.append(Example(str(number), question, text, in_order(entities), (), record))
    return Dataset(Path("input"), tuple(examples))


def characters(record: Record, length: int) -> CharacterSpan:
    """`start` and `end` of a record, its last character in both releases, as a half-open span of a text."""
    start, end = (record.field(side, int, "a character's number") for side in ("start", "end"))
    return record.span("start, end", [start, end + 1], length, "characters")


def in_order(spans: Any) -> tuple[CharacterSpan, ...]:
    """The spans from left to right, each once."""
    return tuple(sorted(set(spans)))


def with_placeholder(record: Record, name: str) -> str:
    """A question. Raises: ValueError where it has no placeholder."""
    question = common.filled_text(record, name)
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
