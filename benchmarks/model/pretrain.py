"""Pretraining on the CPU beside transformers' model, and its share of the machine's product rate.

    python -m benchmarks.model.pretrain --sequences DIR

Every measurement is a process of its own. README.md says what is counted. On a GPU `benchmarks.model.gpu` measures.
"""

import argparse

from benchmarks.harness.options import Options
from benchmarks.harness.report import Report, divide, equal_losses, median, progress
from benchmarks.harness.workloads import Record, run

PACKAGES = ("torch", "transformers", "numpy", "pyarrow")
OURS, THEIRS = "ours", "transformers"
ACCUMULATION = 8


def runs(options: argparse.Namespace) -> list[Record]:
    """Return what is trained: `base` by both in turn, then the other presets by ours."""
    common = {"device": "cpu", "warm_steps": 0, "workers": 0}
    size, sizes = "tiny" if options.quick else "base", {"batch_size": 2 * ACCUMULATION, "micro_batch_size": 2}
    found = [
        {"who": who, "size": size, "first_step": number, "steps": 1, "compare": True, "recipe": sizes}
        for number in range(options.rounds)
        for who in ((OURS, THEIRS) if number % 2 == 0 else (THEIRS, OURS))
    ]
    for other, steps, batch, micro in () if options.quick else (("tiny", 10, 64, 8), ("large", 1, 4, 1)):
        alone = {"who": OURS, "first_step": 0, "compare": False, "size": other, "steps": steps}
        found.append(alone | {"recipe": {"batch_size": batch, "micro_batch_size": micro}})
    return [common | row for row in found]


def training_rows(rows: list[Record]) -> list[Record]:
    """Return the median step of each model, and what it is of the matrix-product rate."""
    table = []
    for kind in dict.fromkeys((row["who"], row["size"]) for row in rows):
        good = [row for row in rows if (row["who"], row["size"]) == kind and "failure" not in row]
        steps = [
            {"tokens": tokens, "seconds": seconds, "share": flops / seconds / row["matrix_flops"]}
            for row in good
            for tokens, seconds, flops in zip(row["tokens"], row["seconds"], row["flops"], strict=True)
        ]
        whole = sum(step["seconds"] for step in steps)
        line = {"model": kind[0], "preset": kind[1], "steps": len(steps)}
        line["micro-batches a step"] = good[0]["micro_batches"] if good else None
        line |= {f"{name} a step": median(step[name] for step in steps) for name in ("tokens", "seconds")}
        line["tokens/s"] = median(step["tokens"] / step["seconds"] for step in steps)
        line["share of the product rate"] = median(step["share"] for step in steps)
        line["waiting for the loader"] = divide(sum(sum(row["waits"]) for row in good), whole)
        table.append(line | {"peak MB": max((round(row["peak_mb"]) for row in good), default=None)})
    return table


def ratios(rows: list[Record]) -> list[Record]:
    """Set ours beside transformers' on the same batches, round by round, with the median of the ratios."""
    table: list[Record] = []
    compared = [row for row in rows if row["compare"] and "failure" not in row]
    for number in dict.fromkeys(row["first_step"] for row in compared):
        pair = {row["who"]: row for row in compared if row["first_step"] == number}
        if len(pair) == 2:
            ours, theirs = (sum(pair[who]["seconds"]) for who in (OURS, THEIRS))
            row = {"round": number, "tokens": sum(pair[OURS]["tokens"]), "ours, s": ours}
            table.append(row | {"transformers, s": theirs, "x transformers": theirs / ours})
    if table:
        names = [name for name in table[0] if name != "round"]
        table.append({"round": "median"} | {name: median(row[name] for row in table) for name in names})
    return table


def checks(rows: list[Record]) -> list[Record]:
    """Check that first losses without dropout are equal: both have the same weights, batch and masks."""
    return equal_losses((row for row in rows if row["compare"]), lambda row: f"round {row['first_step']}")


def main() -> None:
    quick = "whether it works: a small model, one round"
    parser = Options("model.pretrain", __doc__, "sequences", "threads", "rounds", quick=quick)
    options = parser.read()
    report, found = Report("Pretraining", options, PACKAGES), []
    for row in runs(options):
        given = row | {"sequences": str(options.sequences), "threads": options.threads}
        found.append(row | run("model.pretrain_workloads", "train", given))
        progress(f"{found[-1]}")
        report.note_failure(f"{row['who']} {row['size']}", found[-1])
    report.add("Training", training_rows(found))
    report.add("Beside transformers", ratios(found))
    report.add("Checks", checks(found))
    report.measured["rows"] = found
    report.finish()


if __name__ == "__main__":
    main()
