"""Runs stages side by side, one at a time on each device, in processes of their own: a stage that fails, or a process
that dies, ends no other.

Each process is a `python -m workflows.engines.workers`. It takes stages as JSON lines from its standard input and
answers each with a line. It ends with the process that started it, however that ends: when the questions end in the
middle of a stage, it stops as by SIGTERM.
"""

import contextlib
import gc
import json
import logging
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import IO, Any, TypeVar

from luigi.task_register import Register

from model.training.signals import Stopped
from pipeline.jobs.supervisor import child_environment
from workflows.base import commandline, stopping
from workflows.base.stage import Stage
from workflows.run.kinds import AUTO

logger = logging.getLogger("workflows")
AnyStage = TypeVar("AnyStage", bound=Stage)


def torch_devices(name: str) -> list[str]:
    """The devices to share work out to: of `auto` all of CUDA's, else the one. Raises: ValueError: there is none."""
    import torch

    from model.training.devices import resolve_device

    if name == AUTO and torch.cuda.is_available():
        return [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    return [str(resolve_device(name))]


def free_device_memory() -> None:
    """Give back what torch keeps of a GPU's memory for its next use, since that will be in another process."""
    import torch

    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


def run(stages: Sequence[AnyStage], devices: Sequence[str]) -> dict[AnyStage, str]:
    """Run those of these stages of torch that are not complete; their upstream stages are.

    Each device has a process, which runs one stage after another. Return for each stage that failed a line that
    says why.
    """
    failures: dict[AnyStage, str] = {}
    todo = [stage for stage in dict.fromkeys(stages) if not stage.complete()]
    waiting = iter(todo)  # threads may share that of a list
    with ThreadPoolExecutor(len(devices)) as pool:
        for future in [pool.submit(_run_on, device, waiting, failures) for device in devices[: len(todo)]]:
            future.result()
    return failures


def _run_on(device: str, waiting: Iterator[AnyStage], failures: dict[AnyStage, str]) -> None:
    """Take stages and have them run, one after another."""
    process: subprocess.Popen[str] | None = None
    try:
        for stage in waiting:
            process = process or _start()
            reason = _ask(process, stage, device)
            if stopping.requested.is_set():
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
        # The package has imported this module before it runs as a script; runpy would warn of that.
        [sys.executable, "-W", "ignore::RuntimeWarning:runpy", "-m", "workflows.engines.workers"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
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
    where = replace(stage.settings.machine, device=device)
    parameters = stage.clone(settings=replace(stage.settings, machine=where)).to_str_params()
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


# The process that runs stages for another one


def serve(questions: IO[str], answers: IO[str]) -> None:
    """Run the stages that are asked for, and say why each failed, if so.

    A question is a line of JSON, with `stage`, `parameters` and the `hash8` that the asking process has found, an
    answer one with `reason`, which is empty for success.
    """
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    is_busy = threading.Event()

    def read() -> None:
        for line in questions:
            is_busy.set()
            lines.put(line)
        lines.put("")
        if is_busy.is_set():
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=read, daemon=True).start()
    while line := lines.get():
        reason = _run(json.loads(line))
        is_busy.clear()
        print(json.dumps({"reason": reason}), file=answers, flush=True)


def _run(question: dict[str, Any]) -> str:
    try:
        stage = Register.get_task_cls(question["stage"]).from_str_params(question["parameters"])
        if stage.hash8 != question["hash8"]:
            raise ValueError("the data or the weights have changed since the run began; run it again")
        stage.run()
    except Stopped as stopped:
        raise SystemExit(128 + signal.SIGTERM) from stopped
    except (ValueError, OSError) as error:
        return " ".join(str(error).split())
    except Exception as error:
        logger.exception("%s", question["stage"])
        return " ".join(f"{type(error).__name__}: {error}".split())
    return ""


def main() -> None:
    commandline.set_up_logging()
    stopping.install_handlers()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what else is printed is no answer
    serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
