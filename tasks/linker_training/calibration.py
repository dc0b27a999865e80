"""Chooses what turns a linker's scores into probabilities, by documents with titles: `calibrate`.

The likeliest values are taken, by mentions whose page the dump has. The likelihood of a mention whose page is a
candidate is that candidate's probability. Where it is none, it is the probability of none of these.
So the discount depends on how often the page is a candidate, and weights and temperature on which one it is.
How often the dump lacks a page differs from text to text, so that the threshold alone depends on it.

Texts may differ from these documents in how often another page than the commonest is meant. They tell that without
titles, as classes of new data tell how common they are (Saerens et al., Neural Computation 2002): `fit_uncommon`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.entities.candidates import NO_LINKS, Asked, Candidates, OwnLinks
from tasks.entities.certainty import UNCALIBRATED, Certainty, Figures, Floats, reliability
from tasks.entities.documents.document import Document, page_title
from tasks.entities.linker import Linker
from tasks.entities.scores import resolver
from tasks.finetuning.calibration import fit_temperature, least
from tasks.linker_training.weights import likeliest
from tasks.task import Choices

# Of each part of a score the weight that is expected, and the least one. Early in training a model's logits are large,
# and say little.
WEIGHTS = {"prior": (1.0, 0.02), "contexts": (1.0, 0.0), "model": (1.0, 0.02), "unknown": (0.0, -np.inf)}
MOST_DISCOUNT = 0.99  # each candidate keeps something of its link, so that the best one stays the best
SMALLEST = float(np.log(np.finfo(np.float64).tiny))


class NothingToLearnError(ValueError):
    """No mention of the documents has its page among its candidates."""


class Row(NamedTuple):
    """A mention and what a linker says of it.

    Attributes:
        title: of its page; None: in no knowledge base.
        candidates: of the mention.
        shares: of each candidate.
        contexts: the cosine of each candidate's context with the text; 0 without contexts.
        is_unknown: whether the model does not know a candidate; of none without a model.
    """

    title: str | None
    candidates: Candidates
    shares: Floats | list[float]
    contexts: Floats
    is_unknown: Sequence[bool]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Mentions that have candidates, and what was right.

    Attributes:
        shares: (mentions, candidates) as the linker gave them, at temperature 1; 0 behind a mention's own.
        log_priors, contexts: (mentions, candidates) the logarithms of the priors, and the cosines of the contexts; 0
            behind a mention's own, and where there are no contexts.
        is_unknown: (mentions, candidates) which of them the model does not know; none where there is no model.
        is_right: (mentions, candidates) at most one of a mention.
        is_known: (mentions) whether the page is in the knowledge base.
        links: (mentions) of the mention's text.
        sizes: (mentions) how many candidates there are.
        known: how many mentions have a page in the knowledge base, those without candidates included.
        total: how many mentions there are.
    """

    shares: Floats
    log_priors: Floats
    contexts: Floats
    is_unknown: NDArray[np.bool_]
    is_right: NDArray[np.bool_]
    is_known: NDArray[np.bool_]
    links: NDArray[np.int64]
    sizes: NDArray[np.int64]
    known: int
    total: int

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Outcomes":
        """Of mentions."""
        some = [row for row in rows if row.candidates.items]
        sizes = np.array([len(row.candidates.items) for row in some], np.int64)
        is_own = np.arange(max(sizes, default=0)) < sizes[:, None]

        def filled(values: Iterable[Sequence[Any] | Floats], kind: type) -> NDArray[Any]:
            table: NDArray[Any] = np.zeros(is_own.shape, kind)
            table[is_own] = [each for row in values for each in row]
            return table

        found = [row.candidates for row in some]
        return cls(
            shares=filled((row.shares for row in some), float),
            log_priors=filled((np.log([each.prior for each in of.items]) for of in found), float),
            contexts=filled((row.contexts for row in some), float),
            is_unknown=filled((row.is_unknown for row in some), bool),
            is_right=filled(
                ([each.title == row.title for each in row.candidates.items] for row in some), bool
            ),
            is_known=np.array([row.title is not None for row in some], bool),
            links=np.array([each.links for each in found], np.int64),
            sizes=sizes,
            known=sum(row.title is not None for row in rows),
            total=len(rows),
        )

    def reached(self) -> "Outcomes":
        """Those mentions where a candidate is right, and has others beside."""
        return self.only(self.is_right.any(axis=1) & (self.sizes > 1))

    def only(self, rows: NDArray[np.bool_]) -> "Outcomes":
        """Some of the mentions."""
        parts: dict[str, Any] = {
            name: value[rows] for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        return replace(self, **parts)

    def choices(self) -> Choices:
        """The logarithms of the shares, and what is right."""
        with np.errstate(divide="ignore"):
            return np.log(self.shares), self.is_right

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
    weights: Certainty | None = None,
    min_probability: float | None = None,
    at_once: int = 256,
) -> tuple[Certainty, Figures]:
    """The certainty of a linker's answers, and how it came about.

    With a model or contexts the mentions are scored twice. The first pass is local and tells the weights, since there
    scores are sums of what is weighed. The second has these weights and tells all else: globally a mention's scores
    depend on the answers to the others.

    Args:
        linker: its certainty is not asked.
        documents: with titles.
        own_links: whether they are pages of the table's dump, whose links are taken out of the candidates.
        weights: a certainty that has them, such as that of the same model in the other mode; None: they are chosen.
        min_probability: the threshold; None: that of the best F1.
        at_once: so many documents are scored together.

    Raises: NothingToLearnError; ValueError where the contexts have read the documents.
    """
    if own_links:
        check_held_out(linker, documents)
    own = linker.finder.own_links(documents) if own_links else [NO_LINKS] * len(documents)
    if weights is None and (linker.model or linker.contexts is not None):
        local = replace(linker, certainty=UNCALIBRATED, is_global=False)
        weights = fit_weights(observe(local, documents, own, at_once), has_model=linker.model is not None)
    linker = replace(linker, certainty=weighted(weights or UNCALIBRATED))
    outcomes = observe(linker, documents, own, at_once)
    temperature = at_best(*outcomes.reached().choices())
    known = outcomes.only(outcomes.is_known)
    certainty = replace(linker.certainty, temperature=temperature, discount=fit_discount(known))
    if min_probability is None:
        min_probability = best_threshold(*outcomes.answers(certainty), outcomes.known)
    certainty = replace(certainty, min_probability=min_probability)
    before = reliability(*known.answers(linker.certainty))
    return certainty, {
        "documents": len(documents),
        "own_links_left_out": own_links,
        **figures_of(outcomes, certainty),
        "expected_calibration_error_before": before["expected_calibration_error"],
    }


