"""The work of ExtractPages on a block, without Beam."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipeline import schemas, storage
from pipeline.dump.pages import Page, read_pages, read_site_info
from pipeline.jobs import extract_pages
from pipeline.jobs.build_sequences import read_paragraphs
from pipeline.jobs.extract_pages import LANGUAGE_LINKS, TABLES, PageExtractor, ParagraphRows
from pipeline.storage.blocks import Block, PageMarker
from pipeline.wikitext.extract import extract
from tests.support import DATA

DUMP = str(DATA / "wiki-40.xml")
SITE = read_site_info(DUMP)

WRITTEN = [table for table in TABLES if table != LANGUAGE_LINKS]


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, storage.Result]:
    folder = str(tmp_path_factory.mktemp("pages"))
    work = extractor()
    return folder, work(Block(3, DUMP, 0, 1 << 30), folder, PageMarker(f"{folder}/page.txt"))


def pages() -> list[Page]:
    return [page for page in read_pages(Block(0, DUMP, 0, 1 << 30), SITE, Counter()) if isinstance(page, Page)]


def test_tables_hold_what_the_pages_hold(extracted: tuple[str, storage.Result]) -> None:
    folder, record = extracted
    rows: dict[str, list[dict[str, Any]]] = {
        table: list(storage.read_rows(storage.join(folder, f"{table}/block-00003.parquet")))
        for table in TABLES
        if table != LANGUAGE_LINKS
    }
    articles = [page for page in pages() if not page.redirect]
    assert [row["page_id"] for row in rows["pages"]] == [page.page_id for page in articles]
    assert [(row["source"], row["target"]) for row in rows["redirects"]] == [
        (page.title, page.redirect[0]) for page in pages() if page.redirect
    ]
    expected = {page.page_id: extract(page.text, SITE, title=page.title).paragraphs for page in articles}
    titles = {page.page_id: page.title for page in articles}
    assert dict(read_paragraphs(storage.join(folder, "paragraphs/block-00003.parquet"))) == {
        (page_id, titles[page_id]): list(paragraphs) for page_id, paragraphs in expected.items() if paragraphs
    }
    assert {row["page_id"]: row["paragraph_count"] for row in rows["pages"]} == {
        page_id: len(paragraphs) for page_id, paragraphs in expected.items()
    }
    assert sum(row["is_disambiguation"] for row in rows["pages"]) >= 1
    losses = rows.pop("templates")  # counted by name, which is no row of a page
    assert losses == sorted(losses, key=lambda row: row["template"])
    counted = {table: len(found) for table, found in rows.items()}
    assert record.rows == {**counted, "links": record.rows["links"]}
    assert record.rows["links"] == sum(len(row["links"]) for row in rows["paragraphs"]) > 50
    assert record.drops["pages:other_namespace"] >= 4


def test_a_page_that_breaks_the_parser_hurts_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extracted: tuple[str, storage.Result]
) -> None:
    poison = next(page for page in pages() if not page.redirect)

    def fail(text: str, *arguments: Any, **options: Any) -> Any:
        if text == poison.text:
            raise RecursionError("too deep")
        return extract(text, *arguments, **options)

    monkeypatch.setattr(extract_pages, "extract", fail)
    work = extractor()
    marker = PageMarker(str(tmp_path / "page.txt"))
    record = work(Block(3, DUMP, 0, 1 << 30), str(tmp_path), marker)
    rejected = list(storage.read_rows(str(tmp_path / "rejected/block-00003.parquet")))
    calls = rejected[0].pop("traceback").split("\n")
    named = {"page_id": poison.page_id, "title": poison.title}
    assert rejected == [{**named, "reason": "RecursionError", "message": "too deep"}]
    assert [re.sub(r":\d+", "", call) for call in calls] == [
        "pipeline.jobs.extract_pages page_rows",
        f"{__name__} fail",
    ]
    assert record.rows["pages"] == extracted[1].rows["pages"] - 1
    assert record.drops["rejected:RecursionError"] == record.rows["rejected"] == 1


def extractor() -> PageExtractor:
    return PageExtractor({"site": SITE.to_dict(), "profile": "fixed", "allow_truncated": False})


def test_columns_give_the_bytes_of_rows(tmp_path: Path) -> None:
    """Paragraphs column by column give the same file as their rows one by one."""
    extracted = [(page.page_id, page.title, extract(page.text, SITE)) for page in pages()] * 400
    schema = schemas.PARAGRAPHS.schema
    with storage.parquet_rows(str(tmp_path / "rows.parquet"), schema) as rows:
        for page_id, title, extraction in extracted:
            rows.extend((page_id, title, number, *paragraph) for number, paragraph in enumerate(extraction.paragraphs))
    with storage.parquet_rows(str(tmp_path / "columns.parquet"), schema, ParagraphRows) as columns:
        for page in extracted:
            columns.extend([page])
    assert columns.count == rows.count > 2 * storage.parquet.ROW_GROUP_ROWS
    assert (tmp_path / "columns.parquet").read_bytes() == (tmp_path / "rows.parquet").read_bytes()


def test_a_dump_without_paragraphs_gives_an_empty_table(tmp_path: Path) -> None:
    path = str(tmp_path / "none.parquet")
    with storage.parquet_rows(path, schemas.PARAGRAPHS.schema, ParagraphRows) as columns:
        columns.extend([(1, "A", extract("{{template}}", SITE))])
    assert columns.count == 0
    assert list(storage.read_rows(path)) == []


TEXT = "<text>Some text.</text>"
WITHOUT_ARTICLES = {
    "<ns>0</ns><revision><text location='tt:1' id='1' /></revision>": "without their text, as in a stub dump",
    f"<ns>0</ns><revision><model>x</model>{TEXT}</revision>": "of another content model, such as Wikidata's items",
    f"<ns>1</ns><revision>{TEXT}</revision>": "in other namespaces",
    "<ns>0</ns><revision><text deleted='deleted' /></revision>": "with a deleted text",
    "<ns>0</ns><revision><text xml:space='preserve' bytes='0' /></revision>": "with an empty text",
    "<ns>0</ns>": "without a revision",
    f"<ns>0</ns><revision>{TEXT}</revisions>": "rejected as broken_xml",
}


@pytest.mark.parametrize(("inside", "what"), WITHOUT_ARTICLES.items())
@pytest.mark.parametrize(("count", "among"), [(20, "its 20"), (90, "its first 50")])
def test_a_dump_without_articles_is_told_early_with_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, what: str, count: int, among: str
) -> None:
    monkeypatch.setattr(extract_pages, "_FIRST_PAGES", 50)
    path = tmp_path / "dump.xml"
    numbers = range(1, count + 1)
    pages = "".join(f"<page><title>P {each}</title><id>{each}</id>{inside}</page>" for each in numbers)
    path.write_text(f"<mediawiki>{pages}</mediawiki>")

    def run(*_: object) -> dict[int, storage.Result]:
        raise AssertionError("the dump is read")

    with pytest.raises(ValueError, match=re.escape(f"among {among} pages ({among[-2:]} {what});")):
        extract_pages.build(
            run, [str(path)], 4096, "", site=SITE.to_dict(), profile="fixed", allow_truncated=False,
            dump="dump.xml",
        )  # fmt: skip
