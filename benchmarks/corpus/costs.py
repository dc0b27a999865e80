"""What the stages cost, for `workflows/planning/costs.toml`, from a result of the corpus benchmark.

    python -m benchmarks.corpus.costs benchmarks/results/DATE-corpus.json enwiki-2006-12k.xml.bz2 > costs.toml

It has to run on the machine of the result, since it measures the machine's speed and takes a sample of the result's
dump. Start and growth of a stage are those of the line through the smallest and the largest of the made dumps, which
all have Java's settings for large dumps; what those for small ones save is seen on the real dump.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.corpus.corpus import Runs, driver_amounts
from benchmarks.corpus.full_dump import DRIVER_OF
from benchmarks.harness.workloads import Record
from workflows.planning.costs import Cost, Sample, take_sample, work_seconds

# The benchmark's drivers as `workflows.planning.plan` has them, and how many of its units one of the benchmark's has.
_DRIVERS = {
    "text": ("text", 1e6),
    "sample": ("sample", 1e6),
    "links": ("links", 1.0),
    "titles": ("titles", 1.0),
}
_FILE = ("file", 1.0)
_ON_SPARK = ("ResolveRedirects", "ResolveLinks", "BuildEntityVocab", "BuildMentionTable")
_MAIN, _WORKERS = ("main", "runner"), ("spark worker", "worker")


class Measured:
    """What a benchmark found for the smallest and the largest of the made dumps, and for the real one."""

    def __init__(self, found: Record) -> None:
        self.runs, self.processes = Runs(found["runs"]), found["processes"]
        made = [dump for dump in found["dumps"] if "-linked-" in dump["name"]]
        self.small, self.large, self.real = made[0], made[-1], found["dumps"][0]
        self._has = driver_amounts(self.runs, [self.small, self.large, self.real])

    def amount(self, dump: Record, driver: str) -> float:
        """How much of a driver a dump has, in the units of `workflows.planning`."""
        if driver not in _DRIVERS:
            return float(dump["file_bytes"])
        return _DRIVERS[driver][1] * self._has[dump["name"]][driver]

    def figure(self, dump: Record, stage: str, name: str) -> float:
        return self.runs.median(dump["name"], stage, name) or 0.0

    def line(self, stage: str, name: str, amounts: Callable[[Record], float]) -> tuple[float, float]:
        """Where the line of a figure over some amount begins, and how much it rises for one."""
        first, last = (self.figure(dump, stage, name) for dump in (self.small, self.large))
        begin, end = amounts(self.small), amounts(self.large)
        rise = max(0.0, (last - first) / (end - begin)) if end > begin else 0.0
        return max(0.0, first - rise * begin), rise

    def cost(self, stage: str, driver: str) -> Cost:
        """What a stage costs by its driver."""

        def amounts(dump: Record) -> float:
            return self.amount(dump, driver)

        def saved(name: str, start: float, rise: float) -> float:
            """What the real dump took less than the line says, where Java has other settings for it."""
            less = start + rise * amounts(self.real) - self.figure(self.real, stage, name)
            return round(max(0.0, less), 1) if stage in _ON_SPARK else 0.0

        start, seconds = self.line(stage, "cpu_seconds", amounts)
        begin, wall = self.line(stage, "seconds", amounts)
        figures, end = self.runs.of(self.large["name"])[0]["stages"][stage], amounts(self.large)
        return Cost(
            driver=_DRIVERS.get(driver, _FILE)[0],
            start=round(start, 1),
            begin=round(begin, 1),
            saved_start=saved("cpu_seconds", start, seconds),
            saved_begin=saved("seconds", begin, wall),
            seconds=_short(1e6 * seconds),
            alone=_alone(wall, seconds, self.processes),
            process=_short(1e6 * sum(figures["rss_mb"].get(role, 0.0) for role in _MAIN)),
            worker=_short(1e6 * max(figures["rss_mb"].get(role, 0.0) for role in _WORKERS)),
            disk=_short(figures["bytes"] / end),
            scratch=_short(1e6 * (figures["scratch_mb"] or 0.0) / end),
        )


def costs(found: Record, sample: Sample) -> dict[str, Cost]:
    """What each stage costs, by a benchmark's record and a sample of its dump."""
    measured = Measured(found)
    result = {stage: measured.cost(stage, driver) for stage, driver in DRIVER_OF.items()}
    # How long pages take to extract depends on what is in them: the sample tells.
    start, sampled = measured.line(
        "ExtractPages", "cpu_seconds", lambda dump: sample.of(dump["file_bytes"]).seconds
    )
    result["ExtractPages"] = replace(
        result["ExtractPages"], start=round(start, 1), seconds=0.0, sampled=_short(sampled)
    )
    return result


def _alone(wall: float, work: float, processes: int) -> float:
    """The share of the work that one process does alone: wall = work * (alone + (1 - alone) / processes)."""
    share = (wall / work - 1 / processes) / (1 - 1 / processes) if work and processes > 1 else 1.0
    return round(min(1.0, max(0.0, share)), 2)


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def tables(work: float, sample: Sample, stages: dict[str, Cost]) -> str:
    """The text of costs.toml."""

    def table(name: str, values: dict[str, Any]) -> str:
        lines = (f"{key} = {json.dumps(value)}\n" for key, value in values.items() if value)
        return f"\n[{name}]\n{''.join(lines)}"

    dump = {name: round(value, 3) for name, value in asdict(sample).items()}
    return f"work_seconds = {work:.3g}\n" + "".join(
        [table("dump", dump), *(table(f"stages.{stage}", asdict(cost)) for stage, cost in stages.items())]
    )


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.corpus.costs", description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("dump", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sample = take_sample([str(options.dump)], folder, "fixed")
    if sample is None:
        raise SystemExit(f"{options.dump}: no sample can be taken of it; give a dump in bzip2")
    stages = costs(json.loads(options.result.read_text("utf-8")), sample)
    print(f"# What the stages cost ({options.result.name}); written by `python -m benchmarks.corpus.costs`.")
    print(tables(work_seconds(), sample, stages), end="")


if __name__ == "__main__":
    main()
