"""Probabilities from a classifier's logits, divided by a temperature.

The temperature is fitted on dev (Guo et al., ICML 2017). It changes no answer: the order of the logits stays, and 0
stays 0.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

DIGITS = 6  # behind the point, of what is written
LARGEST = 20.0  # temperatures lie between 1 / 20 and 20
POINTS, PRECISION = 9, 1e-3  # of a search, such as that over the temperature's logarithm

Choices = tuple[np.ndarray, np.ndarray]
"""Scores (choices, alternatives), and which of the alternatives are right, of the same shape."""


def softmax(scores: np.ndarray, temperature: float) -> np.ndarray:
    """The share of each alternative along the last axis; -inf is no alternative."""
    scaled = scores.astype(np.float64) / temperature
    shares = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def sigmoid(scores: np.ndarray, temperature: float) -> np.ndarray:
    """The share of yes against no, whose logit is 0."""
    return softmax(np.stack([np.zeros_like(scores), scores], axis=-1), temperature)[..., 1]


def of_classes(labels: Sequence[str], probabilities: np.ndarray, count: int | None = None) -> dict[str, float]:
    """The probabilities (labels) of the `count` likeliest classes by name, in falling order; of all for None."""
    order = np.argsort(-probabilities, kind="stable")[:count].tolist()
    return {labels[row]: rounded(probabilities[row]) for row in order}


def rounded(probability: float) -> float:
    """A probability as it is written."""
    return round(float(probability), DIGITS)


# The temperature


def calibration(task: Any, outputs: Any) -> dict[str, Any]:
    """The temperature for the outputs of a task's model, the mean loss with and without it, and of how many choices."""
    choices = partial(task.choices, outputs)
    count = sum(len(scores) for scores, _ in choices())
    temperature = fit_temperature(choices)
    before, after = (float(losses(choices, [each])[0]) / max(count, 1) for each in (1.0, temperature))
    return {"temperature": temperature, "choices": count, "loss": after, "loss_at_temperature_1": before}


def fit_temperature(choices: Callable[[], Iterable[Choices]]) -> float:
    """The likeliest temperature, to three digits: that with the least negative log likelihood of what is right.

    The logarithm of the temperature has a normal prior, with mean 0 and standard deviation 1. Among thousands of
    choices it weighs nothing. Where there are few, or all are right, it keeps the temperature near 1: without it the
    temperature would fall to 0, and the model call itself certain.
    """

    def loss(logarithms: list[float]) -> np.ndarray:
        return losses(choices, np.exp(logarithms).tolist()) + np.square(logarithms) / 2

    return round(math.exp(least(loss, -math.log(LARGEST), math.log(LARGEST))), 3)


def least(loss: Callable[[list[float]], np.ndarray], low: float, high: float, precision: float = PRECISION) -> float:
    """Return where a function that falls and then rises is least: a grid is made finer around its best point."""
    while high - low > precision:
        grid = np.linspace(low, high, POINTS)
        best = int(np.argmin(loss(grid.tolist())))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, POINTS - 1)])
    return (low + high) / 2


def losses(choices: Callable[[], Iterable[Choices]], temperatures: list[float]) -> np.ndarray:
    """For each temperature the negative log likelihood of the right alternatives, the sum over all choices."""
    sums = np.zeros(len(temperatures))
    for scores, is_right in choices():
        columns = is_right.any(axis=0)
        right = np.where(is_right[:, columns], scores[:, columns], -np.inf)
        for place, temperature in enumerate(temperatures):
            sums[place] += (log_sum(scores, temperature) - log_sum(right, temperature)).sum()
    return sums


def log_sum(scores: np.ndarray, temperature: float) -> np.ndarray:
    """The logarithm of the sum of the exponentials of each row (choices, alternatives), divided by the temperature."""
    scaled = scores.astype(np.float64) / temperature
    largest = scaled.max(axis=1, keepdims=True)
    return np.asarray(largest[:, 0] + np.log(np.exp(scaled - largest).sum(axis=1)))
