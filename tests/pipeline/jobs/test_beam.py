"""Options of Beam's runners, and how a worker finds and loads a job."""

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from pipeline import storage
from pipeline.jobs import beam
from pipeline.jobs.build_sequences import SequenceBuilder
from pipeline.jobs.extract_pages import PageExtractor
from pipeline.jobs.read_templates import TemplateReader
from pipeline.storage.blocks import Block
from pipeline.storage.failures import error_path

ADDRESS = "--dask_client_address=x"
DASK = "--runner=apache_beam.runners.dask.dask_runner.DaskRunner"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (["--runner=DaskRunner", ADDRESS], [DASK, ADDRESS, "--dask_partition_size=1"]),
        ([DASK, ADDRESS], [DASK, ADDRESS, "--dask_partition_size=1"]),
        (["--runner=DaskRunner", ADDRESS, "--dask_npartitions=7"], [DASK, ADDRESS, "--dask_npartitions=7"]),
        (
            ["--runner=DaskRunner", ADDRESS, "--dask_partition_size=5"],
            [DASK, ADDRESS, "--dask_partition_size=5"],
        ),
        (["--runner=DirectRunner", "--x=1"], ["--runner=DirectRunner", "--x=1"]),
    ],
)
def test_each_block_is_a_partition_on_dask_unless_the_user_says_otherwise(
    given: list[str], options: list[str]
) -> None:
    assert beam.user_options(given) == options


def test_dask_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted --dask_client_address=tcp://HOST:PORT"):
        beam.user_options(["--runner=DaskRunner", "--dask_client_adress=tcp://127.0.0.1:8786"])


def test_a_job_is_loaded_once_in_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runners set up anew for every block; another key stands for other files, perhaps in the same folders."""
    loads = []

    def load(arguments: dict[str, Any]) -> Any:
        loads.append(arguments)
        return lambda *rest: None

    monkeypatch.setattr(beam, "find_job", lambda name: load)
    spec = {"job": "job", "folder": str(tmp_path), "arguments": {"a": 1}, "deadly": {}, "patience": 0}
    workers = [beam.RunBlock({**spec, "key": key}) for key in ("one", "one", "two")]
    for worker in workers:
        storage.clear_if_changed(str(tmp_path), worker.key)
        worker.setup()
    works = [worker.load() for worker in workers for _ in range(2)]
    assert loads == [{"a": 1}, {"a": 1}]
    assert works[0] is works[3] is not works[4]


def test_what_cannot_be_loaded_is_told_to_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the file of the block's error, whose message comes without what Beam puts around it."""

    def load(arguments: dict[str, Any]) -> Any:
        raise ValueError("model.safetensors: broken")

    monkeypatch.setattr(beam, "find_job", lambda name: load)
    spec = {"job": "job", "folder": str(tmp_path), "arguments": {"b": 1}, "deadly": {}, "patience": 0}
    worker = beam.RunBlock({**spec, "key": "one"})
    storage.clear_if_changed(str(tmp_path), "one")
    worker.setup()
    with pytest.raises(ValueError, match=r"^model\.safetensors: broken$"):
        list(worker.process(Block(3, "dump", 0, 1)))
    assert Path(error_path(str(tmp_path), 3)).read_text() == "model.safetensors: broken"


def test_jobs_are_found_by_the_names_of_their_modules() -> None:
    assert [beam.find_job(name) for name in beam.JOBS] == [TemplateReader, PageExtractor, SequenceBuilder]
    with pytest.raises(
        ValueError, match="os: no such job; wanted one of read_templates, extract_pages, build"
    ):
        beam.find_job("os")


def test_a_worker_without_the_folder_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    spec = {"job": "job", "folder": str(folder), "key": "one", "arguments": {}, "deadly": {}, "patience": 0}
    worker = beam.RunBlock(spec)
    line = re.escape(f"{folder}/key.txt is not there; {storage.SHARED}")
    with pytest.raises(ValueError, match=line):
        worker.setup()
    with pytest.raises(ValueError, match=line):
        list(worker.process(Block(0, "dump", 0, 1)))
    assert not folder.exists()


def test_the_name_of_beams_threads_is_what_we_expect(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tells the death of a worker; a version of Beam with another one is refused."""
    beam.check_worker_thread()

    class Renamed:
        def start_worker(self) -> None:
            threading.Thread(name="another")

    for handler in (Renamed, None):
        monkeypatch.setattr(beam.worker_handlers, "SubprocessSdkWorkerHandler", handler)
        with pytest.raises(
            ValueError, match=r"apache-beam 2\.\d+.*: its workers' threads are not named run_worker"
        ):
            beam.check_worker_thread()
