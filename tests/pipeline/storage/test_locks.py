"""One run makes a stage, or many read it."""

import errno
import fcntl
import os
import threading
import time
from pathlib import Path

import pytest

from pipeline.storage import locks


def test_many_read_or_one_writes(tmp_path: Path) -> None:
    folder = str(tmp_path / "pages-1")
    with (
        locks.hold(folder, reads=True),
        locks.hold(folder, reads=True),
        pytest.raises(ValueError, match=f"^{folder}: another run makes it or reads it; wait for it, or pass"),
    ):
        locks.hold(folder).__enter__()
    with locks.hold(folder), locks.hold(str(tmp_path / "pages-2")):
        for reads in (True, False):
            with pytest.raises(ValueError, match="another run makes it"):
                locks.hold(folder, reads=reads).__enter__()
    with locks.hold(folder):
        pass


def test_with_a_scheduler_a_run_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(locks.WAITS, "1")
    events = []

    def make() -> None:
        with locks.hold(str(tmp_path / "pages-1")):
            events.append("other")

    with locks.hold(str(tmp_path / "pages-1"), reads=True), caplog.at_level("INFO", "pipeline"):
        other = threading.Thread(target=make)
        other.start()
        while "pages-1: waits for another run" not in caplog.text:
            time.sleep(0.01)
        events.append("this")
    other.join()
    assert events == ["this", "other"]


def test_who_looks_is_in_nobodys_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, looks = str(tmp_path / "pages-1"), threading.Event()
    assert locks.maker(folder) == (0, False)
    begun = time.time()

    def look() -> None:
        while not looks.is_set():
            locks.maker(folder)

    other = threading.Thread(target=look)
    other.start()
    try:
        for _ in range(300):  # none of which is refused
            with locks.hold(folder):
                since, is_held = locks.maker(folder)
                assert is_held
                assert begun - 1 <= since <= time.time() + 1
    finally:
        looks.set()
        other.join()
    with locks.hold(folder, reads=True):
        assert not locks.maker(folder)[1]
    monkeypatch.setattr(fcntl, "flock", None)
    assert locks.maker(folder) == (since, False)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    line = rf": its file system has no locks \(flock: {os.strerror(number)}\).* mount it with locks, or pass a"
    with pytest.raises(ValueError, match=f"^{tmp_path}{line}"):
        locks.check(str(tmp_path))
    with pytest.raises(ValueError, match=rf"^{tmp_path}/\.locks{line}"):
        locks.hold(str(tmp_path / "pages-1")).__enter__()
