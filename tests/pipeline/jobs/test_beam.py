"""Options of Beam's runners, and how a worker finds and loads a job."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from apache_beam.runners.portability.fn_api_runner import worker_handlers

from pipeline import storage
from pipeline.jobs import beam
from pipeline.storage.blocks import Block, error_path

ADDRESS = "--dask_client_address=x"
DASK = "--runner=apache_beam.runners.dask.dask_runner.DaskRunner"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (["--runner=DaskRunner", ADDRESS], [DASK, ADDRESS, "--dask_partition_size=1"]),
        ([DASK, ADDRESS], [DASK, ADDRESS, "--dask_partition_size=1"]),
        (["--runner=DaskRunner", ADDRESS, "--dask_npartitions=7"], [DASK, ADDRESS, "--dask_npartitions=7"]),
        ([DASK, ADDRESS, "--dask_partition_size=5"], [DASK, ADDRESS, "--dask_partition_size=5"]),
        (["--runner=DirectRunner", "--x=1"], ["--runner=DirectRunner", "--x=1"]),
    ],
)
def test_each_block_is_a_partition_on_dask_unless_the_user_says_otherwise(given: list[str], options: list[str]) -> None:
    assert beam.user_options(given) == options


def test_dask_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="wanted --dask_client_address=tcp://HOST:PORT"):
        beam.user_options(["--runner=DaskRunner", "--dask_client_adress=tcp://127.0.0.1:8786"])


class CountedJob:
    """A job that writes down what it was made from."""

    made: ClassVar[list[Mapping[str, Any]]] = []

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self.made.append(arguments)


class BrokenJob:
    def __init__(self, arguments: Mapping[str, Any]) -> None:
        raise ValueError("model.safetensors: broken")


def worker(job: type, folder: Path, key: str = "one") -> beam.RunBlock:
    spec = {"job": [__name__, job.__name__], "folder": str(folder), "key": key, "arguments": {"a": 1}}
    return beam.RunBlock({**spec, "fatal_pages": {}, "patience": 0})


def test_a_job_is_loaded_once_in_a_process(tmp_path: Path) -> None:
    """Runners set up anew for every block; another key stands for other files, perhaps in the same folders."""
    workers = [worker(CountedJob, tmp_path, key) for key in ("one", "one", "two")]
    for each in workers:
        storage.blocks.clear_if_changed(str(tmp_path), each.key)
    jobs = [each.load() for each in workers for _ in range(2)]
    assert CountedJob.made == [{"a": 1}, {"a": 1}]
    assert jobs[0] is jobs[3] is not jobs[4]


def test_what_cannot_be_loaded_is_told_to_the_user(tmp_path: Path) -> None:
    """In the file of the block's error, whose message comes without what Beam puts around it."""
    broken = worker(BrokenJob, tmp_path)
    storage.blocks.clear_if_changed(str(tmp_path), "one")
    with pytest.raises(ValueError, match=r"^model\.safetensors: broken$"):
        list(broken.process(Block(3, "dump", 0, 1)))
    assert Path(error_path(str(tmp_path), 3)).read_text() == "model.safetensors: broken"


def test_a_worker_without_the_folder_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "stage"
    lost = worker(CountedJob, folder)
    line = re.escape(f"{folder}/key.txt is not there; {storage.blocks.SHARED}")
    with pytest.raises(ValueError, match=line):
        list(lost.process(Block(0, "dump", 0, 1)))
    assert not folder.exists()


def test_the_name_of_beams_threads_is_what_we_expect() -> None:
    """It tells the death of a worker; setup.py allows no other version of Beam than the one that is tested."""
    code = worker_handlers.SubprocessSdkWorkerHandler.start_worker.__code__
    assert beam.WORKER_THREAD in code.co_consts
