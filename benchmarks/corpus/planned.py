"""What `Plan` says beside what a result of the corpus benchmark found, stage by stage.

    python -m benchmarks.corpus.planned benchmarks/results/DATE-corpus.json enwiki-2006-12k.xml.bz2

The dump and its copies are those of the result, which are made again. It runs on the result's machine, since `Plan`
measures how fast a machine is.
"""

import argparse
import json
import tempfile
from pathlib import Path

from benchmarks.corpus.corpus import COPIES, Runs
from benchmarks.corpus.dumps import Dump, real_dump, repeated
from benchmarks.harness.report import divide, table
from benchmarks.harness.workloads import Record
from workflows import Plan

LONG, FACTOR = 20, 1.5  # seconds of a stage that is held to this factor


def rows(runs: Runs, dump: Dump, workdir: str, processes: int) -> list[Record]:
    """A row for each stage of a dump."""
    told = Plan(dump=str(dump.path), workdir=workdir, preset="base", processes=processes).estimates()
    found = []
    for stage, estimate in told.items():
        seconds = runs.median(dump.name, stage, "seconds")
        ratio = divide(estimate.seconds, seconds)
        is_held = seconds is not None and ratio is not None and seconds >= LONG
        found.append(
            {
                "stage": stage,
                "planned s": estimate.seconds,
                "found s": seconds,
                "planned over found": ratio,
                "planned CPU s": estimate.cpu_seconds,
                "found CPU s": runs.median(dump.name, stage, "cpu_seconds"),
                f"within {FACTOR}": 1 / FACTOR <= (ratio or 0) <= FACTOR if is_held else "short",
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.corpus.planned", description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("dump", type=Path)
    options = parser.parse_args()
    result = json.loads(options.result.read_text("utf-8"))
    runs = Runs(result["runs"])
    with tempfile.TemporaryDirectory() as folder:
        dumps = [real_dump(options.dump)]
        dumps += [repeated(options.dump, Path(folder), copies, linked=True) for copies in COPIES]
        for dump in dumps:
            print(f"## {dump.name}\n")
            print(table(rows(runs, dump, folder, result["processes"])), flush=True)


if __name__ == "__main__":
    main()
