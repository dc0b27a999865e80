"""Per-page work on Beam: a list of blocks in, committed blocks out.

`pipeline.jobs.supervisor.run_blocks` starts `main` in a process of its own. Nothing here outlives the process that
started it.
"""

import contextlib
import ctypes
import functools
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from pipeline import storage
from pipeline.jobs.supervisor import WORKER_DIED
from pipeline.storage.blocks import Block, BlockJob, PageMarker, error_path, page_path

_DASK_RUNNER = "apache_beam.runners.dask.dask_runner.DaskRunner"
_DASK_ADDRESSES = ("--dask_client_address=", "--dask_scheduler_file=")
_DASK_PARTITIONS = ("--dask_npartitions", "--dask_partition_size")
WORKER_THREAD = "run_worker"  # Beam 2.77's name for the thread that waits for a worker process

_BEHIND_BLOCKS = 99_999  # number of an error that is no block's
_PR_SET_PDEATHSIG = 1  # of Linux
_loading = threading.Lock()


@functools.lru_cache(maxsize=1)
def _load(module: str, name: str, key: str, arguments: str) -> BlockJob:
    """A job with its heavy objects (tokenizer, aliases), loaded; the process's last one is kept.

    A runner may set up anew for every block. The key says from what the job is made: a worker that outlives a
    run must not take a tokenizer for the one that lay in the same folder before.
    """
    # A page's segments are too few to be worth the threads of the tokenizer; other workers use the processors.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    job_class: type[BlockJob] = attrgetter(name)(import_module(module))
    job = job_class(json.loads(arguments))
    # What a block makes is dropped with the block: to look for cycles in it takes a seventh of the time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    return job


class RunBlock(beam.DoFn):
    """Does a job's work on each block and commits it, on any machine that sees the stage's folder."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.job, self.folder, self.key = spec["job"], spec["folder"], spec["key"]
        self.arguments, self.fatal_pages = storage.files.canonical_json(spec["arguments"]), spec["fatal_pages"]
        self.patience = spec["patience"]

    def load(self) -> BlockJob:
        """The job. It is loaded with a block, so that what cannot be read is told as what is wrong with a block is."""
        with _loading:  # a worker may have many threads
            return _load(*self.job, self.key, self.arguments)

    def process(self, block: Block) -> Iterator[int]:
        """Raises: ValueError: this machine does not see the stage's folder. Nothing may be written here, then."""
        if problem := storage.blocks.unseen(self.folder, self.key, self.patience):
            raise ValueError(problem)
        message = error_path(self.folder, block.number)
        try:
            record = self.run(block)
            with contextlib.suppress(FileNotFoundError):  # of an attempt before, where a runner tries again
                storage.remove(message)
            storage.blocks.commit_block(self.folder, self.key, block.number, record)
        except (ValueError, OSError) as error:
            # Beam wraps what a worker raises in tracebacks; the message for the user travels beside them.
            with contextlib.suppress(OSError):  # the disk may be full
                storage.write_bytes(message, str(error).encode("utf-8", "replace"))
            raise
        yield block.number

    def run(self, block: Block) -> storage.Result:
        """The work; the page that was being worked on stays known where something unexpected ends it."""
        job = self.load()
        fatal = {int(page): reason for page, reason in self.fatal_pages.get(str(block.number), {}).items()}
        marker = PageMarker(page_path(self.folder, block.number), fatal)
        try:
            record = job(block, self.folder, marker)
        except (ValueError, OSError):
            marker.close()
            raise
        marker.close()
        return record


def user_options(options: Sequence[str]) -> list[str]:
    """Options for a runner of the user's choice, checked before anything is started.

    Beam knows its DaskRunner by its full name alone, and gives up to 128 blocks to one Dask worker: here the short
    name will do, and a block is a partition where the options say nothing else. Raises: ValueError: they are no
    options, or name no runner that Beam has.
    """
    wrong = [option for option in options if not option.startswith("--")]
    names = [option.partition("=")[2] for option in options if option.startswith("--runner=")]
    if wrong or len(names) != 1:
        raise ValueError(f"machine.beam_options={' '.join(options)}: wanted '--runner=NAME --option=value ...'")
    name, rest = names[0], [option for option in options if not option.startswith("--runner=")]
    if name.lower() in ("dask", "daskrunner"):
        name = _DASK_RUNNER
    if name == _DASK_RUNNER:
        # Without an address Beam would start a cluster on this machine, in silence.
        if not any(option.startswith(_DASK_ADDRESSES) for option in rest):
            raise ValueError(f"machine.beam_options={' '.join(options)}: wanted --dask_client_address=tcp://HOST:PORT")
        if not any(option.startswith(_DASK_PARTITIONS) for option in rest):
            rest.append("--dask_partition_size=1")
    try:
        beam.runners.create_runner(name)
    except (ValueError, ImportError, AttributeError) as error:
        reason = str(error).splitlines()[0]
        remedy = "; pip install 'luke-from-wikipedia[dask]'" if name == _DASK_RUNNER else ""
        raise ValueError(f"machine.beam_options: no runner {names[0]} ({reason}){remedy}") from None
    return [f"--runner={name}", *rest]


def _follow_parent() -> None:
    """End at once when the process that started this one is gone."""
    while sys.stdin.readline():
        pass
    if os.getpgrp() == os.getpid():  # its workers are of its group
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _end_with_worker(failure: threading.ExceptHookArgs) -> None:
    """End this process when one of its Beam workers is gone: Beam itself would wait for it for ever.

    Each worker has a thread here that raises when it ends otherwise than well.
    """
    threading.__excepthook__(failure)
    if failure.thread and failure.thread.name == WORKER_THREAD:
        os._exit(WORKER_DIED)  # the parent ends the other workers


def main() -> None:
    """Run the job that the first line of standard input describes as JSON."""
    spec = json.loads(sys.stdin.readline())
    if spec["processes"] == 1 and sys.platform == "linux":
        # A pattern at work in this very process lets no thread see that the parent has gone.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_follow_parent, daemon=True).start()
    threading.excepthook = _end_with_worker
    options, folder = spec["beam_options"], spec["folder"]
    try:
        processes = spec["processes"]  # one runs in memory
        mode = "in_memory" if processes == 1 else "multi_processing"
        local = ["--runner=FnApiRunner", f"--direct_num_workers={processes}", f"--direct_running_mode={mode}"]
        options = user_options(options) if options else local
        blocks = [Block(**block) for block in spec["blocks"]]
        with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
            _ = pipeline | beam.Create(blocks) | beam.Reshuffle() | beam.ParDo(RunBlock(spec))
    except ValueError as error:  # on Dask a worker's, too, with Beam's words behind it
        message = str(error).partition(" [while running ")[0]
        storage.write_bytes(error_path(folder, _BEHIND_BLOCKS), message.encode("utf-8", "replace"))
        raise