def weighted(certainty: Certainty) -> Certainty:
    """The weights of a certainty alone."""
    return replace(certainty, temperature=1.0, discount=0.0, min_probability=0.0)


def check_held_out(linker: Linker, documents: Sequence[Document]) -> None:
    """Raises: ValueError naming a page whose own words are in the contexts, which would be weighed for too much."""
    for each in documents:
        if linker.contexts is not None and in_contexts(linker, each):
            raise each.error(
                f"{each.id!r} is a page that {linker.contexts.folder} has read; give pages that are held out, such as "
                "held_out.jsonl of BuildDocuments"
            )


def in_contexts(linker: Linker, page: Document) -> bool:
    """Whether the linker's contexts have read a page of the dump, which is known by its title."""
    target = linker.finder.targets.get(page_title(page.id))
    number = target.page_id if target else None
    return linker.contexts is not None and number is not None and linker.contexts.has_read(number)


def figures_of(outcomes: Outcomes, certainty: Certainty) -> Figures:
    """What there is to be told of mentions, and how good the answers are with this certainty.

    The calibration error is that of mentions whose page is in the knowledge base; that of all stands beside it.
    """
    probabilities, right = outcomes.answers(certainty)
    kept = probabilities >= certainty.min_probability

    def error(rows: NDArray[np.bool_]) -> Any:
        return reliability(probabilities[rows], right[rows])["expected_calibration_error"]

    return {
        "mentions": outcomes.total,
        "in_knowledge_base": outcomes.known,
        "with_candidates": len(outcomes.sizes),
        "right_among_candidates": int(outcomes.is_right.any(axis=1).sum()),
        "f1": 2 * int(right[kept].sum()) / (int(kept.sum()) + outcomes.known),
        "expected_calibration_error": error(outcomes.is_known),
        "expected_calibration_error_of_all": error(np.ones_like(right)),
    }


