"""Spark for a stage: Java, the run's session, and errors told in a line."""

import contextlib
import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from workflows.base.settings import SparkSettings
from workflows.base.terminal import check_reachable

MIN_JAVA = 17
_MIN_HEAP, _MAX_HEAP, _HEAP_PER_DUMP_BYTE = 1 << 30, 16 << 30, 8


def check_spark(stage: SparkSettings) -> None:
    """Whether Java is here (a cluster's driver runs here, too), and a cluster's master answers where one is named."""
    check_java()
    if stage.spark_master.startswith("spark://"):
        addresses = stage.spark_master.removeprefix("spark://").split(",")
        check_reachable(f"--spark-master {stage.spark_master}", *addresses)


def spark_session(stage: SparkSettings, dump_bytes: int) -> Any:
    """The run's Spark session, started by the first stage that needs it; its heap is bounded by the dump's size."""
    from pipeline.jobs import spark

    master = stage.spark_master or f"local[{stage.processes}]"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    wanted = _HEAP_PER_DUMP_BYTE * dump_bytes
    heap = max(_MIN_HEAP, min(_MAX_HEAP, memory // 4, wanted))
    # In the main thread Spark would put its own handler for Ctrl-C in place of ours.
    with ThreadPoolExecutor(1) as thread:
        try:
            return thread.submit(spark.session, master, heap, is_short=wanted <= _MIN_HEAP).result()
        except Exception as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(f"--spark-master {master}: Spark did not start ({reason})") from None


@contextlib.contextmanager
def spark_work(name: str) -> Iterator[None]:
    """Work of Spark's: it leaves no table behind in the session, and its failures are told in a line.

    Raises:
        ValueError: a file cannot be read, or Spark failed.
    """
    try:
        yield
    except Exception as error:
        from pipeline.jobs import spark

        if not spark.is_own(error):
            raise
        if path := spark.unreadable_file(error):
            raise ValueError(
                f"{path}: not readable as Parquet, its content has changed; delete it and run its stage again"
            ) from error
        lines = str(error).strip().splitlines()
        raise ValueError(f"{name}: Spark failed ({lines[0] if lines else type(error).__name__})") from error
    finally:
        if "pyspark" in sys.modules:
            from pipeline.jobs import spark

            with contextlib.suppress(Exception):  # the JVM may be gone, and the failure is told already
                spark.release()


def stop_spark() -> None:
    """Free the memory of the run's Spark session, if there is one."""
    if "pyspark" in sys.modules:
        from pipeline.jobs import spark

        spark.stop()


@functools.cache
def check_java() -> None:
    """Spark needs a Java runtime.

    Raises:
        ValueError: there is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(os.path.join(home, "bin", "java")) if home else shutil.which("java")
    remedy = (
        f"install Java {MIN_JAVA} or later (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    )
    if not java:
        raise ValueError(f"Java: not found {'in JAVA_HOME ' + home if home else 'on PATH'}; {remedy}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if not version or int(version[1]) < MIN_JAVA:
        found = f"is version {version[1]}" if version else "does not tell its version"
        raise ValueError(f"{java}: {found}; {remedy}")
