"""Entity linking, for the report: its scores, and documents to read with their links.

The documents are a sample of those with mentions, the ones whose ids have the smallest hashes, and the beginning of
each: what is shown is bounded, however many there are.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from operator import itemgetter
from typing import Any

from pipeline import storage
from pipeline.lookup.mentions import MentionTable
from tasks.io.records import Record
from tasks.io.windows import without_overlaps
from tasks.linking.candidates import NO_LINKS, CandidateFinder
from tasks.linking.documents.document import Mention
from tasks.linking.documents.json_lines import read_document
from tasks.linking.scores.pairs import resolver
from workflows.base.stage import Stage
from workflows.report.training_curves import read_lines

STAGE = "EvaluateLinking"
SCORES, GOLD, ANSWERS = "scores.json", "documents.jsonl", "answers.jsonl"
LINKED_TEXTS = "linked"  # their place in the page
DOCUMENTS = 8
CHARACTERS = 4000  # shown of a document
MENTIONS = 200  # shown of a document
CANDIDATES = 5  # shown of a mention, and the right one
Line = Mapping[str, Any]
Place = tuple[int, int]
Resolve = Callable[[Mention], str | None]
"""The title of a mention's page, after redirects; None where it has none, or one that the dump lacks."""

# The outcomes for a mention.
RIGHT, WRONG = "right", "wrong"
MISSED = "missed"  # the gold document has a link here
EXTRA = "extra"  # the gold document has no link here
UNLINKED = "unlinked"  # nor has the gold document a link here to a page that the dump knows


def linked_texts(stages: Mapping[str, Stage]) -> dict[str, Any] | None:
    """Documents to read with their links, for the page alone; None where none were linked."""
    if STAGE not in stages:
        return None
    folder, table = stages[STAGE].folder, MentionTable(stages["BuildMentionTable"].folder)
    gold, answers = (storage.join(folder, name) for name in (GOLD, ANSWERS))
    return linked_documents(gold, answers, partial(resolvers, CandidateFinder(table)))


def resolvers(finder: CandidateFinder, lines: Sequence[Line]) -> list[Resolve]:
    """For each gold document where its mentions end, as it was scored: a page's own links do not make a title known."""
    own = iter(finder.own_links([read_document(Record(line["id"], line), 0) for line in lines if line["of_dump"]]))
    return [resolver(finder, next(own) if line["of_dump"] else NO_LINKS) for line in lines]


def linked_documents(
    documents: str, answers: str, resolvers: Callable[[Sequence[Line]], Sequence[Resolve]]
) -> dict[str, Any]:
    """Documents to read (`shown_document`), with their links beside the gold ones.

    `documents` and `answers` are files of gold documents and of the answers to them, with candidates; `resolvers` says
    for each of some gold documents where its mentions end. Return how many documents it is `of`, the `characters` that
    are shown of one at most, and the `documents`.
    """
    ranked = ((sha256(line["id"].encode()).digest(), line) for line in read_lines(documents) if line["mentions"])
    chosen = [line for _, line in heapq.nsmallest(DOCUMENTS, ranked, key=itemgetter(0))]
    chosen.sort(key=lambda line: line["of_dump"])  # the user's own first
    names = {line["id"] for line in chosen}
    found = {line["id"]: line for line in read_lines(answers) if line.get("id") in names}
    pairs = zip(chosen, resolvers(chosen), strict=True)
    shown = [shown_document(line, found.get(line["id"], {}), resolve) for line, resolve in pairs]
    total = sum(1 for _ in read_lines(documents))
    return {"of": total, "characters": CHARACTERS, "documents": shown}


def shown_document(gold: Line, answer: Line, resolve: Resolve) -> dict[str, Any]:
    """A document to read.

    `gold` has `set`, `id`, `text` and `mentions` of `start`, `end`, `title` and, where they have them, `qid` and
    `optional`; `answer` has the `mentions` that were answered, or nothing. An optional mention is not shown, and
    neither is the answer to it, as neither is scored. Return `set` and `id`, the `text` as [text, or [mention, number
    of it], ...], the `mentions` (`shown_mention`), how many are `left_out` as they lie across others, and how many
    characters are `cut` behind the text that is shown.
    """
    links: dict[Place, Line] = {(each["start"], each["end"]): each for each in answer.get("mentions", ())}
    given = [((each["start"], each["end"]), each) for each in gold["mentions"]]
    golds: dict[Place, Line] = {place: each for place, each in given if not each.get("optional")}
    for optional in {place for place, _ in given} - golds.keys():
        links.pop(optional, None)
    places = sorted({*links, *golds})
    size = min(len(gold["text"]), CHARACTERS)
    if len(places) > MENTIONS:
        size = min(size, places[MENTIONS][0])
    inside = [place for place in places if place[1] <= size]
    kept = without_overlaps(sorted(inside, key=lambda place: (place not in links, place)))
    mentions = [shown_mention(links.get(place), golds.get(place), resolve) for place in kept]
    return {
        "set": gold["set"],
        "id": gold["id"],
        "text": pieces(gold["text"][:size], kept),
        "mentions": mentions,
        "left_out": len(inside) - len(kept),
        "cut": len(gold["text"]) - size,
    }


def pieces(text: str, places: Sequence[Place]) -> list[str | list[Any]]:
    """A text cut at places in it: text, or [text, number of the place]."""
    parts: list[str | list[Any]] = []
    at = 0
    for number, (start, end) in enumerate(places):
        parts += [text[at:start], [text[start:end], number]]
        at = end
    return list(filter(None, [*parts, text[at:]]))


def shown_mention(link: Line | None, gold: Line | None, resolve: Resolve) -> dict[str, Any]:
    """A mention of a document to read: the answer, None where none was found, and the gold mention at the same place.

    Return its `kind`; the `title` that was given, with its `probability`; the `gold` title, after redirects; whether
    the dump `lacks` that page; how many candidates it is `of`; and as `candidates` [title, probability, prior, whether
    it is the gold one] of the likeliest and the gold one.
    """
    title, probability = (link["title"], link["probability"]) if link else (None, None)
    wanted = Mention(gold["start"], gold["end"], gold["title"], gold.get("qid")) if gold else None
    known = resolve(wanted) if wanted else None
    page = wanted and wanted.page_label
    candidates = sorted(link.get("candidates", ()) if link else (), key=lambda each: -each["probability"])
    shown = [each for at, each in enumerate(candidates) if at < CANDIDATES or each["title"] == known]
    return {
        "kind": outcome(title, gold is not None, known),
        "title": title,
        "probability": probability,
        "gold": known or page,
        "lacks": bool(page) and known is None,
        "of": len(candidates),
        "candidates": [
            [each["title"], each["probability"], each.get("prior"), each["title"] == known] for each in shown
        ],
    }


def outcome(title: str | None, is_marked: bool, known: str | None) -> str:
    """The outcome for a mention that got this title, or None for no page, as it is scored.

    A mention that `is_marked` is one of the gold document, whose title is `known` unless the dump does not know it.
    """
    if title is None:
        return MISSED if known else UNLINKED
    if not is_marked:
        return EXTRA
    return RIGHT if title == known else WRONG
