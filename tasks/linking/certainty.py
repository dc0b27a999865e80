"""The certainty of answers: scores of candidates become probabilities, and below a threshold no page is given.

Candidates are not all that a mention can stand for. As in absolute discounting (Ney et al., 1994), each candidate gives
the part `discount` of a link to pages which the mention's text was never linked to. So a name that was linked once is
less sure than one that was linked a thousand times, though both have one candidate.

`reliability` measures the calibration of probabilities (Guo et al., ICML 2017).
"""

import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.storage.files import write_bytes
from tasks.io.probabilities import rounded
from tasks.io.records import as_record, parse_file, read_text

BINS = 10
Figures = dict[str, Any]
Floats = NDArray[np.float64]
# Numbers of a calibration: the lowest and the highest, and what a file is told to have.
_HUGE = sys.float_info.max
Weight = Annotated[float, 0.0, _HUGE, "a number, 0 or more"]
Offset = Annotated[float, -_HUGE, _HUGE, "a number"]
Share = Annotated[float, 0.0, 1.0, "a number from 0 to 1"]


class Scores(NamedTuple):
    """Scores of a mention's candidates: their shares, and what these are made of beside the priors.

    `model` are shares by the logits of the model alone. None stands for what the linker has not, and for the model's
    say of one candidate alone, about which it is not asked.
    """

    shares: Floats | list[float]
    cosine: Floats | None = None
    coherence: Floats | None = None
    model: Floats | None = None

    def of(self, number: int) -> Figures:
        """Return what is said of a candidate beside its share."""
        parts = {"cosine": self.cosine, "coherence": self.coherence, "model": self.model}
        return {name: None if each is None else rounded(each[number]) for name, each in parts.items()}


@dataclass(frozen=True)
class Certainty:
    """Numbers that turn the scores of a mention's candidates into probabilities; docs/reference/tasks.md has them, too.

    The prior, the cosine and the coherence, as they are weighed, are what counts say.
    """

    prior_weight: Weight = 1.0  # of what counts say, beside the model's score; of no meaning without a model
    context_weight: Weight = 8.0  # of the cosine of a candidate's context with the text, beside its prior's logarithm
    coherence_weight: Weight = 4.0  # of a candidate's coherence with the other mentions, in the same way
    unknown_offset: Offset = 0.0  # added to the scores of candidates that the model does not know
    # Divides the summed scores before the softmax. It changes no order.
    temperature: Annotated[float, sys.float_info.min, _HUGE, "a number above 0"] = 1.0
    # What each candidate gives of its links to pages that are no candidates. Where a name has n links and c
    # candidates, these pages have the probability discount x c / n.
    discount: Share = 0.0
    guess_offset: Offset = 0.0  # added to what counts say of candidates that are guessed
    guess_discount: Share = 0.5  # the probability that a mention with guesses alone stands for none of them
    min_probability: Share = 0.0  # a mention that is given, whose best candidate has a lower one, has no page
    min_detected: Share = 0.0  # a name that is found in a text, whose link is less probable, has no page

    def probabilities(self, shares: ArrayLike, open_share: float | None) -> Floats:
        """The probability of each candidate.

        `shares` are those of the softmax at temperature 1 or, without a model, the priors. Where they are less than
        1 together, the rest belongs to pages that are no candidates, and stays theirs. `open_share` is that of the
        mention's candidates.
        """
        found = np.asarray(shares, np.float64)
        if self.temperature != 1 and len(found):
            powers = (found / found.max()) ** (1 / self.temperature)
            found = powers * (found.sum() / powers.sum())
        return found * (1 - (self.guess_discount if open_share is None else self.discount * open_share))


UNCALIBRATED = Certainty()


def write_certainty(path: Path, certainty: Certainty, made_for: Figures, fit: Figures) -> None:
    """Write a calibration, whole or not at all; `fit` tells how it came about."""
    content = json.dumps({**asdict(certainty), "made_for": made_for, "fit": fit}, indent=2) + "\n"
    write_bytes(str(path), content.encode())


def read_certainty(path: Path, used_for: Figures) -> Certainty:
    """Read a calibration. Raises: ValueError naming what is no number, or what it was not made for."""
    wanted = "a file that python -m tasks.linking calibrate wrote"
    record = as_record(str(path), parse_file(path, read_text(path, wanted)))
    made_for = record.field("made_for", dict, wanted)
    for name, used in used_for.items():
        if (made := made_for.get(name)) != used:
            raise record.error(f"made for {name} {_short(made)}, used with {_short(used)}; calibrate for that")
    found = {}
    for name, kind in get_type_hints(Certainty, include_extras=True).items():
        value: Any = record.values.get(name)
        low, high, wanted = kind.__metadata__
        if type(value) not in (int, float) or not low <= value <= high:
            raise record.error(
                f"{name} is {json.dumps(value)[:40]}; wanted {wanted}; run BuildLinker or calibrate again"
            )
        found[name] = float(value)
    return Certainty(**found)


def _short(value: object) -> str:
    return "none" if value is None else str(value)[:12]


def reliability(confidences: ArrayLike, is_right: ArrayLike) -> Figures:
    """Return how well probabilities say what is right: in ten bins of them the mean, beside the share that is right.

    A bin is open at its lower end; the first has 0, too. The expected calibration error is the mean distance of both
    over all mentions. What has no mention is null. The order of the mentions changes no bit.
    """
    edges = np.linspace(0, 1, BINS + 1)
    values = np.asarray(confidences, np.float64)
    bins = bins_of(values)
    counts = np.bincount(bins, minlength=BINS)
    confident = np.array([math.fsum(values[bins == number]) for number in range(BINS)])
    right = np.bincount(bins, np.asarray(is_right, np.float64), minlength=BINS)
    total = int(counts.sum())
    rows = [
        {
            "from": round(float(edges[number]), 1),
            "to": round(float(edges[number + 1]), 1),
            "mentions": int(count),
            "confidence": float(confident[number] / count) if count else None,
            "accuracy": float(right[number] / count) if count else None,
        }
        for number, count in enumerate(counts)
    ]
    error = float(np.abs(confident - right).sum() / total) if total else None
    return {"mentions": total, "expected_calibration_error": error, "bins": rows}


def bins_of(confidences: Floats) -> NDArray[np.int64]:
    """Return the bin of each probability."""
    return np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], confidences)


def error_interval(documents: ArrayLike, confidences: ArrayLike, is_right: ArrayLike) -> list[float] | None:
    """Return the interval of 95 % around the expected calibration error, by the jackknife over documents.

    Args:
        documents: the number of each mention's document; None comes of less than two documents.
    """
    values = np.asarray(confidences, np.float64)
    _, rows = np.unique(np.asarray(documents), return_inverse=True)
    counts = np.bincount(rows)
    if len(counts) < 2:
        return None
    sums = np.zeros((len(counts), BINS))
    np.add.at(sums, (rows, bins_of(values)), values - np.asarray(is_right, np.float64))
    total, mentions = sums.sum(axis=0), len(values)
    left = np.abs(total - sums).sum(axis=1) / (mentions - counts)
    error = float(np.abs(total).sum()) / mentions
    half = 1.96 * math.sqrt((len(counts) - 1) / len(counts) * math.fsum((left - left.mean()) ** 2))
    return [max(0.0, error - half), min(1.0, error + half)]
