"""Preparations of `luigi --module workflows ...` before Luigi takes over: the run, defaults, logging, a checked stage.

Our own flags are read here, and change the run file of the work directory. Luigi gets the stage with the run that the
file then describes. Luigi alone waits for a server that nobody started, exits with 0 when a stage failed, takes
abbreviated parameters, and answers a wrong value with a traceback.
"""

import inspect
import logging
import os
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import luigi
import luigi.worker
from luigi.task_register import Register

from pipeline.storage import locks
from workflows.base import helping, machine, outlook, stopping
from workflows.base.stage import Step
from workflows.run.file import WORKDIR, Change, change_run, parse_set
from workflows.run.kinds import similar

logger = logging.getLogger("workflows")

_DEFAULTS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("luigi.toml").read_text(encoding="utf-8"))


def is_luigi_command() -> bool:
    """Return whether this process is the `luigi` command with our module, not a program that imports us."""
    is_luigi = os.path.basename(sys.argv[0]) in ("luigi", "luigi.exe") or sys.argv[0].endswith("luigi/__main__.py")
    return is_luigi and "workflows" in " ".join(sys.argv)


def luigis_arguments() -> list[str]:
    """The list of words that the `luigi` command reads: the default argument of its function."""
    from luigi.cmdline import luigi_run

    (arguments,) = luigi_run.__defaults__ or ([],)
    return arguments


@dataclass
class Command:
    """A command line, read."""

    stage: str = ""  # its name; empty where none is named
    workdir: str = WORKDIR  # the folder of all stages
    begin: str = ""  # the run file to begin from; empty: that of the work directory
    changes: list[Change] = field(default_factory=list)  # of the run
    own: dict[str, str] = field(default_factory=dict)  # the parameters of the stage itself
    luigis: list[str] = field(default_factory=list)  # the words that are Luigi's own
    wants_help: bool = False
    is_dry: bool = False  # whether only what would be done is asked for


def prepare(arguments: list[str]) -> None:
    """Read the command line, set defaults where the user set none, and leave to Luigi what it has to run.

    `arguments` is the list that Luigi reads next, which is changed.

    Raises: SystemExit: with a line where something is wrong (exit status 1); after help and after a dry run (0).
    """
    stopping.install_handlers()
    set_up_logging()
    try:
        command = read_command(arguments)
        if command.wants_help or not command.stage:
            print(helping.of_stage(steps()[command.stage]) if command.stage else helping.overview(steps()))
            raise SystemExit(0)
        set_defaults(command.luigis)
        stage = stage_of(command)
        if command.is_dry:
            print(outlook.table(stage))
            raise SystemExit(0)
        stage.check_machine()
        # A command that cannot begin changes nothing.
        change_run(command.workdir, command.changes, command.begin)
        if stage.complete():
            logger.info("%s is complete: %s", type(stage).__name__, stage.where)
    except (ValueError, OSError) as error:
        raise SystemExit(f"error: {error}") from None
    parameters = (f"--{name.replace('_', '-')}={value}" for name, value in stage.to_str_params().items())
    arguments[:] = [*command.luigis, command.stage, *parameters]


def stage_of(command: Command) -> Step:
    """The stage that a command names, with the run of its work directory, changed as the command says.

    Raises: ValueError for a value that is wrong.
    """
    stage = steps()[command.stage]
    run = change_run(command.workdir, command.changes, command.begin, writes=False)
    parameters = {}
    for name, parameter in stage.get_params():
        if name in command.own:
            try:
                parameters[name] = parameter.parse(command.own[name])
            except (ValueError, luigi.parameter.ParameterException) as error:
                raise ValueError(f"{helping.flag(name)} {command.own[name]}: {error}") from None
    return stage(settings=run, **parameters)


