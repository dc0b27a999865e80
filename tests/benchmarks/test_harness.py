"""The parts that all benchmarks share: child processes, what a command takes, and checks that fail."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness.options import Options
from benchmarks.harness.report import Report, equal_losses
from benchmarks.harness.workloads import ROOT, ask, environment

ORPHAN = """
import subprocess, sys
code = "n = 0\\nwhile n < 3 * 10**6: n += 1"
subprocess.Popen([sys.executable, "-c", code])
"""
MEASURE = """
import json, sys
from dataclasses import asdict
from benchmarks.harness.measure import adopt_orphans, measure
from benchmarks.harness.workloads import environment
adopt_orphans()
result = measure([sys.executable, "-c", sys.argv[1]], environment(), timeout=float(sys.argv[2]))
print(json.dumps(asdict(result)))
"""


def measured(code: str, timeout: float = 60) -> dict[str, object]:
    """The figures of `measure` for Python code, in a process of its own, since it waits for all children."""
    command = [sys.executable, "-c", MEASURE, code, str(timeout)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment())
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux alone")
def test_children_that_outlive_a_command_count_but_not_in_its_wall_time() -> None:
    found = measured(ORPHAN)
    assert found["failure"] == ""
    assert found["cpu_seconds"] > 2 * measured("print('alone')")["cpu_seconds"] > 0


def test_a_command_that_fails_or_never_ends_says_so_without_paths() -> None:
    assert measured("raise ValueError('no /home/someone/file')")["failure"] == "exit status 1: ValueError: no file"
    assert measured("import time; time.sleep(600)", timeout=0.5)["failure"] == "not finished after 0 s"


def test_losses_are_equal_within_a_thousandth() -> None:
    rows = [{"loss": 3.0}, {"loss": 3.002}, {"failure": "signal 9"}]
    assert [row["passed"] for row in equal_losses(rows, lambda row: "")] == [True]
    assert [row["passed"] for row in equal_losses([*rows, {"loss": 3.1}], lambda row: "")] == [False]
    assert equal_losses(rows[:1], lambda row: "") == []


def test_a_failed_check_ends_the_command_behind_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = Options("tasks.some", None).read(["--note", "slow today", "--output", str(tmp_path / "new/some.json")])
    report = Report("Some", options, ("torch", "no-such-package"))
    report.add("Checks", [{"check": "equal", "passed": True}, {"check": "whole", "passed": False}])
    report.measured["rows"] = [1, 2]
    with pytest.raises(SystemExit, match="wrong: whole"):
        report.finish()
    kept = json.loads((tmp_path / "new/some.json").read_text())
    assert (kept["rows"], kept["notes"], len(kept["checks"])) == ([1, 2], ["slow today"], 2)
    assert kept["environment"]["versions"]["no-such-package"] == "absent"
    text = (tmp_path / "new/some.md").read_text()
    assert text in capsys.readouterr().out
    assert "- slow today" in text


def test_a_workload_that_takes_too_long_is_stopped() -> None:
    words = [sys.executable, "-c", "import time; time.sleep(600)"]
    assert ask(words, environment(), seconds=0.5) == {"failure": "stopped after 0.5 seconds"}
