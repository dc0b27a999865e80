"""EvaluateLinking: annotated documents in; what a model answers to their mentions, and how often that is right, out.

Of a page of the table's own dump the links of its own are not counted, neither for its candidates nor for its prior: it
is linked as a page that the dump has never had. Some held-out pages are not asked: they choose what turns scores into
probabilities, for each method.
"""

import hashlib
import heapq
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from pipeline import storage
from tasks.io.records import Record
from tasks.linking.calibration.calibration import calibrate, in_contexts
from tasks.linking.calibration.outcomes import NothingToLearnError
from tasks.linking.candidates import CandidateFinder, OwnLinks
from tasks.linking.certainty import Figures, write_certainty
from tasks.linking.documents.document import Document, to_json
from tasks.linking.documents.reading import read_documents
from tasks.linking.linker import GLOBAL, LOCAL, PRIOR, Linker, basis_of
from tasks.linking.open import CALIBRATION, with_certainty
from tasks.linking.scores.scores import is_page, score_files

DOCUMENTS, ANSWERS, SCORES = "documents.jsonl", "answers.jsonl", "scores.json"
HELD_OUT_PAGES = "held-out pages"
CONTEXTS = "contexts"
METHODS = (PRIOR, CONTEXTS, LOCAL, GLOBAL)
AT_ONCE = 16  # documents that are answered together, and kept when the work is stopped
_PARTS = "parts"  # where they are kept


class EvaluationSettings(NamedTuple):
    """The documents to link."""

    held_out: Path  # the file of BuildDocuments
    gold: Path | None  # one of the user's
    most: int  # how many documents of each are asked; as many held-out pages choose
    leaves_out_pages: bool  # whether those of `gold` go whose id is the title of a page
    first_new: int | None = None  # entities from this id on, which an update has added, are scored apart, too


@dataclass(frozen=True)
class GoldSet:
    """A set of gold documents."""

    name: str  # that of the file, or says that these are held-out pages
    documents: Sequence[Document]  # no two of all sets have one id
    of: int  # how many there were to choose from
    left_out: int = 0  # beside these, as pages of the dump
    is_of_dump: bool = False


