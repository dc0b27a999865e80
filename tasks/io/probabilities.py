"""Probabilities from a classifier's logits, divided by a temperature."""

from collections.abc import Sequence

import numpy as np

DIGITS = 6  # behind the point, of what is written


def softmax(scores: np.ndarray, temperature: float) -> np.ndarray:
    """The share of each alternative along the last axis; -inf is no alternative."""
    scaled = scores.astype(np.float64) / temperature
    shares = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def sigmoid(scores: np.ndarray, temperature: float) -> np.ndarray:
    """The share of yes against no, whose logit is 0."""
    return softmax(np.stack([np.zeros_like(scores), scores], axis=-1), temperature)[..., 1]


def of_classes(
    labels: Sequence[str], probabilities: np.ndarray, count: int | None = None
) -> dict[str, float]:
    """The probabilities (labels) of the `count` likeliest classes by name, in falling order; of all for None."""
    order = np.argsort(-probabilities, kind="stable")[:count].tolist()
    return {labels[row]: rounded(probabilities[row]) for row in order}


def rounded(probability: float) -> float:
    """A probability as it is written."""
    return round(float(probability), DIGITS)
