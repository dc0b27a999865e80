"""A cluster on this machine: luigid, a Spark master with workers, and for Beam a Dask scheduler with workers.

`python -m workflows.engines.cluster` (or `make cluster`) starts it, says how it is used, and ends it on Ctrl-C. All of
it listens on loopback alone. Ports and sizes are set in `.env`, which docker compose reads, too.
"""

import argparse
import contextlib
import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

import psutil

from workflows.base.terminal import read_page
from workflows.engines import spark

HOST = "127.0.0.1"
SPARK_MASTER = "org.apache.spark.deploy.master.Master"
SPARK_WORKER = "org.apache.spark.deploy.worker.Worker"
ROOT = Path(__file__).resolve().parents[2]
SETTINGS = ROOT / ".env"
_START_SECONDS, _GRACE_SECONDS = 90, 2


def read_settings(path: Path = SETTINGS) -> dict[str, str]:
    """The file's NAME=value lines; a variable of the environment overrides its line.

    Raises:
        ValueError: the file is not there, or a line is something else.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(
            f"{path}: {error.strerror}; it lies in the project's repository, install from there"
        ) from None
    settings = {}
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#"):
            name, equals, value = line.partition("=")
            if not equals or not name.isidentifier():
                raise ValueError(f"{path}: line {number} is {line!r}; wanted NAME=value")
            settings[name] = os.environ.get(name, value)
    return settings


def port_number(settings: Mapping[str, str], name: str) -> int:
    """A port that nobody uses yet.

    Raises:
        ValueError: it is no port, or in use.
    """
    value = settings[name]
    if not value.isdecimal() or not 0 < int(value) < 1 << 16:
        raise ValueError(f"{name}={value}: wanted a port, 1 to 65535")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, int(value)))
        except OSError as error:
            raise ValueError(
                f"{name}={value}: {error.strerror} on {HOST}; end what uses the port, or set another {name} "
                "in .env or the environment"
            ) from None
    return int(value)


def worker_count(settings: Mapping[str, str], name: str) -> int:
    """A number of workers; ValueError where it is none."""
    if not settings[name].isdecimal() or not int(settings[name]):
        raise ValueError(f"{name}={settings[name]}: wanted a whole number, 1 or more")
    return int(settings[name])


class Cluster:
    """Processes on loopback, each with its log in the folder; they end with the `with` block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        # The workers run our code, from wherever this process has it.
        paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))}

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a process in a session of its own: the terminal's Ctrl-C reaches this process alone."""
        with self._log(name).open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                env={**self._environment, **(environment or {})},
                start_new_session=True,
            )
        return self.processes[name]

    def _log(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '-')}.log"

    def wait(self, name: str, answers: Callable[[], bool]) -> None:
        """Wait until something answers.

        Raises:
            ValueError: it does not, or one of the cluster's processes has ended.
        """
        deadline = time.monotonic() + _START_SECONDS
        while not answers():
            for ended in self.ended():
                raise ValueError(ended)
            if time.monotonic() > deadline:
                raise ValueError(f"{name}: no answer for {_START_SECONDS} s; {self._last_words(name)}")
            time.sleep(0.1)

    def ended(self) -> list[str]:
        """The processes that have ended, each with its last words."""
        return [
            f"{name}: ended with exit status {process.returncode}; {self._last_words(name)}"
            for name, process in self.processes.items()
            if process.poll() is not None
        ]

    def _last_words(self, name: str) -> str:
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").split("\n")
        lines = [line.strip() for line in lines if line.strip()]
        errors = [line for line in lines if re.search(r"Exception|Error|ERROR", line)]
        return f"its last words: {(errors or lines)[-1]}" if lines else "it said nothing"

    def start_luigid(self, port: int) -> str:
        """Start Luigi's scheduler; returns the address of its web page."""
        # It keeps its state as a pickle, which nobody is to read.
        state = str(self.folder / "luigid.state")
        luigid = str(Path(sys.executable).with_name("luigid"))
        self.start("luigid", [luigid, "--address", HOST, "--port", str(port), "--state-path", state])
        self.wait("luigid", lambda: read_page(HOST, port, "/") is not None)
        return f"http://{HOST}:{port}"

    def start_spark(self, port: int, web_port: int, workers: int, settings: Mapping[str, str]) -> str:
        """Start a Spark master and workers from pyspark's own jars; returns the master's URL."""
        url = f"spark://{HOST}:{port}"
        command = [SPARK_MASTER, "--host", HOST, "--port", str(port), "--webui-port", str(web_port)]
        self._start_spark_class("spark master", command, settings)
        self.wait("spark master", lambda: spark.master_status(HOST, web_port) is not None)
        for number in range(1, workers + 1):
            folder = self.folder / f"spark-worker-{number}"
            command = [SPARK_WORKER, "--host", HOST, "--webui-port", "0", "--work-dir", str(folder), url]
            self._start_spark_class(f"spark worker {number}", command, settings)
        self.wait("spark worker 1", lambda: _alive_workers(web_port) == workers)
        return url

    def _start_spark_class(
        self, name: str, command: Sequence[str], settings: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        home = Path(spec.origin).parent
        environment = {
            **{key: value for key, value in settings.items() if key.startswith("SPARK_")},
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": os.environ.get("SPARK_CONF_DIR")
            or str(ROOT / "pipeline" / "jobs" / "spark_conf"),
            "SPARK_LOCAL_IP": HOST,  # web pages, too
            "SPARK_LOCAL_DIRS": str(self.folder),
            "PYSPARK_PYTHON": sys.executable,
        }
        return self.start(name, [str(home / "bin" / "spark-class"), *command], environment)

    def start_dask(self, port: int, workers: int) -> str:
        """Start a Dask scheduler and workers of one thread each; returns the scheduler's address."""
        if importlib.util.find_spec("distributed") is None:
            raise ValueError("Dask: not installed; pip install 'luke-from-wikipedia[dask]'")
        from distributed import Client

        dask = [sys.executable, "-m", "dask"]
        local = ["--host", HOST, "--dashboard-address", f"{HOST}:0"]
        address = f"tcp://{HOST}:{port}"
        # Without any worker left, work fails instead of waiting for ever.
        patience = {"DASK_DISTRIBUTED__SCHEDULER__NO_WORKERS_TIMEOUT": "60s"}
        self.start("dask scheduler", [*dask, "scheduler", *local, "--port", str(port)], patience)
        for number in range(1, workers + 1):
            command = [*dask, "worker", address, *local, "--nthreads", "1", "--no-nanny"]
            self.start(f"dask worker {number}", [*command, "--local-directory", str(self.folder)])
        self.wait("dask scheduler", lambda: _connects(port))
        with Client(address, set_as_default=False) as client:
            self.wait("dask worker 1", lambda: len(client.scheduler_info(-1)["workers"]) == workers)
        return address

    def end(self) -> None:
        """End every process with all that it started."""
        family: list[psutil.Process] = []
        # The number of a process that has ended, and was seen to, may be a stranger's by now.
        alive = [process for process in self.processes.values() if process.returncode is None]
        for process in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                parent = psutil.Process(process.pid)
                family += [parent, *parent.children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.terminate()
        psutil.wait_procs(family, _GRACE_SECONDS)
        for process in alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # also those that have lost their parent
            process.wait()
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        psutil.wait_procs(family, _GRACE_SECONDS)
        self.processes.clear()


def _alive_workers(web_port: int) -> int:
    return (spark.master_status(HOST, web_port) or {}).get("aliveworkers", 0)


def _connects(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def start(cluster: Cluster, settings: Mapping[str, str], *, dask: bool) -> str:
    """Start everything; returns what the user is to know."""
    spark.check_java()
    names = ("LUIGI_PORT", "SPARK_MASTER_PORT", "SPARK_MASTER_WEBUI_PORT") + ("DASK_PORT",) * dask
    ports = {name: port_number(settings, name) for name in names}
    workers = worker_count(settings, "SPARK_WORKERS")
    web_port = ports["SPARK_MASTER_WEBUI_PORT"]
    page = cluster.start_luigid(ports["LUIGI_PORT"])
    url = cluster.start_spark(ports["SPARK_MASTER_PORT"], web_port, workers, settings)
    lines = [f"luigid  {page}", f"Spark   {url}, {workers} workers, http://{HOST}:{web_port}"]
    command = f"luigi --module workflows RunAll --scheduler-host {HOST}"
    command += f" --scheduler-port {ports['LUIGI_PORT']} --spark-master {url}"
    if dask:
        count = worker_count(settings, "DASK_WORKERS")
        address = cluster.start_dask(ports["DASK_PORT"], count)
        lines.append(f"Dask    {address}, {count} workers")
        command += f" --beam-options='--runner=DaskRunner --dask_client_address={address}'"
    return "\n".join([*lines, f"logs    {cluster.folder}", "", command, "", "Ctrl-C ends the cluster"])


def _stop(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # nothing disturbs the end
    raise SystemExit(0)


def main() -> None:
    """Start the cluster and stay until a signal ends it."""
    parser = argparse.ArgumentParser(prog="python -m workflows.engines.cluster", description=__doc__)
    parser.add_argument("--dask", action="store_true", help="a Dask scheduler and workers, too, for Beam")
    dask = parser.parse_args().dask
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _stop)
    reported: set[str] = set()
    try:
        with tempfile.TemporaryDirectory(prefix="luke-cluster-") as folder, Cluster(Path(folder)) as cluster:
            print(start(cluster, read_settings(), dask=dask), flush=True)
            while True:
                for line in set(cluster.ended()) - reported:
                    reported.add(line)
                    print(line, file=sys.stderr, flush=True)
                time.sleep(1)
    except (ValueError, OSError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
