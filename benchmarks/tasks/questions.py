"""SQuAD's questions as features and back: how long it takes, and which gold answers do not come back.

A model that points at just what it was taught stands in for a trained one. Times are CPU seconds of one process, the
best of the rounds.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Report
from benchmarks.harness.workloads import Record, timed
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.questions import extractive

SETTINGS = [("fixed", 512), ("fixed", 128), ("paper", 512)]


def best(work: Callable[[], Any], rounds: int) -> tuple[Any, float]:
    """What the work gives, and the CPU seconds of its fastest round."""
    found = [timed(work) for _ in range(rounds)]
    return found[-1][0], min(seconds["cpu_seconds"] for _, seconds in found)


def taught(features: Sequence[Any]) -> list[np.ndarray]:
    """Logits of a model that points at the answers of its training."""
    logits = [np.zeros((len(feature.word_ids), 2), dtype=np.float32) for feature in features]
    for feature, scores in zip(features, logits, strict=True):
        if feature.label[0] > 0:
            scores[feature.label, [0, 1]] = 10
    return logits


def lost(examples: Sequence[Any], predictions: Sequence[Any]) -> list[Record]:
    """The questions whose first gold answer is not exactly what comes back, with a few characters around it."""
    rows = []
    for example, found in zip(examples, predictions, strict=True):
        for start, text in example.answers[:1]:
            end, shown = start + len(text), text if len(text) < 40 else text[:37] + "..."
            context = (
                f"{example.passage[max(0, start - 12) : start]}[{shown}]{example.passage[end : end + 12]}"
            )
            if (found[0].start, found[0].text) != (start, text):
                rows.append({"id": example.id, "context": context, "found": found[0].text})
    return rows


def measure(path: Path, tokenizer: Path, rounds: int) -> tuple[list[Record], list[Record]]:
    """A row for each setting, and what is lost in the first."""
    words, rows, missing = WordTokenizer.load(tokenizer), [], []
    dataset, reading = best(lambda: extractive.read(path), rounds)
    for profile, max_words in SETTINGS:
        given: Record = {"markers": {}, "max_words": max_words, "profile": profile}
        features, seconds = best(
            lambda given=given: extractive.featurize(dataset, words, (), **given), rounds
        )
        pair = (features.items, taught(features.items))
        found, decoding = best(lambda pair=pair: extractive.decode(dataset, *pair, ()), rounds)
        missing.append(lost(dataset.examples, found))
        row = {"profile": profile, "max_words": max_words, "questions": len(dataset.examples)}
        row |= {
            "windows": len(features.items),
            "reading s": reading,
            "features s": seconds,
            "decoding s": decoding,
        }
        row["answers inside tokens"] = features.counts["answers_inside_tokens"]
        row["answers too long"] = features.counts["answers_too_long"]
        rows.append(row | {"not exactly back": len(missing[-1])})
    return rows, missing[0]


def main() -> None:
    parser = Options("tasks.questions.answers", __doc__, quick="one round")
    squad = DATA / "squad/squad1.1-mixed20-dev.json"
    parser.add_argument("--data", type=absolute, default=squad, help="a SQuAD 1.1 file")
    parser.add_argument(
        "--tokenizer", type=absolute, default=DATA / "roberta-tokenizer", help="RoBERTa's, a folder"
    )
    parser.add_argument("--rounds", type=count, default=3)
    options = parser.read()
    report = Report(
        f"Questions of {options.data.name} as features and back", options, ("numpy", "tokenizers")
    )
    rows, missing = measure(options.data, options.tokenizer, 1 if options.quick else options.rounds)
    report.add("Settings", rows)
    report.add("Gold answers that do not come back exactly (fixed, 512 words)", missing)
    report.finish()


if __name__ == "__main__":
    main()
