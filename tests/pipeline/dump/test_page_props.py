"""Reading one property of the table page_props."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.dump import page_props
from pipeline.dump.page_props import PageProps
from tests.support.page_props import Row, plain_rows, sql

ITEMS = [(3, "wikibase_item", b"Q42"), (12, "wikibase_item", b"Q7")]
ROWS: list[Row] = [
    (3, "defaultsort", b"O'Neil, (\\),'wikibase_item','Q1',NULL),(5"),
    *ITEMS[:1],
    (4, "notoc", b""),
]
VALUES = st.binary(max_size=40) | st.text("',\\()n;\n0Q%_", max_size=20).map(str.encode)
TABLES = st.lists(
    st.lists(
        st.tuples(st.integers(0, 10**10), st.sampled_from(["wikibase_item", "defaultsort", "'"]), VALUES),
        min_size=1,
        max_size=8,
    ),
    max_size=4,
)


def write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


def read(path: str, wanted: str = "wikibase_item") -> list[tuple[int, bytes]]:
    with PageProps(path, wanted) as rows:
        return list(rows)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_rows_of_a_property(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    path = write(tmp_path / "any-name", pack(sql([ROWS, ITEMS[1:]])))
    with PageProps(path, "wikibase_item") as rows:
        assert rows.database == "testwiki"
        assert list(rows) == [(3, b"Q42"), (12, b"Q7")]
        assert rows.others == 2


@settings(deadline=None, max_examples=50)
@given(table=TABLES, chunk=st.integers(20, 3000))
def test_what_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, table: list[list[Row]], chunk: int
) -> None:
    table = [[(page, name.replace("'", "odd"), value) for page, name, value in rows] for rows in table]
    content = sql(table)
    rows = [row for statement in table for row in statement]
    assert list(plain_rows(content)) == rows
    path = write(tmp_path_factory.getbasetemp() / "rows.sql", content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_props, "_CHUNK", chunk)
        patch.setattr(page_props, "_LONGEST", 2000)
        for wanted in ("wikibase_item", "defaultsort"):
            assert read(path, wanted) == [(page, value) for page, name, value in rows if name == wanted]


def test_mwsql_reads_the_same(tmp_path: Path) -> None:
    mwsql = pytest.importorskip("mwsql", reason="pip install '.[test]'")
    # It takes escapes of control characters for the letters behind the backslash.
    rows: list[Row] = [(1, "defaultsort", 'Ünal, (Ö\'Neil) \\ "x"'.encode()), *ITEMS]
    path = write(tmp_path / "page_props.sql.gz", gzip.compress(sql([rows, [(20, "wikibase_item", b"Q20")]])))
    found = [(int(page), name, value.encode()) for page, name, value, _ in mwsql.Dump.from_file(path)]
    for wanted in ("wikibase_item", "defaultsort"):
        assert read(path, wanted) == [(page, value) for page, name, value in found if name == wanted]


def test_a_table_without_rows_has_none(tmp_path: Path) -> None:
    assert read(write(tmp_path / "x.sql", sql([]))) == []


def broken(old: bytes, new: bytes) -> bytes:
    content = sql([ROWS, ITEMS])
    assert content.count(old) == 1
    return content.replace(old, new)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (broken(b"(4,'notoc','',NULL)", b"(4,notoc,'',NULL)"), r"line 32: found b\"\(4,notoc"),
        (broken(b"(12,'", b"(1x2,'"), r"line 33: found b\"\(1x2,'wikibase_item'"),
        (broken(b"'Q7',", b"'Q7,"), r"line 33: found b\"\(12,'wikibase_item','Q7,"),
        (broken(b",NULL);\nINSERT", b",NULL);\nREPLACE"), "line 33: found b.REPLACE INTO"),
        (sql([ROWS]).replace(b"`page_props`", b"`page`"), "line 16: found b'CREATE TABLE `page`.*the table page_props"),
        (sql([ROWS])[: sql([ROWS]).index(b"notoc")], r"line 32: found b\"\(4,'"),
        (gzip.compress(sql([ROWS]))[:-30], "damaged or cut off.*download it again"),
        (b"<html>", "line 1: found b'<html>'"),
        (b"", "has no table page_props; wanted WIKI-DATE-page_props.sql.gz"),
    ],
)  # fmt: skip
def test_errors_name_the_line_and_what_is_there(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"x.sql: {message}"):
        read(write(tmp_path / "x.sql", content))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none.sql: cannot be read \(No such file.*check corpus.page_props"):
        PageProps(str(tmp_path / "none.sql"), "wikibase_item")
