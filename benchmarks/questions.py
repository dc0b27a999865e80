"""SQuAD's questions as features and back: how long it takes, and which gold answers do not come back.

    python benchmarks/questions.py SQUAD.json --tokenizer DIR [--output benchmarks/results/DATE-questions.json]

A model that points at just what it was taught stands in for a trained one. Times are CPU seconds of one process, the
best of the rounds.
"""

import argparse
import datetime
import json
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import environment_facts
from report import table

from pipeline.sequences.tokenizer import WordTokenizer
from tasks.questions import extractive
from tasks.questions.extractive import Dataset, Example, WindowFeature
from tasks.questions.answers import Answer

Record = dict[str, Any]
Value = TypeVar("Value")
SETTINGS = [("fixed", 512), ("fixed", 128), ("paper", 512)]


def timed(work: Callable[[], Value], rounds: int) -> tuple[Value, float]:
    """What the work gives, and the CPU seconds of its fastest round."""
    seconds = []
    for _ in range(rounds):
        start = time.process_time()
        value = work()
        seconds.append(time.process_time() - start)
    return value, min(seconds)


def taught(features: list[WindowFeature]) -> list[np.ndarray]:
    """Logits of a model that points at the answers of its training."""
    logits = [np.zeros((len(feature.word_ids), 2), dtype=np.float32) for feature in features]
    for feature, scores in zip(features, logits, strict=True):
        if feature.label[0] > 0:
            scores[feature.label, [0, 1]] = 10
    return logits


def lost(dataset: Dataset, predictions: list[tuple[Answer, ...]]) -> list[Record]:
    """The questions whose first gold answer is not exactly what comes back."""
    return [
        {"id": example.id, "answer": text, "found": found[0].text, "context": context(example)}
        for example, found in zip(dataset.examples, predictions, strict=True)
        for start, text in example.answers[:1]
        if (found[0].start, found[0].text) != (start, text)
    ]


def context(example: Example) -> str:
    """The answer between brackets, with a few characters on both sides."""
    [(start, text), *_] = example.answers
    end = start + len(text)
    before, after = example.passage[max(0, start - 12) : start], example.passage[end : end + 12]
    return f"{before}[{text if len(text) < 40 else text[:37] + '...'}]{after}"


def measure(path: Path, tokenizer: Path, rounds: int) -> tuple[list[Record], list[Record]]:
    """A row for each setting, and what is lost in the first."""
    words = WordTokenizer.load(tokenizer)
    dataset, reading = timed(lambda: extractive.read(path), rounds)
    rows, missing = [], []
    for profile, max_words in SETTINGS:
        arguments: Record = {"markers": {}, "max_words": max_words, "profile": profile}
        features, seconds = timed(
            lambda given=arguments: extractive.featurize(dataset, words, (), **given), rounds
        )
        logits = taught(list(features.items))
        found, decoding = timed(
            lambda items=features.items, scores=logits: extractive.decode(dataset, items, scores, ()),
            rounds,
        )
        missing.append(lost(dataset, found))
        rows.append({
            "profile": profile, "max_words": max_words, "questions": len(dataset.examples),
            "windows": len(features.items), "reading s": reading, "features s": seconds, "decoding s": decoding,
            "answers inside tokens": features.counts["answers_inside_tokens"],
            "answers too long": features.counts["answers_too_long"], "not exactly back": len(missing[-1]),
        })  # fmt: skip
    return rows, missing[0]


def markdown(report: Record) -> str:
    """The report for reading."""
    facts = report["environment"]
    return "\n".join([
        f"# Questions of {report['data']} as features and back, {report['date']}\n",
        "Machine: " + "; ".join(f"{key} {value}" for key, value in facts["machine"].items()) + ".",
        "Versions: " + "; ".join(f"{key} {value}" for key, value in facts["versions"].items()) + ".",
        "CPU seconds of one process, the best of several rounds.\n",
        table(report["rows"]),
        "## Gold answers that do not come back exactly (fixed, 512 words)\n",
        table([{name: row[name] for name in ("id", "context", "found")} for row in report["lost"]]),
    ])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="a SQuAD 1.1 file")
    parser.add_argument("--tokenizer", type=Path, required=True, help="folder of RoBERTa's tokenizer")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="JSON file; the same as Markdown beside it")
    options = parser.parse_args()
    rows, missing = measure(options.data, options.tokenizer, options.rounds)
    versions = {name: version(name) for name in ("numpy", "tokenizers")} | {
        "python": platform.python_version()
    }
    report = {
        "date": datetime.date.today().isoformat(),
        "data": options.data.name,
        "environment": {**environment_facts(None), "versions": versions},
        "rows": rows,
        "lost": missing,
    }
    print(markdown(report))
    if options.output:
        options.output.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        options.output.with_suffix(".md").write_text(markdown(report), encoding="utf-8")


if __name__ == "__main__":
    main()
