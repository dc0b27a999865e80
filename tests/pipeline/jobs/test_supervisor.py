"""Jobs over blocks: killed, resumed, spread over processes, always with the same bytes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from pipeline import storage
from pipeline.dump.containers import plan_blocks
from pipeline.dump.pages import read_site_info
from pipeline.jobs.supervisor import run_blocks
from tests.support import ROOT

pytestmark = pytest.mark.slow


def arguments_for(path: Path) -> dict[str, Any]:
    return {"site": read_site_info(str(path)).to_dict(), "profile": "fixed", "allow_truncated": False}


@pytest.fixture(scope="module")
def dump(shared: Path) -> Path:
    return shared / "data/wikipedia/enwiki-2016-206.xml.bz2"


def extract(dump: Path, folder: Path, processes: int = 1) -> dict[int, storage.Result]:
    return run_blocks(
        "extract_pages",
        plan_blocks([str(dump)], 200_000),
        str(folder),
        "key",
        arguments_for(dump),
        processes=processes,
    )


@pytest.fixture(scope="module")
def unbroken(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[int, storage.Result]:
    return extract(dump, tmp_path_factory.mktemp("unbroken"))


def test_two_processes_write_the_same_bytes(
    dump: Path, tmp_path: Path, unbroken: dict[int, storage.Result]
) -> None:
    assert extract(dump, tmp_path, processes=2) == unbroken
    assert len(unbroken) == 9
    assert sum(record.rows["pages"] for record in unbroken.values()) == 106


def wait_for(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def test_a_killed_job_leaves_nobody_behind_and_is_resumed(
    dump: Path, tmp_path: Path, unbroken: dict[int, storage.Result]
) -> None:
    """SIGKILL of the process that runs the blocks: its workers end by themselves, whole blocks are kept."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[3])\n"
        "from pathlib import Path\n"
        "from tests.pipeline.jobs.test_supervisor import extract\n"
        "extract(Path(sys.argv[1]), Path(sys.argv[2]), processes=2)"
    )
    command = [sys.executable, "-c", code, str(dump), str(tmp_path), str(ROOT)]
    job = subprocess.Popen(command)
    wait_for(lambda: len(storage.finished_blocks(str(tmp_path), "key")) >= 3)
    family = descendants(job.pid)
    os.kill(job.pid, signal.SIGKILL)
    job.wait()
    wait_for(lambda: not any(process.is_running() and process.status() != "zombie" for process in family), 20)
    kept = storage.finished_blocks(str(tmp_path), "key")
    assert 3 <= len(kept) < 9
    times = {
        number: (tmp_path / f"blocks/{storage.block_name(number)}.json").stat().st_mtime_ns for number in kept
    }
    assert extract(dump, tmp_path) == unbroken
    for number, written in times.items():
        assert (tmp_path / f"blocks/{storage.block_name(number)}.json").stat().st_mtime_ns == written


def test_a_workers_death_is_survived(dump: Path, tmp_path: Path, unbroken: dict[int, storage.Result]) -> None:
    import threading

    killed: list[int] = []

    def kill_one_worker() -> None:
        wait_for(lambda: len(storage.finished_blocks(str(tmp_path), "key")) >= 1)
        for process in descendants(os.getpid()):
            if process.name().startswith("python") and "sdk_worker_main" in " ".join(process.cmdline()):
                process.kill()
                killed.append(process.pid)
                return

    killer = threading.Thread(target=kill_one_worker)
    killer.start()
    assert extract(dump, tmp_path, processes=2) == unbroken
    killer.join()
    assert killed


@pytest.mark.parametrize("processes", [1, 2])
def test_a_page_that_kills_its_worker_is_rejected_alone(
    dump: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    unbroken: dict[int, storage.Result],
    processes: int,
) -> None:
    # Every process of the job imports this first; in it, two pages kill whoever works on them.
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util, os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name != 'pipeline.jobs.extract_pages':\n"
        "            return None\n"
        "        sys.meta_path.remove(self)\n"
        "        spec = importlib.util.find_spec(name)\n"
        "        execute = spec.loader.exec_module\n"
        "        def exec_module(module):\n"
        "            execute(module)\n"
        "            whole = module.page_rows\n"
        "            def page_rows(page, *arguments, deadly):\n"
        "                if page.title in ('Anarchism', 'Albedo') and not deadly:\n"
        "                    os.kill(os.getpid(), signal.SIGKILL)\n"
        "                return whole(page, *arguments, deadly=deadly)\n"
        "            module.page_rows = page_rows\n"
        "        spec.loader.exec_module = exec_module\n"
        "        return spec\n"
        "sys.meta_path.insert(0, Finder())\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{ROOT}")
    records = extract(dump, tmp_path / "stage", processes)
    rejected = [
        (row["title"], row["reason"])
        for number in sorted(records)
        for row in storage.read_rows(str(tmp_path / f"stage/rejected/{storage.block_name(number)}.parquet"))
    ]
    assert rejected == [("Anarchism", "worker_died"), ("Albedo", "worker_died")]
    untouched = [number for number, record in records.items() if not record.rows["rejected"]]
    assert len(untouched) >= len(unbroken) - 2
    assert all(records[number] == unbroken[number] for number in untouched)
    assert sum(record.rows["pages"] for record in records.values()) == 104
    assert not list((tmp_path / "stage/blocks").glob("page-*"))


def test_the_users_error_comes_without_a_traceback(dump: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.xml.bz2"
    cut.write_bytes(dump.read_bytes()[:-100_000])
    with pytest.raises(ValueError, match="bzip2 stream ends in the middle") as error:
        extract(cut, tmp_path / "stage")
    assert str(error.value).startswith(str(cut))
    assert "\n" not in str(error.value)


def test_another_failure_comes_with_its_last_words(dump: Path, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no_such_job"):
        run_blocks("no_such_job", plan_blocks([str(dump)], 10**7), str(tmp_path), "key", {}, processes=1)
