"""The course of training, for the report: the records of the pretrainings, read from their folders."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline import storage

if TYPE_CHECKING:
    from pipeline.sequences.tokenizer import WordTokenizer

METRICS, EVALUATION, SPEED = "metrics.jsonl", "evaluation.jsonl", "log/speed.jsonl"
ANSWERS = "answers.jsonl"
Line = dict[str, Any]


def read_lines(path: str) -> Iterator[Line]:
    """The objects of a file of JSON lines, whose texts may hold what else ends lines; none where there is no file."""
    if storage.file_size(path) is not None:
        with open(path, encoding="utf-8", newline="\n") as lines:
            yield from map(json.loads, lines)


def pretraining(folder: str) -> dict[str, Any]:
    """The record of a pretraining.

    Its `log` has means of losses and accuracies between two lines, `evaluations` held-out figures by step, and
    `held_out` the last of these by group.
    """
    evaluations = list(read_lines(storage.join(folder, EVALUATION)))
    return {
        "log": list(read_lines(storage.join(folder, METRICS))),
        "evaluations": evaluations,
        "held_out": by_group(evaluations[-1]) if evaluations else {},
    }


def answers(folder: str, tokenizer: "WordTokenizer", titles: Sequence[str]) -> list[Line]:
    """The answers of a pretrained model to some held-out mentions, in words.

    For each the text `before` it, of it (`mention`) and `after` it, its `entity`, what the model `said` with which
    `certainty`, whether that is `right`, and the `commonest` target of its text by the mention table ("" for none).
    """
    return [
        {
            "before": tokenizer.decode(line["word_ids"][: line["start"]]),
            "mention": tokenizer.decode(line["word_ids"][line["start"] : line["end"]]),
            "after": tokenizer.decode(line["word_ids"][line["end"] :]),
            "entity": titles[line["label"]],
            "said": titles[line["said"]],
            "certainty": line["certainty"],
            "right": line["said"] == line["label"],
            "commonest": "" if line["commonest"] < 0 else titles[line["commonest"]],
        }
        for line in read_lines(storage.join(folder, ANSWERS))
    ]


def by_group(line: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Held-out figures by group (masked words, masked entities and parts of them)."""
    groups = [name.removesuffix("_count") for name in line if name.endswith("_count")]
    rows: dict[str, dict[str, float]] = {group: {} for group in groups}
    for name, value in line.items():
        of_name = [group for group in groups if name.startswith(f"{group}_")]
        if of_name:
            group = max(of_name, key=len)
            rows[group][name.removeprefix(f"{group}_")] = value
    return rows


def speed(folder: str) -> dict[str, Any]:
    """The speed of a pretraining, which differs from run to run.

    `starts` has a line each time the run began or went on, with step, device and matrix rate; `steps` has rates by
    step. A run that was broken off has done its last steps again: of each step the last line counts.
    """
    lines = list(read_lines(storage.join(folder, SPEED)))
    rates = {line["step"]: line for line in lines if "words_per_second" in line}
    starts = [line for line in lines if "words_per_second" not in line]
    return {"starts": starts, "steps": [rates[step] for step in sorted(rates)]}
