"""What `Plan` says beside what a result of the corpus benchmark found, stage by stage.

    python -m benchmarks.corpus.planned benchmarks/results/DATE-corpus.json

As on a machine that is as fast as that of `costs.toml`.
"""

import argparse
import json
from pathlib import Path

from benchmarks.corpus.corpus import Runs
from benchmarks.harness.report import divide, table
from benchmarks.harness.workloads import Record
from workflows.planning.plan import read_costs

LONG, FACTOR = 20, 1.5  # seconds of a stage that is held to this factor


def rows(runs: Runs, dump: Record, processes: int) -> list[Record]:
    """A row for each stage of a dump."""
    found = []
    for stage, cost in read_costs()[1].items():
        planned = cost.estimate(dump["file_bytes"], processes, speed=1)
        seconds = runs.median(dump["name"], stage, "seconds")
        ratio = divide(planned.seconds, seconds)
        is_held = seconds is not None and ratio is not None and seconds >= LONG
        found.append(
            {
                "stage": stage,
                "planned s": planned.seconds,
                "found s": seconds,
                "planned over found": ratio,
                "planned CPU s": planned.cpu_seconds,
                "found CPU s": runs.median(dump["name"], stage, "cpu_seconds"),
                f"within {FACTOR}": 1 / FACTOR <= (ratio or 0) <= FACTOR if is_held else "short",
                "planned disk MB": planned.disk / 1e6,
                "found disk MB": divide(runs.median(dump["name"], stage, "bytes"), 1e6),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.corpus.planned", description=__doc__)
    parser.add_argument("result", type=Path)
    result = json.loads(parser.parse_args().result.read_text("utf-8"))
    for dump in result["dumps"]:
        print(f"## {dump['name']}\n")
        print(table(rows(Runs(result["runs"]), dump, result["processes"])), flush=True)


if __name__ == "__main__":
    main()
