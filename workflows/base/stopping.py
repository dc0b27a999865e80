"""Ending a command at once on SIGTERM and Ctrl-C, and every child process with it.

What a stage has committed is complete at any moment, so there is nothing to tidy up; the next run goes on from there.
Only children with a session of their own (`workflows.engines.workers`) are waited for: they train, and
`model.training.signals` has them write a checkpoint first.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterable
from types import FrameType

import psutil

_GRACE_SECONDS = 2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# For threads that start work: there is to be no more of it.
requested = threading.Event()


def _stop(number: int, frame: FrameType | None) -> None:
    requested.set()
    for ignored in _SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)
    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.terminate()
    _, alive = psutil.wait_procs(children, _GRACE_SECONDS)
    training = [child for child in alive if _has_own_session(child)]
    _kill(child for child in alive if child not in training)
    if training:
        print("\nwaiting for a checkpoint; the same signal again stops at once", file=sys.stderr, flush=True)
        for again in _SIGNALS:
            signal.signal(again, lambda *_: _kill(training))
        psutil.wait_procs(training)
    print(f"\nstopped by {signal.Signals(number).name}; the same command goes on from here", file=sys.stderr)
    sys.stderr.flush()
    os._exit(128 + number)


def _has_own_session(process: psutil.Process) -> bool:
    try:
        return os.getsid(process.pid) != os.getsid(0)
    except ProcessLookupError:
        return False


def _kill(processes: Iterable[psutil.Process]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def install_handlers() -> None:
    """Stop on SIGTERM and Ctrl-C from now on. Only for a program of our own, not for a library's user."""
    for number in _SIGNALS:
        signal.signal(number, _stop)
