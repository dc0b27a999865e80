"""Processes that begin with torch and Luigi imported: they are forked from one that has done nothing else.

Each is a process as `python -c SCRIPT` makes it, some two seconds earlier.
"""

import multiprocessing
import os
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.support import ROOT

# What a run of training imports, sooner or later, and what a command of Luigi does; what is not there is left out.
PRELOADED = ["torch", "torch._dynamo", "torch.distributed", "torch.utils.tensorboard"]
PRELOADED += ["pandas", "pyarrow.parquet", "safetensors.torch", "luigi.cmdline", "workflows"]
# There is one such process for each of the tests' processes.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(PRELOADED)


def start(
    script: str, *arguments: object, environment: Mapping[str, str] | None = None, errors: Path | None = None
) -> ForkServerProcess:
    """A process that runs a script with arguments, in a session of its own; what it says on stderr goes to a file."""
    words = [str(each) for each in arguments]
    own = {**os.environ, **(environment or {})}
    process = FORKS.Process(target=_run, args=(script, words, own, str(errors or os.devnull)))
    process.start()
    return process


def end(process: ForkServerProcess, seconds: float = 120) -> int:
    """The exit status of a process, as `subprocess` says it."""
    process.join(seconds)
    if process.exitcode is None:
        process.kill()
        raise TimeoutError(f"the process has not ended after {seconds:g} seconds")
    return process.exitcode


def _run(script: str, arguments: list[str], environment: dict[str, str], errors: str) -> None:
    os.setsid()
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    with open(errors, "wb") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
    sys.path.insert(0, str(ROOT))
    sys.argv = ["-c", *arguments]
    exec(compile(script, "script", "exec"), {"__name__": "__main__"})
