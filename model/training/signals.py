"""Stopping a training run on SIGTERM, as machines that are taken away send it: after the step, with a checkpoint.

This is for the process that trains. A command of several stages ends at once, and has its training processes do this
(`workflows.base.stopping`).
"""

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger("model")


class Stopped(Exception):
    """SIGTERM ended the run, which has a checkpoint of all it did.

    The signal ends the process before anybody else could tell, so this is told here.
    """

    def __init__(self, folder: Path, step: int) -> None:
        super().__init__(f"{folder}: stopped by SIGTERM after step {step}; the same call goes on from there")
        logger.warning("%s", str(self))  # a record of the error itself would keep its frames


class StopRequest:
    """A flag that SIGTERM sets."""

    is_made = False


@contextlib.contextmanager
def on_sigterm() -> Iterator[StopRequest]:
    """Note SIGTERM instead of ending at once; it has its usual effect when the block is left.

    Signals belong to a program's main thread: in another one nothing is noted.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: object) -> None:
        request.is_made = True

    before = signal.signal(signal.SIGTERM, note)
    try:
        yield request
    finally:
        signal.signal(signal.SIGTERM, before)
        if request.is_made:
            signal.raise_signal(signal.SIGTERM)
