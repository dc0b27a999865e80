"""Cells of experiments.json for the tests of what is made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from model.luke.config import PRESETS
from tasks.finetuning.registry import TASKS
from tasks.finetuning.variants import VARIANTS
from workflows.report.paper.caveats import SIZES

SPANS = ("precision", "recall", "f1")
ANSWERS = ("exact_match", "f1")
QUESTIONS = ("cloze_qa", "extractive_qa")
HOSTILE = '<script>alert(1)</script> | [x](javascript:y) \\input{/etc/passwd} & % $ # _ ^ ~ " \n 東京 é'


def cell(
    task: str = "ner",
    variant: str = "luke",
    seed: int = 1,
    *,
    state: str = "done",
    reason: str = "",
    data: str = "conll2003",
    is_example: bool = False,
    weights: str = "luke-large",
    own_preset: str = "",
    base_model: str = "",
    corpus: str = "",
    changes: Mapping[str, Any] | None = None,
    preset: str = "base",
    model: str = "large",
    scores: Mapping[str, Mapping[str, float]] | None = None,
    sizes: Mapping[str, int] | None = None,
    types: Sequence[str] = (),
    mentions: bool = True,
) -> dict[str, Any]:
    """A cell as the grid writes it; done unless `state` says more, with `scores` (fractions) or 0.5 everywhere.

    `changes` replace hyper-parameters of the preset.
    """
    is_done = state == "done"
    names = ANSWERS if task in QUESTIONS else SPANS
    what, wanted = SIZES[task]
    of_type = {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "gold": 4, "predicted": 2, "correct": 1}
    metrics = {
        split: {**dict.fromkeys(names, 0.5), **(scores or {}).get(split, {})}
        | ({"types": dict.fromkeys(types, of_type)} if types else {})
        for split in ("dev", "test")
    }
    hyperparameters = TASKS[task].PRESETS["base" if preset == "tuned" else preset]
    return {
        "task": task,
        "variant": variant,
        "seed": seed,
        "state": state,
        "reason": reason,
        "folder": f"finetune-{seed:08x}" if is_done else "",
        "data": {"name": data, "is_example": is_example},
        "weights": {
            "name": weights,
            "is_own": bool(own_preset),
            "preset": own_preset,
            "base_model": base_model,
            "corpus": corpus,
        }
        if weights
        else {},
        "preset": preset,
        "configuration": {
            **asdict(VARIANTS[variant]),
            **({"entities_sha256": "0" * 64} if task == "extractive_qa" and mentions else {}),
            "hyperparameters": asdict(hyperparameters) | dict(changes or {}),
            "model": asdict(PRESETS[model]),
        }
        if is_done
        else {},
        "metrics": {
            **metrics,
            "kept_epoch": 2,
            "data": {split: {what: count} for split, count in (wanted if sizes is None else sizes).items()},
        }
        if is_done
        else {},
    }
