"""A training step of LUKE: ours beside transformers', tokens a second and peak memory.

    python benchmarks/model.py --sequences DIR              # base on the CPU
    python benchmarks/model.py --sequences DIR --device cuda  # large, bf16, entity-aware beside original

A step is forward, both losses and backward; the optimiser is left out. README.md says what is counted.
"""

import argparse
import datetime
import importlib.util
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from processes import ROOT, Record, begin_report, equal_losses, facts_lines, run, write_report

WORKLOADS = "model_workloads.py"
TARGET_SPEED = {0.1: 1.7, 0.0: 2.2}
TARGET_MEMORY = 0.75
TARGET_ATTENTION, TARGET_SHARE = 1.25, 0.45


def rates(rows: Iterable[Record], variant: str, dropout: float, clock: str = "seconds") -> list[float]:
    """Real tokens (words and entities) a second of each round, by the wall's clock or the processors'."""
    return [
        (row["words"] + row["entities"]) / row[clock]
        for row in rows
        if (row["variant"], row["dropout"]) == (variant, dropout)
    ]


def speed_rows(rows: list[Record]) -> list[Record]:
    """Each variant: its fastest and median round, and both against transformers' same attention."""
    table = []
    for dropout in sorted({row["dropout"] for row in rows}, reverse=True):
        for variant in dict.fromkeys(row["variant"] for row in rows):
            base = f"transformers {variant.split()[1]} padded"
            found, theirs = (rates(rows, name, dropout) for name in (variant, base))
            cpu, their_cpu = (rates(rows, name, dropout, "cpu_seconds") for name in (variant, base))
            if not found:
                continue
            table.append(
                {
                    "dropout": dropout,
                    "variant": variant,
                    "rounds": len(found),
                    "tokens/s, fastest": max(found),
                    "tokens/s, median": statistics.median(found),
                    "x transformers, fastest": ratio(max, found, theirs),
                    "x transformers, median": ratio(statistics.median, found, theirs),
                    "x transformers by CPU time, fastest": ratio(max, cpu, their_cpu),
                }
            )
    return table


def ratio(choose: Callable[[list[float]], float], found: list[float], base: list[float]) -> float | None:
    """What is chosen of the rates over the same of the base, where that was measured."""
    return choose(found) / choose(base) if base else None


def memory_rows(found: list[Record]) -> list[Record]:
    """Each variant's sizes, and its peak against transformers' same attention."""
    peaks = {(row["variant"], row["dropout"]): row.get("peak_mb") for row in found}
    table = []
    for row in found:
        base = peaks.get((f"transformers {row['variant'].split()[1]} padded", row["dropout"]))
        peak, loaded = row.get("peak_mb"), row.get("loaded_mb")
        table.append(
            {
                "dropout": row["dropout"],
                "variant": row["variant"],
                "loaded MB": loaded and round(loaded),
                "peak MB": peak and round(peak),
                "of it the step's": peak and loaded and round(peak - loaded),
                "share of transformers' peak": peak / base if peak and base else None,
            }
        )
    return table


def targets(report: Record) -> list[Record]:
    """What was wanted and what was found; None where it was not measured."""
    table: list[Record] = []

    def add(target: str, wanted: float, found: float | None, *, below: bool = False) -> None:
        met = None if found is None else (found <= wanted if below else found >= wanted)
        table.append({"target": target, "wanted": wanted, "found": found, "met": met})

    if report["device"] != "cpu":
        rows = report["rows"]
        for dropout in report["dropouts"]:
            of = {
                name: rates(rows, f"ours {name} unpadded", dropout) for name in ("original", "entity-aware")
            }
            longer = ratio(max, of["original"], of["entity-aware"]) if of["original"] else None
            add(f"time of entity-aware / original, dropout {dropout}", TARGET_ATTENTION, longer, below=True)
            shares = [
                row["flops"] / row["seconds"] / report["product_flops"]
                for row in rows
                if row["dropout"] == dropout and row["variant"] == "ours original unpadded"
            ]
            add(f"share of the product rate, dropout {dropout}", TARGET_SHARE, max(shares, default=None))
        return table
    for row in report["speed"]:
        if row["variant"].endswith("unpadded") and row["dropout"] in TARGET_SPEED:
            what = f"{row['variant']}, dropout {row['dropout']}: x transformers' tokens/s (fastest rounds)"
            add(what, TARGET_SPEED[row["dropout"]], row["x transformers, fastest"])
    for row in report["memory"]:
        if row["variant"].endswith("unpadded"):
            what = f"{row['variant']}, dropout {row['dropout']}: share of transformers' peak memory"
            add(what, TARGET_MEMORY, row["share of transformers' peak"], below=True)
    return table


