"""What a finished pretraining learnt: its curves, and its held-out figures beside the baselines.

luigi --module workflows Pretrain --preset small --missing-pages in --max-words 64 --precision bf16 \\
    --dump enwiki-2006-12k.xml.bz2 --workdir work
python benchmarks/real_run.py work/pretrain-* work/sequences-*
"""

import argparse
import datetime
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from processes import ROOT, Record, begin_report, facts_lines, write_report
from report import table

POINTS = 30  # of a curve
CURVES = {
    "Loss": ("masked_word_loss", "masked_entity_loss"),
    "Accuracy": ("masked_word_accuracy", "masked_entity_accuracy"),
}
PROGRESS = {
    "word perplexity": "masked_word_perplexity",
    "word accuracy": "masked_word_accuracy",
    "known entity top 1": "known_entity_top_1",
    "top 10": "known_entity_top_10",
    "reciprocal rank": "known_entity_mean_reciprocal_rank",
}


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def summarise(folder: Path, sequences: Path) -> Record:
    """All that the report holds of one pretraining."""
    training, evaluations = (read_lines(folder / f"{name}.jsonl") for name in ("metrics", "evaluation"))
    speed = [row for row in read_lines(folder / "log/speed.jsonl") if "words_per_second" in row]
    statistics_of = read_json(sequences / "statistics.json")
    return {
        "run": {
            **read_json(folder / "manifest.json")["parameters"],
            "steps": training[-1]["step"],
            "minutes": read_json(folder / "run.json")["seconds"] / 60,
            "words a second": round(statistics.median(row["words_per_second"] for row in speed)),
            "share of the matrix-product rate": statistics.median(row["share_of_peak"] for row in speed),
            "memory MB": round(max(row["memory_bytes"] for row in speed) / 1e6),
        },
        "config": read_json(folder / "config.json"),
        "corpus": [
            {"part": part}
            | {name: value for name, value in statistics_of[part].items() if not isinstance(value, dict)}
            for part in ("sequences", "held_out")
        ],
        "held out": held_out_rows(evaluations[-1]),
        "progress": [
            {"step": row["step"]} | {title: row.get(name) for title, name in PROGRESS.items()}
            for row in evaluations
        ],
        "curves": {title: {name: curve(training, name) for name in names} for title, names in CURVES.items()},
    }


def held_out_rows(last: Record) -> list[Record]:
    """The final figures of entities by group, with the same figures of the two baselines."""
    figures = (
        "count",
        "top_1",
        "most_frequent_top_1",
        "commonest_top_1",
        "top_10",
        "mean_reciprocal_rank",
        "loss",
    )
    groups = [name.removesuffix("_count") for name in last if name.endswith("_count") and "entity" in name]
    return [
        {"entities": group.replace("_", " ")}
        | {name.replace("_", " "): last.get(f"{group}_{name}") for name in figures}
        for group in groups
    ]


def curve(training: Sequence[Record], name: str) -> list[tuple[int, float]]:
    """(step, mean of the lines up to it), at most POINTS of them."""
    rows = [(row["step"], row[name]) for row in training if row.get(name) is not None]
    width = -(-len(rows) // POINTS)
    parts = [rows[start : start + width] for start in range(0, len(rows), width)]
    return [(part[-1][0], statistics.mean(value for _, value in part)) for part in parts]


def plot(title: str, curves: dict[str, list[tuple[int, float]]]) -> str:
    """A chart in Mermaid's notation; its lines have no legend there, so the title names them in order."""
    steps = [step for step, _ in next(iter(curves.values()))]
    names = ", ".join(name.replace("_", " ") for name in curves)
    lines = [
        "```mermaid",
        "xychart-beta",
        f'    title "{title} of training: {names}"',
        f'    x-axis "step" {steps[0]} --> {steps[-1]}',
        *(f"    line [{', '.join(f'{value:.3f}' for _, value in points)}]" for points in curves.values()),
        "```\n",
    ]
    return "\n".join(lines)


def markdown(report: Record) -> str:
    """The report for reading."""
    settings = [{"what": name, "value": value} for name, value in report["run"].items()]
    config = ", ".join(f"{name} {value}" for name, value in report["config"].items())
    lines = [
        f"# A pretraining, {report['date']}\n",
        *facts_lines(report),
        f"Model: {config}.\n",
        "## Run\n",
        table(settings),
        "## Sequences\n",
        table(report["corpus"]),
        "## Held-out entities, at the end\n",
        "Shares of 1. *most frequent*: always the entity that training annotates most. *commonest*: the commonest",
        "target of the mention's text, by links outside the held-out pages.\n",
        table(report["held out"]),
        "## Held-out figures on the way\n",
        table(report["progress"]),
        "## Curves\n",
        *(plot(title, curves) for title, curves in report["curves"].items()),
        *(["## Notes\n", *(f"- {note}" for note in report["notes"]), ""] if report["notes"] else []),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    results = ROOT / f"benchmarks/results/{datetime.date.today().isoformat()}-real-run.json"
    parser.add_argument("pretraining", type=Path, help="folder of the stage Pretrain")
    parser.add_argument("sequences", type=Path, help="folder of the stage BuildSequences")
    parser.add_argument("--note", action="append", default=[], dest="notes", help="a line for the report")
    parser.add_argument("--output", type=Path, default=results)
    options = parser.parse_args()
    report = begin_report("real_run.py", options.notes) | summarise(options.pretraining, options.sequences)
    write_report(options.output, report, markdown(report))


if __name__ == "__main__":
    main()
