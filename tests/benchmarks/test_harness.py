"""The parts that all benchmarks share: tables, options, child processes, and what a command takes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness.options import Options, python_of
from benchmarks.harness.report import Report, equal_losses, median, table
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
    """What `measure` says of Python code; in a process of its own, since it waits for all children."""
    command = [sys.executable, "-c", MEASURE, code, str(timeout)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment())
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux alone")
def test_children_that_outlive_a_command_count_but_not_in_its_wall_time() -> None:
    found = measured(ORPHAN)
    assert found["failure"] == ""
    assert found["cpu_seconds"] > 2 * measured("print('alone')")["cpu_seconds"] > 0


def test_a_command_that_fails_or_never_ends_says_so_without_paths() -> None:
    assert (
        measured("raise ValueError('no /home/someone/file')")["failure"]
        == "exit status 1: ValueError: no file"
    )
    assert measured("import time; time.sleep(600)", timeout=0.5)["failure"] == "not finished after 0 s"


def test_tables_align_numbers_and_say_what_is_missing() -> None:
    rows = [{"what": "a|b", "s": 1.234, "ok": True, "rows": "x 1,000"}]
    rows.append({"what": "c", "s": None, "ok": False, "rows": "x 2, y 3"})
    assert table(rows).splitlines() == [
        "| what |    s |  ok | rows     |",
        "| ---- | ---: | --: | -------- |",
        "| a\\|b | 1.23 | yes | x 1,000  |",
        "| c    |    - |  NO | x 2, y 3 |",
    ]
    assert table([]) == "(nothing measured)\n"
    assert (median([3, None, 1]), median([None])) == (2, None)


def test_losses_are_equal_within_a_thousandth() -> None:
    rows = [{"loss": 3.0}, {"loss": 3.002}, {"failure": "signal 9"}]
    assert [row["passed"] for row in equal_losses(rows, lambda row: "")] == [True]
    assert [row["passed"] for row in equal_losses([*rows, {"loss": 3.1}], lambda row: "")] == [False]
    assert equal_losses(rows[:1], lambda row: "") == []


def test_commands_are_kept_without_notes_and_folders(tmp_path: Path) -> None:
    parser = Options("tasks.some_name", "what it does", quick="less")
    options = parser.read(["--quick", "--note", "a note", "--output", str(tmp_path / "out.json")])
    assert options.command == "python -m benchmarks.tasks.some_name --quick --output out.json"
    assert parser.read(["--quick"]).output.name.endswith("-some-name-quick.json")
    assert python_of(sys.executable) == Path(sys.executable).absolute()
    with pytest.raises(Exception, match="no python in"):
        python_of(str(tmp_path))


def test_a_failed_check_ends_the_command_behind_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = Options("tasks.some", None).read(
        ["--note", "slow today", "--output", str(tmp_path / "new/some.json")]
    )
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
