"""Measuring a command: CPU time, wall time, memory of every process."""

import contextlib
import ctypes
import importlib.metadata
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ("apache-beam", "pyspark")
PACKAGES = (*ENGINES, "marisa-trie", "mwparserfromhell", "psutil", "pyarrow", "sentencex", "tokenizers")
PEER_PACKAGES = ("lmdb", "mwparserfromhell", "wikiextractor", "wikipedia2vec")
_SAMPLE_SECONDS = 0.1
_SAMPLING_SHARE = 0.01  # of a processor, at most
_GRACE_SECONDS = 10  # for children that outlive the command
_SET_CHILD_SUBREAPER = 36  # prctl(2)


@dataclass
class ProcessMemory:
    """A process's part in the command and its largest sizes in 10^6 bytes."""

    role: str
    rss_mb: float = 0.0
    pss_mb: float = 0.0


@dataclass(frozen=True)
class Moment:
    """A command's processes at one look.

    Attributes:
        time: seconds since the epoch.
        cpu_seconds: what they and their ended children have taken so far.
        pss_mb: the sum of their proportional sizes, 10^6 bytes.
        rss_mb: the largest resident size by role, 10^6 bytes.
    """

    time: float
    cpu_seconds: float
    pss_mb: float
    rss_mb: dict[str, float]


@dataclass
class Measurement:
    """What a command took.

    Attributes:
        failure: why it failed; "" where it did not.
        cpu_seconds: user and system time of all its processes.
        wall_seconds: from its start to its end.
        tree_pss_mb: largest sum of the processes' proportional sizes, 10^6 bytes.
        other_cores: how many processors were busy with something else, on average: the noise.
        processes: each of its processes.
        moments: each look at them.
        answer: the last line of its output where that is JSON.
    """

    failure: str = ""
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    tree_pss_mb: float = 0.0
    other_cores: float = 0.0
    processes: list[ProcessMemory] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list, repr=False)
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


def measure(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    timeout: float,
    sampling_share: float = _SAMPLING_SHARE,
) -> Measurement:
    """Run a command to its end and measure it with all its descendants. Call `adopt_orphans` before.

    It runs in the project's root: Python's `-c` looks for modules in the current folder first. Looking at the
    processes takes `sampling_share` of a processor at most.
    """
    result = Measurement()
    memory: dict[tuple[int, float], ProcessMemory] = {}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        begin, busy = time.perf_counter(), _busy_seconds()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=dict(environment),
                cwd=ROOT,
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
                result.moments.append(_sample(process.pid, memory))
                waiter.pause = max(_SAMPLE_SECONDS, (time.perf_counter() - sampled) / sampling_share)
        finally:
            if not waiter.ended.is_set():
                _kill_descendants()
            waiter.join()
        process.returncode = waiter.exit_status
        result.wall_seconds = waiter.end - begin
        result.cpu_seconds = waiter.cpu_seconds + _reap()
        others = _busy_seconds() - busy - result.cpu_seconds
        result.other_cores = max(0.0, others / (time.perf_counter() - begin))
        result.processes = list(memory.values())
        result.tree_pss_mb = max((moment.pss_mb for moment in result.moments), default=0.0)
        if process.returncode and not result.failure:
            result.failure = f"exit status {process.returncode}: {_last_line(errors) or _last_line(output)}"
        result.answer = _answer(output)
    return result


def _answer(output: Any) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        answer = json.loads(_last_line(output, whole=True))
        return answer if isinstance(answer, dict) else {}
    return {}


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


def _busy_seconds() -> float:
    """CPU seconds that the whole machine has worked."""
    times = psutil.cpu_times()
    return float(sum(times) - times.idle - getattr(times, "iowait", 0) - getattr(times, "guest", 0))


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


def _sample(root: int, memory: dict[tuple[int, float], ProcessMemory]) -> Moment:
    """Look at all descendants, and note the largest sizes of each."""
    pss, cpu = 0.0, 0.0
    rss: dict[str, float] = {}
    own, now = psutil.Process().cmdline(), time.time()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error, OSError):
            command = process.cmdline()
            if not command or command == own:  # ended, or between fork and exec
                continue
            sizes = process.memory_full_info()
            role = _role(command, process.pid == root)
            entry = memory.setdefault((process.pid, process.create_time()), ProcessMemory(role))
            entry.role = role  # a shell's script may have become the Java machine
            # The kernel remembers the largest resident size, so that nothing is missed between two looks.
            entry.rss_mb = max(entry.rss_mb, sizes.rss / 1e6, _high_water_mark(process.pid) / 1e6)
            entry.pss_mb = max(entry.pss_mb, getattr(sizes, "pss", 0) / 1e6)
            pss += getattr(sizes, "pss", sizes.uss) / 1e6
            cpu += sum(process.cpu_times()[:4])  # user, system, and those of ended children
            rss[role] = max(rss.get(role, 0.0), sizes.rss / 1e6)
    return Moment(now, cpu, pss, rss)


def _high_water_mark(pid: int) -> int:
    if sys.platform != "linux":
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
    return int(found[1]) * 1024 if found else 0


def _role(command: list[str], is_root: bool) -> str:
    line = " ".join(command)
    if "sdk_worker_main" in line:
        return "worker"
    if "pipeline.jobs.beam" in line:
        return "runner"
    if "pyspark.daemon" in line or "pyspark.worker" in line:
        return "spark worker"
    if os.path.basename(command[0]) == "java":
        return "jvm"
    return "main" if is_root else "child"


def _last_line(stream: Any, *, whole: bool = False) -> str:
    stream.seek(max(0, stream.seek(0, os.SEEK_END) - (1 << 20)))
    lines = stream.read().decode("utf-8", "replace").strip().splitlines() or [""]
    # Results hold no paths of the machine.
    return lines[-1] if whole else re.sub(r"(?<![\w<])/[^\s'\"]*/", "", lines[-1])[:300]


def environment_facts(peers: Path | None) -> dict[str, Any]:
    """Machine, versions and the state of the code; no paths, no names of hosts."""
    cpu = platform.processor()
    if sys.platform == "linux":
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        cpu = found[1] if found else cpu
    machine = {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "usable cores": len(psutil.Process().cpu_affinity()) if sys.platform == "linux" else None,
        "memory GB": round(psutil.virtual_memory().total / 1e9, 1),
        "system": platform.platform(),
    }
    versions = {"python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in PACKAGES}
    if peers:
        code = (
            "import importlib.metadata as m, json, platform; "
            "found = {d.metadata['Name']: d.version for d in m.distributions()}; "
            f"print(json.dumps({{'python': platform.python_version()}} | "
            f"{{n: found[n] for n in {PEER_PACKAGES!r} if n in found}}))"
        )
        versions |= {
            f"peers: {name}": version
            for name, version in json.loads(ask([str(peers), "-c", code]) or "{}").items()
        }
    changed = bool(ask(["git", "status", "--porcelain", "--", "pipeline", "workflows"]))
    return {
        "machine": machine,
        "versions": versions,
        "commit": ask(["git", "rev-parse", "HEAD"]),
        "changed": changed,
    }


def ask(command: list[str]) -> str:
    """What a command prints; "" where it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
