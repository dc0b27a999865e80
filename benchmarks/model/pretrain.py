"""Pretraining: tokens a second, share of the machine's matrix-product rate, the loader, checkpoints.

    python -m benchmarks.model.pretrain --sequences DIR                 # on the CPU, base beside transformers' model
    python -m benchmarks.model.pretrain --sequences DIR --device cuda   # large in bf16 at 512 words

Every measurement is a process of its own. README.md says what is counted.
"""

import argparse
import itertools

from benchmarks.harness.options import Options, count
from benchmarks.harness.report import Report, divide, equal_losses, median, progress, target
from benchmarks.harness.workloads import Record, run

PACKAGES = ("torch", "transformers", "numpy", "pyarrow")
OURS, THEIRS = "ours", "transformers"
TARGET_SPEED, TARGET_SHARE, TARGET_WAIT = 1.7, 0.45, 0.02
TARGET_MASKING, TARGET_LOADING = 500_000, 200_000
ACCUMULATION = 8
SIZES = ("tiny", "base", "large")


def cpu_runs(options: argparse.Namespace) -> list[Record]:
    """What is trained on the CPU: `base` (or `--size`) by both in turn, then the other presets by ours."""
    common = {"device": "cpu", "phase": "all", "warm_steps": 0, "workers": 0, "longest": False}
    part = options.micro_batch_size
    sizes = {"batch_size": ACCUMULATION * part, "micro_batch_size": part}
    runs = [
        {"who": who, "size": options.size, "first_step": number, "steps": 1, "compare": True, "recipe": sizes}
        for number in range(options.rounds)
        for who in ((OURS, THEIRS) if number % 2 == 0 else (THEIRS, OURS))
    ]
    for size, steps, batch, micro in () if options.quick else (("tiny", 10, 64, 8), ("large", 1, 4, 1)):
        alone = {"who": OURS, "first_step": 0, "compare": False, "size": size, "steps": steps}
        runs.append(alone | {"recipe": {"batch_size": batch, "micro_batch_size": micro}})
    return [common | row for row in runs]


def gpu_runs(options: argparse.Namespace) -> list[Record]:
    """What is trained on a GPU: every preset in bf16, `large` in the first phase, too."""
    recipe = {"batch_size": 64 if options.quick else 512, "tokens_per_batch": options.tokens_per_batch}
    recipe |= {"precision": "bf16", "gradient_checkpointing": options.gradient_checkpointing}
    common = {"device": options.device, "who": OURS, "first_step": 0, "compare": False, "longest": True}
    common |= {"warm_steps": 4, "steps": 2 if options.quick else 12, "workers": options.workers}
    kinds = [("large", "all"), ("large", "new"), ("base", "all"), ("tiny", "all")]
    recipe["compiled"] = options.compiled
    return [common | {"recipe": recipe, "size": size, "phase": phase} for size, phase in kinds]


def measure(options: argparse.Namespace) -> Record:
    """All rows: training, loader, checkpoints; a failure stays in its row."""
    found: Record = {"train": [], "load": [], "checkpoint": []}
    sequences = {"sequences": str(options.sequences)}

    def add(kind: str, workload: str, arguments: Record, more: Record) -> None:
        found[kind].append(arguments | run("model.pretrain_workloads", workload, arguments | more))
        progress(f"{kind}: {found[kind][-1]}")

    for row in cpu_runs(options) if options.device == "cpu" else gpu_runs(options):
        add("train", "train", row, sequences | {"threads": options.threads})
    add("load", "mask", {"count": 300 if options.quick else 4000}, sequences)
    for workers in (0, 1, 2):
        recipe = {"batch_size": 64, "micro_batch_size": 8}
        steps = 5 if options.quick else 60
        add("load", "load", {"workers": workers, "steps": steps, "recipe": recipe}, sequences)
    for size in SIZES[:1] if options.quick else SIZES:
        more = {"scratch": options.scratch and str(options.scratch)}
        add("checkpoint", "checkpoint", {"size": size, "device": options.device}, more)
    return found


def training_rows(rows: list[Record]) -> list[Record]:
    """For each model: the median step, and what it is of the matrix-product rate."""
    table = []
    for kind in dict.fromkeys((row["who"], row["size"], row["phase"]) for row in rows):
        of = [row for row in rows if (row["who"], row["size"], row["phase"]) == kind]
        good = [row for row in of if "failure" not in row]
        steps = [
            {"tokens": tokens, "seconds": seconds, "share": flops / seconds / row["matrix_flops"]}
            for row in good
            for tokens, seconds, flops in zip(row["tokens"], row["seconds"], row["flops"], strict=True)
        ]
        whole = sum(step["seconds"] for step in steps)
        line = {**dict(zip(("model", "preset", "trains"), kind, strict=True)), "steps": len(steps)}
        line["micro-batches a step"] = good[0]["micro_batches"] if good else None
        line |= {f"{name} a step": median(step[name] for step in steps) for name in ("tokens", "seconds")}
        line["tokens/s"] = median(step["tokens"] / step["seconds"] for step in steps)
        line["share of the product rate"] = median(step["share"] for step in steps)
        line["waiting for the loader"] = divide(sum(sum(row["waits"]) for row in good), whole)
        table.append(line | {"peak MB": max((round(row["peak_mb"]) for row in good), default=None)})
    return table


