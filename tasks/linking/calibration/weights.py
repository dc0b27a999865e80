"""The weights that make what is right likeliest: a conditional logit (McFadden, 1974), fitted by Newton's method."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
_STEPS = 100
_DONE = 1e-9  # by so much the loss could still fall, nearly


def likeliest(
    features: Floats, is_own: Booleans, is_right: Booleans, expected: Floats, least: Floats
) -> Floats:
    """The weights (weights) by which the softmax of the weighted sums of features makes the right candidates likeliest.

    Before any mention is seen, each weight lies around `expected` with a standard deviation of 1. So few mentions do
    not move them far. A weight that would be below `least` is that, and the others are fitted beside it. `features`
    is (mentions, candidates, weights); `is_own` says which candidates a mention has, and `is_right` is one of them.
    """
    weights, is_free = expected.astype(np.float64), np.ones(len(expected), np.bool_)
    while True:
        weights = _newton(features, is_own, is_right, expected, weights, is_free)
        is_below = is_free & (weights < least)
        if not is_below.any():
            return weights
        weights[is_below], is_free = least[is_below], is_free & ~is_below


def _newton(
    features: Floats,
    is_own: Booleans,
    is_right: Booleans,
    expected: Floats,
    weights: Floats,
    is_free: Booleans,
) -> Floats:
    """The minimum over the free weights of a convex loss, whose steps are halved until it falls."""

    def loss_of(weights: Floats) -> tuple[float, Floats]:
        """The loss, and the probability of each candidate."""
        scores = np.where(is_own, features @ weights, -np.inf)
        best = scores.max(axis=1, keepdims=True, initial=-np.inf)
        powers = np.exp(scores - best)
        totals = powers.sum(axis=1, keepdims=True)
        loss = (best + np.log(totals)).sum() - scores[is_right].sum() + ((weights - expected) ** 2).sum() / 2
        return float(loss), powers / totals

    for _ in range(_STEPS):
        loss, probabilities = loss_of(weights)
        means = np.einsum("mc,mcw->mw", probabilities, features)
        gradient = means.sum(axis=0) - features[is_right].sum(axis=0) + weights - expected
        squares = np.einsum("mc,mcv,mcw->vw", probabilities, features, features, optimize=True)
        curvature = squares - means.T @ means + np.eye(len(weights))
        step = np.zeros(len(weights))
        step[is_free] = np.linalg.solve(curvature[np.ix_(is_free, is_free)], gradient[is_free])
        fall = float(gradient @ step)
        if fall < _DONE:
            break
        size = 1.0
        while size > _DONE and loss_of(weights - size * step)[0] > loss - size * fall / 4:
            size /= 2
        weights = weights - size * step
    return weights
