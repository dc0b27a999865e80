"""A training step of LUKE on the CPU: ours beside transformers', tokens a second and peak memory.

    python -m benchmarks.model.step --sequences DIR

A step is forward, both losses and backward; the optimiser is left out. README.md says what is counted. On a GPU
`benchmarks.model.gpu` measures.
"""

import argparse
from collections.abc import Iterable

from benchmarks.harness.options import Options
from benchmarks.harness.report import Report, divide, equal_losses, median
from benchmarks.harness.workloads import Record, run

MODULE = "model.workloads"
DROPOUTS = (0.1, 0.0)
PACKAGES = ("torch", "transformers", "numpy", "pyarrow", "liger-kernel", "cut-cross-entropy")


def rates(rows: Iterable[Record], variant: str, dropout: float, clock: str = "seconds") -> list[float]:
    """Return real tokens (words and entities) a second of each round, by the wall's clock or the processors'."""
    chosen = [row for row in rows if (row["variant"], row["dropout"]) == (variant, dropout)]
    return [(row["words"] + row["entities"]) / row[clock] for row in chosen]


def same_attention(variant: str) -> str:
    """Return the variant of transformers that one is set against."""
    return f"transformers {variant.split()[1]} padded"


def speed_rows(rows: list[Record]) -> list[Record]:
    """Return the fastest and median round of each variant, and both against transformers' same attention."""
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
    """Return the sizes of each variant, and its peak against transformers' same attention."""
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


def checks(rows: list[Record]) -> list[Record]:
    """Check that losses of an attention are equal without dropout, where all variants share weights and batch."""
    bare = [row for row in rows if row["dropout"] == 0]
    return equal_losses(bare, lambda row: f"{row['variant'].split()[1]}, round {row['round']}")


def measure(options: argparse.Namespace, common: Record) -> Record:
    """Measure speed in one process, memory in one for each variant; a failure is a note."""
    from benchmarks.model.workloads import variants

    names = variants()
    more = {"rounds": options.rounds, "dropouts": DROPOUTS, "names": names}
    found = {"rows": [], "kernels": {}} | run(MODULE, "speed", common | more)
    each = [{"name": name, "dropout": dropout} for dropout in DROPOUTS for name in names]
    sizes = [{"variant": row["name"], **row} | run(MODULE, "memory", common | row) for row in each]
    return found | {"sizes": sizes}


def main() -> None:
    quick = "preset tiny, two sequences, one round: whether it works"
    parser = Options("model.step", __doc__, "sequences", "threads", "rounds", quick=quick)
    parser.set_defaults(rounds=5)
    options = parser.read()
    size, batch_size = ("tiny", 2) if options.quick else ("base", 8)
    common = {"size": size, "batch_size": batch_size, "threads": options.threads}
    report = Report("A training step", options, PACKAGES)
    found = measure(options, common | {"sequences": str(options.sequences)})
    rows = found["rows"]
    report.add("Speed", speed_rows(rows))
    report.add("Memory", memory_rows(found["sizes"]))
    report.add("Checks", checks(rows))
    kernels = [{"variant": name, "kernel": kernel} for name, kernel in found["kernels"].items()]
    report.add("Kernels of attention", kernels)
    names = ("round", "words", "entities", "places")
    report.add("Batches", list({row["round"]: {name: row[name] for name in names} for row in rows}.values()))
    for row in ({"variant": "speed", **found}, *found["sizes"]):
        report.note_failure(row["variant"], row)
    report.measured |= found | common | {"sequences": options.sequences.name}  # no paths in what is kept
    report.finish()


if __name__ == "__main__":
    main()
