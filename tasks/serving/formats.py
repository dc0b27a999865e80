"""Formats of answers: lines of JSON and, of entity recognition, CoNLL columns, brat standoff, a page of HTML."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from model.files import write_aside
from tasks.io.records import Record
from tasks.io.windows import character_span
from tasks.ner.columns import DOCUMENT_START
from tasks.ner.spans import Span, tags_of_spans
from tasks.ner.words import Word, record_lines

Place = Mapping[str, Any]  # the name of a document among others: the number of its `line`, or its `file`
Values = Mapping[str, Any]
FORMATS = ("json", "conll", "brat", "html")


@dataclass(frozen=True)
class Format:
    """The texts that are written for answers and errors, and before and after all of them.

    `answer` raises ValueError where a format cannot express one. `says_errors`: it has a place for what is wrong.
    """

    answer: Callable[[Place, Values], str]
    error: Callable[[Place, str], str]
    begin: str = ""
    end: str = ""
    says_errors: bool = True


def find_format(name: str, labels: Sequence[str], output: Path | None, paths: Sequence[Path] = ()) -> Format:
    """One of FORMATS, for a model of these classes. brat writes into the folder `output`; `paths` are the documents.

    Raises: ValueError where it lacks a folder, or has one that it does not use, and where documents share a name.
    """
    if name == "brat" and output is None:
        raise ValueError("brat keeps each document in files of its own; give --output DIR")
    if name != "brat" and output is not None:
        raise ValueError(f"--output {output}: {name} is written to stdout; only brat has files of its own")
    if output is not None:
        return brat(labels, output, names_of_files(paths))
    return page(labels) if name == "html" else {"json": JSON_LINES, "conll": CONLL}[name]


# JSON


def json_line(values: Values) -> str:
    """An object on a line."""
    return json.dumps(values, ensure_ascii=False) + "\n"


# The question with its answer; of a file also its name.
JSON_LINES = Format(
    lambda place, values: json_line(({"file": place["file"]} if "file" in place else {}) | dict(values)),
    lambda place, error: json_line({"error": error, **place}),
)


# Documents with entities


@dataclass(frozen=True)
class Document:
    """A text, its sentences as words, and entities from left to right; all places are characters of the text."""

    text: str
    sentences: Sequence[Sequence[Word]]
    entities: Sequence[Mapping[str, Any]]


def document_of(values: Values) -> Document:
    """The document of an answer; where that is about `words`, these are joined by blanks."""
    lines = record_lines(Record("answer", values))
    entities = values["entities"]
    if "words" not in values:
        return Document(values["text"], lines, entities)
    words = values["words"]
    line = [(word, *character_span(words, (place, place + 1))) for place, word in enumerate(words)]
    spans = [character_span(words, (each["start"], each["end"])) for each in entities]
    moved = [{**each, "start": a, "end": b} for each, (a, b) in zip(entities, spans, strict=True)]
    return Document(" ".join(words), [line] if line else [], moved)


def likelihood(entity: Mapping[str, Any]) -> str:
    """The probabilities of an entity for people: its class first."""
    shares = entity.get("probabilities", {entity["label"]: entity["probability"]})
    return ", ".join(f"{label} {share:.1%}" for label, share in shares.items())


# CoNLL


def columns(place: Place, values: Values) -> str:
    """A -DOCSTART- line, then a word and its IOB2 tag a line, with a blank line after each sentence."""
    document = document_of(values)
    lines = [f"{DOCUMENT_START} O", ""]
    for sentence in document.sentences:
        starts, ends = ({word[side]: n for n, word in enumerate(sentence)} for side in (1, 2))
        spans = [
            Span(starts[each["start"]], ends[each["end"]] + 1, "_".join(each["label"].split()))
            for each in document.entities
            if each["start"] in starts
        ]
        tags = tags_of_spans(spans, len(sentence), "IOB2")
        for (word, _, _), tag in zip(sentence, tags, strict=True):
            if not word or any(map(str.isspace, word)) or word == DOCUMENT_START:
                raise ValueError(f"the word {word!r} fits in no CoNLL column; wanted words without blanks")
            lines.append(f"{word} {tag}")
        lines.append("")
    return "\n".join([*lines, ""])


# An error leaves an empty document, so that the others keep their numbers.
CONLL = Format(columns, lambda place, error: f"{DOCUMENT_START} O\n\n", says_errors=False)


# brat


def brat(labels: Sequence[str], output: Path, names: Mapping[str, str]) -> Format:
    """NAME.txt and NAME.ann for each document, and annotation.conf with the classes; stdout names what is written.

    visual.conf has the names of classes that brat can only keep under others. A file that is there with another content
    may be somebody's corrections: it stays, and `write` raises ValueError.
    """
    if output.exists() and not output.is_dir():
        raise ValueError(f"--output {output}: a file; give a folder to write")
    output.mkdir(parents=True, exist_ok=True)
    types = brat_types(labels[1:])

    def put(name: str, text: str) -> None:
        path, content = output / name, text.encode()
        if path.exists() and path.read_bytes() != content:
            raise ValueError(f"{path}: is there with another content; give an --output without it")
        write_aside(path, partial(Path.write_bytes, data=content))

    def write(place: Place, values: Values) -> str:
        document = document_of(values)
        name = names[place["file"]] if "file" in place else f"line-{place['line']:06d}"
        put(f"{name}.txt", document.text)
        put(f"{name}.ann", "".join(standoff(document, types)))
        return f"{output / name}.ann\n"

    sections = [f"[{name}]\n" for name in ("relations", "events", "attributes")]
    put("annotation.conf", "\n".join(["[entities]", *types.values(), "", *sections]))
    if shown := [f"{name} | {plain(label)}" for label, name in types.items() if name != label]:
        drawn = "SPAN_DEFAULT\tfgColor:black, bgColor:lightgreen, borderColor:darken\n"
        put("visual.conf", "\n".join(["[labels]", *shown, "", "[drawing]", drawn]))

    return Format(write, lambda place, error: "", says_errors=False)


def names_of_files(paths: Sequence[Path]) -> dict[str, str]:
    """For each file the name that its annotations get. Raises: ValueError where two files would get the same."""
    names: dict[str, Path] = {}
    for path in paths:
        if (other := names.setdefault(path.stem, path)) is not path:
            raise ValueError(f"{path} and {other}: brat's files of both would be {path.stem}.ann; rename one")
    return {str(path): name for name, path in names.items()}


# A part without what some reader takes for the end of a line, and without blanks at its ends.
FRAGMENT = re.compile("\\S(?:[^\r\n\v\f\x1c-\x1e\x85\u2028\u2029]*\\S)?")


def standoff(document: Document, types: Mapping[str, str]) -> Iterator[str]:
    """A line of type and characters for each entity, and a note with its probability; ends of lines part fragments.

    `types` are brat's names of the classes.
    """
    for number, entity in enumerate(document.entities, start=1):
        covered = document.text[entity["start"] : entity["end"]]
        pieces = [*FRAGMENT.finditer(covered)]
        places = ";".join(f"{entity['start'] + piece.start()} {entity['start'] + piece.end()}" for piece in pieces)
        text = " ".join(piece[0] for piece in pieces)
        yield f"T{number}\t{types[entity['label']]} {places}\t{text}\n"
        yield f"#{number}\tAnnotatorNotes T{number}\t{plain(likelihood(entity))}\n"


def brat_types(labels: Iterable[str]) -> dict[str, str]:
    """A name that brat takes for each class, of ASCII's letters, digits, - and _; equal ones get numbers."""
    types: dict[str, str] = {}
    for label in labels:
        ascii_name = re.sub(r"[^A-Za-z0-9_-]", "_", label)
        numbered = (f"{ascii_name}_{number}" for number in count(2))
        types[label] = next(name for name in chain([ascii_name], numbered) if name not in types.values())
    return types


