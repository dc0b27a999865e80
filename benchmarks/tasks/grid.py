"""The grid of experiments with tiny random weights: killed in the middle, gone on with, and called once more.

Every task x every variant x two seeds on `examples/`, by the command that a user gives, three times: the first call and
all of its process group is killed by SIGKILL, the second has to keep what is finished, the third has nothing to do.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from benchmarks.harness.options import Options, count
from benchmarks.harness.report import Report, target
from benchmarks.harness.workloads import ROOT, Record, environment

SEEDS = (1, 2)
QUICK_TASK = "relation_classification"
WANTED_MINUTES = 15
PAUSE = 1.0  # seconds from the last cell that is waited for to the kill, which falls into the next cell
_RESUMED = re.compile(r"checkpoints/\S+: resumed after step (\d+)$", re.MULTILINE)
HEAD = """The first call ends with SIGKILL of its process group; the process that fine-tunes is outside that group, and
ends when it sees that its caller is gone. Scores of random weights mean nothing and are left out."""


def files(folder: Path, pattern: str = "**/*") -> dict[str, int]:
    """When each file was last written, in nanoseconds."""
    found = sorted(path for path in folder.glob(pattern) if path.is_file())
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in found}


def finished(workdir: Path) -> dict[str, int]:
    """The manifests of the cells that are done."""
    return files(workdir, "finetune-*/manifest.json")


def changed(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """The files of before that were written again or are gone."""
    return [name for name, written in before.items() if after.get(name) != written]


def resumed(log: str) -> list[int]:
    """The steps after which cells went on from a checkpoint."""
    return [int(step) for step in _RESUMED.findall(log)]


def call(arguments: Sequence[str], workdir: Path, kill_after: int = 0) -> Record:
    """One call of the command, killed after so many finished cells (0: never), and what is there when it has ended."""
    log, begin = workdir.with_name("log.txt"), time.monotonic()
    command = [sys.executable, "-m", "luigi", *arguments]
    with log.open("w", encoding="utf-8") as output:
        streams = {"stdout": output, "stderr": output}
        process = subprocess.Popen(command, cwd=ROOT, env=environment(), start_new_session=True, **streams)
    workers: list[psutil.Process] = []
    try:
        while kill_after and process.poll() is None and len(finished(workdir)) < kill_after:
            time.sleep(0.1)
        if kill_after and process.poll() is None:
            time.sleep(PAUSE)
            workers = psutil.Process(process.pid).children(recursive=True)
        else:
            process.wait()
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    status, seconds = process.wait(), time.monotonic() - begin
    psutil.wait_procs(workers)
    text = log.read_text(encoding="utf-8", errors="replace").replace(f"{workdir.parent}/", "")
    record = {"exit status": status, "seconds": seconds}
    record["until its workers had ended"] = time.monotonic() - begin - seconds
    record |= {"finished cells": len(finished(workdir)), "resumed after steps": resumed(text)}
    return record | {"last lines": text.splitlines()[-5:]}


def cells_of(workdir: Path) -> list[Record]:
    """State and seconds of each cell that the grid's record names; of a resumed one the seconds after it went on."""
    cells = []
    for path in workdir.glob("experiments-*/experiments.json"):
        for record in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            run = workdir / record["folder"] / "run.json"
            cell = {name: record[name] for name in ("task", "variant", "seed", "state", "reason")}
            seconds = json.loads(run.read_text(encoding="utf-8"))["seconds"] if run.is_file() else None
            cells.append(cell | {"seconds": seconds})
    return cells


def measure(folder: Path, kill_after: int, choice: Sequence[str]) -> Record:
    """The three calls in an empty folder, and what each left of the work of those before it."""
    from benchmarks.harness.oracle import experiments

    workdir, seeds = folder / "work", ",".join(map(str, SEEDS))
    given = ["--module", "workflows", "RunExperiments", "--experiments", experiments(folder)]
    given += ["--workdir", str(workdir), "--seeds", seeds, "--task-preset", "demo", *choice]
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


def checks(found: Record) -> list[Record]:
    """What has to hold whatever the time: a failed one makes the command fail."""
    first, second, third = found["calls"]
    wanted, pages, at_kill = found["expected cells"], found["page bytes"], first["finished cells"]
    done = sum(cell["state"] == "done" for cell in found["cells"])
    status, ends = first["exit status"], [second["exit status"], third["exit status"]]
    rewritten, changes = (len(found[name]) for name in ("written again", "changed by the third call"))
    rows = [
        ("exit status of the first call", status, status == -signal.SIGKILL),
        ("exit statuses of the others", ends, ends == [0, 0]),
        (f"cells finished at the kill, of {wanted}", at_kill, 0 < at_kill < wanted),
        ("finished cells that the second call wrote again", rewritten, rewritten == 0),
        (f"cells done, of {wanted}", done, done == wanted == len(found["cells"])),
        ("pages of a report, bytes", pages, len(pages) == 1 and pages[0] > 0),
        ("files that the third call changed", changes, changes == 0),
    ]
    return [{"check": name, "found": str(value), "passed": passed} for name, value, passed in rows]


def targets(calls: Sequence[Record]) -> list[Record]:
    """The three calls together, with what the kill lost, against the time that the grid may take."""
    minutes = sum(row["seconds"] + row["until its workers had ended"] for row in calls) / 60
    return [target("minutes of the three calls together", minutes, most=WANTED_MINUTES)]


def main() -> None:
    from tasks.finetuning.registry import TASKS
    from tasks.finetuning.variants import VARIANTS

    parser = Options("tasks.grid", __doc__, quick=f"one task, {QUICK_TASK}: whether it works")
    help_text = "finished cells before the kill (default: 20; 3 with --quick)"
    parser.add_argument("--kill-after", type=count, help=help_text)
    options = parser.read()
    report = Report("The grid of experiments with tiny weights", options, ("torch", "transformers", "luigi"))
    choice = ["--tasks", QUICK_TASK] if options.quick else []
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), options.kill_after or (3 if options.quick else 20), choice)
    found["expected cells"] = (1 if options.quick else len(TASKS)) * len(VARIANTS) * len(SEEDS)
    threads = os.environ.get("OMP_NUM_THREADS", "as many as torch takes")
    report.head.append(f"Three times `{found['grid']}`; threads of each process: {threads}.\n")
    calls = [{name: value for name, value in row.items() if name != "last lines"} for row in found["calls"]]
    report.add(
        "Calls", [row | {"resumed after steps": str(row["resumed after steps"])} for row in calls], HEAD
    )
    report.add("Checks", checks(found))
    report.add("Targets", targets(found["calls"]))
    what = "Seconds are of the call that finished the cell; the first cell of a process loads torch."
    report.add("Cells", [{**cell, "reason": cell["reason"] or "-"} for cell in found["cells"]], what)
    report.measured |= {
        "last lines": [row["last lines"] for row in found["calls"]],
        "page bytes": found["page bytes"],
    }
    report.finish()


if __name__ == "__main__":
    main()
