"""Fits a linker's calibration, which turns scores into probabilities, on gold documents: `calibrate`.

The likeliest values are taken, by mentions whose page the dump has. The likelihood of a mention whose page is a
candidate is that candidate's probability. Where it is none, it is the probability of none of these.
So the discount depends on how often the page is a candidate, and weights and temperature on which one it is.
How often the dump lacks a page differs from text to text, so that the threshold alone depends on it.
The weights make what is right likeliest: a conditional logit (McFadden, 1974), fitted by L-BFGS-B.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.lookup.names import page_title
from tasks.io.probabilities import fit_temperature, least
from tasks.io.records import Record
from tasks.linking.calibration.outcomes import Outcomes, observe
from tasks.linking.candidates import NO_LINKS, OwnLinks
from tasks.linking.certainty import UNCALIBRATED, Certainty, Figures, Floats, reliability
from tasks.linking.documents.document import Document, Mention
from tasks.linking.linker import Linker
from tasks.linking.scores.pairs import Pair, resolver

# Of each part of a score the weight that is expected, the variance around it, and the least weight. Early in training a
# model's logits are large, and say little.
WEIGHTS = {
    "prior": (1.0, 1 / 16, 0.02),
    "contexts": (1.0, 1 / 16, 0.0),
    "coherence": (1.0, 1 / 16, 0.0),
    "guess": (0.0, 1.0, -np.inf),
    "model": (1.0, 1 / 16, 0.02),
    "unknown": (0.0, 1.0, -np.inf),
}
LEAST_PRIOR = 0.25  # without a model: a few surprising mentions do not silence the counts
MOST_DISCOUNT = 0.99  # each candidate keeps something of its link, so that the best one stays the best
# Documents in which names are found, many times as many as are linked; few of them say little of a threshold.
LEAST_SEARCHED, MOST_SEARCHED = 20, 100
SMALLEST = float(np.log(np.finfo(np.float64).tiny))
_CLOSE = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-7}
Booleans = NDArray[np.bool_]


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

    With a model or contexts the mentions are scored twice. The first pass is local and tells the weights, since
    there scores are sums of what is weighed. The second has these weights and tells all else: globally a mention's
    scores depend on the answers to the others. The linker's own certainty is not asked. With `own_links` the
    documents are pages of the table's dump, whose links are taken out of the candidates. `weights` may come from the
    same model in the other mode; None: they are chosen, as are the thresholds. Raises: NothingToLearnError; ValueError
    where the contexts have read the documents.
    """
    if own_links:
        check_held_out(linker, documents)
    own = linker.finder.own_links(documents) if own_links else [NO_LINKS] * len(documents)
    if weights is None and (linker.model or linker.contexts is not None):
        local = replace(linker, certainty=UNCALIBRATED, is_global=False)
        weights = fit_weights(observe(local, documents, own, at_once), has_model=linker.model is not None)
    plain = {"temperature": 1.0, "discount": 0.0, "guess_discount": 0.0, "min_probability": 0.0}
    linker = replace(linker, certainty=replace(weights or UNCALIBRATED, **plain))
    outcomes = observe(linker, documents, own, at_once)
    reached = outcomes.reached()
    temperature = fit_temperature(lambda: [reached.choices()]) if len(reached.sizes) else 1.0
    known = outcomes.only(outcomes.is_known)
    certainty = replace(linker.certainty, temperature=temperature, **fit_discounts(known))
    if min_probability is None:
        min_probability = best_threshold(*outcomes.answers(certainty), outcomes.known)
    certainty = replace(certainty, min_probability=min_probability)
    certainty = replace(certainty, min_detected=fit_detected(linker, certainty, documents, own))
    figures = figures_of(outcomes, certainty)
    before = reliability(*known.answers(linker.certainty))
    return certainty, {
        "documents": len(documents),
        "own_links_left_out": own_links,
        **figures,
        "expected_calibration_error_before": before["expected_calibration_error"],
    }