def read_command(arguments: Sequence[str]) -> Command:
    """The command line, its names checked. Raises: ValueError names what is wrong and what to do."""
    given, words = _flags_and_words(arguments)
    known = steps()
    if words and words[0] not in known:
        raise ValueError(f"{words[0]}: no such stage{similar(words[0], known)} (known: {', '.join(known)})")
    if len(words) > 1:
        raise ValueError(f"{words[1]}: one stage at a time, and values follow flags; wanted --flag value")
    command = Command(stage=words[0] if words else "")
    stage = known[command.stage] if words else Step
    own = helping.own_parameters(stage)
    of_run, luigis = helping.run_flags(stage), _luigi_flags()
    for flag, value in given:
        if flag == "--workers":
            raise ValueError("--workers: stays 1, since stages share one Spark session; use --processes")
        if flag in ("--help", "--help-all"):
            command.wants_help = True
        elif flag == "--dry-run":
            command.is_dry = True
        elif flag in ("--workdir", "--run"):
            if not value or "://" in value:
                raise ValueError(f"{flag} {value}: wanted a path on a POSIX file system, and no URL")
            setattr(command, "workdir" if flag == "--workdir" else "begin", value)
        elif flag == "--set":
            command.changes.append(parse_set(value))
        elif flag in own:
            command.own[own[flag]] = value or "true"
        elif flag in of_run:
            table, name = of_run[flag]
            command.changes.append(Change(table, name, "", value, flag))
        elif flag in luigis:
            command.luigis += [f"{flag}={value}"] if value else [flag]
        else:
            hint = helping.home_of(flag) or similar(flag, [*helping.GENERAL, *own, *of_run, *luigis])
            raise ValueError(f"{flag}: {command.stage} has no such flag{hint or '; see --help'}")
    if "task" in own.values():
        task = command.own.get("task", dict(stage.get_params())["task"]._default)
        of_data = [each for each in command.changes if each.field == "data" and not each.key]
        command.changes = [replace(each, key=task) if each in of_data else each for each in command.changes]
    return command


def _flags_and_words(arguments: Sequence[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """The flags of a command line with their values, and the words that are no flag's value."""
    switches = {"--help", "--help-all", "--dry-run"}
    parameters = [(helping.flag(name), each) for step in steps().values() for name, each in step.get_params()]
    switches |= {flag for flag, each in [*_luigi_flags().items(), *parameters] if isinstance(each, luigi.BoolParameter)}
    flags, words = [], []
    rest = iter(arguments)
    for word in rest:
        flag, equals, value = word.partition("=")
        if not word.startswith("--"):
            words.append(word)
            continue
        if not equals and flag not in switches:
            value = next(rest, "--")
            if value.startswith("--"):
                raise ValueError(f"{flag}: no value follows; wanted {flag}=VALUE")
        flags.append((flag, value))
    return flags, words


def steps() -> Mapping[str, type[Step]]:
    """All stages that can be run, by their names."""
    tasks = {name: Register.get_task_cls(name) for name in Register.task_names()}
    return {
        name: task
        for name, task in tasks.items()
        if issubclass(task, Step)
        and not inspect.isabstract(task)  # nor a base of others alone
        and (hasattr(task, "FOLDER") or issubclass(task, luigi.WrapperTask) or not task.__subclasses__())
    }


def _luigi_flags() -> dict[str, luigi.Parameter[Any]]:
    """The flags of Luigi itself."""
    return {
        helping.flag(name if is_short else f"{owner}_{name}"): parameter
        for owner, is_short, name, parameter in Register.get_all_params()
        if issubclass(Register.get_task_cls(owner), luigi.Config)
    }


def set_defaults(arguments: Sequence[str]) -> None:
    """Set defaults of Luigi, whose own `arguments` these are, and of threads where the user set none."""
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
    config.set("core", "workers", "1")  # stages share one Spark session, whatever luigi.cfg says
    if "--local-scheduler" not in arguments and not config.getboolean("core", "local_scheduler", False):
        os.environ[locks.WAITS] = "1"
        luigi.worker.Worker = PatientWorker  # type: ignore[misc]
    # Threads that wait for each other without spinning: on a machine with other work, training is many times faster.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if (processors := machine.processors()) < (os.cpu_count() or 1):  # torch does not see a container's quota
        os.environ.setdefault("OMP_NUM_THREADS", str(processors))


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
