"""Scores of linked documents: disambiguation of gold mentions, and linking by strong match, as neleval defines them.

A gold mention is in the knowledge base where it has a title that the dump has, after redirects. Where no mention table
is given, every title counts, as it is written.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tasks.entities.candidates import NO_LINKS, NOTHING, CandidateFinder, OwnLinks
from tasks.entities.certainty import reliability
from tasks.entities.documents.document import Document, Mention, page_title
from tasks.entities.documents.json_lines import read_document
from tasks.entities.documents.reading import check_ids, read_documents
from tasks.io.metrics import precision_recall_f1
from tasks.io.records import Record, children, read_records

Figures = dict[str, Any]
Link = tuple[int, int, str]  # start, end and title
Place = tuple[int, int]
Resolve = Callable[[str], str | None]
"""A title after redirects; None for one that the dump lacks."""
EXAMPLES = 10


@dataclass(frozen=True)
class Pair:
    """A document with its gold mentions and those that are scored, whose titles went through redirects.

    `probabilities` are those of the scored mentions that tell one. `without` are links of the document's own, which do
    not count.
    """

    gold: Sequence[Mention]
    found: Sequence[Mention]
    text: str
    probabilities: Mapping[Place, float] = field(default_factory=dict)
    without: OwnLinks = NO_LINKS

    @classmethod
    def of(
        cls,
        gold: Document,
        found: Sequence[Mention],
        resolve: Resolve,
        probabilities: Mapping[Place, float] | None = None,
        without: OwnLinks = NO_LINKS,
    ) -> "Pair":
        """The mentions of both inside the annotated part; a title of `found` that the dump lacks stays as it is.

        A page that the dump lacks, and that the document alone links to, is not in the knowledge base.
        """

        def known(title: str | None) -> str | None:
            end = resolve(title) if title else None
            return None if end in without.alone else end

        answered = annotated(gold, found)
        return cls(
            [Mention(m.start, m.end, known(m.title)) for m in annotated(gold, gold.mentions or ())],
            [
                Mention(m.start, m.end, m.title and (resolve(m.title) or page_title(m.title)))
                for m in answered
            ],
            gold.text,
            probabilities or {},
            without,
        )


def annotated(gold: Document, mentions: Sequence[Mention]) -> list[Mention]:
    """Those of some mentions that stand in the part of a document where mentions are annotated."""
    first, last = gold.annotated
    return [each for each in mentions if first <= each.start and each.end <= last]


def score_files(
    gold: Path,
    predictions: Path,
    finder: CandidateFinder | None = None,
    *,
    leaves_out_pages: bool = False,
    own_links: bool = False,
    left_out: list[str] | None = None,
) -> Figures:
    """The scores of the answers of `link` to the documents of a file.

    Args:
        gold: documents in any of the formats.
        predictions: what `link` wrote, or any documents of the same ids and texts.
        finder: of candidates; without one titles are compared as they are, and there is no recall of candidates.
        leaves_out_pages: leave out the documents whose id is the title of a page of the dump.
        own_links: the documents are pages of the finder's dump; what each links itself is not counted for it.
        left_out: see `read_documents`; of the gold documents.

    Raises:
        ValueError: naming file and line of what cannot be read, and for answers to other documents.
    """
    documents = read_documents(gold, left_out)
    answers, failed = read_answers(predictions, documents)
    kept = [each for each in documents if not (leaves_out_pages and is_page(each.id, finder))]
    resolve = resolver(finder)
    nothing = Answers((), {})
    found = [answers.get(each.id, nothing) for each in kept]
    own = finder.own_links(kept) if finder and own_links else [NO_LINKS] * len(kept)
    pairs = [
        Pair.of(each, of_each.mentions, resolve, of_each.probabilities, without)
        for each, of_each, without in zip(kept, found, own, strict=True)
    ]
    unknown = Counter(
        page_title(m.title)
        for each, pair in zip(kept, pairs, strict=True)
        for m, known in zip(annotated(each, each.mentions or ()), pair.gold, strict=True)
        if m.title and not known.title
    )
    mentions = [(pair, mention) for pair in pairs for mention in pair.gold]
    titled = sum(bool(m.title) for each in kept for m in annotated(each, each.mentions or ()))
    return {
        "documents": len(kept),
        "documents_of_pages": len(documents) - len(kept),
        "documents_without_answer": sum(each.id not in answers for each in kept),
        "answers_with_error": failed,
        "mentions": {
            "gold": len(mentions),
            "in_knowledge_base": titled - unknown.total(),
            "without_title": len(mentions) - titled,
            "title_not_in_dump": unknown.total(),
        },
        "titles_not_in_dump": dict(sorted(unknown.items(), key=lambda pair: (-pair[1], pair[0]))[:EXAMPLES]),
        "disambiguation": disambiguation_scores(pairs, finder),
        "linking": linking_scores(pairs),
        "calibration": calibration_of(pairs),
    }


# Reading


class Answers(NamedTuple):
    """The mentions of an answered document, and the probability of those that tell one, by their place."""

    mentions: Sequence[Mention]
    probabilities: Mapping[Place, float]


def read_answers(path: Path, documents: Iterable[Document]) -> tuple[dict[str, Answers], int]:
    """The answers of `link` by the documents' ids, and how many lines of them report an error instead.

    Raises: ValueError naming an answer to a document that is not there, or has another text.
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


