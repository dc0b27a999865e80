"""WNED's XML: an element for each document with its annotations; texts are files of the folder RawText beside it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from pipeline.lookup.names import page_title
from tasks.io.records import read_text
from tasks.linking.documents.document import NO_ENTITY, Document, Mention, Skipped, mention_noted, noted

TEXTS = "RawText"
FIELDS = ("mention", "wikiName", "offset", "length")
NEAR = 20  # characters by which a place may be wrong


@dataclass
class _Annotated:
    """A document in the XML: its line and name, and the line and the fields of each annotation."""

    line: int
    name: str
    annotations: list[tuple[int, dict[str, str]]] = field(default_factory=list)


def read_wned(path: Path, left_out: Skipped | None = None) -> Iterator[Document]:
    """The documents of a file.

    Places are counted as Java does, in units of UTF-16. Where the mention does not stand at its place, the nearest one
    is taken that is at most 20 characters away. Raises: ValueError naming the line. Where `left_out` is given, a
    mention that is nowhere near is left out instead, and so is a document without its text; what is wrong is added
    there.
    """
    for each in _parse(path):
        with noted(f"{path}:{each.line}", left_out and left_out.documents):
            yield _document(path, each, left_out)


def _document(path: Path, annotated: _Annotated, left_out: Skipped | None) -> Document:
    where, name = f"{path}:{annotated.line}", annotated.name
    if Path(name).name != name:
        raise ValueError(f"{where}: docName is {name!r}; wanted the name of a file in {TEXTS}")
    # As it is in the file: places count the ends of lines.
    text = read_text(path.parent / TEXTS / name, f"the text of docName {name!r} ({where})", keeps_ends=True)
    mentions = []
    for line, values in annotated.annotations:
        with mention_noted(left_out):
            mentions.append(_mention(text, values, f"{path}:{line}"))
    return Document(where, name, text, tuple(mentions), (0, len(text)))


def _mention(text: str, values: dict[str, str], where: str) -> Mention:
    if missing := [name for name in FIELDS if name not in values]:
        raise ValueError(f"{where}: the annotation has no {missing[0]}; wanted {', '.join(FIELDS)}")
    for name in ("offset", "length"):
        if not values[name].strip().isdecimal():
            raise ValueError(f"{where}: {name} is {values[name]!r}; wanted a whole number")
    words, start = values["mention"], _code_points(text, int(values["offset"]))
    places = sorted(range(max(0, start - NEAR), start + NEAR + 1), key=lambda place: abs(place - start))
    # XML has one blank or line end where the text may have others.
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())))
    found = next((match for place in places if words.strip() and (match := pattern.match(text, place))), None)
    if found is None:
        there = text[start : start + int(values["length"])]
        raise ValueError(f"{where}: {there!r} stands at the offset {values['offset']}; wanted the mention {words!r}")
    name = page_title(values["wikiName"])
    return Mention(*found.span(), None if name in NO_ENTITY else name)


def _code_points(text: str, units: int) -> int:
    """The place in code points of one in units of UTF-16."""
    if text.isascii():
        return units
    return len(text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore"))


def _parse(path: Path) -> list[_Annotated]:
    """Return what a file of XML says. Raises: ValueError naming the line of what is none, or declares entities."""
    documents: list[_Annotated] = []
    open_field: list[str] = []
    parser = expat.ParserCreate()

    def error(message: str) -> ValueError:
        return ValueError(f"{path}:{parser.CurrentLineNumber}: {message}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "document":
            if "docName" not in attributes:
                raise error("a document without docName; wanted the name of its text")
            documents.append(_Annotated(parser.CurrentLineNumber, attributes["docName"]))
        elif tag == "annotation" and documents:
            documents[-1].annotations.append((parser.CurrentLineNumber, {}))
        elif tag in FIELDS:
            if not (documents and documents[-1].annotations):
                raise error(f"{tag} stands outside of annotations; wanted document, annotation and in that {tag}")
            documents[-1].annotations[-1][1][tag] = ""
            open_field.append(tag)

    def end(tag: str) -> None:
        if open_field and tag == open_field[-1]:
            open_field.pop()

    def characters(text: str) -> None:
        if open_field:
            documents[-1].annotations[-1][1][open_field[-1]] += text

    def declared(*_: object) -> None:
        raise error("declares an entity; wanted XML without")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = characters, declared
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as problem:
        raise ValueError(f"{path}:{problem.lineno}: no XML ({expat.ErrorString(problem.code)})") from None
    if not documents:
        raise ValueError(f"{path}: no element 'document'; wanted WNED's annotations")
    return documents
