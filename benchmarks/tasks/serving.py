"""The service of linking among honest, slow, gone and hostile clients: waits, wrong answers, statuses and memory.

    python -m benchmarks.tasks.serving --documents DIR/held_out.jsonl -- --workdir DIR

What stands behind `--` goes to `serve`. Honest clients ask paragraphs of the documents one by one, and their answers
are compared with those of the same linker in a process of its own. README.md says what is counted.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from benchmarks.harness.options import DATA, Options, absolute
from benchmarks.harness.report import Report, progress
from benchmarks.harness.workloads import ROOT, Record, environment, kernel_size, run
from tests.support.clients import KINDS, WAITING

WORKLOADS = "tasks.linking_workloads"
STATED_WAIT = 10  # seconds that docs/how-to/linking.md states for short requests
HONEST, EARLY, MOST_MORE = 4, 100, 50  # clients; requests, and the MB by which memory may grow after them
SIZES = {"resident, MB": "VmRSS", "own, MB": "RssAnon"}


@contextlib.contextmanager
def served(arguments: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Run the service until the block ends: its process and a port that was free. Raises: ValueError if it fails."""
    words = [sys.executable, "-m", "tasks.linking", "serve", "--port", "0", *arguments]
    own = environment(threads=1)
    with tempfile.TemporaryFile("a+") as told:  # a pipe that nobody reads fills up, and stops it
        process = subprocess.Popen(words, env=own, cwd=ROOT, stderr=told, start_new_session=True)
        try:
            while not (found := re.search(r"^listening at http://.*:(\d+)$", words_of(told), re.M)):
                if process.poll() is not None:
                    raise ValueError(f"the service does not start: {words_of(told)}")
                time.sleep(0.1)
            yield process.pid, int(found[1])
            if failed := re.search(r"^(\w+Error|MemoryError)\b.*", words_of(told), re.M):
                raise ValueError(f"the service says: {failed[0]}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def words_of(stream: Any) -> str:
    """Return what a process has written to a file."""
    stream.seek(0)
    return str(stream.read())


def sizes(process: int) -> Record:
    """Return the service's memory, all of it and what no file lies behind."""
    return {name: kernel_size(field, process) for name, field in SIZES.items()}


def among_all(process: int, port: int, seconds: float, asked: str) -> tuple[Record, Record, list[Record]]:
    """Return what honest clients found among all others, what these got, and the memory every ten seconds."""
    with ThreadPoolExecutor(2) as threads:
        common: Record = {"port": port, "asked": asked, "seconds": seconds}
        memory, began = list[Record](), time.monotonic()
        honest: Future[Record] = threads.submit(run, WORKLOADS, "honest", common | {"clients": HONEST})
        others: Future[Record] = threads.submit(run, WORKLOADS, "crowd", common)
        while not (honest.done() and others.done()):
            memory.append({"second": round(time.monotonic() - began), **sizes(process)})
            time.sleep(min(10.0, seconds / 3))
        return honest.result(), others.result(), memory


def wait_row(name: str, found: Record) -> Record:
    """Return how long honest clients waited."""
    middle, late, longest = np.percentile(found["waits"], [50, 95, 100])
    row: Record = {"honest clients": name, "answers": len(found["waits"]), "median, s": float(middle)}
    row |= {"95 %, s": float(late), "longest, s": float(longest)}
    refused = sum(found["statuses"].values()) - len(found["waits"])
    return row | {"refused": refused, "wrong": len(found["wrong"])}


def status_rows(found: Record) -> list[Record]:
    """Return a row for each kind of clients and status, and whether it is right."""
    return [
        {"clients": kind, "number": KINDS[kind].clients, "status": status, "times": times,
         "right": status in (WAITING, *KINDS[kind].right.split())}
        for kind, statuses in found["statuses"].items()
        for status, times in sorted(statuses.items())
    ]  # fmt: skip


def memory_after(service: Sequence[str], asked: str, most: int) -> list[Record]:
    """Return the memory of a service of its own after some honest requests, and after as many as shall come."""
    rows = []
    with served(service) as (process, port):
        for done, wanted in ((0, EARLY), (EARLY, most)):
            given = {"port": port, "asked": asked, "clients": 2 * HONEST, "requests": wanted - done}
            if "failure" in (found := run(WORKLOADS, "honest", given)):
                raise SystemExit(f"memory was not measured: {found['failure']}")
            rows.append({"requests": wanted, **sizes(process)})
    return rows


def measure(options: Any, report: Report, asked: str) -> None:
    """Measure all, and fill the report."""
    service, seconds = list(options.service), 6.0 if options.quick else 120.0
    requests, most = (300, 20) if options.quick else (10_000, 100)
    progress("each text alone")
    given: Record = {"arguments": service, "documents": str(options.documents), "most": most, "output": asked}
    found = run(WORKLOADS, "answers", given, threads=1)
    if "failure" in found:
        raise SystemExit(f"nothing was measured: {found['failure']}")
    with served(service) as (process, port):
        progress(f"{seconds:g} seconds")
        given = {"port": port, "asked": asked, "clients": HONEST, "seconds": seconds / 6}
        alone = run(WORKLOADS, "honest", given)
        honest, others, memory = among_all(process, port, seconds, asked)
    waits, rows = [wait_row("alone", alone), wait_row("among all", honest)], status_rows(others)
    report.add("Honest clients", waits)
    report.add("Other clients", rows)
    report.add("Memory among all", memory)
    checks = {
        f"no honest wait above {STATED_WAIT} s": waits[1]["longest, s"] <= STATED_WAIT,
        "no wrong answer": not any(row["wrong"] for row in waits),
        "no status that is not right": all(row["right"] for row in rows),
    }
    report.write()  # what comes takes longer
    progress(f"{requests:,} requests")
    grown = memory_after(service, asked, requests)
    report.add("Memory after requests", grown)
    more = grown[1]["own, MB"] - grown[0]["own, MB"]
    checks[f"{more:.1f} MB more after {requests:,} requests than after {EARLY}"] = more <= MOST_MORE
    report.add("Checks", [{"check": name, "passed": bool(passed)} for name, passed in checks.items()])


def main() -> None:
    parser = Options("tasks.serving", __doc__, quick="six seconds and 300 requests")
    gold = DATA / "entity-linking/wned-wiki.jsonl"
    parser.add_argument("--documents", type=absolute, default=gold, help="their paragraphs are asked")
    parser.add_argument("service", nargs="+", metavar="OPTION", help="of `serve`, behind --")
    options = parser.read()
    packages = ("torch", "fastapi", "uvicorn", "h11", "marisa-trie")
    report = Report("The service among clients", options, packages)
    with tempfile.TemporaryDirectory() as folder:
        measure(options, report, f"{folder}/asked.jsonl")
    report.finish()


if __name__ == "__main__":
    main()
