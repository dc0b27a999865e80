"""The list of all experiments that the report ends its results with: each cell of the grid with its scores."""

from collections.abc import Mapping
from typing import Any

from workflows.report.paper.caveats import Cell, weights_text

SCORES = ("precision", "recall", "f1", "exact_match", "semeval_macro_f1")
COUNTS = ("gold", "predicted", "correct")


Experiment = Mapping[str, Any]
"""A cell of the grid with its scores in percent by split; `types` has by split those of each class and counts."""


def experiment(cell: Cell) -> Experiment:
    """A cell as the list of all experiments shows it."""
    metrics, hyper = cell["metrics"], cell["configuration"].get("hyperparameters", {})
    splits = {split: metrics[split] for split in ("dev", "test") if split in metrics}
    own = ("task", "variant", "seed", "state", "reason", "folder", "preset")
    return {
        **{name: cell[name] for name in own},
        "data": cell["data"]["name"],
        "is_example": cell["data"]["is_example"],
        "weights": weights_text(cell["weights"]),
        "kept_epoch": metrics.get("kept_epoch"),
        **{name: hyper.get(name) for name in ("epochs", "learning_rate", "batch_size")},
        "scores": {split: _scores(scores) for split, scores in splits.items()},
        "types": {
            split: {
                name: _scores(of_type) | {count: of_type[count] for count in COUNTS if count in of_type}
                for name, of_type in sorted(scores.get("types", {}).items())
            }
            for split, scores in splits.items()
        },
    }


def _scores(scores: Mapping[str, Any]) -> dict[str, float]:
    return {name: 100.0 * float(scores[name]) for name in SCORES if name in scores}
