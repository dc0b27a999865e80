"""Pretraining: tokens a second, share of the machine's matrix-product rate, the loader, checkpoints.

    python benchmarks/pretrain.py --sequences DIR                 # on the CPU, base beside transformers' model
    python benchmarks/pretrain.py --sequences DIR --device cuda   # large in bf16 at 512 words

Every measurement is a process of its own. README.md says what is counted.
"""

import argparse
import datetime
import os
import statistics
import sys
from pathlib import Path

from processes import ROOT, Record, begin_report, equal_losses, facts_lines, run, write_report

WORKLOADS = "pretrain_workloads.py"
OURS, THEIRS = "ours", "transformers"
TARGET_SPEED, TARGET_SHARE, TARGET_WAIT = 1.7, 0.45, 0.02
TARGET_MASKING, TARGET_LOADING = 500_000, 200_000
ACCUMULATION = 8
SIZES = ("demo", "base", "large")


def cpu_runs(options: argparse.Namespace) -> list[Record]:
    """What is trained on the CPU: `base` (or `--size`) by both in turn, then the other presets by ours."""
    common = {"device": "cpu", "phase": "all", "warm_steps": 0, "workers": 0, "longest": False}
    size = options.micro_batch_size
    recipe = {"batch_size": ACCUMULATION * size, "micro_batch_size": size}
    both = [
        {"who": who, "size": options.size, "first_step": number, "steps": 1, "compare": True}
        for number in range(options.rounds)
        for who in ((OURS, THEIRS) if number % 2 == 0 else (THEIRS, OURS))
    ]
    alone = {"who": OURS, "first_step": 0, "compare": False}
    others = (
        []
        if options.quick
        else [
            alone | {"size": "demo", "steps": 10, "recipe": {"batch_size": 64, "micro_batch_size": 8}},
            alone | {"size": "large", "steps": 1, "recipe": {"batch_size": 4, "micro_batch_size": 1}},
        ]
    )
    return [common | {"recipe": recipe} | row for row in [*both, *others]]


def gpu_runs(options: argparse.Namespace) -> list[Record]:
    """What is trained on a GPU: every preset in bf16, `large` in the first phase, too."""
    recipe = {
        "batch_size": 64 if options.quick else 512,
        "tokens_per_batch": options.tokens_per_batch,
        "precision": "bf16",
        "gradient_checkpointing": options.gradient_checkpointing,
        "compiled": options.compiled,
    }
    common = {"device": options.device, "who": OURS, "first_step": 0, "compare": False, "longest": True}
    common |= {"warm_steps": 4, "steps": 2 if options.quick else 12, "workers": options.workers}
    kinds = [("large", "all"), ("large", "new"), ("base", "all"), ("demo", "all")]
    return [common | {"recipe": recipe, "size": size, "phase": phase} for size, phase in kinds]


def measure(options: argparse.Namespace) -> Record:
    """All rows: training, loader, checkpoints; a failure stays in its row."""
    found: Record = {"train": [], "load": [], "checkpoint": []}
    sequences = {"sequences": str(options.sequences)}

    def add(kind: str, workload: str, arguments: Record, more: Record) -> None:
        found[kind].append(arguments | run(WORKLOADS, workload, arguments | more))
        print(f"{kind}: {found[kind][-1]}", file=sys.stderr, flush=True)

    for row in cpu_runs(options) if options.device == "cpu" else gpu_runs(options):
        add("train", "train", row, sequences | {"threads": options.threads})
    add("load", "mask", {"count": 300 if options.quick else 4000}, sequences)
    recipe = {"batch_size": 64, "micro_batch_size": 8}
    for workers in (0, 1, 2):
        row = {"workers": workers, "steps": 5 if options.quick else 60, "recipe": recipe}
        add("load", "load", row, sequences)
    for size in SIZES[:1] if options.quick else SIZES:
        row = {"size": size, "device": options.device}
        add("checkpoint", "checkpoint", row, {"scratch": options.scratch and str(options.scratch)})
    return found


