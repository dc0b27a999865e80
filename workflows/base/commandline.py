"""Preparations of `luigi --module workflows ...` before Luigi takes over: defaults, logging, a checked command line.

Luigi alone waits for a server that nobody started, exits with 0 when a stage failed, takes abbreviated parameters,
and answers a wrong value with a traceback.
"""

import difflib
import inspect
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import luigi
import luigi.worker
from luigi.cmdline_parser import CmdlineParser
from luigi.task_register import Register

from pipeline.storage import locks
from workflows.base import machine, stopping
from workflows.base.stage import Step

logger = logging.getLogger("workflows")

_DEFAULTS = {
    # Stages have locks of their own; luigi's would end the second of two equal commands, and lie in /tmp for all users.
    "core": {"local_scheduler": "true", "log_level": "WARNING", "no_lock": "true"},
    "worker": {"keep_alive": "false"},
    "retcode": {
        "already_running": "10",
        "missing_data": "20",
        "not_run": "25",
        "task_failed": "30",
        "scheduling_error": "35",
        "unhandled_exception": "40",
    },
}


def is_luigi_command() -> bool:
    """Return whether this process is the `luigi` command with our module, not a program that imports us."""
    program = os.path.basename(sys.argv[0])
    return (
        program in ("luigi", "luigi.exe") or sys.argv[0].endswith("luigi/__main__.py")
    ) and "workflows" in " ".join(sys.argv)


def prepare(arguments: Sequence[str]) -> None:
    """Set defaults where the user set none, and stop with one line where the command line is wrong.

    Raises:
        SystemExit: with the line; exit status 1.
    """
    config: Any = luigi.configuration.get_config()
    scheduler = ("scheduler-host", "scheduler-url")
    is_named = any(argument.startswith(tuple(f"--{name}" for name in scheduler)) for argument in arguments)
    if is_named:  # a configuration that says otherwise would win in silence
        config.set("core", "local_scheduler", "false")
    has_scheduler = is_named or any(config.has_option("core", name) for name in scheduler)
    for section, options in _DEFAULTS.items():
        for name, value in options.items():
            if not config.has_option(section, name) and not (has_scheduler and name == "local_scheduler"):
                config.set(section, name, value)
    if "--local-scheduler" not in arguments and not config.getboolean("core", "local_scheduler", False):
        os.environ[locks.WAITS] = "1"
        luigi.worker.Worker = PatientWorker  # type: ignore[misc]
    # Threads that wait for each other without spinning: on a machine with other work, training is many times faster.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if (processors := machine.processors()) < (os.cpu_count() or 1):  # torch does not see a container's quota
        os.environ.setdefault("OMP_NUM_THREADS", str(processors))
    set_up_logging()
    stopping.install_handlers()
    if {"--help", "--help-all"} & set(arguments):
        return
    try:
        root = check(list(arguments))
        if isinstance(root, Step) and root.complete():
            logger.info("%s is complete: %s", type(root).__name__, root.where)
    except (ValueError, OSError) as error:
        raise SystemExit(f"error: {error}") from None


class PatientWorker(luigi.worker.Worker):
    """Waits for other runs of its scheduler: those that make one of its stages, and those that use what a stage needs.

    Luigi's own would end at once, or stay for ever when a stage has failed elsewhere. This one tries it itself.
    """

    _waits_for = ""

    def _keep_alive(self, response: Any) -> bool:
        is_waited_for = response.running_tasks or response.n_pending_tasks
        if not (self.run_succeeded and self.add_succeeded) or not (is_waited_for or self._waits_for):
            return bool(super()._keep_alive(response))
        running = sorted({str(each["task_id"]).partition("_")[0] for each in response.running_tasks})
        if not running:
            # What others have made is found complete, and the rest is up to this run.
            self._add_task_history.clear()
            self._get_work_response_history.clear()
            self.add(self._scheduled_tasks[self._first_task])
        waits_for = ", ".join(running) or ("it uses what the next stage needs" if is_waited_for else "")
        if waits_for not in ("", self._waits_for):
            logger.info("waits for another run: %s", waits_for)
        self._waits_for = waits_for
        return True


def check(arguments: list[str]) -> luigi.Task:
    """Check stage, parameters, values and the machine; gives the stage.

    Raises:
        ValueError: names what is wrong and what to do.
    """
    flags, stage = _flags_and_stage(arguments)
    if "--workers" in flags:
        raise ValueError("--workers: stays 1, since stages share one Spark session; use --processes")
    known = _known_flags(stage)
    for flag in flags:
        if flag not in known:
            raise ValueError(
                f"{flag}: {stage} has no such parameter{_hint(flag, known)}; "
                f"see luigi --module workflows {stage} --help"
            )
    with CmdlineParser.global_instance(arguments, allow_override=True) as parser:
        root = parser.get_task_obj()
    if isinstance(root, Step):
        root.check_machine()
    return root


