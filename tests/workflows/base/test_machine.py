"""Limits of containers, as files of control groups say them."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from workflows.base import machine

PROCESSORS, MEMORY = machine.processors(Path("/nowhere")), machine.memory_bytes(Path("/nowhere"))
V1 = "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n0::/docker/abc\n"


def found(root: Path, groups: str, files: Mapping[str, str]) -> tuple[int, int]:
    """Processors and memory with these files."""
    for name, text in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{name}": files[name] for name in files}}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return machine.processors(root), machine.memory_bytes(root)


@pytest.fixture(autouse=True)
def many_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)))


@pytest.mark.parametrize(
    ("groups", "files", "processors", "memory"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n", "memory.max": "1073741824\n"}, 2, 1 << 30),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2, MEMORY),
        ("0::/\n", {"cpu.max": "5000 100000\n"}, 1, MEMORY),
        ("0::/\n", {"cpu.max": "max 100000\n", "memory.max": "max\n"}, 16, MEMORY),
        # The group around it allows less.
        ("0::/a/b\n", {"a/b/memory.max": "3000000\n", "a/memory.max": "2000000\n"}, 16, 2_000_000),
        ("0::/a/b\n", {"a/b/cpu.max": "400000 100000\n", "a/cpu.max": "max 100000\n"}, 4, MEMORY),
        # Version 1, as the host sees it and as the container does.
        (V1, {"memory/docker/abc/memory.limit_in_bytes": "5000000\n"}, 16, 5_000_000),
        (V1, {"memory/memory.limit_in_bytes": "6000000\n"}, 16, 6_000_000),
        (V1, {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 16, MEMORY),
        (V1, {"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3, MEMORY),
        (V1, {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 16, MEMORY),
        # Another controller's.
        ("2:cpuset:/x\n", {"memory/x/memory.limit_in_bytes": "7000000\n"}, 16, MEMORY),
    ],
)
def test_limits(tmp_path: Path, groups: str, files: Mapping[str, str], processors: int, memory: int) -> None:
    assert found(tmp_path, groups, files) == (processors, memory)


def test_a_quota_is_no_more_than_the_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5})
    assert found(tmp_path, "0::/\n", {"cpu.max": "800000 100000\n"})[0] == 1


def test_no_control_groups(tmp_path: Path) -> None:
    assert machine.processors(tmp_path) == 16
    assert machine.memory_bytes(tmp_path) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
