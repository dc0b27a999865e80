"""What stages need of the machine: Beam and Spark, a progress bar, a device, a model's folder."""

import contextlib
import functools
import gc
import logging
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline import storage
from pipeline.blocks import run_blocks
from pipeline.containers import Block
from workflows.parameters import AUTO

if TYPE_CHECKING:
    from workflows.stage import Stage

MIN_JAVA = 17
_CONNECT_SECONDS = 5
_MODEL_FILES, _WEIGHTS, _OLD_WEIGHTS = (
    ("*.json", "merges.txt", "vocab.txt"),
    "*.safetensors",
    "pytorch_model.bin",
)
_MIN_HEAP, _MAX_HEAP, _HEAP_PER_DUMP_BYTE = 1 << 30, 16 << 30, 8


@contextlib.contextmanager
def progress_bar(name: str, *, unit: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A progress bar on a terminal, nothing elsewhere; gives a function of (done, total)."""
    from tqdm import tqdm

    with tqdm(
        desc=name, total=total, unit=unit, unit_scale=True, leave=False, disable=not sys.stderr.isatty()
    ) as bar:

        def show(done: int, known_total: int | None = None) -> None:
            bar.total = known_total or bar.total
            bar.update(done - bar.n)

        yield show


def run_beam(
    stage: "Stage", job: str, blocks: Sequence[Block], arguments: Mapping[str, Any]
) -> dict[int, storage.BlockRecord]:
    """Run a Beam job over the blocks that the stage's folder does not hold yet."""
    with progress_bar(type(stage).__name__, unit="block", total=len(blocks)) as show:
        return run_blocks(
            job,
            blocks,
            stage.folder,
            storage.digest(stage.identity()),
            arguments,
            processes=stage.processes,
            beam_options=beam_options(stage),
            progress=show,
        )


def beam_options(stage: "Stage") -> list[str]:
    """The options of another Beam runner, split as a shell splits words.

    Raises:
        ValueError: they cannot be split.
    """
    try:
        return shlex.split(stage.beam_options)
    except ValueError as error:
        raise ValueError(f"--beam-options={stage.beam_options}: {error}") from None


def check_beam_options(stage: "Stage") -> None:
    """Whether Beam knows the runner that the user wants, and a Dask scheduler answers where one is named."""
    if options := beam_options(stage):
        logging.disable(logging.WARNING)  # Beam warns of cloud libraries that nobody needs here
        from pipeline import jobs_beam

        logging.disable(logging.NOTSET)
        jobs_beam.user_options(options)
        for option in options:
            if match := re.fullmatch(r"--dask_client_address=(?:tcp://)?([^/]+:\d+)", option):
                check_reachable(f"--beam-options: {option}", match[1])


@functools.cache
def check_reachable(parameter: str, *addresses: str) -> None:
    """Whether one of a service's addresses answers; asked once. Spark itself looks for its master for a minute.

    Args:
        parameter: of the user's command line, as "--spark-master spark://host:7077".
        addresses: each HOST:PORT.

    Raises:
        ValueError: none does.
    """
    problems = []
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _CONNECT_SECONDS).close()
            return
        except (OSError, ValueError, OverflowError) as error:
            problems.append(str(error))
    raise ValueError(f"{parameter}: nobody answers there ({problems[0]}); is the cluster running?")


def check_spark(stage: "Stage") -> None:
    """Whether Java is here (a cluster's driver runs here, too), and a cluster's master answers where one is named."""
    check_java()
    if stage.spark_master.startswith("spark://"):
        addresses = stage.spark_master.removeprefix("spark://").split(",")
        check_reachable(f"--spark-master {stage.spark_master}", *addresses)


def spark_session(stage: "Stage", dump_bytes: int) -> Any:
    """The run's Spark session, started by the first stage that needs it; its heap is bounded by the dump's size."""
    from pipeline import spark

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
        from pipeline import spark

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
            from pipeline import spark

            with contextlib.suppress(Exception):  # the JVM may be gone, and the failure is told already
                spark.release()


def stop_spark() -> None:
    """Free the memory of the run's Spark session, if there is one."""
    if "pyspark" in sys.modules:
        from pipeline import spark

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


def torch_device(name: str) -> str:
    """The torch device that `--device` stands for.

    Raises:
        ValueError: this machine has no such device.
    """
    import torch

    if name == AUTO:
        return "cuda" if torch.cuda.is_available() else "cpu"
    index = int(name.partition(":")[2] or 0)
    if name.startswith("cuda") and index >= torch.cuda.device_count():
        raise ValueError(
            f"--device {name}: torch finds {torch.cuda.device_count()} CUDA devices here; pass cpu or auto"
        )
    return name


def torch_devices(name: str) -> list[str]:
    """The devices that work may be shared out to: all of CUDA's for `auto`, or else the one.

    Raises:
        ValueError: this machine has no such device.
    """
    import torch

    if name == AUTO and torch.cuda.is_available():
        return [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    return [torch_device(name)]


def free_device_memory() -> None:
    """Give back what torch keeps of a GPU's memory for its next use, since that will be in another process."""
    import torch

    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()


@functools.cache
def model_folder(name: str, parameter: str) -> str:
    """The local folder of a model: the folder itself, or a Hugging Face name's download.

    Args:
        name: a folder or a name, as the user gave it.
        parameter: the user's word for it, such as "--base-model".

    Raises:
        ValueError: there is no such model, or none of its weights can be read.
    """
    if os.path.isdir(name):
        return os.path.abspath(name)
    if name.startswith((".", "/", "~")) or not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name):
        raise ValueError(
            f"{parameter} {name}: no such folder; give a model's folder or its name at Hugging Face"
        )
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = _download(name)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(
            f"{parameter} {name}: no such folder, and not to be had from Hugging Face ({reason})"
        ) from None
    if not any(next(Path(folder).glob(weights), None) for weights in (_WEIGHTS, _OLD_WEIGHTS)):
        raise ValueError(
            f"{parameter} {name}: at Hugging Face it has neither {_WEIGHTS} nor {_OLD_WEIGHTS}; give a model with "
            "weights of PyTorch"
        )
    return folder


def _download(name: str) -> str:
    """A model's files by its name at Hugging Face; its weights in the old format only where there are no others.

    What was fetched tells which there are, and not a list of the files: the cache serves without a network, too.
    """
    from huggingface_hub import snapshot_download

    folder = snapshot_download(name, allow_patterns=[*_MODEL_FILES, _WEIGHTS])
    if not any(Path(folder).glob(_WEIGHTS)):
        folder = snapshot_download(name, allow_patterns=[*_MODEL_FILES, _OLD_WEIGHTS])
    return folder


def on_terminal() -> bool:
    """Whether somebody watches: progress is shown on a terminal only."""
    return sys.stderr.isatty()
