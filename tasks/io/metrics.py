"""Precision, recall and F1, overall and per type; fractions of 1. Spans are counted as `conlleval` does."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item", bound=Hashable)


def precision_recall_f1(gold: int, predicted: int, correct: int) -> dict[str, Any]:
    """Precision, recall and F1 with the counts that they come from; a ratio without a denominator is 0."""
    return {
        "precision": correct / predicted if predicted else 0.0,
        "recall": correct / gold if gold else 0.0,
        "f1": 2 * correct / (gold + predicted) if gold + predicted else 0.0,
        "gold": gold,
        "predicted": predicted,
        "correct": correct,
    }


def micro_scores(
    gold: Sequence[Collection[Item]], predicted: Sequence[Collection[Item]], type_of: Callable[[Item], str] = str
) -> dict[str, Any]:
    """Micro scores over examples, and under `types` the same for each type of either side.

    Both sides hold the items of the same examples; an item is correct when it is on both. A label is its own type.
    """
    golds, predictions, corrects = Counter[str](), Counter[str](), Counter[str]()
    for gold_items, predicted_items in zip(gold, predicted, strict=True):
        golds.update(map(type_of, gold_items))
        predictions.update(map(type_of, predicted_items))
        corrects.update(map(type_of, set(gold_items) & set(predicted_items)))
    types = {
        label: precision_recall_f1(golds[label], predictions[label], corrects[label])
        for label in sorted(golds | predictions)
    }
    return {**precision_recall_f1(golds.total(), predictions.total(), corrects.total()), "types": types}