def _hint(flag: str, known: Sequence[str]) -> str:
    """A hint for a flag that the stage lacks: another stage, or another flag."""
    stages = [
        name for name in _stages() if flag in map(_flag, Register.get_task_cls(name).get_param_names(True))
    ]
    return _similar(flag, known) + (f"; it is one of {', '.join(stages)}" if stages else "")


def _similar(word: str, known: Sequence[str]) -> str:
    prefixed = [name for name in known if name.startswith(word)]
    found = prefixed[:1] or difflib.get_close_matches(word, known, 1)
    return f" (did you mean {found[0]}?)" if found else ""


def _flags_and_stage(arguments: list[str]) -> tuple[list[str], str]:
    """The flags of a command line without their values, and the stage that it names."""
    parameters = [
        (_flag(each), parameter)
        for stage, is_short, name, parameter in Register.get_all_params()
        for each in {name, name if is_short else f"{stage}_{name}"}
    ]
    switches = {flag for flag, parameter in parameters if _is_switch(parameter)}
    may_be_empty = {flag for flag, parameter in parameters if parameter._default == ""}
    flags, words = [], []
    rest = iter(arguments)
    for word in rest:
        if not word.startswith("--"):
            words.append(word)
            continue
        flag, equals, after = word.partition("=")
        value: str | None = after
        flags.append(flag)
        if not equals and flag not in switches:
            value = next(rest, None)
            if value is None or value.startswith("--"):
                raise ValueError(f"{flag}: no value follows; wanted {flag}=VALUE")
        if not value and flag not in switches | may_be_empty:
            raise ValueError(f"{flag}: its value is empty; give one, or leave {flag} out for the default")
    stages = _stages()
    if not words:
        raise ValueError(f"no stage named; wanted one of {', '.join(stages)}")
    if words[0] not in stages:
        raise ValueError(
            f"{words[0]}: no such stage{_similar(words[0], stages)} (there are {', '.join(stages)})"
        )
    if len(words) > 1:
        raise ValueError(
            f"{words[1]}: one stage at a time, and values follow their parameter; wanted --parameter value"
        )
    return flags, words[0]


def _stages() -> list[str]:
    """The names of all stages that can be run."""
    tasks = {name: Register.get_task_cls(name) for name in Register.task_names()}
    return [name for name, task in tasks.items() if issubclass(task, Step) and _can_run(task)]


def _can_run(task: type[Step]) -> bool:
    """Return whether it is no base of others alone."""
    is_whole = hasattr(task, "FOLDER") or issubclass(task, luigi.WrapperTask) or not task.__subclasses__()
    return is_whole and not inspect.isabstract(task)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _is_switch(parameter: luigi.Parameter[Any]) -> bool:
    """Return whether no value follows."""
    return isinstance(parameter, luigi.BoolParameter) and parameter.parsing == "implicit"


def _known_flags(stage: str) -> list[str]:
    """The flags of a stage and of Luigi itself. Those of another stage do not reach every place where it is made."""
    known: set[str] = set()
    for owner, is_short, name, _ in Register.get_all_params():
        if owner == stage or issubclass(Register.get_task_cls(owner), luigi.Config):
            known.add(_flag(name if is_short else f"{owner}_{name}"))
        if owner == stage:
            known.add(_flag(name))
    return sorted(known)


class _OneLine(logging.Filter):
    """Turns Luigi's report of a user's error into the error's own line."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ValueError | OSError):
            stage = record.args[-1] if isinstance(record.args, tuple) and record.args else ""
            name = type(stage).__name__ if isinstance(stage, luigi.Task) else "error"
            record.msg, record.args, record.exc_info = f"{name}: {error}", (), None
        return True


def set_up_logging() -> None:
    """A line for each message of ours on the standard error, and Luigi's report of a user's error in one line."""
    luigis = logging.getLogger("luigi-interface")
    luigis.addFilter(_OneLine())
    luigis.propagate = False  # libraries give the root a handler, which would print each line again
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    for name in ("workflows", "tasks", "model", "pipeline"):
        ours = logging.getLogger(name)
        ours.setLevel(logging.INFO)
        ours.addHandler(handler)
        ours.propagate = False
