"""The stage FetchQids: a dump's pages with their items."""

import gzip
import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline import schemas, storage
from pipeline.dump import fetch_qids
from pipeline.dump.page_props import PageProps
from tests.support.page_props import Row, sql

ROWS: list[Row] = [
    (10, "wikibase_item", b"Q10"),
    (11, "defaultsort", b"Q11"),
    (12, "wikibase_item", b"Q5"),
    (99, "wikibase_item", b"Q99"),
]


def build(
    folder: Path,
    statements: list[list[Row]],
    *ids: int,
    wiki: str = "testwiki",
    is_fetched: bool = False,
    marked: Sequence[int] = (),
) -> storage.Result:
    """The stage for a dump of pages with these ids, of which those `marked` have templates of disambiguation pages."""
    path = folder / "page_props.sql.gz"
    path.write_bytes(gzip.compress(sql(statements, wiki)))
    pages = str(folder / "pages.parquet")
    with storage.parquet_rows(pages, schemas.PAGES.schema) as table:
        table.extend((number, f"Page {number}", number in marked, 1) for number in ids)
    return fetch_qids.build(str(path), str(folder), [pages], "testwiki", is_fetched=is_fetched)


def test_pages_with_items_and_what_is_counted(tmp_path: Path) -> None:
    result = build(tmp_path, [ROWS[:2], ROWS[2:]], 12, 11, 10)
    rows = list(storage.read_rows(str(tmp_path / result.files[0].path)))
    assert rows == [{"page_id": 10, "qid": "Q10"}, {"page_id": 12, "qid": "Q5"}]
    assert result.rows == {"qids": 2, "disambiguations": 0}
    assert result.drops == {"properties:other": 1, "qids:not_in_dump": 1}
    assert (result.facts["pages"], result.facts["pages_without_qid"]) == (3, 1)
    digest = hashlib.sha256((tmp_path / "page_props.sql.gz").read_bytes()).hexdigest()
    assert result.facts["source"] == {"name": "page_props.sql.gz", "sha256": digest}


@pytest.mark.parametrize(
    ("named", "marked", "found"),
    [
        ([14, 11, 98, 11], [], [11, 14]),
        ([14], [10, 12], [14]),  # templates that page_props knows better
        ([98], [10, 12], []),  # of a page that is not in the dump, on a wiki that has the property
        ([], [13, 10], [10, 13]),
        ([], [], []),
    ],
)
def test_page_props_decides_which_pages_are_disambiguation_pages(
    tmp_path: Path, named: list[int], marked: list[int], found: list[int]
) -> None:
    rows: list[Row] = [(page, "disambiguation", b"") for page in named]
    result = build(tmp_path, [[*ROWS[:2], *rows], ROWS[2:]], 14, 10, 11, 12, 13, marked=marked)
    assert fetch_qids.read_page_ids([str(tmp_path / result.files[1].path)]).tolist() == found
    assert (result.rows, result.drops["properties:other"]) == ({"qids": 2, "disambiguations": len(found)}, 1)


def test_rows_of_pages_that_cannot_be_are_counted(tmp_path: Path) -> None:
    odd: list[Row] = [(number, "wikibase_item", b"Q1") for number in (0, -4, 2**63, 2**64 + 10, 10**40)]
    result = build(tmp_path, [[*ROWS, *odd, (2**63 - 1, "wikibase_item", b"Q7")]], 10, 12, 2**63 - 1)
    assert result.rows["qids"] == 3
    assert result.drops == {"properties:other": 5, "qids:not_in_dump": 2}
    for wrong in (b"(1e3,", b"('10',", b"(NULL,"):
        path = tmp_path / "x.sql"
        path.write_bytes(sql([ROWS]).replace(b"(12,", wrong))
        with pytest.raises(ValueError, match=r"x\.sql: line 32: found"), PageProps(str(path), []) as items:
            list(items)


def test_a_file_of_another_wiki_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is of the wiki otherwiki, the dump of testwiki"):
        build(tmp_path, [ROWS], 10, wiki="otherwiki")


def test_few_items_are_told_and_none_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    build(tmp_path, [ROWS], 10, 13, 14)
    assert "has items for 1 of the dump's 3 pages, and for 2 others; is it of the same wiki" in caplog.text
    with pytest.raises(ValueError, match="has items for 0 of the dump's 2 pages, and for 3 others"):
        build(tmp_path, [ROWS], 13, 14)
    assert build(tmp_path, [ROWS], 13, 14, is_fetched=True).rows["qids"] == 0  # as of a Wiktionary


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ((13, "wikibase_item", b"P31"), "line 32: found b'P31'; wanted a QID, as Q42, for the .* of page 13"),
        ((13, "wikibase_item", b"Q0"), "line 32: found b'Q0'"),
        ((10, "wikibase_item", b"Q11"), "two items of page 10; wanted one"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be(tmp_path: Path, row: Row, message: str) -> None:
    with pytest.raises(ValueError, match=f"page_props.sql.gz: {message}"):
        build(tmp_path, [[*ROWS, row]], 10, 12)
    assert not (tmp_path / "qids/block-00000.parquet").exists()
