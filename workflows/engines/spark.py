"""Spark for a stage: Java, the run's session with the user's settings, and errors told in a line."""

import atexit
import contextlib
import functools
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from workflows.base import machine
from workflows.base.stage import Step
from workflows.base.terminal import check_reachable, on_terminal, progress_bar
from workflows.engines import disk

logger = logging.getLogger("workflows")

MIN_JAVA = 17
_MIN_HEAP, _MAX_HEAP, _HEAP_PER_DUMP_BYTE = 1 << 30, 16 << 30, 8

_MOST_REASONS = 5  # lines
_LOOK_SECONDS = 0.5  # between looks at how far Spark is
_EXECUTOR_MEMORY, _LOCAL_DIRS = "spark.executor.memory", "spark.local.dir"
# What has a flag of its own.
_BY_FLAG = {"spark.master": "--spark-master", _LOCAL_DIRS: "machine.scratch"}
_at_end = contextlib.ExitStack()  # of the session
_heaps: list[int] = []  # bytes, of the sessions that were started here


def check_spark(stage: Step) -> None:
    """Check that Spark can start.

    Java is here (a cluster's driver runs here, too), a cluster's master answers where one is named, and settings are
    the user's to make.
    """
    check_java()
    if stage.settings.machine.spark_master.startswith("spark://"):
        way_to(stage.settings.machine.spark_master)
    from pipeline.jobs import spark_session

    for key, value in stage.settings.machine.spark_conf.items():
        if key in _BY_FLAG:
            raise ValueError(f"machine.spark_conf {key}={value}: {_BY_FLAG[key]} sets it")
        if key in spark_session.FIXED:
            raise ValueError(f"machine.spark_conf {key}={value}: the tables depend on it; leave it out")
    workdir = os.path.abspath(stage.workdir)
    if workdir != workdir.encode("utf-8", "replace").decode():
        raise ValueError(f"--workdir {workdir!a}: no UTF-8, which Spark wants; give another folder")
    if any(":" in name and re.search(r"[][{}*?\\]", name) for name in workdir.split("/")):
        raise ValueError(
            f"--workdir {workdir}: Spark reads no name with a colon and one of []{{}}*?\\; give another folder"
        )
    if "," in (root := scratch_root(stage)):
        raise ValueError(f"machine.scratch {root}: Spark ends the name at the comma; give another folder")


def scratch_root(stage: Step) -> str:
    """The folder for what Spark sets aside on this machine; empty where the user has told Spark itself."""
    from pipeline.jobs import spark_session

    chosen = stage.settings.machine
    if chosen.scratch:
        return os.path.abspath(chosen.scratch)
    is_set = _LOCAL_DIRS in spark_session.users_settings() or chosen.spark_master.startswith("k8s")
    return "" if is_set else disk.own_scratch(stage.workdir)


