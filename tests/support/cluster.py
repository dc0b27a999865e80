"""A cluster on this machine: luigid, and a Spark master and a Dask scheduler with two workers each."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pyspark

from pipeline.jobs.spark_session import OWN_CONF
from tests.support import PATIENCE, ROOT

HOST, WORKERS = "127.0.0.1", 2
# Java's second compiler takes most of the time of JVMs that live for seconds.
QUICK_JAVA = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
_SPARK_HOME = str(Path(pyspark.__file__).parent)
_SPARK = QUICK_JAVA | {
    "SPARK_HOME": _SPARK_HOME,
    "SPARK_LOCAL_IP": HOST,
    "SPARK_WORKER_CORES": "1",
    "SPARK_WORKER_MEMORY": "2g",
    "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false -Dspark.port.maxRetries=0",
    "PYSPARK_PYTHON": sys.executable,
}
_DASK = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false",  # a sample every 10 ms
    "DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT": "60s",
}


def _free_port() -> int:
    """A port below those that the system gives away: what is free now is so when it is needed."""
    while True:
        port = random.randrange(10_000, 32_768)
        with contextlib.suppress(OSError), socket.create_server((HOST, port)):
            return port


def _page(port: int, path: str) -> dict[str, Any] | None:
    """The JSON of a service's page; None where nobody answers."""
    url = f"http://{HOST}:{port}{path}"
    with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=5) as answer:
        return {} if path == "/" else dict(json.load(answer))
    return None


def _port_of(address: str) -> str:
    return address.rpartition(":")[2]


class Cluster:
    """Processes by their names, each with its log in the folder; they end with the `with` block."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.processes = folder, dict[str, "subprocess.Popen[bytes]"]()
        self.luigi_port, self.web_port = _free_port(), _free_port()
        self.spark_master = f"spark://{HOST}:{_free_port()}"
        self.dask = f"tcp://{HOST}:{_free_port()}"

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            with contextlib.suppress(psutil.NoSuchProcess):
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
                start_new_session=True,
            )
        self.processes[name] = process

    def start_all(self) -> None:
        scripts = Path(sys.executable).parent
        state = str(self.folder / "luigid.state")
        luigid = [scripts / "luigid", "--address", HOST, "--port", str(self.luigi_port), "--state-path", state]
        self.start("luigid", list(map(str, luigid)), {})
        of_spark = {
            **_SPARK,
            "JDK_JAVA_OPTIONS": os.environ.get("SPARK_SUBMIT_OPTS", ""),  # the archive of the tests' drivers: java.py
            "SPARK_CONF_DIR": os.environ.get("SPARK_CONF_DIR", str(OWN_CONF)),
            "SPARK_LOCAL_DIRS": str(self.folder),
        }
        deploy, local = "org.apache.spark.deploy", ["--host", HOST, "--webui-port"]
        master = [f"{_SPARK_HOME}/bin/spark-class", f"{deploy}.master.Master", *local, str(self.web_port)]
        self.start("spark master", [*master, "--port", _port_of(self.spark_master)], of_spark)
        dask = [sys.executable, "-m", "dask"]
        address = ["--host", HOST, "--dashboard-address", f"{HOST}:0"]
        self.start("dask scheduler", [*dask, "scheduler", *address, "--port", _port_of(self.dask)], _DASK)
        self.wait(lambda: _page(self.web_port, "/json/") is not None)
        for number in range(1, WORKERS + 1):
            folder = str(self.folder / f"spark-worker-{number}")
            worker = [master[0], f"{deploy}.worker.Worker", *local, "0", "--work-dir", folder]
            self.start(f"spark worker {number}", [*worker, self.spark_master], of_spark)
            worker = [*dask, "worker", self.dask, *address, "--nthreads", "1", "--no-nanny"]
            self.start(f"dask worker {number}", [*worker, "--local-directory", str(self.folder)], _DASK)
        self.wait(lambda: self.spark_workers() == WORKERS)
        self.wait(lambda: _page(self.luigi_port, "/") is not None)

    def wait(self, condition: Callable[[], bool]) -> None:
        latest = time.monotonic() + PATIENCE
        while not condition():
            ended = [name for name, process in self.processes.items() if process.poll() is not None]
            logs = {name: (self.folder / f"{name}.log").read_text()[-2000:] for name in ended or self.processes}
            assert not ended, logs
            assert time.monotonic() < latest, logs
            time.sleep(0.1)

    def spark_workers(self) -> int:
        return int((_page(self.web_port, "/json/") or {}).get("aliveworkers", 0))

    def process(self, name: str) -> psutil.Process:
        return psutil.Process(self.processes[name].pid)
