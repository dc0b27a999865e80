"""Gold documents and answers to them, as EvaluateLinking's folder has them, with hostile titles."""

from collections.abc import Mapping, Sequence
from typing import Any

HOSTILE = '</script><img src=x onerror="alert(1)"> & <b>'
BINS = [{"from": at / 10, "to": (at + 1) / 10, "mentions": 0, "confidence": None, "accuracy": None} for at in range(10)]


def gold(name: str, text: str, mentions: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """A document in which the first place of each text is a mention of a title."""
    places = [(text.index(mention), mention, title) for mention, title in (mentions or {}).items()]
    found = [{"start": at, "end": at + len(mention), "title": title} for at, mention, title in places]
    return {"set": HOSTILE, "of_dump": False, "id": name, "text": text, "mentions": found}


def answer(document: Mapping[str, Any], found: Mapping[str, Sequence[tuple[str, float]]]) -> dict[str, Any]:
    """An answer that finds mentions with their candidates, the first of which is the page, if there is any."""
    mentions = []
    for mention, candidates in found.items():
        at = document["text"].index(mention)
        title, probability = candidates[0] if candidates else (None, None)
        shown = [{"title": each, "entity_id": None, "prior": 0.5, "probability": share} for each, share in candidates]
        place = {"mention": mention, "start": at, "end": at + len(mention)}
        mentions.append({**place, "title": title, "probability": probability, "step": "exact", "candidates": shown})
    return {"id": document["id"], "text": document["text"], "mentions": mentions}


def figures(accuracy: float, *, calibration: bool = True) -> dict[str, Any]:
    """Scores of a method."""
    shares: dict[str, Any] = {"accuracy": accuracy, "accuracy_interval": [accuracy - 0.125, accuracy + 0.125]}
    shares |= {"candidate_recall": 0.875, "prior": 0.625}
    counts = {"gold": 1234, "in_knowledge_base": 1200, "without_title": 3, "title_not_in_dump": 31}
    mean = {"precision": 0.3125, "recall": 0.4375, "f1": 0.365}
    bins = [*BINS[:9], {**BINS[9], "mentions": 3, "confidence": 0.96, "accuracy": accuracy}]
    bins[3] = {**BINS[3], "mentions": 1, "confidence": 0.35, "accuracy": 1.0}
    found = {
        "documents": 7,
        "mentions": counts,
        "titles_not_in_dump": {HOSTILE: 31},
        "disambiguation": {"overall": {"mentions": 1200, **shares}, "ambiguous": {"mentions": 678, **shares}},
        "linking": {"micro": mean, "macro": mean},
    }
    calibrated: dict[str, Any] = {"mentions": 4, "expected_calibration_error": 0.0625, "bins": bins}
    calibrated |= {"expected_calibration_error_interval": [0.03125, 0.09375]}
    return found | ({"calibration": calibrated} if calibration else {})


def scores(*, calibration: bool = True) -> dict[str, Any]:
    """The content of `scores.json`."""
    methods = {"prior": 0.625, "contexts": 0.65, "local": 0.5, "global": 0.75}
    found = {name: figures(accuracy, calibration=calibration) for name, accuracy in methods.items()}
    return {"sets": [{"name": HOSTILE, "of_dump": False, "documents": 7, "of": 8, "methods": found}]}
