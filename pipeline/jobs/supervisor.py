"""Running a job over blocks: what is committed is kept, what is missing is computed, in a process that is watched.

The job runs in a child process. The child ends when its parent does, so a stage that is killed leaves nobody
behind; when the child or one of its workers dies, the blocks that were being worked on are run one by one, and a page
that kills twice is left out. A page that takes too long ends the child, and so is such a page. On another runner than
the local one a block runs alone here, where its page kills nobody else's workers.
"""

import contextlib
import errno
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import IO, Any

from pipeline import storage
from pipeline.storage import locks
from pipeline.storage.blocks import Block, BlockJob, page_path

MAX_ATTEMPTS = 3
WORKER_DIED = 75  # exit status of a child that lost a worker
DIED, TOO_SLOW = "worker_died", "too_slow"  # the reasons for which a page is left out
_SHOWN = 5  # blocks in a message
_POLL_SECONDS = 2.0  # a look at how far the job is; its end is noticed at once
_DEATHS = re.compile(rb"\bKilledWorker\b")  # of a runner's words: Dask's, when a block has killed several
_FULL = re.compile(b"|".join(os.strerror(number).encode() for number in (errno.ENOSPC, errno.EDQUOT)))
_COMMAND = [sys.executable, "-c", "from pipeline.jobs.beam import main; main()"]


def run_blocks(
    job: type[BlockJob],
    blocks: Sequence[Block],
    folder: str,
    key: str,
    arguments: Mapping[str, Any],
    *,
    processes: int,
    beam_options: Sequence[str] = (),
    progress: Callable[[int], None] = lambda finished: None,
    patience: float = storage.blocks.PATIENCE_SECONDS,
) -> dict[int, storage.Result]:
    """Run a Beam job over the blocks that the folder does not hold yet, and return the records of all, by number.

    What Beam's runner says is done counts when the block is found here, with files of their sizes. The child imports
    the job by its name, and gets its arguments as JSON. Files that no finished block owns are removed first. All
    machines see what one has written within `patience` seconds. Raises: ValueError: the input is at fault, or a
    worker's machine does not see the folder. RuntimeError: the job failed, or its workers died three times.
    """
    storage.blocks.clear_if_changed(folder, key)
    finished = storage.blocks.finished_blocks(folder, key)
    storage.blocks.sweep(folder, finished)
    storage.make_folder(storage.join(folder, storage.blocks.BLOCKS))
    spec = {
        "job": [job.__module__, job.__qualname__],
        "folder": folder,
        "key": key,
        "arguments": dict(arguments),
        "beam_options": list(beam_options),
        "patience": patience,
    }
    run = _Run(spec, progress, job.page_seconds)
    attempts_without_progress = 0
    while missing := [block for block in blocks if block.number not in finished]:
        before = len(finished) + run.fatal_count
        if run.blocks(missing, min(processes, len(missing))):
            return _await_blocks(job.__name__, folder, key, blocks, patience)
        at_work = run.at_work(missing)
        for block in at_work[:1] if beam_options else at_work:
            run.isolate(block)
        finished = storage.blocks.finished_blocks(folder, key)
        attempts_without_progress += 1
        if len(finished) + run.fatal_count > before:
            attempts_without_progress = 0
        if attempts_without_progress == MAX_ATTEMPTS:
            lost = [block.number for block in missing]
            raise RuntimeError(
                f"{job.__name__}: workers died {MAX_ATTEMPTS} times in blocks {lost[:_SHOWN]}{run.pages(missing)}; "
                "perhaps memory ran out"
            )
    return finished


def _await_blocks(
    job: str, folder: str, key: str, blocks: Sequence[Block], patience: float
) -> dict[int, storage.Result]:
    """The blocks, all of which a runner says are done; ValueError where one is not found."""
    numbers = [block.number for block in blocks]
    found = storage.blocks.await_blocks(folder, key, numbers, patience)
    if lost := [number for number in numbers if number not in found]:
        raise ValueError(
            f"{job}: {len(lost)} of {len(blocks)} blocks are done, as Beam's runner says, but not found in {folder} "
            f"within {patience:g} s: {', '.join(map(str, lost[:_SHOWN]))}{', ...' * (len(lost) > _SHOWN)}; "
            f"{storage.blocks.SHARED}"
        )
    return found


