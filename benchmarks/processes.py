"""A workload in a process of its own, and the facts of the machine; nothing beyond torch is needed."""

import datetime
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
Record = dict[str, Any]
PACKAGES = ("torch", "transformers", "numpy", "pyarrow", "liger-kernel", "cut-cross-entropy")


def run(script: str, workload: str, arguments: Record) -> Record:
    """What a workload of a script here prints; {"failure": ...} where it did not end well."""
    done = subprocess.run(
        # -P: model.py, in the same folder as the script, must not be taken for the package `model`.
        [sys.executable, "-P", str(ROOT / "benchmarks" / script), workload, json.dumps(arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )
    if done.returncode:
        reason = f"signal {-done.returncode}" if done.returncode < 0 else f"exit status {done.returncode}"
        return {"failure": f"{reason}: {(done.stderr.strip().splitlines() or [''])[-1][:300]}"}
    found: Record = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def environment_facts() -> Record:
    """Machine and versions; no paths, no names of hosts."""
    import torch

    cpu = platform.processor()
    if sys.platform == "linux":
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        cpu = found[1] if found else cpu
    machine = {"cpu": cpu, "cores": os.cpu_count(), "system": platform.platform()}
    if torch.cuda.is_available():
        machine["gpu"] = torch.cuda.get_device_name()
    installed = {name.lower() for name in (d.metadata["Name"] for d in importlib.metadata.distributions())}
    versions = {"python": platform.python_version()} | {
        name: importlib.metadata.version(name) if name in installed else "absent" for name in PACKAGES
    }
    git = ["git", "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, cwd=ROOT).stdout.strip()
    return {"machine": machine, "versions": versions, "commit": commit, "load before": os.getloadavg()[0]}


def facts_lines(report: Record) -> list[str]:
    """Command, commit, machine, versions and (where something was timed) load of a report as lines of Markdown."""
    facts = report["environment"]
    lines = [
        f"`{report['command']}`\n",
        f"Commit {facts['commit'] or 'unknown'}.",
        "Machine: " + "; ".join(f"{key} {value}" for key, value in facts["machine"].items()) + ".",
        "Versions: " + "; ".join(f"{key} {value}" for key, value in facts["versions"].items()) + ".",
    ]
    if "load after" in report:
        before, after = facts["load before"], report["load after"]
        lines.append(f"Load average before: {before:.2f}; after the timed rounds: {after:.2f}.")
    return [*lines, ""]


def equal_losses(what: str, rows: Iterable[Record]) -> list[Record]:
    """Whether rows that share weights, batch and masks have the same loss; no check of less than two losses."""
    losses = [row["loss"] for row in rows if row.get("loss") is not None]
    if len(losses) < 2:
        return []
    spread = max(losses) - min(losses)
    return [
        {
            "check": what,
            "losses": len(losses),
            "spread": f"{spread:.1e}",
            "passed": spread < 1e-3 * losses[0],
        }
    ]


def command_line(script: str, notes: Sequence[str]) -> str:
    """The command that runs, without its notes and the folders of its paths."""
    given = [word for word in sys.argv[1:] if word not in notes and not word.startswith("--note")]
    return " ".join(
        [f"python benchmarks/{script}", *(Path(word).name if os.sep in word else word for word in given)]
    )


def begin_report(script: str, notes: list[str]) -> Record:
    """The head of a report: date, command, environment and notes."""
    return {
        "date": datetime.date.today().isoformat(),
        "command": command_line(script, notes),
        "environment": environment_facts(),
        "notes": notes,
    }


def write_report(output: Path, report: Record, text: str) -> None:
    """The report as JSON, and its text as Markdown beside it, which is printed, too."""
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    output.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
