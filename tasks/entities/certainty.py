"""How sure an answer is: scores of candidates become probabilities, and below a threshold no page is given.

Candidates are not all that a mention can stand for. `unseen_links`, k, is the weight of the pages that are none of
them: of a name with n links they have the share k / (n + k). So a name that was linked once is less sure than one that
was linked a thousand times, though both have one candidate.

How well probabilities say what is right is told by `reliability` (Guo et al., ICML 2017).
"""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pipeline.storage.files import write_bytes
from pipeline.storage.manifests import manifest_sha256
from tasks.entities.candidates import CandidateFinder
from tasks.io.records import as_record, parse_file, read_text

BINS = 10
GLOBAL, LOCAL, PRIOR = (
    "global",
    "local",
    "prior",
)  # by what is chosen: the model in either way, or the prior alone
Figures = dict[str, Any]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Certainty:
    """What turns the scores of a mention's candidates into probabilities.

    Attributes:
        prior_weight: of the logarithm of the prior, beside the model's score; of no meaning without a model.
        temperature: by which the summed scores are divided before the softmax. It changes no order.
        unseen_links: k, the weight of pages that are none of the candidates, in links; 0: there are none.
        min_probability: a mention whose best candidate has a lower one is given no page.
    """

    prior_weight: float = 1.0
    temperature: float = 1.0
    unseen_links: float = 0.0
    min_probability: float = 0.0

    def probabilities(self, shares: ArrayLike, links: int) -> Floats:
        """The probability of each candidate.

        Args:
            shares: (candidates) by the softmax at temperature 1 or, without a model, the priors. Where they are less
                than 1 together, the rest belongs to pages that are no candidates, and stays theirs.
            links: how many links the mention's text has, as `Candidates` tells it.
        """
        found = np.asarray(shares, np.float64)
        if self.temperature != 1 and len(found):
            powers = (found / found.max()) ** (1 / self.temperature)
            found = powers * (found.sum() / powers.sum())
        return found * (links / (links + self.unseen_links)) if self.unseen_links else found


UNCALIBRATED = Certainty()


# The file


def basis(
    finder: CandidateFinder, model: Path | None, *, is_global: bool, longer_mentions: bool
) -> dict[str, Any]:
    """What probabilities come from, and what a calibration is therefore for: table, candidates, model and mode.

    `model` is the folder of the weights; None for the prior alone.
    """
    fingerprint = None
    if model:
        from model.exchange.load import fingerprint_model  # torch, which the prior alone does without

        fingerprint = fingerprint_model(str(model))
    return {
        "mentions": manifest_sha256(finder.table.folder),
        "model": fingerprint,
        "mode": (GLOBAL if is_global else LOCAL) if model else PRIOR,
        "most_candidates": finder.most,
        "longer_mentions": longer_mentions,
    }


def write_certainty(path: Path, certainty: Certainty, made_for: Figures, fit: Figures) -> None:
    """Write a calibration, whole or not at all; `fit` tells how it came about."""
    content = json.dumps({**asdict(certainty), "made_for": made_for, "fit": fit}, indent=2) + "\n"
    write_bytes(str(path), content.encode())


def read_certainty(path: Path, used_for: Figures) -> Certainty:
    """Read a calibration. Raises: ValueError naming what is no number, or what it was not made for."""
    wanted = "a file that python -m tasks.entities calibrate wrote"
    record = as_record(str(path), parse_file(path, read_text(path, wanted)))
    made_for = record.field("made_for", dict, wanted)
    for name, used in used_for.items():
        if (made := made_for.get(name)) != used:
            raise record.error(
                f"made for {name} {_short(made)}, used with {_short(used)}; calibrate for that"
            )
    found = {}
    for field in fields(Certainty):
        value: Any = record.values.get(field.name)
        is_number = type(value) in (int, float) and value >= 0
        if not is_number or (value == 0 and field.name == "temperature"):
            least = "above 0" if field.name == "temperature" else "0 or more"
            raise record.error(f"{field.name} is {json.dumps(value)[:40]}; wanted a number, {least}")
        found[field.name] = float(value)
    return Certainty(**found)


def _short(value: object) -> str:
    return "none" if value is None else str(value)[:12]


# How sure, and how often right


def reliability(confidences: ArrayLike, is_right: ArrayLike) -> Figures:
    """How well probabilities say what is right: in ten bins of them the mean, beside the share that is right.

    A bin is open at its lower end; the first has 0, too. The expected calibration error is the mean distance of both
    over all mentions. What has no mention is null.
    """
    edges = np.linspace(0, 1, BINS + 1)
    bins = np.searchsorted(edges[1:-1], np.asarray(confidences, np.float64))
    counts = np.bincount(bins, minlength=BINS)
    confident, right = (
        np.bincount(bins, np.asarray(each, np.float64), minlength=BINS) for each in (confidences, is_right)
    )
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
