"""Relations in TACRED's JSON, OpenNRE's JSON lines, SemEval-2010's text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tasks.io.data_folder import ClassNames
from tasks.io.records import Examples, Record, as_record, check_mention, read_records, read_text, shown
from tasks.io.tables import is_table
from tasks.io.windows import CharacterSpan, character_span

NUMBERED = re.compile(r"^(?=\d{1,18}\t)", re.MULTILINE)
TOKENS = {"token", "tokens"}  # the field of a text in words
MARK = re.compile(r"</?e[12]>")
MARKS = ("<e1>", "</e1>", "<e2>", "</e2>")


@dataclass(frozen=True)
class Example:
    """A text, the characters of its head and its tail, and their relation (empty where it is asked for)."""

    text: str
    head: CharacterSpan
    tail: CharacterSpan
    relation: str
    record: Record


Dataset = Examples[Example]


def records_of(path: Path) -> list[Record]:
    """A record for each example. Raises: ValueError naming the file and the line or the example."""
    if not is_table(path):
        text = read_text(path, "relations with their texts")
        first = NUMBERED.search(text)
        if first and not text[: first.start()].strip():
            return list(semeval_records(path, text))
    return read_records(path)


def semeval_records(path: Path, text: str) -> Iterator[Record]:
    """Of each numbered `"text with <e1>head</e1> and <e2>tail</e2>"`: `id`, `sentence`, and `relation`, the next line.

    What follows, such as a comment, is not read.
    """
    line = 1
    for block in NUMBERED.split(text):
        if block.strip():
            where = f"{path}:{line}"
            first, *others = block.split("\n")
            number, _, sentence = first.partition("\t")
            relation = others[0].strip() if others else ""
            if not relation or relation.startswith("Comment:"):
                raise ValueError(
                    f"{where}: no relation in the line after sentence {number}; "
                    "give the file that has them, such as TEST_FILE_FULL.TXT"
                )
            sentence = sentence.strip()
            if len(sentence) > 1 and sentence[0] == sentence[-1] == '"':
                sentence = sentence[1:-1]
            yield as_record(where, {"id": int(number), "sentence": sentence, "relation": relation}, line)
        line += block.count("\n")


def parse(record: Record, names: ClassNames | None) -> Example:
    """The example of a record, whose fields tell its format; without `names` it has no relation.

    TACRED: `token`, `subj_start`, `subj_end`, `obj_start`, `obj_end` (the ends are included): the subject is
    the head. OpenNRE: `token`, `h.pos`, `t.pos` (half open). SemEval-2010: `sentence` with <e1> and <e2>. Or `text`,
    `head`, `tail` (in OpenNRE `h.pos`, `t.pos`): half-open spans of characters. Raises: ValueError naming file, line
    and field.
    """
    if "text" in record.values:
        text = record.text("text")
        head, tail = (record.span(name, characters(record, name), len(text), "characters") for name in ("head", "tail"))
    elif "sentence" in record.values and not TOKENS & record.values.keys():
        text, head, tail = marked_sentence(record)
    else:
        words = record.texts("tokens" if TOKENS & record.values.keys() == {"tokens"} else "token")
        text = " ".join(words)
        spans = (word_span(record, *each, len(words)) for each in (("h", "subj"), ("t", "obj")))
        head, tail = (character_span(words, span) for span in spans)
    check_mention(record, "head", text, head)
    check_mention(record, "tail", text, tail)
    relation = relation_of(record, names) if names else ""
    return Example(text, head, tail, relation, record)


def characters(record: Record, name: str) -> object:
    """Return what a record with a `text` says of the place of its `head` or `tail`."""
    mention = record.values.get(name[0])
    if name not in record.values and isinstance(mention, Mapping) and "pos" in mention:
        return mention["pos"]
    if name not in record.values:
        raise record.error(f"no field {name!r}; found {', '.join(record.values)}")
    return record.values[name]


def relation_of(record: Record, names: ClassNames, field: str = "relation") -> str:
    """The name of the relation in a field."""
    if field not in record.values:
        raise record.error(f"no field {field!r}; wanted the name of a relation")
    relation = names.name(record, field, record.values[field])
    if not relation:
        raise record.error(f"{field} is empty; wanted the name of a relation")
    return relation


def marked_sentence(record: Record) -> tuple[str, CharacterSpan, CharacterSpan]:
    """`sentence` without its marks, and what stands between those of the head (e1) and the tail (e2)."""
    sentence = record.text("sentence")
    pieces, marks = MARK.split(sentence), MARK.findall(sentence)
    if sorted(marks) != sorted(MARKS):
        raise record.error(
            f"sentence has {' '.join(marks) or 'no marks'}; wanted <e1>head</e1> and <e2>tail</e2>, each once"
        )
    places, length = {}, 0
    for piece, mark in zip(pieces, marks, strict=False):
        length += len(piece)
        places[mark] = length
    text = "".join(pieces)
    head, tail = ([places[f"<{name}>"], places[f"</{name}>"]] for name in ("e1", "e2"))
    return (
        text,
        record.span("<e1>", head, len(text), "characters"),
        record.span("<e2>", tail, len(text), "characters"),
    )


def word_span(record: Record, name: str, role: str, length: int) -> tuple[int, int]:
    """The words of `<name>.pos`; in TACRED those from `<role>_start` to `<role>_end`."""
    if "subj_start" in record.values:
        start, end = (record.field(f"{role}_{side}", int, "a word's number") for side in ("start", "end"))
        return record.span(f"{role}_start, {role}_end", [start, end + 1], length, "words")
    mention = record.values.get(name)
    if not isinstance(mention, dict):
        raise record.error(
            f"{name} is {shown(mention)}; wanted an object with pos, or subj_start and so on, as in TACRED"
        )
    return record.span(f"{name}.pos", mention.get("pos"), length, "words of token")
