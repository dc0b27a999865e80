"""The tables of `gpu.py`: what follows from its measurements."""

import math

from benchmarks.harness.report import divide, median
from benchmarks.harness.workloads import Record
from benchmarks.model.pretrain import THEIRS, training_rows


def kind_of(row: Record) -> Record:
    """Return the columns that say what was measured."""
    kind = {"model": row["who"], "preset": row["size"], "attention": row["attention"]}
    return kind | {"tokens at most": row["tokens"], "mode": row["mode"]}


def name_of(row: Record) -> str:
    return ", ".join(map(str, kind_of(row).values()))


def speed_rows(rows: list[Record]) -> list[Record]:
    """Return tokens a second, times, shares of both rates, memory, and the ratio to transformers' eager model."""
    speeds = [median(each["tokens"] / each["seconds"] for each in row.get("rows", [])) for row in rows]
    theirs = {
        (row["size"], row["attention"], row["tokens"]): speed
        for row, speed in zip(rows, speeds, strict=True)
        if row["who"] == THEIRS and row["mode"] == "eager"
    }
    table = []
    for row, speed in zip(rows, speeds, strict=True):
        measured = row.get("rows", [])
        spent = [median(1e3 * each[f"{name}seconds"] for each in measured) for name in ("", "optimiser_")]
        flops = median(each["flops"] / each["seconds"] for each in measured)
        line = kind_of(row) | {"tokens/s": speed}
        line |= {"micro-batch, ms": spent[0], "optimiser, ms": spent[1], "TFLOP/s": divide(flops, 1e12)}
        line["x transformers"] = divide(speed, theirs.get((row["size"], row["attention"], row["tokens"])))
        line["share of the product rate"] = divide(flops, row.get("matrix_flops"))
        line["share of the published rate"] = divide(flops, row.get("published_flops"))
        real, places = (sum(each[name] for each in measured) for name in ("tokens", "places"))
        line["busy share"] = divide(row.get("busy_seconds"), median(each["seconds"] for each in measured))
        line["kernels"] = row.get("kernels")
        line["real of padded places"] = divide(real, places)
        line["peak MB"] = row.get("peak_mb") and round(row["peak_mb"])
        table.append(line | {"kernel of attention": row.get("kernel")})
    return table


def step_rows(rows: list[Record], published: float | None) -> list[Record]:
    """Return steps of pretraining as `benchmarks.model.pretrain` tells them, by mode."""
    table = []
    for row in rows:
        line = training_rows([row])[0]
        flops = [work / time for work, time in zip(row.get("flops", []), row.get("seconds", []), strict=True)]
        line["share of the published rate"] = divide(median(flops), published)
        table.append({"mode": "compiled" if row["recipe"]["compiled"] else "eager"} | line)
    return table


def checks(rows: list[Record], tests: Record) -> list[Record]:
    """Check that every loss that was measured is a number, and that the tests passed."""
    found = []
    for row in rows:
        if losses := [each["loss"] for each in row.get("rows", [])]:
            passed = all(map(math.isfinite, losses))
            found.append({"check": f"finite losses, {name_of(row)}", "passed": passed})
    if tests:
        found.append({"check": f"tests/gpu: {tests['lines'][-1]}", "passed": tests["status"] == 0})
    return found
