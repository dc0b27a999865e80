"""Entity recognition: ours beside transformers' LukeForEntitySpanClassification, on the same sentences."""

import tomllib
from pathlib import Path
from typing import Any

from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Report, divide, median
from benchmarks.harness.workloads import Record, run

PACKAGES = ("torch", "transformers", "numpy", "tokenizers")
VARIANTS: Record = tomllib.loads(Path(__file__).with_name("ner.toml").read_text(encoding="utf-8"))
ONE = next(iter(VARIANTS["theirs"]))


def medians(rows: list[Record], sentences: int) -> list[Record]:
    """Return each variant's median round, and how many times as fast as ONE it is."""
    found = []

    def seconds(variant: str, clock: str) -> Any:
        return median(row[clock] for row in rows if row["variant"] == variant)

    for variant in dict.fromkeys(row["variant"] for row in rows):
        wall, cpu = seconds(variant, "seconds"), seconds(variant, "cpu_seconds")
        row: Record = {"variant": variant, "rounds": sum(each["variant"] == variant for each in rows)}
        row |= {"s": wall, "CPU s": cpu, "sentences/s": sentences / wall}
        row["x transformers"] = divide(seconds(ONE, "seconds"), wall)
        found.append({**row, "x transformers by CPU time": divide(seconds(ONE, "cpu_seconds"), cpu)})
    return found


def checks(same: Record) -> list[Record]:
    """Check that both implementations give the same logits for the same input."""
    passed = same["sentences"] > 0 and same["largest difference"] < 1e-3 * same["standard deviation"]
    return [{"check": "equal logits, float32", **same, "passed": passed}]


def main() -> None:
    shared = ("tokenizer", "rounds", "device", "threads")
    parser = Options("tasks.ner", __doc__, *shared, quick="the preset tiny, eight sentences, one round")
    add = parser.add_argument
    add("--data", type=absolute, default=DATA / "ner/wikigold.conll.txt", help="a column file")
    add("--size", default="base", help="preset (default: %(default)s)")
    add("--sentences", type=count, default=40)
    options = parser.read()
    if options.quick:
        options.size, options.sentences = "tiny", 8
    report = Report("Entity recognition", options, PACKAGES)
    asked = {name: getattr(options, name) for name in ("size", "sentences", "rounds", "device", "threads")}
    paths = {"data": str(options.data), "tokenizer": str(options.tokenizer)}
    found = run("tasks.ner_workloads", "speed", asked | paths)
    if "failure" in found:
        raise SystemExit(f"nothing was measured: {found['failure']}")
    report.add("Speed", medians(found["rows"], found["sentences"]))
    report.add("Checks", checks(found["same"]))
    report.add("Sentences", [found["sizes"]])
    report.measured |= found | {"asked": asked}
    report.finish()


if __name__ == "__main__":
    main()
