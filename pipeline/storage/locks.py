"""Locks of stages' folders: one run makes a stage, or many read it.

A lock is a `flock` of a file in WORKDIR/.locks. The system opens it when the process ends, however that ends.
"""

import contextlib
import errno
import fcntl
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from typing import IO, Any

from pipeline.storage.files import make_folder, read_bytes

logger = logging.getLogger("pipeline")

# Set in the environment of a run that has a central scheduler, so that the processes that it starts have it, too.
WAITS = "LUKE_WAITS_FOR_LOCKS"
# The descriptors of the locks that this process holds, for the processes that it starts.
held: list[int] = []
LOCKS = ".locks"
_LISTED = "/proc/locks"  # of Linux: who holds what, as "7: FLOCK  ADVISORY  WRITE 4711 fe:01:262145 0 EOF"
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def check(folder: str) -> None:
    """Check that a folder's files can be written and locked. Raises: OSError: not written. ValueError: not locked."""
    with tempfile.TemporaryFile(dir=folder) as probe:
        _flock(folder, probe, fcntl.LOCK_EX)


@contextlib.contextmanager
def hold(folder: str, *, reads: bool = False) -> Iterator[None]:
    """Hold a stage's folder, against all other runs or, with `reads`, against those that would make it anew.

    Where somebody else holds it, a run that has a central scheduler waits. Raises: ValueError: somebody else holds
    it, or the file system has no locks.
    """
    locks = os.path.join(os.path.dirname(folder), LOCKS)
    make_folder(locks)
    kind = fcntl.LOCK_SH if reads else fcntl.LOCK_EX
    with open(os.path.join(locks, os.path.basename(folder)), "a+") as lock:
        try:
            _flock(locks, lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if WAITS not in os.environ:
                works = "makes it" if reads else "makes it or reads it"
                raise ValueError(f"{folder}: another run {works}; wait for it, or pass another --workdir") from None
            logger.info("%s: waits for another run", os.path.basename(folder))
            _flock(locks, lock, kind)
        if not reads:
            with contextlib.suppress(OSError):
                os.utime(lock.fileno())  # which says since when
        held.append(lock.fileno())
        try:
            yield
        finally:
            held.remove(lock.fileno())


def maker(folder: str) -> tuple[float, bool]:
    """When somebody last began to make a stage's folder (0: never), and whether they still do, on this machine.

    Nothing is locked to find out, so no run is in its way. Raises: OSError where the system, unlike Linux, lists no
    locks.
    """
    path = os.path.join(os.path.dirname(folder), LOCKS, os.path.basename(folder))
    if not os.path.exists(path):
        return 0.0, False
    lock = os.stat(path)
    major, minor = os.major(lock.st_dev), os.minor(lock.st_dev)
    device = f"{major:02x}:{minor:02x}" if major else r"00:\w+"  # btrfs has a minor number for each volume
    wanted = rf"\d: FLOCK +ADVISORY +WRITE +\S+ {device}:{lock.st_ino} "
    # It is read in pieces: where another lock is opened meanwhile, one can be missed.
    return lock.st_mtime, any(re.search(wanted.encode(), read_bytes(_LISTED)) for _ in range(2))


@contextlib.contextmanager
def one_at_a_time(path: str) -> Iterator[None]:
    """Hold a file, which need not be there yet, once nobody else does: for work of a moment."""
    with open(path, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _flock(folder: str, file: IO[Any], kind: int) -> None:
    try:
        fcntl.flock(file, kind)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise ValueError(
            f"{folder}: its file system has no locks (flock: {error.strerror}), and two runs could spoil each other's "
            "work; mount it with locks, or pass a --workdir elsewhere"
        ) from None
