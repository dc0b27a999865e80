"""Gradients of several processes: our one exchange a step beside torch's DistributedDataParallel.

    python -m benchmarks.model.ranks                                     # two processes on the CPU
    python -m benchmarks.model.ranks --device cuda --processes 8 --size large --tokens 16384

README.md says what is counted.
"""

import json
import math
import sys

from benchmarks.harness.options import Options, count
from benchmarks.harness.report import Report, divide, median, progress, target
from benchmarks.harness.workloads import ask, environment

PACKAGES = ("torch", "numpy")
OURS, PEER = "ours", "DistributedDataParallel"
TARGET = 1.0  # times the peer's step, at most


def main() -> None:
    parser = Options("model.ranks", __doc__)
    parser.take("device", "threads", "rounds")
    parser.add_argument("--processes", type=count, default=2, help="(default: %(default)s)")
    parser.add_argument("--size", default="tiny", choices=("tiny", "base", "large"), help="of the model")
    parser.add_argument("--tokens", type=count, default=1024, help="of a micro-batch (default: %(default)s)")
    parser.add_argument("--parts", type=count, nargs="+", default=[1, 4, 16], help="micro-batches of a step")
    parser.set_defaults(rounds=5, threads=1)
    options = parser.read()
    report = Report("Gradients of several processes", options, PACKAGES)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launch += ["--nproc-per-node", str(options.processes), "-m", "benchmarks.model.ranks_workloads"]
    rows, checks, ratios = [], [], []
    for parts in options.parts:
        arguments = {
            name: getattr(options, name) for name in ("device", "threads", "rounds", "size", "tokens")
        }
        found = ask([*launch, json.dumps(arguments | {"parts": parts})], environment(threads=options.threads))
        report.note_failure(f"{parts} micro-batches", found)
        progress(f"{parts} micro-batches: {found.get('failure', 'measured')}")
        report.measured[f"{parts} micro-batches"] = found
        ways = found.get("ways", {})
        seconds = {name: median(each["seconds"] for each in of) for name, of in ways.items()}
        for name in ways:
            row = {"micro-batches": parts, "exchange": name, "seconds": seconds[name]}
            rows.append(row | {"x DistributedDataParallel": divide(seconds[name], seconds[PEER])})
        if ways:
            ratios.append(divide(seconds[OURS], seconds[PEER]) or math.inf)
            norms = [ways[name][0]["norm"] for name in (OURS, "one by one", PEER)]
            is_equal = all(math.isclose(norm, norms[0], rel_tol=1e-4) for norm in norms)
            checks.append({"check": f"equal gradients, {parts} micro-batches", "passed": is_equal})
    report.add("Targets", [target("a step, times torch's", max(ratios, default=None), most=TARGET)])
    report.add("A step", rows)
    report.add("Checks", checks)
    report.finish()


if __name__ == "__main__":
    main()
