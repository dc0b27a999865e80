"""What is measured, each as a process of its own, and the measuring: CPU time, wall time, memory of every process.

As a script it is the process that is measured: `python measure.py WORKLOAD JSON` does one of `WORKLOADS` and prints
what it found as a line of JSON.
"""

import bz2
import contextlib
import ctypes
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

import psutil

ROOT = Path(__file__).resolve().parent.parent
_SAMPLE_SECONDS = 0.1
_SAMPLING_SHARE = 0.01  # of a processor, at most
_GRACE_SECONDS = 10  # for children that outlive the command
_SET_CHILD_SUBREAPER = 36  # prctl(2)
_CHUNK = 1 << 20


# Measuring a command


@dataclass
class ProcessMemory:
    """A process's part in the command and its largest sizes in 10^6 bytes."""

    role: str
    rss_mb: float = 0.0
    pss_mb: float = 0.0


@dataclass
class Measurement:
    """What a command took.

    Attributes:
        failure: why it failed; "" where it did not.
        cpu_seconds: user and system time of all its processes.
        wall_seconds: from its start to its end.
        tree_pss_mb: largest sum of the processes' proportional sizes, 10^6 bytes.
        load: the machine's load average when it began: what else was running.
        processes: each of its processes.
        answer: the last line of its output where that is JSON.
    """

    failure: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    tree_pss_mb: float = 0.0
    load: float = 0.0
    processes: list[ProcessMemory] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)

    def worker_rss_mb(self) -> float:
        """The largest process that does the work: a Beam worker, the runner where it works in memory, or any."""
        for role in ("worker", "runner"):
            if sizes := [process.rss_mb for process in self.processes if process.role == role]:
                return max(sizes)
        return max((process.rss_mb for process in self.processes), default=0.0)


def adopt_orphans() -> None:
    """Let processes whose parent is gone become this one's children: else nobody could count their CPU time."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def measure(command: Sequence[str], environment: Mapping[str, str], *, timeout: float) -> Measurement:
    """Run a command to its end and measure it with all its descendants. Call `adopt_orphans` before."""
    result = Measurement(load=os.getloadavg()[0])
    memory: dict[tuple[int, float], ProcessMemory] = {}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=dict(environment)
            )
        except OSError as error:
            result.failure = f"cannot be started: {error.strerror}"
            return result
        waiter = _Waiter(process.pid)
        try:
            while not waiter.ended.wait(waiter.pause):
                if time.perf_counter() - begin > timeout:
                    result.failure = f"not finished after {timeout:.0f} s"
                    break
                sampled = time.perf_counter()
                result.tree_pss_mb = max(result.tree_pss_mb, _sample(process.pid, memory))
                waiter.pause = max(_SAMPLE_SECONDS, (time.perf_counter() - sampled) / _SAMPLING_SHARE)
        finally:
            if not waiter.ended.is_set():
                _kill_descendants()
            waiter.join()
        process.returncode = waiter.exit_status
        result.wall_seconds = waiter.end - begin
        result.cpu_seconds = waiter.cpu_seconds + _reap()
        result.processes = list(memory.values())
        if process.returncode and not result.failure:
            result.failure = f"exit status {process.returncode}: {_last_line(errors) or _last_line(output)}"
        with contextlib.suppress(ValueError):
            answer = json.loads(_last_line(output, whole=True))
            result.answer = answer if isinstance(answer, dict) else {}
    return result


class _Waiter(threading.Thread):
    """Waits for one process, so that its end is seen at once whatever the sampling does."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.ended, self.pause = pid, threading.Event(), 0.02
        self.end, self.cpu_seconds, self.exit_status = 0.0, 0.0, 0
        self.start()

    def run(self) -> None:
        _, status, usage = os.wait4(self.pid, 0)
        self.end = time.perf_counter()
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.exit_status = os.waitstatus_to_exitcode(status)
        self.ended.set()


def _reap() -> float:
    """CPU seconds of the descendants that outlived their parents; those that stay are ended."""
    seconds, deadline = 0.0, time.monotonic() + _GRACE_SECONDS
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return seconds
        if pid:
            seconds += usage.ru_utime + usage.ru_stime
        else:
            if time.monotonic() > deadline:
                _kill_descendants()
            time.sleep(0.02)


def _kill_descendants() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGKILL)


def _sample(root: int, memory: dict[tuple[int, float], ProcessMemory]) -> float:
    """Note the sizes of all descendants; the sum of their proportional sizes in 10^6 bytes."""
    total = 0.0
    own = psutil.Process().cmdline()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError):
            command = process.cmdline()
            if not command or command == own:  # ended, or between fork and exec
                continue
            sizes = process.memory_full_info()
            entry = memory.setdefault(
                (process.pid, process.create_time()), ProcessMemory(_role(command, process.pid == root))
            )
            # The kernel remembers the largest resident size, so that nothing is missed between two looks.
            entry.rss_mb = max(entry.rss_mb, sizes.rss / 1e6, _high_water_mark(process.pid) / 1e6)
            entry.pss_mb = max(entry.pss_mb, getattr(sizes, "pss", 0) / 1e6)
            total += getattr(sizes, "pss", sizes.uss) / 1e6
    return total


def _high_water_mark(pid: int) -> int:
    if sys.platform != "linux":
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    return int(found[1]) * 1024 if found else 0


def _role(command: list[str], is_root: bool) -> str:
    line = " ".join(command)
    if "sdk_worker_main" in line:
        return "worker"
    if "pipeline.jobs_beam" in line:
        return "runner"
    return "main" if is_root else "child"


