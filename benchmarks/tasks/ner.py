"""Entity recognition: ours beside transformers' LukeForEntitySpanClassification, on the same sentences."""

import os
from typing import Any

from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Report, divide, median, target
from benchmarks.harness.workloads import Record, run

PACKAGES = ("torch", "transformers", "numpy", "tokenizers")
TARGET = 2.0
ONE = "transformers, one text at a time"


def medians(rows: list[Record], sentences: Record) -> list[Record]:
    """Each variant's median round, and how many times as fast as transformers one text at a time it is."""
    found = []

    def seconds(variant: str, clock: str) -> Any:
        return median(row[clock] for row in rows if row["variant"] == variant)

    for variant in dict.fromkeys(row["variant"] for row in rows):
        wall, cpu = seconds(variant, "seconds"), seconds(variant, "cpu_seconds")
        # Documents are another input, which transformers was not asked about.
        is_base = not variant.startswith("words alone")
        row: Record = {"variant": variant, "rounds": sum(each["variant"] == variant for each in rows)}
        row |= {"s": wall, "CPU s": cpu, "sentences/s": sentences["alone" if is_base else "documents"] / wall}
        row["x transformers"] = divide(seconds(ONE, "seconds"), wall) if is_base else None
        row["x transformers by CPU time"] = divide(seconds(ONE, "cpu_seconds"), cpu) if is_base else None
        found.append(row)
    return found


def targets(speed: list[Record]) -> list[Record]:
    """At least twice as fast as transformers, however it is run; float32 is not set against bf16."""
    found = []
    for is_narrow in (False, True):
        ours = [
            row
            for row in speed
            if row["variant"].startswith("ours") and ("bf16" in row["variant"]) == is_narrow
        ]
        best = min(ours, key=lambda row: row["CPU s"])
        for base in (row for row in speed if row["variant"].startswith("transformers")):
            if is_narrow or "bf16" not in base["variant"]:
                what = f"{best['variant']}: x {base['variant']} (CPU time)"
                found.append(target(what, base["CPU s"] / best["CPU s"], least=TARGET))
    return found


def checks(same: Record) -> list[Record]:
    """Both implementations give the same logits for the same input."""
    passed = same["sentences"] > 0 and same["largest difference"] < 1e-3 * same["standard deviation"]
    return [{"check": "equal logits, float32", **same, "passed": passed}]


def notes(found: Record) -> dict[str, str]:
    """What was measured beside the speed, in words."""
    alone, sharing, narrow = found["sizes"]["alone"], found["sharing"], found["narrow"]
    saved = alone["repeated"] / (alone["words"] + alone["entities"])
    sentences = (
        f"{found['sentences']['alone']} sentences alone: {alone['passes']} passes, {alone['words']} words and "
        f"{alone['entities']} entities (spans of up to 16 words; {found['spans of any length']} are of any length); "
        f"words alone: {found['sentences']['documents']} in documents."
    )
    shared = (
        f"It would save {saved:.1%} of the words and entities, and it is not exact: words attend to the entities of "
        f"their pass. Between two passes of a sentence ({sharing['pairs']} pairs) the states of the same words differ "
        f"by up to {sharing['largest difference']:.3f}, where their standard deviation is "
        f"{sharing['standard deviation']:.3f}. Without entities it is exact, and done."
    )
    bf16 = (
        f"Logits by up to {narrow['largest difference']:.3f}; the best class of {narrow['changed']} of "
        f"{narrow['spans']} spans (with random weights, whose classes lie close together)."
    )
    one_encoding = "What one encoding of the words for all passes of a sentence would be"
    return {"Sentences": sentences, one_encoding: shared, "What bf16 changes": bf16}


def main() -> None:
    parser = Options("tasks.ner", __doc__, quick="the preset demo, eight sentences, one round")
    add = parser.add_argument
    add("--data", type=absolute, default=DATA / "ner/wikigold.conll.txt", help="a column file")
    add(
        "--tokenizer",
        type=absolute,
        default=DATA / "roberta-tokenizer",
        help="folder with vocabulary and merges",
    )
    add("--size", default="base", help="preset (default: %(default)s)")
    add("--sentences", type=count, default=40)
    add("--rounds", type=count, default=3)
    add("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    add("--threads", type=count, default=os.cpu_count(), help="of torch")
    options = parser.read()
    if options.quick:
        options.size, options.sentences, options.rounds = "demo", 8, 1
    report = Report("Entity recognition", options, PACKAGES)
    asked = {name: getattr(options, name) for name in ("size", "sentences", "rounds", "device", "threads")}
    paths = {"data": str(options.data), "tokenizer": str(options.tokenizer)}
    found = run("tasks.ner_workloads", "speed", asked | paths)
    if "failure" in found:
        raise SystemExit(f"nothing was measured: {found['failure']}")
    speed = medians(found["rows"], found["sentences"])
    report.add("Targets", targets(speed))
    report.add("Speed", speed)
    report.add("Checks", checks(found["same"]))
    for title, text in notes(found).items():
        report.add(title, [], text)
    report.measured |= {"asked": asked, **found}
    report.finish()


if __name__ == "__main__":
    main()