def observe(linker: Linker, documents: Sequence[Document], own: Sequence[OwnLinks], at_once: int) -> Outcomes:
    """What the linker says of the mentions of documents, whose own links are not counted.

    Raises: NothingToLearnError.
    """
    resolve, rows = resolver(linker.finder), list[Row]()
    for first in range(0, len(documents), at_once):
        part = slice(first, first + at_once)
        asked = [
            linker.ask(document.text, document.mentions or (), without)
            for document, without in zip(documents[part], own[part], strict=True)
        ]
        for each, without, shares in zip(asked, own[part], linker.shares(asked), strict=True):
            ends = [resolve(mention.title) if mention.title else None for mention in each.mentions]
            rows += rows_of(linker, each, [None if end in without.alone else end for end in ends], shares)
    outcomes = Outcomes.of(rows)
    if not outcomes.is_right.any():
        raise NothingToLearnError(
            f"no mention of {outcomes.total:,} has its page among its candidates; give documents of the table's wiki"
        )
    return outcomes


def rows_of(
    linker: Linker, asked: Asked, titles: Sequence[str | None], shares: Sequence[Floats | list[float]]
) -> list[Row]:
    """The mentions of a document, whose pages have these titles, with what the linker says of them."""
    items, row_of = [of.items for of in asked.candidates], linker.model.row_of if linker.model else None
    contexts = asked.contexts or [np.zeros(len(some)) for some in items]
    is_unknown = [[bool(row_of and row_of(each) < 0) for each in some] for some in items]
    return list(map(Row, titles, asked.candidates, shares, contexts, is_unknown))


# The likeliest values


def fit_weights(outcomes: Outcomes, *, has_model: bool) -> Certainty:
    """The likeliest weights, whichever the temperature, where the scores were taken with those of UNCALIBRATED.

    These are expected until mentions say otherwise, and stay where nothing can be told.
    """
    some, start = outcomes.reached(), UNCALIBRATED
    by_contexts = start.context_weight * some.contexts
    parts = {"prior": some.log_priors}
    if some.contexts.any():
        parts["contexts"] = by_contexts
    if has_model:
        log_shares = np.maximum(some.choices()[0], SMALLEST)
        parts["model"] = log_shares - start.prior_weight * (some.log_priors + by_contexts)
    if some.is_unknown.any():
        parts["unknown"] = some.is_unknown.astype(np.float64)
    is_own = np.arange(some.shares.shape[1]) < some.sizes[:, None]
    features = np.stack([*parts.values()], axis=-1)
    expected, lowest = np.array([WEIGHTS[name] for name in parts]).T
    weights = likeliest(features, is_own, some.is_right, expected, lowest).tolist()
    found = dict(zip(parts, weights, strict=True))
    prior, scale = found["prior"], found.get("model", found["prior"])
    return replace(
        start,
        prior_weight=round(prior / scale, 2),
        context_weight=round(start.context_weight * found.get("contexts", prior) / prior, 2),
        unknown_offset=round(found.get("unknown", 0.0) / scale, 2),
    )


def at_best(scores: Floats, is_right: NDArray[np.bool_]) -> float:
    """The likeliest temperature; 1 where there are no mentions."""
    if not len(scores):
        return UNCALIBRATED.temperature
    return fit_temperature(lambda: [(scores, is_right)])


def fit_discount(outcomes: Outcomes) -> float:
    """The likeliest discount, by which of these mentions have their page among the candidates; 0 where all have."""
    is_reached = outcomes.is_right.any(axis=1)
    candidates_per_link = outcomes.sizes / np.maximum(outcomes.links, outcomes.sizes)
    of_candidates = np.minimum(outcomes.shares.sum(axis=1), 1.0)

    def loss(discounts: list[float]) -> Floats:
        found = of_candidates * (1 - np.outer(discounts, candidates_per_link))
        with np.errstate(divide="ignore"):
            return -np.log(np.where(is_reached, found, 1 - found)).sum(axis=1)

    return round(least(loss, 0.0, MOST_DISCOUNT, 1e-4), 3)


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