def _last_line(stream: Any, *, whole: bool = False) -> str:
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - (1 << 16)))
    lines = stream.read().decode("utf-8", "replace").strip().splitlines() or [""]
    # Results hold no paths of the machine.
    return lines[-1] if whole else re.sub(r"(?<![\w<])/[^\s'\"]*/", "", lines[-1])[:300]


# What is measured, beside other people's commands


def extract_pages(*, dump: str, folder: str, block_bytes: int, processes: int) -> dict[str, Any]:
    """`ExtractPages` as the stage runs it."""
    from pipeline import dump as dumps
    from pipeline.blocks import run_blocks

    blocks = dumps.plan_blocks([dump], block_bytes)
    run_blocks("extract_pages", blocks, folder, "benchmark", _arguments(dump), processes=processes)
    return {"blocks": len(blocks)}


def _arguments(dump: str) -> dict[str, Any]:
    from pipeline.dump import read_site_info

    return {"site": read_site_info(dump).to_dict(), "profile": "fixed", "allow_truncated": False}


class PhaseClock:
    """CPU seconds by phase; a phase inside another one is taken off the outer."""

    def __init__(self, outermost: str) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._phases = [outermost]
        self._since = time.process_time()

    def stop(self) -> None:
        now = time.process_time()
        self.seconds[self._phases[-1]] += now - self._since
        self._since = now

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.stop()
        self._phases.append(name)
        try:
            yield
        finally:
            self.stop()
            self._phases.pop()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its calls counted as the phase."""

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.phase(name):
                return function(*args, **kwargs)

        return call

    def timed_iterator(
        self, name: str, function: Callable[..., Iterator[Any]]
    ) -> Callable[..., Iterator[Any]]:
        """The generator function, with the time inside the generator counted as the phase."""

        def iterate(*args: Any, **kwargs: Any) -> Iterator[Any]:
            items = self.timed(name, function(*args, **kwargs).__next__)
            while True:
                try:
                    item = items()
                except StopIteration:
                    return
                yield item

        return iterate


def phases(*, dump: str, folder: str, block_bytes: int) -> dict[str, Any]:
    """The work of `ExtractPages` on every block in this process, without Beam, with a clock at each seam."""
    from pipeline import dump as dumps
    from pipeline import jobs_beam

    arguments, blocks = _arguments(dump), dumps.plan_blocks([dump], block_bytes)
    clock = PhaseClock("writing")
    read_bzip2 = clock.timed_iterator("decompression", dumps.read_bzip2)
    read_pages = clock.timed_iterator("page reading", dumps.read_pages)
    extract = clock.timed("wikitext", jobs_beam.extract)
    with (
        mock.patch.object(dumps, "read_bzip2", read_bzip2),
        mock.patch.object(jobs_beam, "read_pages", read_pages),
        mock.patch.object(jobs_beam, "extract", extract),
    ):
        work = jobs_beam.JOBS["extract_pages"](arguments)
        for block in blocks:
            work(block, folder)
    clock.stop()
    return {"seconds": dict(clock.seconds), "blocks": len(blocks)}


def oracle(*, dump: str) -> dict[str, Any]:
    """CPU seconds inside the tests' oracle, over the pages that `ExtractPages` extracts."""
    from pipeline import dump as dumps

    sys.path.insert(0, str(ROOT / "tests"))
    try:
        extract = importlib.import_module("oracle").extract
    except ModuleNotFoundError:
        raise SystemExit("absent: no tests/oracle.py") from None
    site, failed, clock = dumps.read_site_info(dump), 0, PhaseClock("page reading")
    for block in dumps.plan_blocks([dump], 16 << 20):
        for page in dumps.read_pages(block, site, Counter()):
            if isinstance(page, dumps.Page) and not page.redirect:
                try:
                    clock.timed("wikitext", extract)(page.text, site)
                except Exception:  # a page that mwparserfromhell cannot parse
                    failed += 1
    return {"seconds": dict(clock.seconds), "failed_pages": failed}


def plain_mwparserfromhell(*, dump: str) -> dict[str, Any]:
    """Parse each article whole and walk its links and its text."""
    import mwparserfromhell

    counts: Counter[str] = Counter(pages=0, links=0, characters=0, failed_pages=0)
    with bz2.open(dump) as stream:
        for _, element in ElementTree.iterparse(stream):  # noqa: S314 - a dump that others parse, too
            if element.tag.rpartition("}")[2] != "page":
                continue
            if element.findtext("{*}ns") == "0" and element.find("{*}redirect") is None:
                counts["pages"] += 1
                try:
                    code = mwparserfromhell.parse(element.findtext("{*}revision/{*}text") or "")
                    counts["links"] += len(code.filter_wikilinks())
                    counts["characters"] += len(code.strip_code())
                except mwparserfromhell.parser.ParserError:
                    counts["failed_pages"] += 1
            element.clear()
    return dict(counts)


def decompress(*, dump: str) -> dict[str, Any]:
    """The standard library's bzip2 from the file's beginning to its end."""
    size = 0
    with bz2.open(dump) as stream:
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
    return {"xml_bytes": size}


WORKLOADS: Mapping[str, Callable[..., dict[str, Any]]] = {
    function.__name__: function
    for function in (extract_pages, phases, oracle, plain_mwparserfromhell, decompress)
}

if __name__ == "__main__":
    print(json.dumps(WORKLOADS[sys.argv[1]](**json.loads(sys.argv[2]))))