class _Run:
    """Child processes that run blocks of one job; knows the pages that have killed one, and why each is left out."""

    def __init__(self, spec: dict[str, Any], progress: Callable[[int], None], page_seconds: float) -> None:
        self.spec, self.progress, self.page_seconds = spec, progress, page_seconds
        self.fatal_pages: dict[int, dict[int, str]] = {}
        self.reason = DIED  # for which the last child ended, if it did

    @property
    def fatal_count(self) -> int:
        return sum(map(len, self.fatal_pages.values()))

    def blocks(self, blocks: Sequence[Block], processes: int, **changes: Any) -> bool:
        """Run blocks, with changes to the job; False where a worker (or the child) died before all were done."""
        folder = self.spec["folder"]
        spec = {
            **self.spec,
            "blocks": [asdict(block) for block in blocks],
            "processes": processes,
            "fatal_pages": self.fatal_pages,
            **changes,
        }
        self.reason = DIED
        for block in self.at_work(blocks):  # of the child before
            os.remove(self._path(block))
        markers = {os.path.basename(self._path(block)) for block in blocks}

        def goes_on() -> bool:
            begun, entries = [], list(os.scandir(storage.join(folder, storage.blocks.BLOCKS)))
            self.progress(sum(entry.name.endswith(".json") for entry in entries))
            for entry in entries:
                if entry.name in markers:
                    with contextlib.suppress(FileNotFoundError):  # its block has come to its end
                        begun.append(entry.stat().st_mtime)
            if not spec["beam_options"] and time.time() - min(begun, default=math.inf) > self.page_seconds:
                self.reason = TOO_SLOW
            return self.reason == DIED

        temporary = storage.join(folder, storage.blocks.BLOCKS, "tmp")
        shutil.rmtree(temporary, ignore_errors=True)  # of a run that was killed
        os.makedirs(temporary)
        with contextlib.ExitStack() as stack:
            stack.callback(shutil.rmtree, temporary, ignore_errors=True)
            log = stack.enter_context(tempfile.TemporaryFile())  # elsewhere: the disk may be full
            status = _run_child(spec, log, temporary, goes_on)
            return _has_ended_well(spec["job"][1], folder, status, log, lambda: self.pages(blocks))

    def isolate(self, block: Block) -> None:
        """Run a block that was being worked on when a worker died alone; a page that kills twice is left out."""
        fatal_pages = self.fatal_pages.setdefault(block.number, {})
        suspect, strange = self._page(block), 0
        while suspect is not None and strange < MAX_ATTEMPTS and not self.blocks([block], 1, beam_options=[]):
            page = self._page(block)
            if page is None or page in fatal_pages:
                return  # it dies elsewhere than in a page
            if page == suspect:
                fatal_pages[page] = self.reason
            else:
                suspect, strange = page, strange + 1

    def at_work(self, blocks: Sequence[Block]) -> list[Block]:
        """The blocks that were being worked on; first those of which nothing has been heard for longest."""
        found = []
        for block in blocks:
            with contextlib.suppress(FileNotFoundError):  # it may have come to its end
                found.append((os.stat(self._path(block)).st_mtime_ns, block))
        return [block for _, block in sorted(found, key=lambda each: each[0])]

    def pages(self, blocks: Sequence[Block]) -> str:
        """In words, the pages of these blocks that were being worked on."""
        found = [(self._page(block), block) for block in self.at_work(blocks)[:_SHOWN]]
        named = [f"page {page} of block {block.number}" for page, block in found if page is not None]
        return f", at work on {', '.join(named)}" if named else ""

    def _page(self, block: Block) -> int | None:
        try:
            text = storage.read_bytes(self._path(block))
        except FileNotFoundError:  # its worker, on another machine, has come to the block's end
            return None
        return int(text) if text else None

    def _path(self, block: Block) -> str:
        return page_path(self.spec["folder"], block.number)


def child_environment() -> dict[str, str]:
    """The environment of a child that imports what this process would, and nothing else of the folder it stands in."""
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": path}


def _run_child(spec: Mapping[str, Any], log: IO[bytes], temporary: str, goes_on: Callable[[], bool]) -> int:
    """The status of the child, which writes its words into `log`; it is ended where it may not go on."""
    # A session of its own: Ctrl-C reaches the parent alone, which ends the child. Its standard input stays open
    # as long as the parent lives.
    child = subprocess.Popen(
        _COMMAND,
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**child_environment(), "TMPDIR": temporary},
        start_new_session=True,
        pass_fds=locks.held,  # so that they are held for as long as anybody works
    )
    assert child.stdin is not None
    try:
        child.stdin.write(json.dumps(spec).encode() + b"\n")
        child.stdin.flush()
        while True:
            try:
                return child.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                if not goes_on():
                    return -signal.SIGKILL
    except BrokenPipeError:
        return child.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # its workers too
        child.wait()
        child.stdin.close()


def _has_ended_well(job: str, folder: str, status: int, log: IO[bytes], pages: Callable[[], str]) -> bool:
    """Return whether the child did all that it was given; False where a worker (or the child) died.

    Raises: ValueError: what the user can mend. RuntimeError: another failure, with the child's last words.
    """
    blocks = storage.join(folder, storage.blocks.BLOCKS)
    if errors := [path for path in storage.list_files(blocks) if path.startswith("error-")]:
        message = storage.read_bytes(storage.join(blocks, errors[0]))
        raise ValueError(message.decode("utf-8", "replace"))
    if status <= 0 or status == WORKER_DIED:
        return status == 0
    log.seek(max(0, log.seek(0, os.SEEK_END) - 4000))
    words = log.read()
    if _DEATHS.search(words):
        return False
    if full := _FULL.search(words):  # so that no message could be left in a file
        raise ValueError(f"{folder}: {full[0].decode()}; make room, the same command goes on from here")
    raise RuntimeError(
        f"{job} ended with exit status {status}{pages()}; its last words:\n{words.decode('utf-8', 'replace')}"
    )
