"""What a finished pretraining learnt: its held-out figures beside the baselines. Report draws its curves.

luigi --module workflows Pretrain --preset small --missing-pages in --max-words 64 --precision bf16 \\
    --dump enwiki-2006-12k.xml.bz2 --workdir work
python -m benchmarks.model.real_run work/pretrain-* work/sequences-*
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.options import Options, absolute
from benchmarks.harness.report import Report, median
from benchmarks.harness.workloads import Record

PROGRESS = {
    "word perplexity": "masked_word_perplexity",
    "word accuracy": "masked_word_accuracy",
    "known entity top 1": "known_entity_top_1",
    "top 10": "known_entity_top_10",
    "reciprocal rank": "known_entity_mean_reciprocal_rank",
}
FIGURES = (
    *("count", "top_1", "most_frequent_top_1", "commonest_top_1", "top_10"),
    *("mean_reciprocal_rank", "loss"),
)
BASELINES = """Shares of 1. *most frequent*: always the entity that training annotates most. *commonest*: the commonest
target of the mention's text, by links outside the held-out pages."""


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def read_lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run_facts(folder: Path, training: Sequence[Record]) -> Record:
    """Parameters of the run, and what it took."""
    speed = [row for row in read_lines(folder / "log/speed.jsonl") if "words_per_second" in row]
    facts = read_json(folder / "manifest.json")["parameters"] | {"steps": training[-1]["step"]}
    facts["minutes"] = read_json(folder / "run.json")["seconds"] / 60
    facts["words a second"] = round(median(row["words_per_second"] for row in speed) or 0)
    facts["share of the matrix-product rate"] = median(row["share_of_peak"] for row in speed)
    return facts | {"memory MB": round(max(row["memory_bytes"] for row in speed) / 1e6)}


def held_out_rows(last: Record) -> list[Record]:
    """The final figures of entities by group, with the same figures of the two baselines."""
    groups = [name.removesuffix("_count") for name in last if name.endswith("_count") and "entity" in name]
    return [
        {"entities": group.replace("_", " ")}
        | {name.replace("_", " "): last.get(f"{group}_{name}") for name in FIGURES}
        for group in groups
    ]


def main() -> None:
    parser = Options("model.real_run", __doc__)
    parser.add_argument("pretraining", type=absolute, help="folder of the stage Pretrain")
    parser.add_argument("sequences", type=absolute, help="folder of the stage BuildSequences")
    options = parser.read()
    report = Report("A pretraining", options, ("torch",))
    training, evaluations = (
        read_lines(options.pretraining / f"{n}.jsonl") for n in ("metrics", "evaluation")
    )
    counts, config = (
        read_json(options.sequences / "statistics.json"),
        read_json(options.pretraining / "config.json"),
    )
    report.head.append(f"Model: {', '.join(f'{name} {value}' for name, value in config.items())}.\n")
    facts = run_facts(options.pretraining, training)
    report.add("Run", [{"what": name, "value": value} for name, value in facts.items()])
    parts = {part: counts[part].items() for part in ("sequences", "held_out")}
    plain = [{"part": part} | {n: v for n, v in of if not isinstance(v, dict)} for part, of in parts.items()]
    report.add("Sequences", plain)
    report.add("Held-out entities, at the end", held_out_rows(evaluations[-1]), BASELINES)
    way = [
        {"step": row["step"]} | {title: row.get(n) for title, n in PROGRESS.items()} for row in evaluations
    ]
    report.add("Held-out figures on the way", way)
    report.measured["config"] = config
    report.finish()


if __name__ == "__main__":
    main()
