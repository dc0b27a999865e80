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

from benchmarks.corpus.corpus import Runs
from benchmarks.harness.workloads import Record
from workflows.planning.costs import Cost, Sample, take_sample, work_seconds

DRIVERS = {
    "FetchDump": "file",
    "ExtractPages": "file",
    "ResolveRedirects": "titles",
    "ResolveLinks": "links",
    "BuildEntityVocab": "links",
    "BuildMentionTable": "text",
    "TrainTokenizer": "sample",
    "BuildSequences": "text",
}
_SAMPLE = 100e6  # the default of --tokenizer-characters
_ON_SPARK = ("ResolveRedirects", "ResolveLinks", "BuildEntityVocab", "BuildMentionTable")
_MAIN, _WORKERS = ("main", "runner"), ("spark worker", "worker")


class Measured:
    """The figures of the smallest and the largest of the made dumps, and of the real one."""

    def __init__(self, found: Record) -> None:
        self.runs, self.processes = Runs(found["runs"]), found["processes"]
        made = [dump for dump in found["dumps"] if "-linked-" in dump["name"]]
        self.small, self.large, self.real = made[0], made[-1], found["dumps"][0]

    def amount(self, dump: Record, driver: str) -> float:
        """Return how much of a driver a dump has."""
        stages = self.runs.of(dump["name"])[0]["stages"]
        pages, titles = stages["ExtractPages"], stages["ResolveRedirects"]["rows"]["titles"]
        has = {"file": dump["file_bytes"], "text": pages["text_bytes"], "links": pages["rows"]["links"]}
        has |= {"sample": min(pages["text_bytes"], _SAMPLE), "titles": titles}
        return float(has[driver])

    def line(self, stage: str, name: str, amounts: Callable[[Record], float]) -> tuple[float, float]:
        """Return where the line of a figure over some amount begins, and how much it rises for one."""
        made = [self.runs.median(dump["name"], stage, name) or 0.0 for dump in (self.small, self.large)]
        first, last = made
        begin, end = amounts(self.small), amounts(self.large)
        rise = max(0.0, (last - first) / (end - begin)) if end > begin else 0.0
        return max(0.0, first - rise * begin), rise

    def cost(self, stage: str, driver: str) -> Cost:
        """Return the cost of a stage by its driver."""

        def amounts(dump: Record) -> float:
            return self.amount(dump, driver)

        def saved(name: str, start: float, rise: float) -> float:
            """Return what the real dump took less than the line says, where Java has other settings for it."""
            less = (
                start + rise * amounts(self.real) - (self.runs.median(self.real["name"], stage, name) or 0.0)
            )
            return round(max(0.0, less), 1) if stage in _ON_SPARK else 0.0

        start, seconds = self.line(stage, "cpu_seconds", amounts)
        begin, wall = self.line(stage, "seconds", amounts)
        figures, end = self.runs.of(self.large["name"])[0]["stages"][stage], amounts(self.large)
        return Cost(
            driver=driver,
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
    """Return the cost of each stage, by a benchmark's record and a sample of its dump."""
    measured = Measured(found)
    result = {stage: measured.cost(stage, driver) for stage, driver in DRIVERS.items()}
    # How long pages take to extract depends on what is in them: the sample tells.
    extract = "ExtractPages"
    seconds = measured.line(extract, "cpu_seconds", lambda dump: sample.of(dump["file_bytes"]).seconds)
    changes = {"start": round(seconds[0], 1), "seconds": 0.0, "sampled": _short(seconds[1])}
    return {**result, extract: replace(result[extract], **changes)}


def _alone(wall: float, work: float, processes: int) -> float:
    """Return the share that one process does alone: wall = work * (alone + (1 - alone) / processes)."""
    share = (wall / work - 1 / processes) / (1 - 1 / processes) if work and processes > 1 else 1.0
    return round(min(1.0, max(0.0, share)), 2)


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def tables(work: float, sample: Sample, stages: dict[str, Cost]) -> str:
    """Return the text of costs.toml."""

    def table(name: str, values: dict[str, Any]) -> str:
        lines = (f"{key} = {json.dumps(value)}\n" for key, value in values.items() if value)
        return f"\n[{name}]\n{''.join(lines)}"

    dump = {name: round(value, 3) for name, value in asdict(sample).items()}
    found = [table("dump", dump), *(table(f"stages.{stage}", asdict(cost)) for stage, cost in stages.items())]
    return f"work_seconds = {work:.3g}\n{''.join(found)}"


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
