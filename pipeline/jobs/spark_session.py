"""The one Spark session of a process: its settings, how far its jobs are, its errors, and its end."""

import os
import re
import sys
import tempfile
import tomllib
import traceback
from collections.abc import Iterator, Mapping
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

OWN_CONF = Path(__file__).with_name("spark_conf")
_CONF: dict[str, dict[str, str]] = tomllib.loads((OWN_CONF / "tables.toml").read_text(encoding="utf-8"))
FIXED, READING = _CONF["fixed"], _CONF["reading"]
_PROPERTY = re.compile(r"([^\s=:]+)\s*[\s=:]\s*(.*)")


Settings = Mapping[str, str]
_NONE: Settings = MappingProxyType({})


def users_settings() -> dict[str, str]:
    """Return what the user has set for Spark outside of this project, in spark-defaults.conf and the environment."""
    path = Path(_conf_folder(), "spark-defaults.conf")
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    lines = (line.strip() for line in re.sub(r"\\\n\s*", "", text).splitlines())
    found = (_PROPERTY.match(line) for line in lines if not line.startswith(("#", "!")))
    variables = {key: os.environ[name] for key, name in _CONF["variables"].items() if name in os.environ}
    return {match[1]: match[2] for match in found if match} | variables


def _conf_folder() -> str:
    """Return where Spark looks for its configuration; ours only says that Spark is to be silent."""
    installed = os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    return os.environ.get("SPARK_CONF_DIR") or (installed if os.path.isdir(installed) else str(OWN_CONF))


def running() -> SparkSession | None:
    """The session of this process, if one was started."""
    return SparkSession.builder.getOrCreate() if SparkContext._active_spark_context is not None else None


def session(
    master: str, memory_bytes: int, *, is_short: bool = False, defaults: Settings = _NONE, wanted: Settings = _NONE
) -> SparkSession:
    """Start the Spark session of this process.

    `memory_bytes` bound the driver's heap, in local mode that of all work. Where the work `is_short`, Java does
    without what pays off in minutes. The settings `wanted` come before all but `FIXED`; `defaults` come after those
    of `users_settings`.
    """
    users = users_settings()
    os.environ.setdefault("PYSPARK_PYTHON", users.get("spark.pyspark.python", sys.executable))
    if re.match(r"local|spark://(localhost|127\.)", master):  # others find the driver by its real name
        os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    os.environ["SPARK_CONF_DIR"] = _conf_folder()
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "C")
    if sys.platform == "linux" and not re.search(r"utf-?8", locale, re.IGNORECASE):
        os.environ["LC_ALL"] = "C.UTF-8"  # or Java finds no file whose name is beyond ASCII
    settings = {
        "spark.driver.memory": f"{memory_bytes >> 20}m",
        **_CONF["quiet"],
        **(_CONF["short"] if is_short else {}),
        **defaults,
        **users,
        **wanted,
        **FIXED,
        "spark.master": master,
    }
    start_java(settings)
    builder = SparkSession.builder.appName("luke")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def start_java(settings: Mapping[str, str]) -> None:
    """Start Java, if this process has none. Raises: ValueError with what it said, where it ended at once.

    Nobody sees what else it says, but where the user's own configuration decides that.
    """
    if SparkContext._gateway is not None:
        return
    with tempfile.TemporaryFile() as words:
        conf = SparkConf().setAll(list(settings.items()))
        is_ours = os.environ.get("SPARK_CONF_DIR") == str(OWN_CONF)
        try:
            gateway = launch_gateway(conf, {"stdout": words, "stderr": words} if is_ours else {})
        except PySparkException as error:
            words.seek(0)
            said = words.read().decode("utf-8", "replace")
            raise ValueError(f"{str(error).strip().partition(chr(10))[0]}\n{said}") from None
        SparkContext._ensure_initialized(gateway=gateway)


# What Python's end of a connection to Java says when the other one is gone.
_ENDINGS = (ConnectionError, EOFError, Py4JNetworkError)


def is_own(error: BaseException) -> bool:
    """Return whether Spark, or Java below it, raised this."""
    return isinstance(error, PySparkException | Py4JError) or has_ended(error)


def has_ended(error: BaseException) -> bool:
    """Return whether nobody answers any more: Java was killed, or has ended for want of memory."""
    frames = traceback.walk_tb(error.__traceback__)
    modules = [str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in frames]
    if isinstance(error, UnboundLocalError):
        # Java ended between a job and its rows: Spark then closes a socket that it had not opened yet.
        before = error.__context__
        return modules[-1:] == ["pyspark"] and before is not None and is_own(before)
    return isinstance(error, _ENDINGS) and any(name in ("pyspark", "py4j") for name in modules)


def last_job() -> int:
    """The number of the last job that this process's session has begun; -1 before the first."""
    return next((int(job.jobId()) for job in _jobs()), -1)


def tasks(after: int) -> tuple[int, int]:
    """Return how many tasks are done, and how many there are, of the jobs that were begun after this one."""
    done = total = 0
    for job in takewhile(lambda job: job.jobId() > after, _jobs()):
        done += job.numCompletedTasks()
        total += job.numTasks() - job.numSkippedTasks()
    return done, total


def _jobs() -> Iterator[Any]:
    """Spark's records of its jobs, the last first; it keeps those of the last thousand."""
    if context := SparkContext._active_spark_context:
        records: Any = context._jsc.sc().statusStore().jobsList(None)
        yield from (records.apply(at) for at in range(records.size()))


def release() -> None:
    """Forget the tables that this process's session keeps, if there is a session."""
    if session := running():
        session.catalog.clearCache()
        java: Any = session.sparkContext._jvm
        java.System.gc()  # Spark removes the files of a shuffle when Java has forgotten it


def stop() -> None:
    """End this process's Spark session and its JVM, so that their memory is free; a later session starts anew."""
    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context is None or gateway is None:
        return
    SparkSession.builder.getOrCreate().stop()
    gateway.shutdown()
    gateway.proc.stdin.close()  # the JVM lives as long as it can read from us
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None