def ratios(rows: list[Record]) -> list[Record]:
    """Ours beside transformers' on the same batches, round by round, and the median of the ratios."""
    table: list[Record] = []
    compared = [row for row in rows if row["compare"] and "failure" not in row]
    for number in dict.fromkeys(row["first_step"] for row in compared):
        pair = {row["who"]: row for row in compared if row["first_step"] == number}
        if len(pair) == 2:
            ours, theirs = (sum(pair[who]["seconds"]) for who in (OURS, THEIRS))
            row = {"round": number, "tokens": sum(pair[OURS]["tokens"]), "ours, s": ours}
            table.append(row | {"transformers, s": theirs, "x transformers": theirs / ours})
    if table:
        names = [name for name in table[0] if name != "round"]
        table.append({"round": "median"} | {name: median(row[name] for row in table) for name in names})
    return table


def loading_rows(rows: list[Record]) -> list[Record]:
    """Tokens a second of masking alone, and from Arrow to tensors by so many workers."""
    return [
        {
            "what": "masking alone" if "count" in row else f"Arrow to tensors, {row['workers']} workers",
            "tokens": row.get("tokens"),
            "tokens/s": divide(row.get("tokens"), row.get("seconds")),
        }
        for row in rows
    ]


def checkpoint_rows(rows: list[Record]) -> list[Record]:
    """Size and seconds of each preset's checkpoint."""
    table = []
    for row in rows:
        size, seconds = divide(row.get("bytes"), 1e6), row.get("write_seconds")
        line = {"preset": row["size"], "10^6 bytes": size, "write, s": seconds}
        line["write, 10^6 bytes/s"] = divide(size, seconds)
        table.append(line | {"read, s": row.get("read_seconds")})
    return table


def targets(device: str, training: list[Record], beside: list[Record], loader: list[Record]) -> list[Record]:
    """What was wanted and what was found; None where it was not measured."""
    speed = {row["what"]: row["tokens/s"] for row in loader}
    table = [target("masking, tokens/s", speed["masking alone"], least=TARGET_MASKING)]
    loaded = speed["Arrow to tensors, 1 workers"]
    table.append(target("Arrow to tensors, 1 worker, tokens/s", loaded, least=TARGET_LOADING))
    if device == "cpu":
        times = beside[-1]["x transformers"] if beside else None
        return [*table, target("x transformers' training loop, median", times, least=TARGET_SPEED)]
    large = next(row for row in training if (row["preset"], row["trains"]) == ("large", "all"))
    share, waiting = large["share of the product rate"], large["waiting for the loader"]
    table.append(target("share of the product rate, large", share, least=TARGET_SHARE))
    return [*table, target("waiting for the loader, large", waiting, most=TARGET_WAIT)]


def checks(rows: list[Record]) -> list[Record]:
    """Both have the same weights, batch and masks, so that their first losses without dropout are equal."""
    return equal_losses((row for row in rows if row["compare"]), lambda row: f"round {row['first_step']}")


def read_options() -> argparse.Namespace:
    parser = Options("model.pretrain", __doc__, quick="whether it works: a small model, one round")
    parser.take("sequences", "device", "threads", "scratch", "rounds")
    add = parser.add_argument
    add("--size", choices=SIZES, help="what is compared on the CPU (default: base; tiny with --quick)")
    parts = f"sequences in each of the {ACCUMULATION} parts of a step on the CPU"
    add("--micro-batch-size", type=count, default=2, help=parts)
    add("--tokens-per-batch", type=count, default=16384, help="of a micro-batch on a GPU")
    add("--workers", type=int, default=2, help="of the loader on a GPU (default: %(default)s)")
    add("--gradient-checkpointing", action="store_true", help="on a GPU")
    add("--compile", dest="compiled", action="store_true", help="on a GPU")
    options = parser.read()
    options.size = options.size or ("tiny" if options.quick else "base")
    return options


def main() -> None:
    options = read_options()
    report = Report("Pretraining", options, PACKAGES)
    rows = measure(options)
    training, beside, loader = training_rows(rows["train"]), ratios(rows["train"]), loading_rows(rows["load"])
    report.add("Targets", targets(options.device, training, beside, loader))
    for name, table in (("Training", training), ("Beside transformers", beside), ("Loader", loader)):
        report.add(name, table)
    report.add("Checkpoints", checkpoint_rows(rows["checkpoint"]))
    report.add("Checks", checks(rows["train"]))
    for row in itertools.chain(*rows.values()):
        report.note_failure(f"{row.get('who', 'checkpoint')} {row.get('size', '')}", row)
    report.measured["rows"] = rows
    report.finish()


if __name__ == "__main__":
    main()