def check_held_out(linker: Linker, documents: Sequence[Document]) -> None:
    """Raises: ValueError naming a page whose own words are in the contexts, which would be weighed for too much."""
    for each in documents:
        if linker.contexts is not None and in_contexts(linker, each):
            raise each.error(
                f"{each.id!r} is a page that {linker.contexts.folder} has read; give pages that are held out, such as "
                "held_out.jsonl of BuildDocuments"
            )


def in_contexts(linker: Linker, page: Document) -> bool:
    """Return whether the linker's contexts have read a page of the dump, which is known by its title."""
    target = linker.finder.targets.get(page_title(page.id))
    number = target.page_id if target else None
    return linker.contexts is not None and number is not None and linker.contexts.has_read(number)


def figures_of(outcomes: Outcomes, certainty: Certainty) -> Figures:
    """Return what there is to be told of mentions, and how good the answers are with this certainty.

    The calibration error is that of mentions whose page is in the knowledge base; that of all stands beside it.
    """
    probabilities, right = outcomes.answers(certainty)
    kept = probabilities >= certainty.min_probability

    def error(rows: Booleans) -> Any:
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


# The likeliest values


def fit_weights(outcomes: Outcomes, *, has_model: bool) -> Certainty:
    """The likeliest weights, whichever the temperature, where the scores were taken with those of UNCALIBRATED.

    These are expected until mentions say otherwise, and stay where nothing can be told. Mentions with guesses alone do
    not tell them: what stands for a prior there was not counted.
    """
    some, start = outcomes.only(~np.isnan(outcomes.open_shares)).reached(), UNCALIBRATED
    counted = {
        "prior": some.log_priors,
        "contexts": start.context_weight * some.contexts,
        "coherence": start.coherence_weight * some.coherence,
    }
    parts = {name: part for name, part in counted.items() if name == "prior" or part.any()}
    if some.is_guess.any():
        parts["guess"] = some.is_guess.astype(np.float64)
    if has_model:
        log_shares = np.maximum(some.choices()[0], SMALLEST)
        parts["model"] = log_shares - start.prior_weight * sum(counted.values())
    if some.is_unknown.any():
        parts["unknown"] = some.is_unknown.astype(np.float64)
    is_own = np.arange(some.shares.shape[1]) < some.sizes[:, None]
    features = np.stack([*parts.values()], axis=-1)
    expected, variances, lowest = np.array([WEIGHTS[name] for name in parts]).T
    if not has_model:  # whose scale may be another
        lowest[0] = LEAST_PRIOR
    weights = likeliest(features, is_own, some.is_right, expected, variances, lowest).tolist()
    found = dict(zip(parts, weights, strict=True))
    prior, scale = found["prior"], found.get("model", found["prior"])
    return replace(
        start,
        prior_weight=round(prior / scale, 2),
        context_weight=round(start.context_weight * found.get("contexts", prior) / prior, 2),
        coherence_weight=round(start.coherence_weight * found.get("coherence", prior) / prior, 2),
        guess_offset=round(found.get("guess", 0.0) / prior, 2),
        unknown_offset=round(found.get("unknown", 0.0) / scale, 2),
    )


def fit_discounts(outcomes: Outcomes) -> dict[str, float]:
    """The likeliest discounts of mentions with links, and with guesses alone where there are any."""
    is_guessed = np.isnan(outcomes.open_shares)
    found = {"discount": fit_discount(outcomes.only(~is_guessed))}
    if is_guessed.any():
        guessed = replace(outcomes.only(is_guessed), open_shares=np.ones(is_guessed.sum()))
        found["guess_discount"] = fit_discount(guessed)
    return found


