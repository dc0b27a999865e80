"""A training step of LUKE: ours beside transformers', tokens a second and peak memory.

    python -m benchmarks.model.step --sequences DIR                 # base on the CPU
    python -m benchmarks.model.step --sequences DIR --device cuda   # large, bf16, entity-aware beside original

A step is forward, both losses and backward; the optimiser is left out. README.md says what is counted.
"""

import argparse
import re
from collections.abc import Iterable

from benchmarks.harness.options import Options, count
from benchmarks.harness.report import Report, divide, equal_losses, median, target
from benchmarks.harness.workloads import Record, run

MODULE = "model.workloads"
PACKAGES = ("torch", "transformers", "numpy", "pyarrow", "liger-kernel", "cut-cross-entropy")
TARGET_SPEED = {0.1: 1.7, 0.0: 2.2}
TARGET_MEMORY, TARGET_ATTENTION, TARGET_SHARE = 0.75, 1.25, 0.45


def rates(rows: Iterable[Record], variant: str, dropout: float, clock: str = "seconds") -> list[float]:
    """Real tokens (words and entities) a second of each round, by the wall's clock or the processors'."""
    chosen = [row for row in rows if (row["variant"], row["dropout"]) == (variant, dropout)]
    return [(row["words"] + row["entities"]) / row[clock] for row in chosen]


def same_attention(variant: str) -> str:
    """The variant of transformers that one is set against."""
    return f"transformers {variant.split()[1]} padded"


def speed_rows(rows: list[Record]) -> list[Record]:
    """Each variant: its fastest and median round, and both against transformers' same attention."""
    table = []
    for dropout, variant in dict.fromkeys((row["dropout"], row["variant"]) for row in rows):
        found, theirs = (rates(rows, name, dropout) for name in (variant, same_attention(variant)))
        by_cpu = [rates(rows, name, dropout, "cpu_seconds") for name in (variant, same_attention(variant))]
        row = {"dropout": dropout, "variant": variant, "rounds": len(found)}
        row |= {"tokens/s, fastest": max(found), "tokens/s, median": median(found)}
        row["x transformers, fastest"] = divide(max(found), max(theirs, default=None))
        row["x transformers, median"] = divide(median(found), median(theirs))
        fastest = (max(of, default=None) for of in by_cpu)
        table.append(row | {"x transformers by CPU time, fastest": divide(*fastest)})
    return table


def memory_rows(found: list[Record]) -> list[Record]:
    """Each variant's sizes, and its peak against transformers' same attention."""
    peaks = {(row["variant"], row["dropout"]): row.get("peak_mb") for row in found}
    table = []
    for row in found:
        peak, loaded = row.get("peak_mb"), row.get("loaded_mb")
        line = {"dropout": row["dropout"], "variant": row["variant"]}
        line |= {"loaded MB": loaded and round(loaded), "peak MB": peak and round(peak)}
        line["of it the step's"] = peak and loaded and round(peak - loaded)
        base = peaks.get((same_attention(row["variant"]), row["dropout"]))
        table.append(line | {"share of transformers' peak": divide(peak, base)})
    return table


def targets(speed: list[Record], memory: list[Record]) -> list[Record]:
    """What was wanted on the CPU and what was found; None where it was not measured."""
    table = []
    for row in speed:
        name, dropout = row["variant"], row["dropout"]
        if name.endswith("unpadded") and dropout in TARGET_SPEED:
            what = f"{name}, dropout {dropout}: x transformers' tokens/s (fastest rounds)"
            table.append(target(what, row["x transformers, fastest"], least=TARGET_SPEED[dropout]))
    for row in memory:
        if row["variant"].endswith("unpadded"):
            what = f"{row['variant']}, dropout {row['dropout']}: share of transformers' peak memory"
            table.append(target(what, row["share of transformers' peak"], most=TARGET_MEMORY))
    return table


