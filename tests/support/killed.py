"""Runs in processes of their own that are killed, in the middle of writing or of other work."""

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import forked

if TYPE_CHECKING:
    import psutil


def kill_at_fsync(writes: int) -> None:
    """From now on this process is killed at its n-th forced write, before anything of it is forced."""
    fsync, left = os.fsync, writes

    def counted(descriptor: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        fsync(descriptor)

    os.fsync = counted


def run_killed(script: str, source: Path, output: Path, writes: int) -> None:
    """Run a script on two folders, given as `source` and `output`, that has to be killed at its n-th forced write."""
    lines = [
        "import sys",
        "from pathlib import Path",
        "from tests.support.killed import kill_at_fsync",
        "source, output, writes = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])",
        "kill_at_fsync(writes)",
        script,
    ]
    errors = output.with_name(f"{output.name}-errors.txt")
    process = forked.start("\n".join(lines), source, output, writes, errors=errors)
    assert forked.end(process, 300) == -signal.SIGKILL, errors.read_text()


def family(process: subprocess.Popen[Any]) -> list["psutil.Process"]:
    """A process, first, and those that it and its children have started."""
    parent = pytest.importorskip("psutil").Process(process.pid)
    return [parent, *parent.children(recursive=True)]


def ended(processes: list["psutil.Process"], seconds: float) -> bool:
    """Return whether these have ended, at the latest after so many seconds."""
    psutil = pytest.importorskip("psutil")
    _, alive = psutil.wait_procs([process for process in processes if process.is_running()], seconds)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
