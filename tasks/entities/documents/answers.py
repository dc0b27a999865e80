"""What `link` answered to documents, for its scores."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tasks.entities.documents.document import Document, LeftOut, Mention
from tasks.entities.documents.json_lines import read_document
from tasks.entities.documents.reading import check_ids
from tasks.io.records import Record, children, read_records

Place = tuple[int, int]


class Answers(NamedTuple):
    """The mentions of an answered document, and the probability of those that tell one, by their place."""

    mentions: Sequence[Mention]
    probabilities: Mapping[Place, float]


def read_answers(
    path: Path, documents: Iterable[Document], left_out: LeftOut | None = None
) -> tuple[dict[str, Answers], int]:
    """The answers of `link` by the documents' ids, and how many lines of them report an error instead.

    Raises: ValueError naming an answer to a document that is not there, or has another text. Where documents are left
    out, it may be to one of these, and is noted in `left_out`.
    """
    answers, failed = [], 0
    for number, record in enumerate(read_records(path), start=1):
        if "error" in record.values and "text" not in record.values:
            failed += 1
        else:
            answers.append((read_document(record, number), record))
    check_ids([answer for answer, _ in answers])
    texts = {each.id: each for each in documents}
    found = {}
    for answer, record in answers:
        if answer.id not in texts and left_out and left_out.documents:
            left_out.answers.note("the answer is to none of the gold documents that remain", answer.where)
            continue
        if answer.id not in texts:
            raise answer.error(
                f"no gold document has the id {answer.id!r}; wanted answers to those documents"
            )
        if texts[answer.id].text != answer.text:
            raise answer.error(f"the text of {answer.id!r} differs from that in {texts[answer.id].where}")
        if answer.mentions is None:
            raise answer.error("no field 'mentions'; wanted what link answers")
        found[answer.id] = Answers(answer.mentions, probabilities_of(record))
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
