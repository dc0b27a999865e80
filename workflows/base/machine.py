"""The processors and the memory that this process may use, within the limits of its container."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")
# The files of a control group that hold a limit, in versions 2 and 1.
_CPU = (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
_MEMORY = (("memory.max",), ("memory.limit_in_bytes",))


def processors(root: Path = ROOT) -> int:
    """The processors that this process may run on, or fewer where its CPU quota is worth fewer; a part counts whole."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [math.ceil(quota / period) for quota, period in _limits(root, "cpu", _CPU)]
    return max(1, min([allowed, *quotas]))


def memory_bytes(root: Path = ROOT) -> int:
    """The memory that this process may use."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *(limit for (limit,) in _limits(root, "memory", _MEMORY))])


def _limits(root: Path, controller: str, files: tuple[tuple[str, ...], ...]) -> Iterator[list[int]]:
    """The limits of this process's control group and of those around it, which all hold."""
    for folder in _groups(root, controller):
        for names in files:
            try:
                words = " ".join((folder / name).read_text() for name in names).split()
            except OSError:
                continue
            if words and all(map(str.isdecimal, words)):  # "max" and -1 are none
                yield list(map(int, words))


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's control group, from its own to the outermost.

    A container sees its own as the outermost, whatever the name that the host gives it.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)  # version 2 names no controllers
        if not controllers or controller in controllers.split(","):
            group = Path(path.lstrip("/"))
            for each in (group, *group.parents):
                yield root / "sys/fs/cgroup" / (controller if controllers else "") / each
