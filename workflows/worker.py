"""A process that runs stages for another one: `python -m workflows.worker`.

It takes stages as JSON lines from its standard input and answers each with a line. It ends with the process that
started it, however that ends: when the questions end in the middle of a stage, it stops as by SIGTERM.
"""

import json
import logging
import os
import queue
import signal
import sys
import threading
from typing import IO, Any

from luigi.task_register import Register

from model.stopping import Stopped
from workflows import commandline, stopping

logger = logging.getLogger("workflows")


def serve(questions: IO[str], answers: IO[str]) -> None:
    """Run the stages that are asked for, and say why each failed, if so.

    Args:
        questions: a JSON object a line, with `stage`, `parameters` and the `hash8` that the asking process has found.
        answers: a JSON object a line, with `reason`, which is empty for success.
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
            raise ValueError(
                "the data, the weights or --experiments have changed since the run began; run it again"
            )
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
