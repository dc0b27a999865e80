"""The threshold from which a span is called an entity: decided on dev, by F1.

A model calls a span an entity of a type where that is likelier than "no entity". F1 is best where less is enough: about
half of the F1 that can be reached (Lipton et al., 2014, "Optimal Thresholding of Classifiers to Maximize F1 Measure").
A model of few examples is unsure, and would miss much.
"""

from collections.abc import Callable, Collection, Sequence

import numpy as np

from tasks.ner.spans import Span

SHIFTS = tuple(quarter / 4 for quarter in range(-16, 25))  # by which the logit of "no entity" is lowered
LEAST_ENTITIES = 50  # of dev; fewer do not tell
SAMPLES = 200  # of dev's sentences, with replacement


def best_shift(gold: Sequence[Collection[Span]], predict: Callable[[float], Sequence[Collection[Span]]]) -> float:
    """By how much the logit of "no entity" is lowered: of the shifts whose F1 is about the best the one nearest to 0.

    `predict` gives the sentences' entities with a shift. About the best is an F1 that is lower than the best by no more
    than a standard error of the difference, over samples of the sentences. The shift is 0 where dev has few entities,
    and where nothing is found without a shift: that model has not learnt the task.
    """
    wanted = [set(spans) for spans in gold]
    found = [[set(spans) for spans in predict(shift)] for shift in SHIFTS]
    right = [[a & b for a, b in zip(each, wanted, strict=True)] for each in found]
    correct, predicted, sizes = (
        np.array([[len(spans) for spans in each] for each in both]).T for both in (right, found, [wanted])
    )  # (sentences, shifts), and of the last (sentences, 1)
    if sizes.sum() < LEAST_ENTITIES or not predicted[:, SHIFTS.index(0)].any():
        return 0.0

    def f1(times: np.ndarray) -> np.ndarray:
        """F1 of each shift, where sentences count so many times."""
        return 2 * (times @ correct) / np.maximum(times @ (predicted + sizes), 1)

    draws = np.random.default_rng(0).integers(len(wanted), size=(SAMPLES, len(wanted)))
    samples = np.array([f1(np.bincount(drawn, minlength=len(wanted))) for drawn in draws])
    scores = f1(np.ones(len(wanted), dtype=np.int64))
    best = int(scores.argmax())
    errors = (samples[:, [best]] - samples).std(axis=0)
    near = np.flatnonzero(scores >= scores[best] - errors)
    return min((SHIFTS[place] for place in near), key=abs)