def build(
    folder: str,
    linker: Linker,
    settings: EvaluationSettings,
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> storage.Result:
    """Write a calibration for each method, the documents that are asked, the global answers with all candidates, and
    the scores of all methods.

    What an earlier attempt has left in the folder is taken over.
    """
    sets, pages = gold_sets(settings, linker.finder)
    # In a damaged dump another page may have the title of one that is held out.
    choosing = [each for each in pages if not in_contexts(linker, each)]
    done, total = 0, len(METHODS) * (len(choosing) + sum(len(each.documents) for each in sets))

    def tell(documents: int) -> None:
        nonlocal done
        done += documents
        progress(done, total)

    methods = linkers(linker)
    certain = calibrated(methods, choosing, folder, tell)
    parts, scores, answers = storage.join(folder, _PARTS), list[Figures](), b""
    for number, each in enumerate(sets):
        found = answered({**methods, **certain}, each, storage.join(parts, str(number)), tell)
        scores.append(score(each, found, linker.finder, settings.first_new))
        answers += found[GLOBAL]
    content = {"calibrated_by": len(choosing) if certain else 0, "sets": scores}
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    documents = b"".join(lines_of(each, map(to_json, each.documents)) for each in sets)
    written = {DOCUMENTS: documents, ANSWERS: answers, SCORES: text.encode()}
    for name, data in written.items():
        storage.write_bytes(storage.join(folder, name), data)
    shutil.rmtree(parts, ignore_errors=True)
    asked = [document for each in sets for document in each.documents]
    drops = {
        "documents:over_limit": sum(each.of - len(each.documents) for each in sets),
        "documents:of_pages": sum(each.left_out for each in sets),
        "documents:in_contexts": len(pages) - len(choosing),
    }
    files = sorted([*written, *(f"{CALIBRATION}/{method}.json" for method in certain)])
    return storage.Result(
        tuple(storage.describe(folder, name) for name in files),
        rows={"documents": len(asked), "mentions": sum(len(each.mentions or ()) for each in asked)},
        drops=dict(+Counter(drops)),
    )


# Documents


def gold_sets(settings: EvaluationSettings, finder: CandidateFinder) -> tuple[list[GoldSet], list[Document]]:
    """The sets of documents, those without any left out; and the held-out pages that choose, half of them at most.

    Raises: ValueError where the documents of `gold` cannot be read, or are all left out.
    """
    sets, choosing = [], list[Document]()
    if settings.held_out.stat().st_size:
        pages = read_documents(settings.held_out)
        asked = sample(pages, min(settings.most, -(-len(pages) // 2)))
        ids = {each.id for each in asked}
        choosing = sample([each for each in pages if each.id not in ids], settings.most)
        sets.append(GoldSet(HELD_OUT_PAGES, asked, len(pages) - len(choosing), is_of_dump=True))
    if settings.gold:
        documents = read_documents(settings.gold)
        kept = [each for each in documents if not (settings.leaves_out_pages and is_page(each.id, finder))]
        if not kept:
            raise ValueError(
                f"linking.gold {settings.gold}: the ids of all {len(documents):,} documents are titles of pages of "
                "the dump; give others, or leave out linking.leave_out_pages"
            )
        taken = {each.id for of in sets for each in of.documents}
        chosen = with_distinct_ids(sample(kept, settings.most), taken, settings.gold.name)
        sets.append(GoldSet(settings.gold.name, chosen, len(kept), len(documents) - len(kept)))
    return sets, choosing


def sample(documents: Sequence[Document], most: int) -> list[Document]:
    """So many documents, those whose ids have the smallest hashes, in their order."""

    def rank(place: int) -> bytes:
        return hashlib.blake2b(documents[place].id.encode(), digest_size=8).digest()

    return [documents[place] for place in sorted(heapq.nsmallest(most, range(len(documents)), key=rank))]


def with_distinct_ids(documents: Sequence[Document], taken: Collection[str], name: str) -> list[Document]:
    """The documents with other ids where theirs are taken: "Ann" of the file a.xml becomes "Ann (a.xml)"."""
    ids = {*taken, *(each.id for each in documents)}
    found = []
    for each in documents:
        identity = each.id
        while identity in taken or (identity != each.id and identity in ids):
            identity += f" ({name})"
        found.append(replace(each, id=identity))
    return found


# Answers and scores


def linkers(linker: Linker) -> dict[str, Linker]:
    """Return what answers, by method."""
    return {
        PRIOR: replace(linker, model=None, contexts=None),
        CONTEXTS: replace(linker, model=None),
        LOCAL: replace(linker, is_global=False),
        GLOBAL: replace(linker, is_global=True, shows_candidates=True),
    }


def calibrated(
    methods: Mapping[str, Linker], choosing: Sequence[Document], folder: str, tell: Callable[[int], None]
) -> dict[str, Linker]:
    """Return linkers that always answer, with the certainty that these pages choose; none where they tell nothing.

    The certainty of each method is a file of the folder that `link` takes. One that is there is taken over. Globally
    the weights are those of the local way.
    """
    found = dict[str, Linker]()
    for method, linker in methods.items():
        path = Path(folder, CALIBRATION, f"{method}.json")
        if not path.exists():
            weights = found[LOCAL].certainty if method == GLOBAL else None
            try:
                certainty, fit = calibrate(linker, choosing, own_links=True, weights=weights, at_once=AT_ONCE)
            except NothingToLearnError:
                break
            write_certainty(path, certainty, basis_of(linker), fit)
        found[method] = with_certainty(linker, path, min_probability=0.0)
        tell(len(choosing))
    tell(len(choosing) * (len(methods) - len(found)))
    return found


def answered(
    methods: Mapping[str, Linker], asked: GoldSet, folder: str, tell: Callable[[int], None]
) -> dict[str, bytes]:
    """The answers of each method to a set, a document a line; those that are in the folder are taken over."""
    found = dict.fromkeys(methods, b"")
    own = next(iter(methods.values())).finder.own_links(asked.documents) if asked.is_of_dump else None
    for method, linker in methods.items():
        for first in range(0, len(asked.documents), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            path = storage.join(folder, f"{method}-{part.start:06d}-{part.stop:06d}.jsonl")
            if storage.file_size(path) is None:
                storage.write_bytes(path, answer(linker, asked, part, own))
            found[method] += storage.read_bytes(path)
            tell(len(asked.documents[part]))
    return found


def answer(linker: Linker, asked: GoldSet, part: slice, own: Sequence[OwnLinks] | None) -> bytes:
    """Lines of answers to some documents of a set; `own` are the links of all of them that do not count."""
    gold = [to_json(each) for each in asked.documents[part]]
    answers = linker.answer([Record(each["id"], each) for each in gold], own[part] if own else ())
    return lines_of(asked, (each | found for each, found in zip(gold, answers, strict=True)))


def lines_of(asked: GoldSet, documents: Iterable[dict[str, Any]]) -> bytes:
    """Documents of a set as lines of JSON, which also name the set, and say whether they are pages of the dump."""
    named = {"set": asked.name, "of_dump": asked.is_of_dump}
    lines = (json.dumps(named | each, ensure_ascii=False) for each in documents)
    return "".join(f"{line}\n" for line in lines).encode()


def score(asked: GoldSet, answers: Mapping[str, bytes], finder: CandidateFinder, first_new: int | None) -> Figures:
    """The figures of each method for a set, of whose documents these are the answers."""
    with tempfile.TemporaryDirectory() as folder:
        gold, found = Path(folder) / DOCUMENTS, Path(folder) / ANSWERS
        gold.write_bytes(lines_of(asked, map(to_json, asked.documents)))
        methods = {}
        for method, lines in answers.items():
            found.write_bytes(lines)
            methods[method] = score_files(gold, found, finder, own_links=asked.is_of_dump, first_new=first_new)
    return {
        "name": asked.name,
        "of_dump": asked.is_of_dump,
        "documents": len(asked.documents),
        "of": asked.of,
        "methods": methods,
    }