def session_of(stage: Step, dump_bytes: int) -> Any:
    """The run's Spark session, whose heap is bounded by the dump's size; a larger dump's stage starts a new one."""
    from pipeline.jobs import spark_session

    master = stage.settings.machine.spark_master or f"local[{stage.processes}]"
    heap = max(_MIN_HEAP, min(_MAX_HEAP, machine.memory_bytes() // 4, _HEAP_PER_DUMP_BYTE * dump_bytes))
    if (session := spark_session.running()) and heap <= max(_heaps[-1:], default=heap):
        return session
    stop_spark()
    _heaps.append(heap)
    wanted = dict(stage.settings.machine.spark_conf)
    defaults: dict[str, str] = {}
    if not master.startswith("local"):
        defaults |= {"spark.ui.enabled": "true", **driver_address(master)}
        if _EXECUTOR_MEMORY not in {**spark_session.users_settings(), **wanted}:
            logger.info("Spark: executors get 1 GB; more by --set machine.spark_conf.%s=8g", _EXECUTOR_MEMORY)
    atexit.register(_end)
    if root := scratch_root(stage):
        wanted[_LOCAL_DIRS] = _at_end.enter_context(disk.scratch_folder(root, "machine.scratch"))
        if "SPARK_LOCAL_DIRS" in os.environ:  # which would come before
            os.environ["SPARK_LOCAL_DIRS"] = wanted[_LOCAL_DIRS]
    # In the main thread Spark would put its own handler for Ctrl-C in place of ours.
    with ThreadPoolExecutor(1) as thread:
        is_short = _HEAP_PER_DUMP_BYTE * dump_bytes <= _MIN_HEAP
        start = functools.partial(spark_session.session, defaults=defaults, wanted=wanted, is_short=is_short)
        try:
            return thread.submit(start, master, heap).result()
        except Exception as error:
            _at_end.close()
            reason = _reason(str(error))
            raise ValueError(f"--spark-master {master}: Spark did not start ({reason})") from None


def _reason(error: str) -> str:
    """Return why Spark did not start: of an error of Java's its last cause, else what Java said before it ended."""
    causes = re.findall(r"^(?:Caused by)?: (.+)", error, re.MULTILINE)
    lines = filter(None, map(str.strip, error.splitlines()))
    told = [line for line in lines if not re.match(r"at |\.\.\. |WARN|Using Spark's|Setting default", line)]
    return "; ".join(causes[-1:] or told[:_MOST_REASONS])


def way_to(master: str) -> str:
    """This machine's address on the way to a standalone master, or to one that stands in for it, where one answers."""
    return check_reachable(f"--spark-master {master}", *master.removeprefix("spark://").split(","))


def driver_address(master: str) -> dict[str, str]:
    """The setting by which executors find this machine: its address on the way to a standalone master.

    Its name may be unknown to others, such as a container's. What the user says of it in the environment stands.
    """
    if not master.startswith("spark://") or {"SPARK_LOCAL_HOSTNAME", "SPARK_LOCAL_IP"} & set(os.environ):
        return {}
    return {"spark.driver.host": way_to(master)}


@contextlib.contextmanager
def shown_tasks(name: str) -> Iterator[None]:
    """A bar, on a terminal, of the tasks of all Spark jobs that begin meanwhile, and of the time left for them."""
    if not on_terminal():
        yield
        return
    from pipeline.jobs import spark_session

    is_over = threading.Event()
    before = spark_session.last_job()

    def look(show: Callable[..., None]) -> None:
        is_last = False
        while not is_last:
            is_last = is_over.wait(_LOOK_SECONDS)
            with contextlib.suppress(Exception):  # the session may end at any moment; that is told elsewhere
                show(*spark_session.tasks(before))

    with progress_bar(name, unit="task") as show:
        thread = threading.Thread(target=look, args=[show], daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


@contextlib.contextmanager
def spark_work(name: str) -> Iterator[None]:
    """Work of Spark's: it leaves no table behind in the session, and its failures are told in a line.

    Raises: ValueError: a file cannot be read, or Spark failed.
    """
    try:
        with shown_tasks(name):
            yield
    except Exception as error:
        from pipeline.jobs import spark_parts, spark_session

        if not spark_session.is_own(error):
            raise
        if path := spark_parts.unreadable_file(error):
            raise ValueError(
                f"{path}: not readable as Parquet, its content has changed; delete it and run its stage again"
            ) from error
        if spark_session.has_ended(error):
            said = "" if isinstance(error, UnboundLocalError) else str(error)
            raise ValueError(
                f"{name}: Spark's Java has ended, perhaps for want of memory ({said or 'nobody answers'}); "
                "the same command goes on from here"
            ) from error
        lines = str(error).strip().splitlines()
        raise ValueError(f"{name}: Spark failed ({lines[0] if lines else type(error).__name__})") from error
    finally:
        if "pyspark" in sys.modules:
            from pipeline.jobs import spark_session

            with contextlib.suppress(Exception):  # the JVM may be gone, and the failure is told already
                spark_session.release()


def stop_spark() -> None:
    """Free the memory and the scratch of the run's Spark session, if there is one."""
    with _at_end:
        if "pyspark" in sys.modules:
            from pipeline.jobs import spark_session

            spark_session.stop()


def _end() -> None:
    """At the end of the program; the JVM may be gone."""
    with contextlib.suppress(Exception):
        stop_spark()


@functools.cache
def check_java() -> None:
    """Spark needs a Java runtime. Raises: ValueError: there is none, or it is too old."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java")) if home else shutil.which("java")
    package = "Debian: apt-get install openjdk-17-jre-headless"
    remedy = f"install Java {MIN_JAVA} or later ({package}) or set JAVA_HOME"
    if not java:
        raise ValueError(f"Java: not found {'in JAVA_HOME ' + home if home else 'on PATH'}; {remedy}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if not version or int(version[1]) < MIN_JAVA:
        found = f"is version {version[1]}" if version else "does not tell its version"
        raise ValueError(f"{java}: {found}; {remedy}")