def fit_discount(outcomes: Outcomes) -> float:
    """The likeliest discount, by which of these mentions have their page among the candidates; 0 where all have."""
    is_reached = outcomes.is_right.any(axis=1)
    of_candidates = np.minimum(outcomes.shares.sum(axis=1), 1.0)

    def loss(discounts: list[float]) -> Floats:
        found = of_candidates * (1 - np.outer(discounts, outcomes.open_shares))
        with np.errstate(divide="ignore"):
            return -np.log(np.where(is_reached, found, 1 - found)).sum(axis=1)

    return round(least(loss, 0.0, MOST_DISCOUNT, 1e-4), 3)


def fit_detected(linker: Linker, certainty: Certainty, documents: Sequence[Document], own: Sequence[OwnLinks]) -> float:
    """The threshold of the table's names in a text with the best F1 of links.

    A page links a name once: it is right at all places where it has that page. The threshold is that of the local way,
    also for the global one. Of few documents it is 0.
    """
    if len(documents) < LEAST_SEARCHED:
        return 0.0
    local = replace(linker, certainty=certainty, recognize=None, is_global=False, finds_all=True, min_detected=0.0)
    confidences, is_right, known = list[float](), list[bool](), 0
    step = -(-len(documents) // MOST_SEARCHED)
    for document, without in zip(documents[::step], own[::step], strict=True):
        [answer] = local.answer([Record(document.where, {"text": document.text})], [without])
        links = {Mention(each["start"], each["end"], each["title"]): each["confidence"] for each in answer["mentions"]}
        pair = Pair.of(document, [each for each in links if each.title], resolver(linker.finder), without)
        gold = {each for each in pair.gold if each.title}
        names = {(document.text[each.start : each.end], each.title) for each in gold}
        right = {each for each in pair.found if (document.text[each.start : each.end], each.title) in names}
        known += len(gold | right)
        confidences += [links[each] for each in pair.found]
        is_right += [each in right for each in pair.found]
    return best_threshold(np.array(confidences), np.array(is_right), known) if confidences else 0.0


def best_threshold(probabilities: Floats, is_right: Booleans, known: int) -> float:
    """The threshold of the best F1, the lowest of those: between the last answer that is given and the next.

    Of each mention the best candidate counts; `known` mentions have a page in the knowledge base.
    """
    order = np.argsort(-probabilities, kind="stable")
    ranked, right = probabilities[order], is_right[order].cumsum()
    is_last = np.append(ranked[1:] < ranked[:-1], True)  # answers of one probability are given together
    f1 = np.where(is_last, 2 * right / (np.arange(len(right)) + 1 + known), -1.0)
    best = len(f1) - 1 - int(f1[::-1].argmax())
    return 0.0 if best == len(f1) - 1 else float(ranked[best] + ranked[best + 1]) / 2


# Weights


def likeliest(
    features: Floats, is_own: Booleans, is_right: Booleans, expected: Floats, variances: Floats, least: Floats
) -> Floats:
    """The weights (weights) by which the softmax of the weighted sums of features makes the right candidates likeliest.

    Before any mention is seen, each weight lies around `expected` with its variance. So few mentions do not move them
    far. No weight is below `least`. `features` is (mentions, candidates, weights); `is_own` says which candidates a
    mention has, and `is_right` is one of them.
    """
    from scipy.optimize import minimize

    def loss_of(weights: Floats) -> tuple[float, Floats]:
        """The loss, and its gradient."""
        scores = np.where(is_own, features @ weights, -np.inf)
        best = scores.max(axis=1, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - best)
        totals = powers.sum(axis=1, keepdims=True)
        off = weights - expected
        loss = (best + np.log(totals)).sum() - scores[is_right].sum() + (off**2 / variances).sum() / 2
        means = np.einsum("mc,mcw->w", powers / totals, features)
        return float(loss), means - features[is_right].sum(axis=0) + off / variances

    limits = [(low, None) for low in least]
    found = minimize(loss_of, expected, jac=True, bounds=limits, method="L-BFGS-B", options=_CLOSE)
    return np.asarray(found.x)
