"""Entity recognition: ours beside transformers' LukeForEntitySpanClassification, on the same sentences.

    python benchmarks/ner.py              # base on the CPU, 40 sentences of wikigold, three rounds
    python benchmarks/ner.py --quick      # eight sentences and one round of a tiny model: whether it works

README.md says what is counted.
"""

import argparse
import datetime
import os
import statistics
from pathlib import Path
from typing import Any

from processes import ROOT, Record, begin_report, facts_lines, run, write_report
from report import table

DATA = Path(os.environ.get("LUKE_SHARED", ROOT.parent / "shared")) / "data"
TARGET = 2.0
ONE = "transformers, one text at a time"


def medians(rows: list[Record], sentences: Record) -> list[Record]:
    """Each variant's median round, and how many times as fast as transformers one text at a time it is."""
    found = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        row: Record = {"variant": variant, "rounds": sum(each["variant"] == variant for each in rows)}
        # Documents are another input, which transformers was not asked about.
        is_base = not variant.startswith("words alone")
        for clock, name in (("seconds", "s"), ("cpu_seconds", "CPU s")):
            row[name] = median(rows, variant, clock)
        row["sentences/s"] = sentences["alone" if is_base else "documents"] / row["s"]
        for clock, name in (("seconds", ""), ("cpu_seconds", " by CPU time")):
            ratio = median(rows, ONE, clock) / median(rows, variant, clock)
            row[f"x transformers{name}"] = ratio if is_base else None
        found.append(row)
    return found


def median(rows: list[Record], variant: str, clock: str) -> float:
    """Of a variant's rounds."""
    return statistics.median(row[clock] for row in rows if row["variant"] == variant)


def targets(speed: list[Record]) -> list[Record]:
    """At least twice as fast as transformers, however it is run."""
    found = []
    for what, ours in (
        (
            "float32",
            [row for row in speed if row["variant"].startswith("ours") and "bf16" not in row["variant"]],
        ),
        ("bf16", [row for row in speed if row["variant"].startswith("ours") and "bf16" in row["variant"]]),
    ):
        best = min(ours, key=lambda row: row["CPU s"])
        for base in (row for row in speed if row["variant"].startswith("transformers")):
            if ("bf16" in base["variant"]) > (what == "bf16"):
                continue
            ratio = base["CPU s"] / best["CPU s"]
            found.append(
                {
                    "target": f"{best['variant']}: x {base['variant']} (CPU time)",
                    "wanted": TARGET,
                    "found": ratio,
                    "met": ratio >= TARGET,
                }
            )
    return found


def checks(report: Record) -> list[Record]:
    """Both implementations give the same logits for the same input."""
    same = report["same"]
    passed = same["sentences"] > 0 and same["largest difference"] < 1e-3 * same["standard deviation"]
    return [{"check": "equal logits, float32", **same, "passed": passed}]


def markdown(report: Record) -> str:
    """The report for reading."""
    sharing, narrow = report["sharing"], report["narrow"]
    alone = report["sizes"]["alone"]
    positions = alone["words"] + alone["entities"]
    lines = [
        f"# Entity recognition, {report['date']}\n",
        *facts_lines(report),
        f"{report['sentences']['alone']} sentences alone: {alone['passes']} passes, {alone['words']} words and "
        f"{alone['entities']} entities (spans of up to 16 words; {report['spans of any length']} are of any length); "
        f"words alone: {report['sentences']['documents']} in documents.\n",
        "## Targets\n",
        table(report["targets"]),
        "## Speed\n",
        table(report["speed"]),
        "## Checks\n",
        table(report["checks"]),
        "## What one encoding of the words for all passes of a sentence would be\n",
        f"It would save {alone['repeated'] / positions:.1%} of the words and entities, and it is not exact: words "
        f"attend to the entities of their pass. Between two passes of a sentence ({sharing['pairs']} pairs) "
        f"the states of the same words differ by up to {sharing['largest difference']:.3f}, where their standard "
        "deviation is "
        f"{sharing['standard deviation']:.3f}. Without entities it is exact, and done.\n",
        "## What bf16 changes\n",
        f"Logits by up to {narrow['largest difference']:.3f}; the best class of {narrow['changed']} of "
        f"{narrow['spans']} spans (with random weights, whose classes lie close together).\n",
    ]
    if report["notes"]:
        lines += ["## Notes\n", *(f"- {note}" for note in report["notes"]), ""]
    return "\n".join(lines)


def read_options() -> argparse.Namespace:
    results = ROOT / f"benchmarks/results/{datetime.date.today().isoformat()}-ner.json"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=Path, default=DATA / "ner/wikigold.conll.txt", help="a column file")
    add(
        "--tokenizer", type=Path, default=DATA / "roberta-tokenizer", help="folder with vocabulary and merges"
    )
    add("--size", default="base", help="preset (default: %(default)s)")
    add("--sentences", type=int, default=40)
    add("--rounds", type=int, default=3)
    add("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    add("--threads", type=int, default=os.cpu_count(), help="of torch")
    add("--quick", action="store_true", help="the preset demo, eight sentences, one round")
    add("--note", action="append", default=[], dest="notes", help="a line for the report")
    add("--output", type=Path, default=results, help="the results as JSON; Markdown goes beside it")
    options = parser.parse_args()
    if options.quick:
        options.size, options.sentences, options.rounds = "demo", 8, 1
    return options


def main() -> None:
    options = read_options()
    report = begin_report("ner.py", options.notes)
    names = ("size", "sentences", "rounds", "device", "threads")
    asked: dict[str, Any] = {name: getattr(options, name) for name in names}
    paths = {"data": str(options.data.resolve()), "tokenizer": str(options.tokenizer.resolve())}
    found = run("ner_workloads.py", "speed", asked | paths)
    if "failure" in found:
        raise SystemExit(f"nothing was measured: {found['failure']}")
    report |= {"asked": asked, **found, "load after": os.getloadavg()[0]}
    report["speed"] = medians(report["rows"], report["sentences"])
    report |= {"targets": targets(report["speed"]), "checks": checks(report)}
    write_report(options.output, report, markdown(report))
    if not all(row["passed"] for row in report["checks"]):
        raise SystemExit("both do not say the same: what was measured is wrong")


if __name__ == "__main__":
    main()
