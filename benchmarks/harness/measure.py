"""Measuring a command with all its processes: CPU time, wall time, memory."""

import contextlib
import ctypes
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import psutil

from benchmarks.harness.workloads import ROOT, kernel_size

_FIRST_LOOK_SECONDS, _SAMPLE_SECONDS, _WAIT_SECONDS = 0.02, 0.1, 0.005
_GRACE_SECONDS = 10  # for children that outlive the command
_SET_CHILD_SUBREAPER = 36  # prctl(2)
# A process's part in the command, by what its command line holds; the first that fits.
_ROLES = {
    "sdk_worker_main": "worker",
    "pipeline.jobs": "runner",
    "pyspark.daemon": "spark worker",
    "pyspark.worker": "spark worker",
}


@dataclass(frozen=True)
class Moment:
    """A look at a command's processes: seconds since the epoch, CPU seconds so far, and sizes in 10^6 bytes.

    `pss_mb` is the sum of proportional sizes, `rss_mb` the largest resident size by role, `scratch_mb` the folder's.
    """

    time: float
    cpu_seconds: float
    pss_mb: float
    rss_mb: dict[str, float]
    scratch_mb: float = 0.0


@dataclass
class Measurement:
    """The costs of a command; sizes in 10^6 bytes.

    `cpu_seconds` are user and system time of all its processes, `other_cores` the processors that were busy with
    something else, on average. `tree_pss_mb` is the largest sum of proportional sizes, `rss_mb` the largest resident
    size that a process of a role ever had, by the kernel's high-water mark. `moments` are the looks at its processes.
    """

    failure: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    other_cores: float = 0.0
    tree_pss_mb: float = 0.0
    rss_mb: dict[str, float] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list, repr=False)

    def worker_rss_mb(self) -> float:
        """Return the largest process that works: a Beam worker, the runner where it works in memory, or any."""
        sizes = self.rss_mb
        return sizes.get("worker") or sizes.get("runner") or max(sizes.values(), default=0.0)


def adopt_orphans() -> None:
    """Let processes whose parent is gone become this one's children: else nobody could count their CPU time."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def measure(
    command: Sequence[str], environment: Mapping[str, str], *, timeout: float, sampling_share: float = 0.01,
    scratch: Path | None = None,
) -> Measurement:  # fmt: skip
    """Run a command in the project's root and measure it with all its descendants. Call `adopt_orphans` before.

    Looking at the processes, and at the folder `scratch`, takes `sampling_share` of a processor at most.
    """
    result = Measurement()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin, busy = time.perf_counter(), _busy_seconds()
        files: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors}
        try:
            process = subprocess.Popen(command, env=dict(environment), cwd=ROOT, **files)
        except OSError as error:
            return Measurement(failure=f"cannot be started: {error.strerror}")
        look = partial(_sample, process.pid, result.rss_mb, scratch)
        try:
            _watch(process, result, begin + timeout, sampling_share, look)
        finally:
            _kill_descendants()
        others = _busy_seconds() - busy - result.cpu_seconds
        result.other_cores = max(0.0, others / (time.perf_counter() - begin))
        result.tree_pss_mb = max((moment.pss_mb for moment in result.moments), default=0.0)
        if process.returncode and not result.failure:
            # Results hold no paths of the machine.
            told = re.sub(r"(?<![\w<])/[^\s'\"]*/", "", _last_line(errors) or _last_line(output))
            result.failure = f"exit status {process.returncode}: {told[:300]}"
    return result


def _watch(process: Any, result: Measurement, end: float, share: float, sample: Callable[[], Moment]) -> None:
    """Look at the processes until all have ended, those that outlive the command, too; count their CPU seconds."""
    begin = time.perf_counter()
    look = begin + _FIRST_LOOK_SECONDS
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return
        now = time.perf_counter()
        if pid:
            result.cpu_seconds += usage.ru_utime + usage.ru_stime
            if pid == process.pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                result.wall_seconds, end = now - begin, now + _GRACE_SECONDS
            continue
        if now > end:
            result.failure = result.failure if result.wall_seconds else f"not finished after {end - begin:.0f} s"
            _kill_descendants()
        elif now > look and not result.wall_seconds:
            result.moments.append(sample())
            look = time.perf_counter()
            look += max(_SAMPLE_SECONDS, (look - now) / share)
        time.sleep(_WAIT_SECONDS)


def _busy_seconds() -> float:
    """Return the CPU seconds that the whole machine has worked."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0) - getattr(times, "guest", 0))


def _kill_descendants() -> None:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            process.kill()


def _sample(root: int, largest: dict[str, float], scratch: Path | None) -> Moment:
    """Look at all descendants, and note the largest size of each role."""
    pss, cpu = 0.0, 0.0
    rss: dict[str, float] = {}
    own, now = psutil.Process().cmdline(), time.time()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError):
            command = process.cmdline()
            if not command or command == own:  # ended, or between fork and exec
                continue
            sizes, role = process.memory_full_info(), _role(command, process.pid == root)
            # The kernel remembers the largest resident size, so that nothing is missed between two looks.
            peak = max(sizes.rss / 1e6, kernel_size("VmHWM", process.pid))
            largest[role] = max(largest.get(role, 0.0), peak)
            rss[role] = max(rss.get(role, 0.0), sizes.rss / 1e6)
            pss += getattr(sizes, "pss", sizes.uss) / 1e6
            cpu += sum(process.cpu_times()[:4])  # user, system, and those of ended children
    return Moment(now, cpu, pss, rss, folder_mb(scratch) if scratch else 0.0)


def folder_mb(folder: Path) -> float:
    """Return the size of a folder in 10^6 bytes; files may go while they are counted."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total / 1e6


def _role(command: list[str], is_root: bool) -> str:
    line = " ".join(command)
    if os.path.basename(command[0]) == "java":
        return "jvm"
    return next((role for mark, role in _ROLES.items() if mark in line), "main" if is_root else "child")


def _last_line(stream: IO[bytes]) -> str:
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - (1 << 20)))
    return (stream.read().decode("utf-8", "replace").strip().splitlines() or [""])[-1]
