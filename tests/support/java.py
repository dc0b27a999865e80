"""Java that starts quickly in tests: an archive of the classes that Spark loads, made once for a checkout.

    python -m tests.support.java FOLDER

A driver reads its options from a file of the folder. They name the archive as soon as it is there, so that nobody has
to wait for it. Java takes no archive where a folder on its class path holds files: Spark's settings are an empty one.
"""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyspark

from pipeline.jobs.spark_session import OWN_CONF
from tests.support import ROOT
from tests.support.stages import DUMP, run_luigi

_OPTIONS = "java.options"


def environment(folder: Path) -> dict[str, str]:
    """Make the folder, unless it is there; the variables by which drivers use it."""
    (folder / "conf").mkdir(parents=True, exist_ok=True)
    if not (options := folder / _OPTIONS).exists():
        options.write_text(_common())
    return {"SPARK_CONF_DIR": str(folder / "conf"), "SPARK_SUBMIT_OPTS": f'"@{options}"'}


def name_of_archive() -> str | None:
    """A name for this Java and this Spark; None where there is no Java."""
    if not (java := shutil.which("java")):
        return None
    identity = os.path.realpath(java), pyspark.__file__, pyspark.__version__
    return hashlib.sha256(repr(identity).encode()).hexdigest()[:16]


def make_archive(folder: Path) -> None:
    """Write the archive, which a driver does at its end, and then name it in the options."""
    variables = os.environ | environment(folder)
    archive = folder / "classes.jsa"
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        new = Path(scratch, "java.options")
        new.write_text(_common() + f'"-XX:ArchiveClassesAtExit={archive}"\n')
        run_luigi(
            "BuildMentionTable",
            "--dump",
            DUMP,
            cwd=Path(scratch),
            env=variables | {"SPARK_SUBMIT_OPTS": f'"@{new}"'},
            timeout=600,
        ).check_returncode()
        new.write_text(_common() + f'"-XX:SharedArchiveFile={archive}"\n')
        new.replace(folder / _OPTIONS)


def _common() -> str:
    """Spark's settings of its log, and no word from Java where it takes no archive."""
    return f'"-Dlog4j2.configurationFile={OWN_CONF}/log4j2.properties"\n-Xlog:disable\n'


@contextlib.contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make the archive meanwhile, unless it is there; what has begun is left at the end."""
    if "SharedArchiveFile" in (folder / _OPTIONS).read_text():
        yield
        return
    command = ["nice", sys.executable, "-m", "tests.support.java", str(folder)]
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=silent, stderr=silent, cwd=ROOT, start_new_session=True)
    try:
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


if __name__ == "__main__":
    make_archive(Path(sys.argv[1]))
