"""Chooses what turns a linker's scores into probabilities, by documents with titles: `calibrate`.

The likeliest values are taken. The likelihood of a mention whose page is a candidate is that candidate's probability.
Where the page is no candidate, or not in the dump, it is the probability of none of these.
So the discount depends on how often the page is a candidate, and prior weight and temperature on which one it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tasks.entities.candidates import NO_LINKS, Asked, Candidates, OwnLinks
from tasks.entities.certainty import UNCALIBRATED, Certainty, Figures, Floats, reliability
from tasks.entities.documents.document import Document
from tasks.entities.linker import Linker
from tasks.entities.scores import resolver
from tasks.finetuning.calibration import fit_temperature, least, losses
from tasks.task import Choices

LARGEST_WEIGHT = 50.0  # of the prior: early in training logits are large, and say little
Row = tuple[str | None, Candidates, Floats | list[float]]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Mentions that have candidates, and what was right.

    Attributes:
        shares: (mentions, candidates) as the linker gave them, at temperature 1; 0 behind a mention's own.
        log_priors: (mentions, candidates) the logarithms of the priors; 0 behind a mention's own.
        is_right: (mentions, candidates) at most one of a mention.
        links: (mentions) of the mention's text.
        sizes: (mentions) how many candidates there are.
        known: how many mentions have a page in the knowledge base, those without candidates included.
        total: how many mentions there are.
    """

    shares: Floats
    log_priors: Floats
    is_right: NDArray[np.bool_]
    links: NDArray[np.int64]
    sizes: NDArray[np.int64]
    known: int
    total: int

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Outcomes":
        """Of the page of each mention (None: in no knowledge base), its candidates and their shares."""
        some = [row for row in rows if row[1].items]
        sizes = np.array([len(found.items) for _, found, _ in some], np.int64)
        is_own = np.arange(max(sizes, default=0)) < sizes[:, None]
        shares, log_priors, is_right = np.zeros(is_own.shape), np.zeros(is_own.shape), np.zeros_like(is_own)
        shares[is_own] = [each for _, _, of_each in some for each in of_each]
        log_priors[is_own] = np.log([each.prior for _, found, _ in some for each in found.items])
        is_right[is_own] = [each.title == title for title, found, _ in some for each in found.items]
        links = np.array([found.links for _, found, _ in some], np.int64)
        known = sum(title is not None for title, _, _ in rows)
        return cls(shares, log_priors, is_right, links, sizes, known, len(rows))

    def reached(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Logarithms of shares and of priors, and what is right, where a candidate is right and has others beside."""
        rows = self.is_right.any(axis=1) & (self.sizes > 1)
        with np.errstate(divide="ignore"):
            return np.log(self.shares[rows]), self.log_priors[rows], self.is_right[rows]

    def answers(self, certainty: Certainty) -> tuple[Floats, NDArray[np.bool_]]:
        """(mentions): the probability of the best candidate, and whether it is right."""
        rows = zip(self.shares, self.sizes, self.links, strict=True)
        found = [certainty.probabilities(each[:size], int(links)) for each, size, links in rows]
        best = np.array([int(each.argmax()) for each in found], np.int64)
        right = self.is_right[np.arange(len(best)), best]
        return np.array([each.max() for each in found]), right


def calibrate(
    linker: Linker,
    documents: Sequence[Document],
    *,
    own_links: bool = False,
    min_probability: float | None = None,
    at_once: int = 256,
) -> tuple[Certainty, Figures]:
    """The certainty of a linker's answers, and how it came about.

    With a model the mentions are scored twice. The first pass tells the prior weight. All else is told by the second,
    which has that weight: globally a mention's scores depend on it, by the answers to the others.

    Args:
        linker: its certainty is not asked.
        documents: with titles.
        own_links: whether they are pages of the table's dump, whose links are taken out of the candidates.
        min_probability: the threshold; None: that of the best F1.
        at_once: so many documents are scored together.

    Raises: ValueError where nothing can be learnt from the documents.
    """
    own = linker.finder.own_links(documents) if own_links else [NO_LINKS] * len(documents)
    linker = replace(linker, certainty=UNCALIBRATED)
    outcomes = observe(linker, documents, own, at_once)
    if not outcomes.is_right.any():
        raise ValueError(
            f"no mention of {outcomes.total:,} has its page among its candidates; give documents of the table's wiki"
        )
    if linker.model:
        linker = replace(linker, certainty=Certainty(prior_weight=fit_weight(outcomes)))
        outcomes = observe(linker, documents, own, at_once)
    scores, _, is_right = outcomes.reached()
    certainty = replace(
        linker.certainty, temperature=at_best(scores, is_right)[0], discount=fit_discount(outcomes)
    )
    if min_probability is None:
        min_probability = best_threshold(*outcomes.answers(certainty), outcomes.known)
    certainty = replace(certainty, min_probability=min_probability)
    before = reliability(*outcomes.answers(linker.certainty))
    return certainty, {
        "documents": len(documents),
        "own_links_left_out": own_links,
        **figures_of(outcomes, certainty),
        "expected_calibration_error_before": before["expected_calibration_error"],
    }


def figures_of(outcomes: Outcomes, certainty: Certainty) -> Figures:
    """What there is to be told of mentions, and how good the answers are with this certainty."""
    probabilities, right = outcomes.answers(certainty)
    kept = probabilities >= certainty.min_probability
    return {
        "mentions": outcomes.total,
        "in_knowledge_base": outcomes.known,
        "with_candidates": len(outcomes.sizes),
        "right_among_candidates": int(outcomes.is_right.any(axis=1).sum()),
        "f1": 2 * int(right[kept].sum()) / (int(kept.sum()) + outcomes.known),
        "expected_calibration_error": reliability(probabilities, right)["expected_calibration_error"],
    }


def observe(linker: Linker, documents: Sequence[Document], own: Sequence[OwnLinks], at_once: int) -> Outcomes:
    """What the linker says of the mentions of documents, whose own links are not counted."""
    resolve, rows = resolver(linker.finder), list[Row]()
    for first in range(0, len(documents), at_once):
        part = slice(first, first + at_once)
        asked = []
        for document, without in zip(documents[part], own[part], strict=True):
            mentions = document.mentions or ()
            texts = [document.text[each.start : each.end] for each in mentions]
            found = linker.finder.of_document(texts, longer=linker.longer_mentions, without=without)
            asked.append(Asked(document.text, mentions, found))
        for each, without, of_each in zip(asked, own[part], linker.shares(asked), strict=True):
            for mention, candidates, shares in zip(each.mentions, each.candidates, of_each, strict=True):
                title = resolve(mention.title) if mention.title else None
                rows.append((None if title in without.alone else title, candidates, shares))
    return Outcomes.of(rows)


# The likeliest values


def fit_weight(outcomes: Outcomes) -> float:
    """The likeliest prior weight, whichever the temperature, where the scores were taken with the weight 1.

    It stays 1 where no mention has its page among several candidates.
    """
    scores, log_priors, is_right = outcomes.reached()
    if not len(scores):
        return UNCALIBRATED.prior_weight

    def weight_of(part: float) -> float:
        return part / (1 - part)  # of the prior, where all of the scores are 1

    def loss(parts: list[float]) -> Floats:
        weights = map(weight_of, parts)
        return np.array([at_best(scores + (weight - 1) * log_priors, is_right)[1] for weight in weights])

    return round(weight_of(least(loss, 0.0, LARGEST_WEIGHT / (1 + LARGEST_WEIGHT))), 2)


def at_best(scores: Floats, is_right: NDArray[np.bool_]) -> tuple[float, float]:
    """The likeliest temperature, and the negative log likelihood that it has; 1 and 0 where there are no mentions."""
    if not len(scores):
        return UNCALIBRATED.temperature, 0.0

    def choices() -> list[Choices]:
        return [(scores, is_right)]

    temperature = fit_temperature(choices)
    return temperature, float(losses(choices, [temperature])[0])


def fit_discount(outcomes: Outcomes) -> float:
    """The likeliest discount, by which mentions have their page among the candidates; 0 where all have."""
    is_reached = outcomes.is_right.any(axis=1)
    candidates_per_link = outcomes.sizes / np.maximum(outcomes.links, outcomes.sizes)
    of_candidates = np.minimum(outcomes.shares.sum(axis=1), 1.0)

    def loss(discounts: list[float]) -> Floats:
        found = of_candidates * (1 - np.outer(discounts, candidates_per_link))
        with np.errstate(divide="ignore"):
            return -np.log(np.where(is_reached, found, 1 - found)).sum(axis=1)

    return round(least(loss, 0.0, 1.0, 1e-4), 3)


def best_threshold(probabilities: Floats, is_right: NDArray[np.bool_], known: int) -> float:
    """The threshold of the best F1, the lowest of those: between the last answer that is given and the next.

    Args:
        probabilities, is_right: (mentions) of the best candidates.
        known: mentions whose page is in the knowledge base.
    """
    order = np.argsort(-probabilities, kind="stable")
    ranked, right = probabilities[order], is_right[order].cumsum()
    is_last = np.append(ranked[1:] < ranked[:-1], True)  # answers of one probability are given together
    f1 = np.where(is_last, 2 * right / (np.arange(len(right)) + 1 + known), -1.0)
    best = len(f1) - 1 - int(f1[::-1].argmax())
    return 0.0 if best == len(f1) - 1 else float(ranked[best] + ranked[best + 1]) / 2
