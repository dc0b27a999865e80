"""Reading one property of the table page_props."""

import gzip
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.dump import page_props
from pipeline.dump.page_props import PageProps
from tests.support.page_props import Row, sql

ITEMS = [(3, "wikibase_item", b"Q42"), (12, "wikibase_item", b"Q7")]
ROWS: list[Row] = [(3, "defaultsort", b"O'Neil, (\\),'wikibase_item','Q1',NULL),(5"), *ITEMS[:1], (4, "notoc", b"")]
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
    with PageProps(path, [wanted]) as rows:
        return [(page, value) for page, _, value in rows]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_rows_of_a_property(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    path = write(tmp_path / "any-name", pack(sql([ROWS, ITEMS[1:]])))
    with PageProps(path, ["wikibase_item", "notoc"]) as rows:
        assert rows.database == "testwiki"
        assert list(rows) == [(3, "wikibase_item", b"Q42"), (4, "notoc", b""), (12, "wikibase_item", b"Q7")]
        assert rows.others == 1


@settings(deadline=None, max_examples=50)
@given(table=TABLES, chunk=st.integers(20, 3000))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, table: list[list[Row]], chunk: int) -> None:
    table = [[(page, name.replace("'", "odd"), value) for page, name, value in rows] for rows in table]
    content = sql(table)
    rows = [row for statement in table for row in statement]
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


HEAD = "-- Host: db7    Database: far-wiki\nDROP TABLE IF EXISTS `page_props`;\n"
INTO = "INSERT INTO `page_props` VALUES "
PLAIN = "(3,'wikibase_item','Q42',NULL)"
HEX = "(3,0x77696B69626173655F6974656D,0x513432,NULL)"
OTHER_TABLE = "INSERT INTO `text` VALUES (1,'it\\'s; ''INSERT INTO `page_props` VALUES (9,','x'),(2,\";\");\n"


@pytest.mark.parametrize(
    "content",
    [
        # Statements around the rows, as mariadb-dump 11, mysqldump 8 and mydumper write them.
        f"{HEAD}set autocommit=0;\n{INTO}{PLAIN};\nUNLOCK TABLES;\ncommit;\n",
        f"/*M!999999\\- enable the sandbox mode */ \n{HEAD}{INTO}{PLAIN};\n/*M!100616 SET NOTE_VERBOSITY=@OLD */;",
        f"CREATE DATABASE /*!32312 IF NOT EXISTS*/ `far-wiki`;\n\nUSE `far-wiki`;\n{INTO}{PLAIN};",
        f"{HEAD}LOCK TABLES `page_props` WRITE, `page` READ;\n{INTO}{PLAIN};\nANALYZE TABLE `page_props`;",
        f"{HEAD}DELIMITER ;;\nCREATE TRIGGER `t` BEFORE INSERT ON `page` FOR EACH ROW BEGIN SET @a = ';'; END ;;\n"
        f"DELIMITER ;\n{INTO}{PLAIN};",
        # Other tables before and behind.
        f"{OTHER_TABLE}{INTO}{PLAIN};\nCREATE TABLE `zone` (`z` int COMMENT 'from; to');\n{OTHER_TABLE}",
        f"CREATE TABLE `page_props` (\n `pp_page` int COMMENT 'the page; its pp_value''s',\n `pp_propname` "
        f'varbinary(60),\n `pp_value` blob\n) COMMENT="all; of it";\n{INTO}{PLAIN};',
        # Forms of the statement.
        f"insert into page_props values {PLAIN};",
        f"INSERT  IGNORE INTO `page_props` VALUES {PLAIN};",
        f"REPLACE INTO `page_props` VALUES {PLAIN};",
        f"INSERT DELAYED `page_props` VALUES\n{PLAIN}\n;",
        f"INSERT /*!50100 LOW_PRIORITY */ INTO `mw_page_props` VALUES{PLAIN};",
        f"INSERT INTO `far-wiki`.`wiki_page_props` VALUES {PLAIN};",
        f'INSERT INTO "page_props" VALUES {PLAIN};',
        f"INSERT INTO `page_props` (`pp_page`, `pp_propname`, `pp_value`, `pp_sortkey`) VALUES {PLAIN};",
        # Forms of the values.
        f"{INTO}(3,_binary 'wikibase_item',_binary 'Q42',NULL);",
        f"{INTO}(3,_utf8mb4'wikibase_item',_latin1'Q42',1);",
        f"{INTO}{HEX};",
        f"{INTO}(3,X'77696B69626173655F6974656D',x'513432');",
        f"{INTO}(3, 'wikibase_item' , 'Q42', NULL) ;",
        f'{INTO}(3,"wikibase_item","Q42",NULL)\n;',
        f"{INTO}(3,'wikibase_it\\em','Q4\\2',NULL);",
        f"{INTO}( 3,\n'wikibase_item',\n'Q42',\nNULL\n)\n;",
        # More rows, with what ends a value, a row or a statement in them.
        f"{INTO}(1,'defaultsort','a\\'),(2,''x'';',NULL),\n{PLAIN},(4,_binary 'notoc',_binary '',2.5E+3);",
        f'{INTO}(1,"defaultsort","say ""no""; \\"),(9",NULL)\n,{PLAIN};\n{INTO}(8,"displaytitle","it\'s",NULL);',
    ],
)
def test_what_dumpers_write(tmp_path: Path, content: str) -> None:
    for chunk in (7, 1 << 20):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(page_props, "_CHUNK", chunk)
            assert read(write(tmp_path / "x.sql", content.encode())) == [(3, b"Q42")]


