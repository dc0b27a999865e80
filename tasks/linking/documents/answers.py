"""Answers of `link` to documents, for its scores."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tasks.io.records import Record, children, record_readers
from tasks.linking.documents.document import Document, Mention, Skipped, noted
from tasks.linking.documents.json_lines import read_document

Place = tuple[int, int]


class Answers(NamedTuple):
    """The mentions of an answered document, and the probability of those that tell one, by their place."""

    mentions: Sequence[Mention]
    probabilities: Mapping[Place, float]


def read_answers(
    path: Path, documents: Iterable[Document], left_out: Skipped | None = None
) -> tuple[dict[str, Answers], int]:
    """The answers of `link` by the documents' ids, and how many lines of them report an error instead.

    Raises: ValueError naming an answer that is broken, or to a document that is not there, or has another text. Where
    `left_out` is given, the answer is noted there, and left out.
    """
    texts = {each.id: each for each in documents}
    found, failed = dict[str, Answers](), 0
    for number, (where, read) in enumerate(record_readers(path), start=1):
        with noted(where, left_out and left_out.answers):
            record = read()
            if "error" in record.values and "text" not in record.values:
                failed += 1
                continue
            answer = read_document(record, number)
            if answer.id in found:
                raise answer.error(f"the id {answer.id!r} is there twice; wanted one for each document")
            if answer.id not in texts and left_out:
                raise answer.error("the answer is to none of the gold documents that remain")
            if answer.id not in texts:
                raise answer.error(
                    f"no gold document has the id {answer.id!r}; wanted answers to those documents"
                )
            if texts[answer.id].text != answer.text:
                raise answer.error(f"the text of {answer.id!r} differs from that in {texts[answer.id].where}")
            if answer.mentions is None:
                raise answer.error("no field 'mentions'; wanted what link answers")
            found[answer.id] = Answers(answer.mentions, probabilities_of(record))
    if not found and not failed:
        reason = f"; all are left out: {left_out.answers.lines()[0]}" if left_out and left_out.answers else ""
        raise ValueError(f"{path}: no answer{reason}; wanted what link wrote")
    return found, failed


def probabilities_of(record: Record) -> dict[Place, float]:
    """The probabilities that an answer tells, by place. Raises: ValueError naming a mention with another one."""
    found = {}
    for each in children(record, "mentions") if "mentions" in record.values else ():
        value = each.values.get("probability")
        if value is not None:
            if type(value) not in (int, float) or not 0 <= value <= 1:
                raise each.error(f"probability is {value!r}; wanted a number from 0 to 1, or null")
            found[each.values["start"], each.values["end"]] = float(value)
    return found