def gpu_targets(rows: list[Record], product_flops: float | None) -> list[Record]:
    """The same on a GPU: what entity-aware attention costs, and the share of the product rate."""
    table = []
    for dropout in dict.fromkeys(row["dropout"] for row in rows):
        names = ("ours original unpadded", "ours entity-aware unpadded")
        original, aware = (max(rates(rows, name, dropout), default=None) for name in names)
        what = f"time of entity-aware / original, dropout {dropout}"
        table.append(target(what, divide(original, aware), most=TARGET_ATTENTION))
        of = [row for row in rows if (row["dropout"], row["variant"]) == (dropout, names[0])]
        share = divide(max((row["flops"] / row["seconds"] for row in of), default=None), product_flops)
        table.append(target(f"share of the product rate, dropout {dropout}", share, least=TARGET_SHARE))
    return table


def checks(rows: list[Record]) -> list[Record]:
    """Without dropout all variants share weights and batch, so that the losses of an attention are equal."""
    bare = [row for row in rows if row["dropout"] == 0]
    return equal_losses(bare, lambda row: f"{row['variant'].split()[1]}, round {row['round']}")


def measure(options: argparse.Namespace, common: Record) -> Record:
    """Speed in one process, memory in one for each variant; a failure is a note."""
    from benchmarks.model.workloads import variants

    names = [name for name in variants(options.device == "cpu") if re.search(options.variants, name)]
    more = {"rounds": options.rounds, "dropouts": options.dropout, "names": names}
    found = {"rows": [], "kernels": {}, "product_flops": None} | run(MODULE, "speed", common | more)
    each = [{"name": name, "dropout": dropout} for dropout in options.dropout for name in names]
    sizes = [{"variant": row["name"], **row} | run(MODULE, "memory", common | row) for row in each]
    return found | {"sizes": sizes}


def main() -> None:
    parser = Options("model.step", __doc__, quick="preset tiny, two sequences, one round: whether it works")
    parser.take("sequences", "device", "threads", "rounds")
    add = parser.add_argument
    add("--size", help="preset (default: base on the CPU, large elsewhere)")
    add("--batch-size", type=count, default=8)
    add("--dropout", type=float, nargs="+", default=[0.1, 0.0])
    add("--variants", default="", help="a regular expression: only the variants that it is found in")
    parser.set_defaults(rounds=5)
    options = parser.read()
    if options.quick:
        options.size, options.batch_size = "tiny", 2
    size = options.size or ("base" if options.device == "cpu" else "large")
    common = {"size": size, "sequences": str(options.sequences), "batch_size": options.batch_size}
    common |= {"device": options.device, "threads": options.threads}
    report = Report("A training step", options, PACKAGES)
    found = measure(options, common)
    rows, speed, memory = found["rows"], speed_rows(found["rows"]), memory_rows(found["sizes"])
    of_gpu = gpu_targets(rows, found["product_flops"])
    report.add("Targets", targets(speed, memory) if options.device == "cpu" else of_gpu)
    report.add("Speed", speed)
    report.add("Memory", memory)
    report.add("Checks", checks(rows))
    kernels = [{"variant": name, "kernel": kernel} for name, kernel in found["kernels"].items()]
    report.add("Kernels of attention", kernels)
    batches = {row["round"]: row for row in rows}.values()
    tokens = sum(row["words"] + row["entities"] for row in batches)
    places = sum(row["places"] for row in batches)
    if batches:
        mean = f"{tokens / len(batches):.0f} tokens on average, {tokens / places:.0%} of the padded places"
        report.head.append(f"Batches of {options.batch_size} real sequences: {mean}.\n")
    for row in ({"variant": "speed", **found}, *found["sizes"]):
        report.note_failure(row["variant"], row)
    report.measured |= found | common | {"sequences": options.sequences.name}  # no paths in what is kept
    report.finish()


if __name__ == "__main__":
    main()