def test_escapes_of_both_quotes(tmp_path: Path) -> None:
    rows = r"""(1,'displaytitle','a''b""c\'d\"e\n\%\_\\'),(2,"displaytitle","a''b""c\'d\"e")"""
    found = read(write(tmp_path / "x.sql", f"{INTO}{rows};".encode()), "displaytitle")
    assert found == [(1, b'a\'b""c\'d"e\n\\%\\_\\'), (2, b"a''b\"c'd\"e")]


def test_the_wiki_of_a_file(tmp_path: Path) -> None:
    for head, wiki in (
        ("-- Host: localhost    Database: my-own_wiki\n", "my-own_wiki"),
        ("-- Host: localhost    Database: \n", ""),
        ("-- Current Database: `new`\nUSE `new`;\n", "new"),
    ):
        with PageProps(write(tmp_path / "x.sql", f"{head}{INTO}{PLAIN};".encode()), ["wikibase_item"]) as rows:
            assert (rows.database, len(list(rows))) == (wiki, 1)


def test_a_large_table_is_skipped_in_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_props, "_CHUNK", 1 << 16)
    value = "it\\'s; " * 400
    content = f"INSERT INTO `text` VALUES {','.join([f'(1,{value!r})'] * 500)};".replace('"', "'")
    path = write(tmp_path / "x.sql", f"{content}\n{INTO}{PLAIN};".encode())
    tracemalloc.start()
    try:
        assert read(path) == [(3, b"Q42")]
        assert tracemalloc.get_traced_memory()[1] < 1 << 20 < len(content)
    finally:
        tracemalloc.stop()


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
        (b"INSERT a_page_props VALUES (3,0x,0x);\nINSERT INTO b_page_props VALUES (", "line 2: .* the table a_page"),
        (b"-- Database: a\nCREATE TABLE page_props (\n-- Database: b\nREPLACE page_props VALUES (", "line 4: .*a.page"),
        (b"INSERT INTO page_props VALUES (3,'x','y')", "line 1: found b.*wanted a row"),
        (b"INSERT INTO page_props VALUES (3,'x','y'); COMMIT;", "line 1: .*a semicolon that ends its line"),
        (b"INSERT INTO page_props (pp_page, pp_value) VALUES (3,'y');", "line 1: .*wanted the columns"),
        (sql([ROWS]).replace(b"`page_props`", b"`page`"), "no table page_props"),
        (sql([ROWS])[: sql([ROWS]).index(b"notoc")], r"line 32: found b\"\(4,'"),
        (gzip.compress(sql([ROWS]))[:-30], "damaged or cut off.*download it again"),
        (b"", "no table page_props; wanted the dump's WIKI-DATE-page_props.sql.gz"),
    ],
)  # fmt: skip
def test_errors_name_the_line_and_what_is_there(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=f"x.sql: {message}"):
        read(write(tmp_path / "x.sql", content))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none.sql: cannot be read \(No such file.*check corpus.page_props"):
        PageProps(str(tmp_path / "none.sql"), ["wikibase_item"])