def training_rows(rows: list[Record]) -> list[Record]:
    """For each model: the median step, and what it is of the matrix-product rate."""
    table = []
    kinds = dict.fromkeys((row["who"], row["size"], row["phase"]) for row in rows)
    for who, size, phase in kinds:
        of = [row for row in rows if (row["who"], row["size"], row["phase"]) == (who, size, phase)]
        good = [row for row in of if "failure" not in row]
        shares = [
            flops / seconds / row["matrix_flops"]
            for row in good
            for flops, seconds in zip(row["flops"], row["seconds"], strict=True)
        ]
        waits = sum(sum(row["waits"]) for row in good)
        line = {
            "model": who,
            "preset": size,
            "trains": phase,
            "steps": sum(len(row["seconds"]) for row in good),
            "micro-batches a step": good[0]["micro_batches"] if good else None,
            "tokens a step": middle([tokens for row in good for tokens in row["tokens"]]),
            "seconds a step": middle([seconds for row in good for seconds in row["seconds"]]),
            "tokens/s": middle(rates(good)),
            "share of the product rate": middle(shares),
            "waiting for the loader": waits / sum(sum(row["seconds"]) for row in good) if good else None,
            "peak MB": max((round(row["peak_mb"]) for row in good), default=None),
        }
        table.append(line)
    return table


def middle(values: list[float]) -> float | None:
    """The median, where there is one."""
    return statistics.median(values) if values else None


def rates(rows: list[Record]) -> list[float]:
    """Real tokens (words and entities) a second of every step."""
    return [
        tokens / seconds
        for row in rows
        for tokens, seconds in zip(row["tokens"], row["seconds"], strict=True)
    ]


def ratios(rows: list[Record]) -> list[Record]:
    """Ours beside transformers' on the same batches, round by round, and the median of the ratios."""
    table: list[Record] = []
    pairs = {
        number: {
            row["who"]: row
            for row in rows
            if row["first_step"] == number and row["compare"] and "failure" not in row
        }
        for number in dict.fromkeys(row["first_step"] for row in rows)
    }
    for number, pair in pairs.items():
        if len(pair) == 2:
            ours, theirs = (sum(pair[who]["seconds"]) for who in (OURS, THEIRS))
            table.append(
                {
                    "round": number,
                    "tokens": sum(pair[OURS]["tokens"]),
                    "ours, s": ours,
                    "transformers, s": theirs,
                    "x transformers": theirs / ours,
                }
            )
    if table:
        names = ("ours, s", "transformers, s", "x transformers", "tokens")
        medians = {name: middle([row[name] for row in table]) for name in names}
        table.append({name: medians.get(name, "median") for name in table[0]})
    return table


def loading_rows(rows: list[Record]) -> list[Record]:
    """Tokens a second of masking alone, and from Arrow to tensors by so many workers."""
    return [
        {
            "what": "masking alone" if "count" in row else f"Arrow to tensors, {row['workers']} workers",
            "tokens": row.get("tokens"),
            "tokens/s": row["tokens"] / row["seconds"] if "tokens" in row else None,
        }
        for row in rows
    ]


def checkpoint_rows(rows: list[Record]) -> list[Record]:
    """Size and seconds of each preset's checkpoint."""
    return [
        {
            "preset": row["size"],
            "10^6 bytes": row["bytes"] / 1e6 if "bytes" in row else None,
            "write, s": row.get("write_seconds"),
            "write, 10^6 bytes/s": row["bytes"] / 1e6 / row["write_seconds"] if "bytes" in row else None,
            "read, s": row.get("read_seconds"),
        }
        for row in rows
    ]


