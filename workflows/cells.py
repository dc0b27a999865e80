"""Runs stages side by side, one at a time on each device, in processes of their own: a stage that fails, or a process
that dies, ends no other.

The processes are those of `workflows.worker`.
"""

import contextlib
import json
import logging
import queue
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from workflows import stopping
from workflows.stage import Stage
from workflows.training import TorchStage

logger = logging.getLogger("workflows")
AnyStage = TypeVar("AnyStage", bound=Stage)


class RetriesFailures(TorchStage):
    """A stage that runs others: it is complete where none failed, or in the very run in which some did.

    So what stands on it is made in that run, and the next run tries them again. `work` sets `_has_run`, and leaves the
    number of failures in the fact `failed`.
    """

    _has_run = False

    def is_current(self) -> bool:
        return super().is_current() and (self._has_run or not self.manifest().facts["failed"])


def run(stages: Sequence[AnyStage], devices: Sequence[str]) -> dict[AnyStage, str]:
    """Run the stages that are not complete, all that they stand on being complete.

    Args:
        stages: with a parameter `device`.
        devices: of torch; each has a process, which runs one stage after another.

    Returns: for each stage that failed a line that says why.
    """
    waiting: queue.SimpleQueue[AnyStage] = queue.SimpleQueue()
    failures: dict[AnyStage, str] = {}
    todo = [stage for stage in dict.fromkeys(stages) if not stage.complete()]
    for stage in todo:
        waiting.put(stage)
    with ThreadPoolExecutor(len(devices)) as pool:
        for future in [pool.submit(_run_on, device, waiting, failures) for device in devices[: len(todo)]]:
            future.result()
    for stage in todo:
        stage._is_complete = None  # it was found out before the work
    return failures


def _run_on(device: str, waiting: "queue.SimpleQueue[AnyStage]", failures: dict[AnyStage, str]) -> None:
    """Take stages and have them run, one after another."""
    process: subprocess.Popen[str] | None = None
    try:
        while True:
            try:
                stage = waiting.get_nowait()
            except queue.Empty:
                return
            process = process or _start()
            reason = _ask(process, stage, device)
            if stopping.is_asked.is_set():
                return
            if reason:
                failures[stage] = reason
                logger.warning("%s failed: %s", stage.title, reason)
                _end(process)  # a GPU's error may have spoilt it for all that follows
                process = None
    finally:
        if process:
            _end(process)


def _start() -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "workflows.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches it through us, as SIGTERM, at which it writes a checkpoint
    )


def _end(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.wait()


def _ask(process: "subprocess.Popen[str]", stage: Stage, device: str) -> str:
    """Have a process run a stage; gives the reason why it failed, or nothing."""
    assert process.stdin is not None
    assert process.stdout is not None
    parameters = {**stage.to_str_params(), "device": device}
    question = {"stage": type(stage).__name__, "parameters": parameters, "hash8": stage.hash8}
    try:
        print(json.dumps(question), file=process.stdin, flush=True)
        answer = process.stdout.readline()
    except BrokenPipeError:
        answer = ""
    if answer:
        return str(json.loads(answer)["reason"])
    code = process.wait()
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}; was there too little memory?"
    return f"its process ended with exit status {code}"
