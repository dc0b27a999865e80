"""What `benchmarks/grid.py` concludes from its three calls, and the report of it."""

import re
import signal

from processes import Record, facts_lines
from report import table

WANTED_MINUTES = 15
_RESUMED = re.compile(r"checkpoints/\S+: resumed after step (\d+)$", re.MULTILINE)
_HEAD = """The first call ends with SIGKILL of its process group; the process that fine-tunes is outside that group, and
ends when it sees that its caller is gone. Scores of random weights mean nothing and are left out.
"""


def changed(before: dict[str, int], after: dict[str, int]) -> list[str]:
    """The files of before that were written again or are gone."""
    return [name for name, written in before.items() if after.get(name) != written]


def resumed(log: str) -> list[int]:
    """The steps after which cells went on from a checkpoint."""
    return [int(step) for step in _RESUMED.findall(log)]


def checks(report: Record) -> list[Record]:
    """What has to hold whatever the time: a failed one makes the command fail."""
    first, second, third = report["calls"]
    wanted, pages = report["expected cells"], report["page bytes"]
    done = sum(cell["state"] == "done" for cell in report["cells"])
    ends = [second["exit status"], third["exit status"]]
    rewritten, changes = (len(report[name]) for name in ("written again", "changed by the third call"))
    rows = [
        ("exit status of the first call", first["exit status"], first["exit status"] == -signal.SIGKILL),
        ("exit statuses of the others", ends, ends == [0, 0]),
        (
            f"cells finished at the kill, of {wanted}",
            first["finished cells"],
            0 < first["finished cells"] < wanted,
        ),
        ("finished cells that the second call wrote again", rewritten, rewritten == 0),
        (f"cells done, of {wanted}", done, done == wanted == len(report["cells"])),
        ("pages of a report, bytes", pages, len(pages) == 1 and pages[0] > 0),
        ("files that the third call changed", changes, changes == 0),
    ]
    return [{"check": name, "found": str(found), "passed": passed} for name, found, passed in rows]


def targets(report: Record) -> list[Record]:
    """The three calls together, with what the kill lost, against the time that the grid may take."""
    minutes = sum(row["seconds"] + row["until its workers had ended"] for row in report["calls"]) / 60
    what = f"minutes of the three calls together, less than {WANTED_MINUTES}"
    return [{"target": what, "wanted": WANTED_MINUTES, "found": minutes, "met": minutes < WANTED_MINUTES}]


def markdown(report: Record) -> str:
    """The report for reading."""
    calls = [
        {name: value for name, value in row.items() if name != "last lines"}
        | {"resumed after steps": ", ".join(map(str, row["resumed after steps"])) or "-"}
        for row in report["calls"]
    ]
    lines = [
        f"# The grid of experiments with tiny weights, {report['date']}\n",
        *facts_lines(report),
        f"Three times `{report['grid']}`; threads of each process: {report['threads']}.\n",
        _HEAD,
        "## Calls\n",
        table(calls),
        "## Checks\n",
        table(report["checks"]),
        "## Targets\n",
        table(report["targets"]),
        "## Cells\n",
        "Seconds are of the call that finished the cell; the first cell of a process loads torch.\n",
        table([{**cell, "reason": cell["reason"] or "-"} for cell in report["cells"]]),
        *(["## Notes\n", *(f"- {note}" for note in report["notes"]), ""] if report["notes"] else []),
    ]
    return "\n".join(lines)
