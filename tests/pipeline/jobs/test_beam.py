"""Options of Beam's runners, and how a worker finds and loads a job."""

from typing import Any

import pytest

from pipeline.jobs import beam
from pipeline.jobs.build_sequences import SequenceBuilder
from pipeline.jobs.extract_pages import PageExtractor
from pipeline.jobs.read_templates import TemplateReader

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


def test_a_job_is_loaded_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runners set up anew for every block; another key stands for other files, perhaps in the same folders."""
    loads = []

    def load(arguments: dict[str, Any]) -> Any:
        loads.append(arguments)
        return lambda *rest: None

    monkeypatch.setattr(beam, "find_job", lambda name: load)
    spec = {"job": "job", "folder": "f", "key": "one", "arguments": {"a": 1}, "deadly": {}}
    workers = [beam.RunBlock(each) for each in (spec, dict(spec), {**spec, "key": "two"})]
    for worker in workers:
        worker.setup()
        worker.setup()
    assert loads == [{"a": 1}, {"a": 1}]
    assert workers[0].work is workers[1].work is not workers[2].work


def test_jobs_are_found_by_the_names_of_their_modules() -> None:
    assert [beam.find_job(name) for name in beam.JOBS] == [TemplateReader, PageExtractor, SequenceBuilder]
    with pytest.raises(
        ValueError, match="os: no such job; wanted one of read_templates, extract_pages, build"
    ):
        beam.find_job("os")
