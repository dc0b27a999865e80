"""The tables of `gpu.py`: what follows from its measurements."""

import math

from benchmarks.harness.report import divide, median, target
from benchmarks.harness.workloads import Record
from benchmarks.model.pretrain import training_rows
from benchmarks.tasks import ner

OURS, THEIRS, AWARE, ORIGINAL = "ours", "transformers", "entity-aware", "original"
TARGET_SHARE, TARGET_ATTENTION, TARGET_TRANSFORMERS = 0.45, 1.25, 3.0
NER_TEXT = "From the words of the examples to logits. Ratios are to transformers' model, one text at a time."


def kind_of(row: Record) -> Record:
    """The columns that say what was measured."""
    mode = "compiled" if row["compiled"] else "eager"
    kind = {"model": row["who"], "preset": row["size"], "attention": row["attention"]}
    return kind | {"tokens at most": row["tokens"], "mode": mode}


def speed_rows(rows: list[Record]) -> list[Record]:
    """Each measurement: tokens a second, shares of both rates, memory, and the ratio to transformers' eager model."""
    speeds = [median(each["tokens"] / each["seconds"] for each in row.get("rows", [])) for row in rows]
    theirs = {
        (row["size"], row["attention"], row["tokens"]): speed
        for row, speed in zip(rows, speeds, strict=True)
        if row["who"] == THEIRS and not row["compiled"]
    }
    table = []
    for row, speed in zip(rows, speeds, strict=True):
        flops = median(each["flops"] / each["seconds"] for each in row.get("rows", []))
        line = kind_of(row) | {"tokens/s": speed}
        line["TFLOP/s"] = divide(flops, 1e12)
        line["x transformers"] = divide(speed, theirs.get((row["size"], row["attention"], row["tokens"])))
        line["share of the product rate"] = divide(flops, row.get("matrix_flops"))
        line["share of the published rate"] = divide(flops, row.get("published_flops"))
        real = sum(each["tokens"] for each in row.get("rows", []))
        line["real of padded places"] = divide(real, sum(each["places"] for each in row.get("rows", [])))
        line["peak MB"] = row.get("peak_mb") and round(row["peak_mb"])
        table.append(line | {"kernel of attention": row.get("kernel")})
    return table


def targets(rows: list[Record], size: str) -> list[Record]:
    """The best of what was measured of the largest model, beside what is wanted."""
    lines = [line for line in speed_rows(rows) if line["preset"] == size and line["model"] == OURS]

    def best(column: str, attention: str) -> float | None:
        found = [line[column] for line in lines if line["attention"] == attention]
        return max((value for value in found if value is not None), default=None)

    original, aware = (best("tokens/s", attention) for attention in (ORIGINAL, AWARE))
    shares = [best("share of the product rate", attention) for attention in (ORIGINAL, AWARE)]
    share = max((value for value in shares if value is not None), default=None)
    return [
        target(f"{size}, share of the product rate", share, least=TARGET_SHARE),
        target(f"{size}, time of entity-aware / original", divide(original, aware), most=TARGET_ATTENTION),
        target(f"{size}, x transformers", best("x transformers", AWARE), least=TARGET_TRANSFORMERS),
    ]


def time_rows(rows: list[Record]) -> list[Record]:
    """The parts' shares of a step of one micro-batch, and the milliseconds of both."""
    table = []
    for row in rows:
        if "shares" in row:
            line = kind_of(row)
            for name, key in (("micro-batch, ms", "seconds"), ("optimiser, ms", "optimiser_seconds")):
                line[name] = 1e3 * (median(each[key] for each in row["rows"]) or 0.0)
            table.append(line | {f"{part}, share": share for part, share in row["shares"].items()})
    return table


def step_rows(rows: list[Record], published: float | None) -> list[Record]:
    """Steps of pretraining as `benchmarks.model.pretrain` tells them, by mode."""
    table = []
    for row in rows:
        line = training_rows([row])[0]
        flops = [work / time for work, time in zip(row.get("flops", []), row.get("seconds", []), strict=True)]
        line["share of the published rate"] = divide(median(flops), published)
        table.append({"mode": "compiled" if row["recipe"]["compiled"] else "eager"} | line)
    return table


def checks(rows: list[Record]) -> list[Record]:
    """Every loss that was measured is a number."""
    found = []
    for row in rows:
        if losses := [each["loss"] for each in row.get("rows", [])]:
            name = ", ".join(str(value) for value in kind_of(row).values())
            found.append({"check": f"finite losses, {name}", "passed": all(map(math.isfinite, losses))})
    return found


def ner_rows(found: Record) -> list[Record]:
    """Each way of entity recognition; ratios are to the first one."""
    if "rows" not in found:
        return []
    return ner.medians(found["rows"], found["sentences"], base=found["chosen"][0])


def test_rows(rows: list[Record]) -> list[Record]:
    """Tests that failed or were skipped, and the five that took longest."""
    slow = sorted(rows, key=lambda row: -(row["s"] or 0.0))[:5]
    return [row for row in rows if row["outcome"] != "passed" or row in slow]


def test_checks(rows: list[Record]) -> list[Record]:
    """One row for all tests."""
    counts = {name: sum(row["outcome"] == name for row in rows) for name in ("passed", "failed", "skipped")}
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    return [{"check": f"tests/gpu: {told}", "passed": not counts["failed"]}] if rows else []