def checks(rows: list[Record]) -> list[Record]:
    """Without dropout all variants share weights and batch, so that the losses of an attention are equal."""
    return [
        check
        for attention in ("original", "entity-aware")
        for number in sorted({row["round"] for row in rows})
        for check in equal_losses(
            f"equal losses, {attention}, round {number}",
            (
                row
                for row in rows
                if row["dropout"] == 0 and row["round"] == number and f" {attention} " in row["variant"]
            ),
        )
    ]


def markdown(report: Record) -> str:
    """The report for reading."""
    from report import table

    rows = report["rows"]
    batches = {row["round"]: row for row in rows}.values()
    tokens = sum(row["words"] + row["entities"] for row in batches)
    lines = [
        f"# A training step, {report['date']}\n",
        *facts_lines(report),
    ]
    if batches:
        lines.append(
            f"Batches of {report['batch_size']} real sequences: {tokens / len(batches):.0f} tokens on average, "
            f"{tokens / sum(row['places'] for row in batches):.0%} of the padded places.\n"
        )
    for title in ("targets", "speed", "memory", "checks"):
        lines += [f"## {title.capitalize()}\n", table(report[title])]
    lines += ["## Kernels of attention\n", *(f"- {k}: {v}" for k, v in report["kernels"].items()), ""]
    if report["failures"] or report["notes"]:
        lines += ["## Notes\n", *(f"- {note}" for note in [*report["failures"], *report["notes"]]), ""]
    return "\n".join(lines)


def measure(options: argparse.Namespace) -> Record:
    """Speed in one process, memory in one for each variant."""
    from model_workloads import variants

    is_cpu = options.device == "cpu"
    common = {
        "size": options.size or ("base" if is_cpu else "large"),
        "sequences": str(options.sequences),
        "batch_size": options.batch_size,
        "device": options.device,
        "bf16": not is_cpu,
        "longest": not is_cpu,
        "threads": options.threads,
    }
    names = [name for name in variants(is_cpu) if re.search(options.variants, name)]
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        record = Path(scratch) / "rows.jsonl"
        more = {"rounds": options.rounds, "dropouts": options.dropout, "names": names, "record": str(record)}
        found = run(WORKLOADS, "speed", common | more)
        if "failure" in found:
            failures.append(f"speed: {found['failure']}; the rounds before it count")
            lines = record.read_text().splitlines() if record.is_file() else []
            found = {"rows": [json.loads(line) for line in lines], "kernels": {}, "product_flops": None}
    load = os.getloadavg()[0]
    sizes = []
    for dropout in options.dropout:
        for name in names:
            row = {"variant": name, "dropout": dropout}
            row |= run(WORKLOADS, "memory", common | {"name": name, "dropout": dropout})
            failures += [f"memory of {name}, dropout {dropout}: {row['failure']}"] if "failure" in row else []
            sizes.append(row)
    return {**common, **found, "sizes": sizes, "failures": failures, "load after": load}


def read_options() -> argparse.Namespace:
    results = ROOT / f"benchmarks/results/{datetime.date.today().isoformat()}-model.json"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--sequences", type=Path, required=True, help="a folder that BuildSequences wrote")
    add("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    add("--size", help="preset (default: base on the CPU, large elsewhere)")
    add("--batch-size", type=int, default=8)
    add("--rounds", type=int, default=5)
    add("--threads", type=int, default=os.cpu_count(), help="of torch")
    add("--dropout", type=float, nargs="+", default=[0.1, 0.0])
    add("--variants", default="", help="a regular expression: only the variants that it is found in")
    add("--note", action="append", default=[], dest="notes", help="a line for the report")
    add("--output", type=Path, default=results, help="the results as JSON; Markdown goes beside it")
    return parser.parse_args()


def main() -> None:
    sys.path.insert(0, str(ROOT))  # this checkout is measured, whatever is installed
    options = read_options()
    report = begin_report("model.py", options.notes)
    for package in ("liger_kernel", "cut_cross_entropy"):
        if importlib.util.find_spec(package) is None:
            report["notes"].append(f"{package} is not installed: no comparison of the losses with it")
    report |= measure(options)
    report["sequences"] = options.sequences.name  # no paths in what is kept
    report |= {"dropouts": options.dropout, "speed": speed_rows(report["rows"])}
    report["memory"] = memory_rows(report["sizes"])
    report |= {"targets": targets(report), "checks": checks(report["rows"])}
    write_report(options.output, report, markdown(report))
    if failed := [row for row in report["checks"] if not row["passed"]]:
        raise SystemExit(f"{len(failed)} checks failed: what was measured is wrong")


if __name__ == "__main__":
    main()