def plain(text: str) -> str:
    """A text that ends no line and no field of brat's files."""
    return re.sub(r"[|\s]+", " ", text)


# HTML


def page(labels: Sequence[str]) -> Format:
    """A page that needs nothing else: entities are marked, their probabilities are tooltips."""

    def parts(values: Values) -> list[tuple[str, Any]]:
        document = document_of(values)
        return parts_of(document.text, ((each["start"], each["end"], each) for each in document.entities))

    classes = {label: f"l{number}" for number, label in enumerate(labels[1:])}
    template = Path(__file__).with_name("entities.html")
    return html_page("Entities", template, parts, classes=classes, likelihood=likelihood)


def html_page(title: str, template: Path, parts: Callable[[Values], Sequence[tuple[str, Any]]], **known: Any) -> Format:
    """A page with a section for each document, or for what is wrong with it.

    The template says how the `parts` of a text are shown; it knows these other values, too.
    """
    folders = FileSystemLoader([Path(__file__).parent, template.parent])
    environment = Environment(loader=folders, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= known
    frame, own = list[Any](environment.get_template(name).module for name in ("page.html", template.name))

    def name_of(place: Place) -> str:
        [(kind, name)] = place.items()
        return f"{kind} {name}" if kind == "line" else name

    return Format(
        lambda place, values: str(frame.article(name_of(place), own.content(parts(values)))),
        lambda place, error: str(frame.error(name_of(place), error)),
        str(frame.begin(title, own.style(), own.legend())),
        str(frame.end()),
    )


def parts_of(text: str, spans: Iterable[tuple[int, int, Any]]) -> list[tuple[str, Any]]:
    """A text in parts: what each span (half open, from left to right) covers with what it has, all else with None."""
    parts, last = list[tuple[str, Any]](), 0
    for start, end, each in spans:
        parts += [(text[last:start], None), (text[start:end], each)]
        last = end
    return [*parts, (text[last:], None)]