def is_page(identity: str, finder: CandidateFinder | None) -> bool:
    """Whether a document's id is the title of a page of the dump, or of a redirect to one."""
    target = finder.targets.get(page_title(identity)) if finder else None
    return target is not None and target.page_id is not None


def resolver(finder: CandidateFinder | None) -> Resolve:
    """What titles end at."""
    if finder is None:
        return page_title
    targets = finder.targets

    def resolve(title: str) -> str | None:
        target = targets.get(page_title(title))
        return target.title if target else None

    return resolve


# Scores


def disambiguation_scores(pairs: Sequence[Pair], finder: CandidateFinder | None) -> Figures:
    """Of the gold mentions in the knowledge base how many have the right title.

    Beside that, by the candidates of their texts: how many could have it (`candidate_recall`), and how many the
    commonest candidate is right for (`prior`). Ambiguous are those with two candidates or more, the right one among
    them.
    """
    rows = []
    for pair in pairs:
        answers = {(each.start, each.end): each.title for each in pair.found}
        known = [each for each in pair.gold if each.title]
        texts = [pair.text[each.start : each.end] for each in known]
        candidates = (
            finder.of_document(texts, longer=False, without=pair.without)
            if finder
            else [NOTHING] * len(known)
        )
        for each, of_each in zip(known, candidates, strict=True):
            titles = [one.title for one in of_each.items]
            is_right = answers.get((each.start, each.end)) == each.title
            rows.append((is_right, each.title in titles, titles[:1] == [each.title], len(titles) > 1))
    figures = {"overall": shares_of(rows, finder)}
    if finder:
        figures["ambiguous"] = shares_of([row for row in rows if row[1] and row[3]], finder)
    return figures


def shares_of(rows: Sequence[tuple[bool, bool, bool, bool]], finder: CandidateFinder | None) -> Figures:
    """Of mentions (right, reachable, right by the prior, several candidates) the shares of the first three."""
    names = ("accuracy", "candidate_recall", "prior") if finder else ("accuracy",)
    counts = {name: sum(row[number] for row in rows) for number, name in enumerate(names)}
    return {"mentions": len(rows)} | {
        name: count / len(rows) if rows else 0.0 for name, count in counts.items()
    }


def calibration_of(pairs: Iterable[Pair]) -> Figures:
    """How well probabilities say what is right, by `reliability`.

    Of gold mentions in the knowledge base those count whose place has an answer with a page and a probability. So
    mentions without candidates do not count, nor those that were left without a page for a low probability.
    """
    rows = []
    for pair in pairs:
        answers = {(each.start, each.end): each.title for each in pair.found}
        for each in pair.gold:
            place = each.start, each.end
            if each.title and answers.get(place) and place in pair.probabilities:
                rows.append((pair.probabilities[place], answers[place] == each.title))
    return reliability([row[0] for row in rows], [row[1] for row in rows])


def linking_scores(pairs: Sequence[Pair]) -> Figures:
    """Precision, recall and F1 of links: those of the right place and title, micro, and macro over documents.

    neleval's `strong_link_match`. A link at a mention whose title is not in the knowledge base is wrong. In the macro
    scores a document without gold links, or without links found, has the recall or the precision 0; one without any
    mention does not count.
    """
    counts = []
    for pair in (each for each in pairs if each.gold or each.found):
        gold, found = links_of(pair.gold), links_of(pair.found)
        counts.append((len(gold), len(found), len(gold & found)))
    each = [precision_recall_f1(*row) for row in counts]
    names = ("precision", "recall", "f1")
    return {
        "micro": precision_recall_f1(*(sum(row[place] for row in counts) for place in range(3))),
        "macro": {name: sum(one[name] for one in each) / max(1, len(each)) for name in names},
    }


def links_of(mentions: Iterable[Mention]) -> set[Link]:
    """The mentions that have a title."""
    return {(each.start, each.end, each.title) for each in mentions if each.title}
