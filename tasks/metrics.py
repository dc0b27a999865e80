"""Precision, recall and F1 of spans, overall and per type, counted as `conlleval` does; fractions of 1."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from tasks.spans import Span


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


def span_scores(gold: Sequence[Collection[Span]], predicted: Sequence[Collection[Span]]) -> dict[str, Any]:
    """Micro scores over sentences, and under `types` the same for each entity type of either side.

    A span is correct when start, end and type are. Both sides hold the spans of the same sentences.
    """
    assert len(gold) == len(predicted), (len(gold), len(predicted))
    golds, predictions, corrects = Counter[str](), Counter[str](), Counter[str]()
    for gold_spans, predicted_spans in zip(gold, predicted, strict=True):
        golds.update(span.label for span in gold_spans)
        predictions.update(span.label for span in predicted_spans)
        corrects.update(span.label for span in set(gold_spans) & set(predicted_spans))
    types = {
        label: precision_recall_f1(golds[label], predictions[label], corrects[label])
        for label in sorted(golds | predictions)
    }
    return {**precision_recall_f1(golds.total(), predictions.total(), corrects.total()), "types": types}
