"""A workload in a process of its own: how it is called, what it answers, and how its work is timed there.

Only the standard library is imported, so that what a workload measures of itself is its own.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
Record = dict[str, Any]


def serve(*workloads: Callable[..., Record]) -> None:
    """Do, in the child, the workload that the command line names with its arguments, and print a line of JSON."""
    known = {workload.__name__: workload for workload in workloads}
    print(json.dumps(known[sys.argv[1]](**json.loads(sys.argv[2]))))


def command(module: str, workload: str, arguments: Mapping[str, Any]) -> list[str]:
    """Return the words that make a module in `benchmarks` do one of its workloads."""
    return [sys.executable, "-m", f"benchmarks.{module}", workload, json.dumps(arguments)]


def environment(*, threads: int | None = None, ours: bool = True) -> dict[str, str]:
    """Return the caller's environment without its settings of Python; `ours` has this checkout's code in front."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    kept |= {"PYTHONPATH": str(ROOT)} if ours else {}
    return kept | ({"OMP_NUM_THREADS": str(threads)} if threads else {})


def run(
    module: str, workload: str, arguments: Mapping[str, Any], threads: int | None = None,
    seconds: float | None = None,
) -> Record:  # fmt: skip
    """Return the answer of a workload; {"failure": ...} where it did not end well, or not within so many seconds."""
    return ask(command(module, workload, arguments), environment(threads=threads), seconds)


def ask(words: Sequence[str | Path], own: Mapping[str, str], seconds: float | None = None) -> Record:
    """Return the same of any command that prints a line of JSON, such as a script that another Python runs."""
    try:
        done = subprocess.run(words, env=own, cwd=ROOT, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"failure": f"stopped after {seconds:g} seconds"}
    if done.returncode:
        reason = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        return {"failure": f"{reason}: {(done.stderr.strip().splitlines() or [''])[-1][:300]}"}
    found: Record = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return the work's result, and its seconds by the wall's clock and by that of the processors (all threads)."""
    begin, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}


def in_turn(methods: Mapping[str, Callable[[], Any]], rounds: int) -> list[Record]:
    """Return a row for each method in each round."""
    return [
        {"round": number, "variant": name, **timed(method)[1]}
        for number in range(rounds)
        for name, method in methods.items()
    ]


def kernel_size(name: str, pid: int | str = "self") -> float:
    """Return a size of a process in 10^6 bytes as Linux tells it: VmRSS, or VmHWM for the largest so far; else 0."""
    status = Path(f"/proc/{pid}/status")
    text = status.read_text(encoding="utf-8") if status.is_file() else ""
    found = re.search(rf"{name}:\s+(\d+) kB", text)
    return int(found[1]) * 1024 / 1e6 if found else 0.0
