"""The shares of gold mentions that have the right title, with intervals over documents."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.linking.candidates import NOTHING, CandidateFinder
from tasks.linking.certainty import Figures, Floats
from tasks.linking.guesses import NONE, STEPS
from tasks.linking.scores.pairs import Pair


class Outcome(NamedTuple):
    """A gold mention in the knowledge base: its document's number, and whether it is right, could be, and is so by the
    prior; whether it has several candidates; the step that has found the page of its answer; its page's entity.
    """

    document: int
    is_right: bool
    is_reachable: bool
    is_right_by_prior: bool
    has_several: bool
    step: str
    entity_id: int | None


def disambiguation_scores(
    pairs: Sequence[Pair], finder: CandidateFinder | None, first_new: int | None = None
) -> Figures:
    """Of the gold mentions in the knowledge base how many have the right title.

    Beside that, by the candidates of their texts: how many could have it (`candidate_recall`), and how many the
    commonest candidate is right for (`prior`). Ambiguous are those with two candidates or more, the right one among
    them. `steps` have how many answers are right by the look-up that has found their page. With `first_new` mentions of
    entities from that id on are scored apart (`new`), and those of the earlier ones (`earlier`).
    """
    rows = [row for number, pair in enumerate(pairs) for row in outcomes(number, pair, finder)]
    figures = {"overall": shares_of(rows, finder)}
    if finder:
        figures["ambiguous"] = shares_of([row for row in rows if row.is_reachable and row.has_several], finder)
        counts, right = (Counter(row.step for row in some) for some in (rows, [r for r in rows if r.is_right]))
        if first_new is not None:
            known = [(row.entity_id, row) for row in rows if row.entity_id is not None]
            figures["earlier"] = shares_of([row for entity, row in known if entity < first_new], finder)
            figures["new"] = shares_of([row for entity, row in known if entity >= first_new], finder)
        figures["steps"] = {step: {"mentions": counts[step], "right": right[step]} for step in STEPS if counts[step]}
    return figures


def outcomes(number: int, pair: Pair, finder: CandidateFinder | None) -> Iterator[Outcome]:
    """The outcomes of a document's gold mentions; without a finder they have no candidates."""
    answers = {(each.start, each.end): each.title for each in pair.found}
    candidates = finder.of_document(pair.names, pair.without) if finder else [NOTHING] * len(pair.names)
    found = dict(zip(pair.names, candidates, strict=True))
    for each in pair.gold:
        if not each.title:
            continue
        of_each, answer = found[pair.text[each.start : each.end]], answers.get((each.start, each.end))
        titles = [one.title for one in of_each.items]
        target = finder.targets.get(each.title) if finder else None
        yield Outcome(
            number,
            answer == each.title,
            each.title in titles,
            titles[:1] == [each.title],
            len(titles) > 1,
            of_each.step_of(titles.index(answer)) if answer in titles else NONE,
            target.entity_id if target else None,
        )


def shares_of(rows: Sequence[Outcome], finder: CandidateFinder | None) -> Figures:
    """Of mentions the shares that are right, reachable, and right by the prior; the first two with their intervals."""
    figures: Figures = {"mentions": len(rows)}
    documents = np.array([row.document for row in rows], np.int64)
    names = ("accuracy", "candidate_recall", "prior") if finder else ("accuracy",)
    for place, name in enumerate(names, 1):
        values = np.array([row[place] for row in rows], np.float64)
        figures[name] = float(values.mean()) if rows else 0.0
        if name != "prior":
            figures[f"{name}_interval"] = interval_of(documents, values)
    return figures


def interval_of(documents: NDArray[np.int64], values: Floats) -> list[float] | None:
    """The interval of 95 % around a mean over mentions whose documents are drawn; None for less than two documents.

    It is that of a ratio of sums over documents (Cochran, Sampling Techniques, 1977, section 2.11), inside of 0 to 1.
    """
    _, rows = np.unique(documents, return_inverse=True)
    counts = np.bincount(rows)
    if len(counts) < 2:
        return None
    mean = values.mean()
    residuals = np.bincount(rows, values) - mean * counts
    error = 1.96 * math.sqrt(len(counts) / (len(counts) - 1) * math.fsum(residuals**2)) / len(values)
    return [max(0.0, float(mean - error)), min(1.0, float(mean + error))]
