"""FetchQids as a stage: when it is wanted, and of which file."""

import os
from pathlib import Path
from typing import Any

import pytest

from pipeline import storage
from tests.support.page_props import sql
from tests.support.stages import DUMP, run_in_process
from workflows import BuildEntityVocab, BuildMentionTable, ExtractPages, FetchQids


def test_it_comes_before_the_tables_where_a_file_or_a_wikis_name_gives_items(tmp_path: Path) -> None:
    given: dict[str, Any] = {"workdir": str(tmp_path)}
    for stage in (BuildEntityVocab, BuildMentionTable):
        for more, wanted in (
            ({}, False),
            ({"dump": str(DUMP)}, False),
            ({"dump": "simplewiki"}, True),
            ({"dump": "simplewiki", "page_props": "none"}, False),
            ({"page_props": "some.sql.gz"}, True),
        ):
            assert ("FetchQids" in stage(**given, **more).requires()) is wanted, more


def test_what_cannot_be_read_is_told_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"--page-props none: FetchQids has nothing to read"):
        FetchQids(page_props="none", workdir=str(tmp_path)).check_needs()
    with pytest.raises(ValueError, match=r"--page-props none.sql: no such file; wanted page_props.sql"):
        _ = FetchQids(page_props="none.sql", workdir=str(tmp_path)).hash8
    (tmp_path / "x.sql").write_bytes(b"<html>")
    with pytest.raises(ValueError, match=r"x\.sql: line 1: found b'<html>'"):
        FetchQids(page_props=str(tmp_path / "x.sql"), workdir=str(tmp_path)).check_needs()


@pytest.mark.slow
def test_a_given_file_is_read_and_known_again_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "page_props.sql"
    stage = FetchQids(dump=str(DUMP), page_props=str(path), workdir=str(tmp_path / "work"))
    path.write_bytes(sql([]))
    run_in_process(stage.clone(ExtractPages))
    extracted = stage.clone(ExtractPages)
    pages = [
        row["page_id"]
        for path in extracted.manifest().paths(extracted.folder, "pages/")
        for row in storage.read_rows(path)
    ]
    dbname = stage.fetched().manifest().facts["site"]["dbname"]
    path.write_bytes(sql([[(page, "wikibase_item", b"Q%d" % page) for page in pages[1:]]], dbname or "any"))
    run_in_process(stage := FetchQids(**stage.param_kwargs))
    assert stage.manifest().rows == {"qids": len(pages) - 1}
    assert stage.manifest().facts["pages_without_qid"] == 1
    assert stage.is_current()
    os.utime(path, ns=(1, 1))
    assert not stage.is_current()
