"""The costs of the stages, for `workflows/planning/costs.toml`, from a result of the corpus benchmark.

    python -m benchmarks.corpus.costs benchmarks/results/DATE-corpus.json > workflows/planning/costs.toml

It has to run on the machine of the result, since it measures how fast that is. Start and growth of a stage are those
of the line through the smallest and the largest of the made dumps.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.corpus.corpus import Runs
from benchmarks.corpus.stages import STAGES
from benchmarks.harness.workloads import Record
from workflows.planning.plan import Cost, work_seconds


def costs(found: Record) -> dict[str, Cost]:
    """Return the cost of each stage by a benchmark's record."""
    runs, processes = Runs(found["runs"]), found["processes"]
    made = [dump for dump in found["dumps"] if "-linked-" in dump["name"]]
    small, large = made[0], made[-1]

    def figure(dump: Record, stage: str, name: str) -> float:
        return runs.median(dump["name"], stage, name) or 0.0

    def line(stage: str, name: str) -> tuple[float, float]:
        """Return the beginning of a figure, and its rise for a byte."""
        first, last = (figure(dump, stage, name) for dump in (small, large))
        if STAGES[stage].grows_with == "sample":  # which a larger dump does not make larger
            return last, 0.0
        rise = max(0.0, (last - first) / (large["file_bytes"] - small["file_bytes"]))
        return max(0.0, first - rise * small["file_bytes"]), rise

    def cost(stage: str) -> Cost:
        (start, work), (begin, wall) = line(stage, "cpu_seconds"), line(stage, "seconds")
        scratch = 1e6 * figure(large, stage, "scratch_mb")
        return Cost(
            start=round(start, 1),
            begin=round(begin, 1),
            seconds=_short(1e6 * work),
            alone=_alone(wall, work, processes),
            disk=_short(figure(large, stage, "bytes") / large["file_bytes"]),
            scratch=_short(scratch / large["file_bytes"]),
        )

    return {stage: cost(stage) for stage in STAGES}


def _alone(wall: float, work: float, processes: int) -> float:
    """The share of the work that one process does alone: wall = work * (alone + (1 - alone) / processes)."""
    share = (wall / work - 1 / processes) / (1 - 1 / processes) if work and processes > 1 else 1.0
    return round(min(1.0, max(0.0, share)), 2)


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def tables(work: float, stages: dict[str, Cost]) -> str:
    """The text of costs.toml."""
    return f"work_seconds = {work:.3g}\n" + "".join(
        f"\n[{stage}]\n" + "".join(f"{name} = {value}\n" for name, value in asdict(cost).items() if value)
        for stage, cost in stages.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.corpus.costs", description=__doc__)
    parser.add_argument("result", type=Path)
    result = parser.parse_args().result
    print(f"# What the stages cost ({result.name}); written by `python -m benchmarks.corpus.costs`.")
    print(tables(work_seconds(), costs(json.loads(result.read_text("utf-8")))), end="")


if __name__ == "__main__":
    main()
