"""Ending at once on SIGTERM and Ctrl-C, and taking every child process along.

What a stage has committed is whole at any moment, so there is nothing to tidy up; the next run goes on from there.
"""

import contextlib
import os
import signal
import sys
from types import FrameType

_GRACE_SECONDS = 2
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def _stop(number: int, frame: FrameType | None) -> None:
    import psutil

    for ignored in _SIGNALS:
        signal.signal(ignored, signal.SIG_IGN)
    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.terminate()
    _, alive = psutil.wait_procs(children, _GRACE_SECONDS)
    for child in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    print(f"\nstopped by {signal.Signals(number).name}; the same command goes on from here", file=sys.stderr)
    sys.stderr.flush()
    os._exit(128 + number)


def install_handlers() -> None:
    """Stop on SIGTERM and Ctrl-C from now on. Only for a program of our own, not for a library's user."""
    for number in _SIGNALS:
        signal.signal(number, _stop)
