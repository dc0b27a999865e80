"""Scores of linked documents: disambiguation of gold mentions, and linking by strong match, as neleval defines them.

A gold mention is in the knowledge base where it has a page that the dump has, after redirects: by its QID where the
mention table knows QIDs, else by its title. Where no table is given, every title counts, as it is written.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path

from pipeline.lookup.names import page_title
from tasks.io.metrics import precision_recall_f1
from tasks.linking.candidates import NO_LINKS, CandidateFinder
from tasks.linking.certainty import Figures, error_interval, reliability
from tasks.linking.documents.document import Document, Mention, Skipped
from tasks.linking.documents.reading import read_answers, read_documents
from tasks.linking.scores.disambiguation import disambiguation_scores
from tasks.linking.scores.pairs import Pair, annotated, resolver, scored

Link = tuple[int, int, str]  # start, end and title
EXAMPLES = 10


def score_files(
    gold: Path,
    predictions: Path,
    finder: CandidateFinder | None = None,
    *,
    leaves_out_pages: bool = False,
    own_links: bool = False,
    first_new: int | None = None,
    left_out: Skipped | None = None,
) -> Figures:
    """The scores of the answers of `link` to the documents of a file.

    Args:
        gold: documents in any of the formats.
        predictions: what `link` wrote, or any documents of the same ids and texts.
        finder: of candidates; without one titles are compared as they are, and there is no recall of candidates.
        leaves_out_pages: leave out the documents whose id is the title of a page of the dump.
        own_links: the documents are pages of the finder's dump; what each links itself is not counted for it.
        first_new: id of the first entity that an update has added; such entities are scored apart, too.
        left_out: see `read_documents`; of the gold documents.

    Raises:
        ValueError: naming file and line of what cannot be read, and for answers to other documents.
    """
    documents = read_documents(gold, left_out)
    answers, failed = read_answers(predictions, documents, left_out)
    kept = [each for each in documents if not (leaves_out_pages and is_page(each.id, finder))]
    if not kept:
        raise ValueError(
            f"{gold}: all {len(documents):,} documents have the title of a page of the dump as id, and are left out; "
            "give others, or leave out --leave-out-pages"
        )
    resolve = resolver(finder)
    if finder is None and not any(each.title for mentions in answers.values() for each in mentions):
        resolve = attrgetter("page")  # ELEVANT's answers have QIDs alone
    own = finder.own_links(kept) if finder and own_links else [NO_LINKS] * len(kept)
    pairs = [Pair.of(each, answers.get(each.id, ()), resolve, without) for each, without in zip(kept, own, strict=True)]
    unknown = unknown_mentions(kept, pairs)
    titles = Counter(mention.page_label for mention in unknown)
    return {
        "documents": len(kept),
        "documents_of_pages": len(documents) - len(kept),
        "documents_without_answer": sum(each.id not in answers for each in kept),
        "answers_with_error": failed,
        "mentions": mention_counts(kept, len(unknown)),
        "titles_not_in_dump": dict(sorted(titles.items(), key=lambda pair: (-pair[1], pair[0]))[:EXAMPLES]),
        "without_page": without_page(pairs),
        "disambiguation": disambiguation_scores(pairs, finder, first_new),
        "linking": linking_scores(pairs),
        "calibration": calibration_of(pairs),
    }


def mention_counts(documents: Sequence[Document], unknown: int) -> Figures:
    """Return how many gold mentions there are; `unknown` of them have a page that the dump lacks."""
    mentions = [mention for each in documents for mention in scored(each)]
    titled = sum(bool(mention.page) for mention in mentions)
    return {
        "gold": len(mentions),
        "in_knowledge_base": titled - unknown,
        "without_title": len(mentions) - titled,
        "title_not_in_dump": unknown,
        "optional": sum(len(annotated(each, each.mentions or ())) for each in documents) - len(mentions),
    }


def unknown_mentions(documents: Sequence[Document], pairs: Sequence[Pair]) -> list[Mention]:
    """The gold mentions whose page the dump lacks."""
    return [
        mention
        for document, pair in zip(documents, pairs, strict=True)
        for mention, known in zip(scored(document), pair.gold, strict=True)
        if mention.page and not known.title
    ]


def is_page(identity: str, finder: CandidateFinder | None) -> bool:
    """Return whether a document's id is the title of a page of the dump, or of a redirect to one."""
    target = finder.targets.get(page_title(identity)) if finder else None
    return target is not None and target.page_id is not None


def without_page(pairs: Sequence[Pair]) -> dict[str, int]:
    """Return how many gold mentions in the knowledge base are answered without a page, by the reason."""
    found = Counter[str]()
    for pair in pairs:
        reasons = {(each.start, each.end): each.reason for each in pair.found if each.reason}
        places = [(each.start, each.end) for each in pair.gold if each.title]
        found.update(reasons[place] for place in places if place in reasons)
    return dict(sorted(found.items()))


def calibration_of(pairs: Iterable[Pair]) -> Figures:
    """Return how well probabilities say what is right, by `reliability`, and the error's interval over documents.

    Of gold mentions in the knowledge base those count whose place has an answer with a page and a probability. So
    mentions without candidates do not count, nor those that were left without a page for a low probability.
    """
    rows = []
    for number, pair in enumerate(pairs):
        answers = {(each.start, each.end): each for each in pair.found}
        for each in pair.gold:
            answer = answers.get((each.start, each.end))
            if each.title and answer and answer.title and answer.probability is not None:
                rows.append((number, answer.probability, answer.title == each.title))
    documents, confidences, is_right = zip(*rows, strict=True) if rows else ((), (), ())
    interval = error_interval(documents, confidences, is_right)
    return {**reliability(confidences, is_right), "expected_calibration_error_interval": interval}


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
