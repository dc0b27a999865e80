"""The grid of experiments with tiny random weights: killed in the middle, gone on with, and called once more.

``python benchmarks/grid.py [--quick]``

Every task x every variant x two seeds on `examples/`, by the command that a user gives, three times: the first call and
all of its process group is killed by SIGKILL, the second has to keep what is finished, the third has nothing to do.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
from grid_report import changed, checks, markdown, resumed, targets
from processes import ROOT, Record, begin_report, write_report

sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # before this folder, whose tasks.py is not the package

SEEDS = (1, 2)
QUICK_TASK = "relation_classification"
PAUSE = 1.0  # seconds from the last cell that is waited for to the kill, which falls into the next cell


def files(folder: Path, pattern: str = "**/*") -> dict[str, int]:
    """When each file was last written, in nanoseconds."""
    found = sorted(path for path in folder.glob(pattern) if path.is_file())
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in found}


def finished(workdir: Path) -> dict[str, int]:
    """The manifests of the cells that are done."""
    return files(workdir, "finetune-*/manifest.json")


def call(arguments: Sequence[str], workdir: Path, kill_after: int = 0) -> Record:
    """One call of the command, killed after so many finished cells (0: never), and what is there when it has ended."""
    log, begin = workdir.with_name("log.txt"), time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "luigi", *arguments],
            stdout=output, stderr=output, cwd=ROOT, env=environment, start_new_session=True,
        )  # fmt: skip
    workers: list[psutil.Process] = []
    try:
        while kill_after and process.poll() is None:
            if len(finished(workdir)) >= kill_after:
                time.sleep(PAUSE)
                workers = psutil.Process(process.pid).children(recursive=True)
                break
            time.sleep(0.1)
        else:
            process.wait()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    status, seconds = process.wait(), time.monotonic() - begin
    psutil.wait_procs(workers)
    text = log.read_text(encoding="utf-8", errors="replace").replace(f"{workdir.parent}/", "")
    return {
        "exit status": status,
        "seconds": seconds,
        "until its workers had ended": time.monotonic() - begin - seconds,
        "finished cells": len(finished(workdir)),
        "resumed after steps": resumed(text),
        "last lines": text.splitlines()[-5:],
    }


def cells_of(workdir: Path) -> list[Record]:
    """State and seconds of each cell that the grid's record names; of a resumed one the seconds after it went on."""
    cells = []
    for path in workdir.glob("experiments-*/experiments.json"):
        for record in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            cell = {name: record[name] for name in ("task", "variant", "seed", "state", "reason")}
            run = workdir / record["folder"] / "run.json"
            seconds = json.loads(run.read_text(encoding="utf-8"))["seconds"] if run.is_file() else None
            cells.append(cell | {"seconds": seconds})
    return cells


def measure(folder: Path, kill_after: int, choice: Sequence[str]) -> Record:
    """The three calls in an empty folder, and what each left of the work of those before it."""
    from tests.support.grid import experiments

    workdir = folder / "work"
    given = ["--module", "workflows", "RunExperiments", "--experiments", experiments(folder)]
    given += ["--workdir", str(workdir), "--seeds", ",".join(map(str, SEEDS))]
    given += ["--task-preset", "demo", *choice]
    calls = [{"call": "1, killed"} | call(given, workdir, kill_after)]
    kept = finished(workdir)
    calls.append({"call": "2, goes on"} | call(given, workdir))
    rewritten, after = changed(kept, finished(workdir)), files(workdir)
    calls.append({"call": "3, nothing to do"} | call(given, workdir))
    last = files(workdir)
    return {
        "grid": " ".join(["luigi", *(Path(word).name if os.sep in word else word for word in given)]),
        "calls": calls,
        "written again": rewritten,
        "changed by the third call": changed(after, last) + sorted(set(last) - set(after)),
        "cells": cells_of(workdir),
        "page bytes": [path.stat().st_size for path in workdir.glob("report-*/index.html")],
    }


def main() -> None:
    from tasks.finetuning.registry import TASKS
    from tasks.finetuning.variants import VARIANTS

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--quick", action="store_true", help=f"one task, {QUICK_TASK}: whether it works")
    add("--kill-after", type=int, help="finished cells before the kill (default: 20; 3 with --quick)")
    add("--note", action="append", default=[], dest="notes", help="a line for the report")
    add("--output", type=Path, help="the results as JSON; Markdown goes beside it")
    options = parser.parse_args()
    kind = "grid-quick" if options.quick else "grid"
    output = options.output or ROOT / f"benchmarks/results/{datetime.date.today().isoformat()}-{kind}.json"
    report = begin_report("grid.py", options.notes)
    report["environment"]["versions"]["luigi"] = importlib.metadata.version("luigi")
    report["threads"] = os.environ.get("OMP_NUM_THREADS", "as many as torch takes")
    report["expected cells"] = (1 if options.quick else len(TASKS)) * len(VARIANTS) * len(SEEDS)
    choice = ["--tasks", QUICK_TASK] if options.quick else []
    with tempfile.TemporaryDirectory() as folder:
        report |= measure(Path(folder), options.kill_after or (3 if options.quick else 20), choice)
    report |= {"load after": os.getloadavg()[0], "checks": checks(report), "targets": targets(report)}
    write_report(output, report, markdown(report))
    if failed := [row["check"] for row in report["checks"] if not row["passed"]]:
        raise SystemExit(f"failed: {', '.join(failed)}; the last lines of each call are in {output}")


if __name__ == "__main__":
    main()
