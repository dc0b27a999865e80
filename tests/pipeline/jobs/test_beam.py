"""What Beam's jobs do with a block, without Beam."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline import storage
from pipeline.dump import pages
from pipeline.dump.containers import Block
from pipeline.dump.pages import Page, Rejected
from pipeline.jobs import beam
from pipeline.jobs.beam import PageGate
from pipeline.jobs.build_sequences import read_paragraphs
from pipeline.jobs.extract_pages import SCHEMAS, PageExtractor, page_rows
from pipeline.wikitext.extract import extract
from tests.support import DATA

DUMP = str(DATA / "wiki-40.xml")
SITE = pages.read_site_info(DUMP)


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, storage.Result]:
    folder = str(tmp_path_factory.mktemp("pages"))
    work = PageExtractor({"site": SITE.to_dict(), "profile": "fixed", "allow_truncated": False})
    return folder, work(Block(3, DUMP, 0, 1 << 30), folder, PageGate(f"{folder}/page.txt", ()))


def pages() -> list[Page]:
    return [
        page
        for page in pages.read_pages(Block(0, DUMP, 0, 1 << 30), SITE, Counter())
        if isinstance(page, Page)
    ]


def test_tables_hold_what_the_pages_hold(extracted: tuple[str, storage.Result]) -> None:
    folder, record = extracted
    rows: dict[str, list[dict[str, Any]]] = {
        table: list(storage.read_rows(storage.join(folder, f"{table}/block-00003.parquet")))
        for table in SCHEMAS
    }
    articles = [page for page in pages() if not page.redirect]
    assert [row["page_id"] for row in rows["pages"]] == [page.page_id for page in articles]
    assert [(row["source"], row["target"]) for row in rows["redirects"]] == [
        (page.title, page.redirect[0]) for page in pages() if page.redirect
    ]
    expected = {page.page_id: extract(page.text, SITE).paragraphs for page in articles}
    assert dict(read_paragraphs(storage.join(folder, "paragraphs/block-00003.parquet"))) == {
        page_id: list(paragraphs) for page_id, paragraphs in expected.items() if paragraphs
    }
    assert {row["page_id"]: row["paragraph_count"] for row in rows["pages"]} == {
        page_id: len(paragraphs) for page_id, paragraphs in expected.items()
    }
    assert sum(row["is_disambiguation"] for row in rows["pages"]) >= 1
    assert record.rows == {**{table: len(rows[table]) for table in SCHEMAS}, "links": record.rows["links"]}
    assert record.rows["links"] == sum(len(row["links"]) for row in rows["paragraphs"]) > 50
    assert record.drops["pages:other_namespace"] >= 4


def test_anchors_are_the_text_of_their_links(extracted: tuple[str, storage.Result]) -> None:
    folder, _ = extracted
    for row in storage.read_rows(storage.join(folder, "paragraphs/block-00003.parquet")):
        for link in row["links"]:
            assert 0 <= link["start"] < link["end"] <= len(row["text"])
            assert link["target"] == link["target"].strip() != ""


def test_a_page_that_breaks_the_parser_hurts_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extracted: tuple[str, storage.Result]
) -> None:
    poison = next(page for page in pages() if not page.redirect)

    def fail(text: str, *arguments: Any, **options: Any) -> Any:
        if text == poison.text:
            raise RecursionError("too deep")
        return extract(text, *arguments, **options)

    monkeypatch.setattr(beam, "extract", fail)
    work = PageExtractor({"site": SITE.to_dict(), "profile": "fixed", "allow_truncated": False})
    gate = PageGate(str(tmp_path / "page.txt"), ())
    record = work(Block(3, DUMP, 0, 1 << 30), str(tmp_path), gate)
    rejected = list(storage.read_rows(str(tmp_path / "rejected/block-00003.parquet")))
    assert rejected == [{"page_id": poison.page_id, "title": poison.title, "reason": "RecursionError"}]
    assert record.rows["pages"] == extracted[1].rows["pages"] - 1


def test_rejected_pages_have_a_row() -> None:
    rows = page_rows(Rejected(7, "A", "broken_xml"), SITE, "fixed", Counter())
    assert rows == {"rejected": [(7, "A", "broken_xml")]}


def test_deadly_pages_are_rejected() -> None:
    page = pages()[0]
    rows = page_rows(page, SITE, "fixed", Counter(), deadly=True)
    assert rows == {"rejected": [(page.page_id, page.title, "worker_died")]}


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

    monkeypatch.setattr(beam, "JOBS", {"job": load})
    spec = {"job": "job", "folder": "f", "key": "one", "arguments": {"a": 1}, "deadly": {}}
    workers = [beam.RunBlock(each) for each in (spec, dict(spec), {**spec, "key": "two"})]
    for worker in workers:
        worker.setup()
        worker.setup()
    assert loads == [{"a": 1}, {"a": 1}]
    assert workers[0].work is workers[1].work is not workers[2].work
