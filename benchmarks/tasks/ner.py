"""Entity recognition: ours beside transformers' LukeForEntitySpanClassification, on the same sentences."""

from typing import Any

from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Report, divide, median, target
from benchmarks.harness.workloads import Record, run

PACKAGES = ("torch", "transformers", "numpy", "tokenizers")
TARGET = 2.0
ONE = "transformers, one text at a time"
SHARING = """The difference of the states of the same words between two passes of a sentence: they attend to the
entities of their pass, so that one encoding for all would not be exact. Without entities it is exact, and done."""
NARROW = "Of logits; changed is the best class of so many spans, with random weights, whose classes lie close together."


def medians(rows: list[Record], sentences: Record, base: str = ONE) -> list[Record]:
    """Each variant's median round, and how many times as fast as `base` it is."""
    found = []

    def seconds(variant: str, clock: str) -> Any:
        return median(row[clock] for row in rows if row["variant"] == variant)

    for variant in dict.fromkeys(row["variant"] for row in rows):
        wall, cpu = seconds(variant, "seconds"), seconds(variant, "cpu_seconds")
        # Documents are another input, which transformers was not asked about.
        is_base = not variant.startswith("words alone")
        row: Record = {"variant": variant, "rounds": sum(each["variant"] == variant for each in rows)}
        row |= {"s": wall, "CPU s": cpu, "sentences/s": sentences["alone" if is_base else "documents"] / wall}
        row["x transformers"] = divide(seconds(base, "seconds"), wall) if is_base else None
        row["x transformers by CPU time"] = divide(seconds(base, "cpu_seconds"), cpu) if is_base else None
        found.append(row)
    return found


def targets(speed: list[Record]) -> list[Record]:
    """At least twice as fast as transformers, however it is run; float32 is not set against bf16."""
    found = []
    for is_narrow in (False, True):
        ours = [row for row in speed if row["variant"].startswith("ours")]
        alike = [row for row in ours if ("bf16" in row["variant"]) == is_narrow]
        best = min(alike, key=lambda row: row["CPU s"])
        for base in (row for row in speed if row["variant"].startswith("transformers")):
            if is_narrow or "bf16" not in base["variant"]:
                what = f"{best['variant']}: x {base['variant']} (CPU time)"
                found.append(target(what, base["CPU s"] / best["CPU s"], least=TARGET))
    return found


def checks(same: Record) -> list[Record]:
    """Both implementations give the same logits for the same input."""
    passed = same["sentences"] > 0 and same["largest difference"] < 1e-3 * same["standard deviation"]
    return [{"check": "equal logits, float32", **same, "passed": passed}]


def fill(report: Report, found: Record) -> None:
    """The tables of what was measured."""
    alone, speed = found["sizes"]["alone"], medians(found["rows"], found["sentences"])
    report.add("Targets", targets(speed))
    report.add("Speed", speed)
    report.add("Checks", checks(found["same"]))
    sentences = {**found["sentences"], "spans of any length": found["spans of any length"], **alone}
    report.add("Sentences", [sentences])
    saved = alone["repeated"] / (alone["words"] + alone["entities"])
    report.add("One encoding for all passes", [{**found["sharing"], "would save": saved}], SHARING)
    report.add("What bf16 changes", [found["narrow"]], NARROW)
    report.measured |= found


def main() -> None:
    parser = Options("tasks.ner", __doc__, quick="the preset tiny, eight sentences, one round")
    parser.take("tokenizer", "rounds", "device", "threads")
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
    report.measured["asked"] = asked
    fill(report, found)
    report.finish()


if __name__ == "__main__":
    main()
