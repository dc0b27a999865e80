"""The machine, the versions and the state of the code: no paths, no names of hosts."""

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.harness.workloads import ROOT, Record

_OF_PEERS = "import importlib.metadata as m, sys; print(sys.version.split()[0], m.version('wikipedia2vec'))"


def environment_facts(packages: Iterable[str], peers: Path | None = None) -> Record:
    """Return machine, commit, load, and the versions of these packages and of those in the peers' Python."""
    cpu, memory = platform.processor(), os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    machine: Record = {"cores": os.cpu_count(), "memory GB": round(memory / 1e9, 1)}
    if sys.platform == "linux":
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        cpu = found[1] if found else cpu
        machine["usable cores"] = len(os.sched_getaffinity(0))
    versions = {"python": platform.python_version()} | {name: version(name) for name in packages}
    if "torch" in versions:
        import torch

        machine |= {"gpu": torch.cuda.get_device_name()} if torch.cuda.is_available() else {}
    folders = ("pipeline", "model", "tasks", "workflows", "benchmarks")
    return {
        "machine": {"cpu": cpu, **machine, "system": platform.platform()},
        "versions": versions | ({"peers": ask([str(peers), "-c", _OF_PEERS])} if peers else {}),
        "commit": ask(["git", "rev-parse", "--short=12", "HEAD"]),
        "changed": bool(ask(["git", "status", "--porcelain", "--", *folders])),
        "load before": os.getloadavg()[0],
    }


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def ask(command: Sequence[str]) -> str:
    """Return the output of a command; "" where it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def describe(facts: Record, load_after: float) -> str:
    """Return the facts as lines of Markdown."""

    def listed(values: Record) -> str:
        return "; ".join(f"{key} {value}" for key, value in values.items())

    state = ", with changes that are not committed" if facts["changed"] else ""
    return (
        f"Commit {facts['commit'] or 'unknown'}{state}.\n"
        f"Machine: {listed(facts['machine'])}.\n"
        f"Versions: {listed(facts['versions'])}.\n"
        f"Load average before: {facts['load before']:.2f}; after: {load_after:.2f}.\n"
    )