def targets(report: Record) -> list[Record]:
    """What was wanted and what was found; None where it was not measured."""
    speed = {row["what"]: row["tokens/s"] for row in report["loader"]}
    wanted: list[tuple[str, float, float | None, bool]] = [
        ("masking, tokens/s", TARGET_MASKING, speed["masking alone"], False),
        ("Arrow to tensors, 1 worker, tokens/s", TARGET_LOADING, speed["Arrow to tensors, 1 workers"], False),
    ]
    if report["device"] == "cpu":
        median = (
            report["beside transformers"][-1]["x transformers"] if report["beside transformers"] else None
        )
        wanted.append(("x transformers' training loop, median", TARGET_SPEED, median, False))
    else:
        large = next(row for row in report["training"] if (row["preset"], row["trains"]) == ("large", "all"))
        wanted.append(
            ("share of the product rate, large", TARGET_SHARE, large["share of the product rate"], False)
        )
        wanted.append(("waiting for the loader, large", TARGET_WAIT, large["waiting for the loader"], True))
    return [
        {
            "target": target,
            "wanted": f"{'below' if below else 'at least'} {limit:,}",
            "found": found,
            "met": None if found is None else (found < limit if below else found >= limit),
        }
        for target, limit, found, below in wanted
    ]


def checks(rows: list[Record]) -> list[Record]:
    """Both have the same weights, batch and masks, so that their first losses without dropout are equal."""
    return [
        check
        for number in dict.fromkeys(row["first_step"] for row in rows if row["compare"])
        for check in equal_losses(
            f"equal first losses, round {number}", (row for row in rows if row["first_step"] == number)
        )
    ]


def markdown(report: Record) -> str:
    """The report for reading."""
    from report import table

    lines = [f"# Pretraining, {report['date']}\n", *facts_lines(report), ""]
    for title in ("targets", "training", "beside transformers", "loader", "checkpoints", "checks"):
        lines += [f"## {title.capitalize()}\n", table(report[title])]
    failures = [
        f"{row.get('who', 'checkpoint')} {row.get('size', '')}: {row['failure']}"
        for kind in ("train", "load", "checkpoint")
        for row in report["rows"][kind]
        if "failure" in row
    ]
    if failures or report["notes"]:
        lines += ["## Notes\n", *(f"- {note}" for note in [*failures, *report["notes"]]), ""]
    return "\n".join(lines)


def read_options() -> argparse.Namespace:
    results = ROOT / f"benchmarks/results/{datetime.date.today().isoformat()}-pretrain.json"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--sequences", type=Path, required=True, help="a folder that BuildSequences wrote")
    add("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    add(
        "--size",
        choices=SIZES,
        help="the preset that is compared on the CPU (default: base; demo with --quick)",
    )
    add("--rounds", type=int, help="comparisons on the CPU (default: 3; 1 with --quick)")
    add(
        "--micro-batch-size",
        type=int,
        default=2,
        help=f"sequences in each of the {ACCUMULATION} parts of a step on the CPU",
    )
    add(
        "--tokens-per-batch", type=int, default=16384, help="of a micro-batch on a GPU (default: %(default)s)"
    )
    add("--workers", type=int, default=2, help="of the loader on a GPU (default: %(default)s)")
    add("--gradient-checkpointing", action="store_true", help="on a GPU")
    add("--compile", dest="compiled", action="store_true", help="on a GPU")
    add("--threads", type=int, default=os.cpu_count(), help="of torch")
    add("--scratch", type=Path, help="folder for the checkpoints (default: the system's temporary one)")
    add("--quick", action="store_true", help="whether it works: a small model, one round")
    add("--note", action="append", default=[], dest="notes", help="a line for the report")
    add("--output", type=Path, default=results, help="the results as JSON; Markdown goes beside it")
    options = parser.parse_args()
    options.size = options.size or ("demo" if options.quick else "base")
    options.rounds = options.rounds or (1 if options.quick else 3)
    return options


def main() -> None:
    options = read_options()
    options.sequences = options.sequences.resolve()
    report = begin_report("pretrain.py", options.notes)
    rows = measure(options)
    report |= {"load after": os.getloadavg()[0], "device": options.device, "rows": rows}
    report |= {
        "training": training_rows(rows["train"]),
        "beside transformers": ratios(rows["train"]),
        "loader": loading_rows(rows["load"]),
        "checkpoints": checkpoint_rows(rows["checkpoint"]),
        "checks": checks(rows["train"]),
    }
    report["targets"] = targets(report)
    write_report(options.output, report, markdown(report))
    if failed := [row for row in report["checks"] if not row["passed"]]:
        raise SystemExit(f"{len(failed)} checks failed: what was measured is wrong")


if __name__ == "__main__":
    main()
