"""Paragraphs column by column give the same file as their rows one by one."""

from collections import Counter
from pathlib import Path

from pipeline import storage
from pipeline.dump import pages as dump
from pipeline.dump.containers import Block
from pipeline.dump.pages import Page
from pipeline.jobs.extract_pages import SCHEMAS, WRITERS
from pipeline.wikitext.extract import extract
from tests.support import DATA

DUMP = str(DATA / "wiki-40.xml")
SITE = dump.read_site_info(DUMP)


def test_columns_give_the_bytes_of_rows(tmp_path: Path) -> None:
    pages = [
        (page.page_id, page.title, extract(page.text, SITE))
        for page in dump.read_pages(Block(0, DUMP, 0, 1 << 30), SITE, Counter())
        if isinstance(page, Page)
    ] * 400
    schema = SCHEMAS["paragraphs"]
    with storage.parquet_rows(str(tmp_path / "rows.parquet"), schema) as rows:
        for page_id, title, extraction in pages:
            rows.extend(
                (page_id, title, number, *paragraph) for number, paragraph in enumerate(extraction.paragraphs)
            )
    with storage.parquet_rows(str(tmp_path / "columns.parquet"), schema, WRITERS["paragraphs"]) as columns:
        for page in pages:
            columns.extend([page])
    assert columns.count == rows.count > 2 * storage.ROW_GROUP_ROWS
    assert (tmp_path / "columns.parquet").read_bytes() == (tmp_path / "rows.parquet").read_bytes()


def test_a_dump_without_paragraphs_gives_an_empty_table(tmp_path: Path) -> None:
    path = str(tmp_path / "none.parquet")
    with storage.parquet_rows(path, SCHEMAS["paragraphs"], WRITERS["paragraphs"]) as columns:
        columns.extend([(1, "A", extract("{{template}}", SITE))])
    assert columns.count == 0
    assert list(storage.read_rows(path)) == []
