"""Running a job over blocks: what is committed is kept, what is missing is computed, in a process that is watched.

The job runs in a child process. The child ends when its parent does, so a stage that is killed leaves nobody
behind; when the child or one of its workers dies, the blocks that were being worked on are run one by one, and a page
that kills twice is left out.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import IO, Any

from pipeline import storage
from pipeline.dump.containers import Block
from pipeline.storage.blocks import WORKER_DIED, page_path

MAX_ATTEMPTS = 3
_POLL_SECONDS = 2.0  # a look at how far the job is; its end is noticed at once
_COMMAND = [sys.executable, "-c", "from pipeline.jobs.beam import main; main()"]

# Runs a job, named by its module, over blocks with arguments: `run_blocks`, all else being given.
RunBlocks = Callable[[str, Sequence[Block], Mapping[str, Any]], Mapping[int, storage.Result]]


def run_blocks(
    job: str,
    blocks: Sequence[Block],
    folder: str,
    key: str,
    arguments: Mapping[str, Any],
    *,
    processes: int,
    beam_options: Sequence[str] = (),
    progress: Callable[[int], None] = lambda finished: None,
) -> dict[int, storage.Result]:
    """Run a Beam job over the blocks that the folder does not hold yet.

    Args:
        job: the name of the module that does the work, one of `pipeline.jobs.beam.JOBS`.
        blocks: all blocks of the stage.
        folder: the stage's folder; files that no finished block owns are removed first.
        key: digest of all that decides the stage's bytes.
        arguments: the job's, as JSON.
        processes: worker processes of the local runner.
        beam_options: options of another Beam runner, instead of the local one's.
        progress: called with the number of finished blocks.

    Returns:
        Every block's record, by number.

    Raises:
        ValueError: the input is at fault.
        RuntimeError: the job failed, or its workers died three times.
    """
    finished = storage.finished_blocks(folder, key)
    storage.sweep(folder, finished)
    storage.make_folder(storage.join(folder, storage.BLOCKS))
    spec = {
        "job": job,
        "folder": folder,
        "key": key,
        "arguments": dict(arguments),
        "beam_options": list(beam_options),
    }
    run = _Run(spec, progress)
    fruitless = 0
    while missing := [block for block in blocks if block.number not in finished]:
        before = len(finished) + run.deadly_pages
        if not run.blocks(missing, min(processes, len(missing))):
            for block in missing:
                run.isolate(block)
        finished = storage.finished_blocks(folder, key)
        fruitless = 0 if len(finished) + run.deadly_pages > before else fruitless + 1
        if fruitless == MAX_ATTEMPTS:
            lost = [block.number for block in missing]
            raise RuntimeError(
                f"{job}: workers died {MAX_ATTEMPTS} times in blocks {lost[:5]}; perhaps memory ran out"
            )
    return finished


class _Run:
    """Child processes that run blocks of one job; knows the pages that have killed one."""

    def __init__(self, spec: dict[str, Any], progress: Callable[[int], None]) -> None:
        self.spec, self.progress = spec, progress
        self.deadly: dict[int, list[int]] = {}

    @property
    def deadly_pages(self) -> int:
        return sum(map(len, self.deadly.values()))

    def blocks(self, blocks: Sequence[Block], processes: int) -> bool:
        """Run blocks; False where a worker (or the child) died before all were done."""
        folder = self.spec["folder"]
        spec = {
            **self.spec,
            "blocks": [asdict(block) for block in blocks],
            "processes": processes,
            "deadly": self.deadly,
        }
        with tempfile.TemporaryFile() as log:
            status = _run_child(spec, log, lambda: self.progress(_count_committed(folder)))
            _raise_error(spec["job"], folder, status, log)
        return status == 0

    def isolate(self, block: Block) -> None:
        """Run a block that was being worked on when a worker died alone; a page that kills twice is left out."""
        path = page_path(self.spec["folder"], block.number)
        deadly = self.deadly.setdefault(block.number, [])
        suspect, strange = self._page(path), 0
        while suspect is not None and strange < MAX_ATTEMPTS and not self.blocks([block], 1):
            page = self._page(path)
            if page is None or page in deadly:
                return  # it dies elsewhere than in a page
            if page == suspect:
                deadly.append(page)
            else:
                suspect, strange = page, strange + 1

    @staticmethod
    def _page(path: str) -> int | None:
        return int(storage.read_bytes(path)) if storage.file_size(path) else None


def _count_committed(folder: str) -> int:
    """How many blocks are done, by one listing of names: a large dump has thousands."""
    return sum(name.endswith(".json") for name in os.listdir(storage.join(folder, storage.BLOCKS)))


def _run_child(spec: Mapping[str, Any], log: IO[bytes], on_poll: Callable[[], None]) -> int:
    # A session of its own: Ctrl-C reaches the parent alone, which ends the child. Its standard input stays open
    # as long as the parent lives.
    child = subprocess.Popen(
        _COMMAND, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(spec).encode() + b"\n")
        child.stdin.flush()
        while True:
            try:
                return child.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                on_poll()
    except BrokenPipeError:
        return child.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # its workers too
        child.wait()
        child.stdin.close()


def _raise_error(job: str, folder: str, status: int, log: IO[bytes]) -> None:
    """Raise what made the child fail; a dead worker (or child) is no failure yet."""
    errors = [
        path for path in storage.list_files(storage.join(folder, storage.BLOCKS)) if path.startswith("error-")
    ]
    if errors:
        message = storage.read_bytes(storage.join(folder, storage.BLOCKS, errors[0])).decode(
            "utf-8", "replace"
        )
        raise ValueError(message)
    if status > 0 and status != WORKER_DIED:
        log.seek(0)
        tail = log.read()[-4000:].decode("utf-8", "replace")
        raise RuntimeError(f"{job} ended with exit status {status}; its last words:\n{tail}")


# What a stage may drop


FREE = 10  # rows that may always be dropped, so that one does not stop a small dump


def check_share(
    what: str, drops: Mapping[str, int], total: int, limit: float, parameter: str, *, free_share: float = 1.0
) -> None:
    """Stop a stage that drops more than it may.

    Args:
        what: the rows, as "pages".
        drops: reason -> count.
        total: kept and dropped rows.
        limit: the share that may be dropped.
        parameter: where the user can set the limit.
        free_share: `FREE` are allowed whatever the limit, where they are at most that share of the total.

    Raises:
        ValueError: the share is passed.
    """
    dropped = sum(drops.values())
    if dropped > max(min(FREE, free_share * total), limit * total):
        raise ValueError(
            f"{dropped:,} of {total:,} {what} ({dropped / total:.2%}) were dropped ({list_reasons(drops)}), more "
            f"than {parameter} {limit:g} allows; a higher {parameter} accepts them, and what is done is kept"
        )


def check_pages(drops: Mapping[str, int], total: int, limit: float) -> None:
    """Stop a stage that loses more pages than `--max-rejected` allows; ten pages, or a quarter of fewer, it may."""
    check_share("pages", drops, total, limit, "--max-rejected", free_share=0.25)


def list_reasons(drops: Mapping[str, int]) -> str:
    """Counts by reason, the commonest first: "12 broken_xml, 1 worker_died"."""
    ordered = sorted(drops.items(), key=lambda drop: (-drop[1], drop[0]))
    return ", ".join(f"{count:,} {reason}" for reason, count in ordered)
