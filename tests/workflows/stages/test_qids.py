"""FetchQids as a stage: when it is wanted, and of which file."""

import os
from pathlib import Path

import pytest

from pipeline import storage
from tests.support.page_props import sql
from tests.support.stages import DUMP, run_in_process, run_of
from workflows import BuildEntityVocab, BuildMentionTable, ExtractPages, FetchQids


def test_it_comes_before_the_tables_where_a_file_or_a_wikis_name_gives_items(tmp_path: Path) -> None:
    for stage in (BuildEntityVocab, BuildMentionTable):
        for more, wanted in (
            ({}, False),
            ({"dump": str(DUMP)}, False),
            ({"dump": "simplewiki"}, True),
            ({"dump": "simplewiki", "page_props": "none"}, False),
            ({"page_props": "some.sql.gz"}, True),
        ):
            assert ("FetchQids" in stage(settings=run_of(tmp_path, corpus=more)).requires()) is wanted, more


def test_what_cannot_be_read_is_told_before_the_run(tmp_path: Path) -> None:
    def of(file: object) -> FetchQids:
        return FetchQids(settings=run_of(tmp_path, corpus={"page_props": str(file)}))

    with pytest.raises(ValueError, match=r"corpus.page_props none: FetchQids has nothing to read"):
        of("none").check_needs()
    with pytest.raises(ValueError, match=r"corpus.page_props none.sql: no such file; wanted page_props.sql"):
        _ = of("none.sql").hash8
    (tmp_path / "x.sql").write_bytes(b"<html>")
    with pytest.raises(ValueError, match=r"x\.sql: no table page_props"):
        of(tmp_path / "x.sql").check_needs()


@pytest.mark.slow
def test_a_given_file_is_read_and_known_again_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "page_props.sql"
    stage = FetchQids(settings=run_of(tmp_path / "work", corpus={"dump": str(DUMP), "page_props": str(path)}))
    path.write_bytes(sql([]))
    run_in_process(stage.clone(ExtractPages))
    extracted = stage.clone(ExtractPages)
    files = extracted.manifest().paths(extracted.folder, "pages/")
    rows = [row for path in files for row in storage.read_rows(path)]
    pages = [row["page_id"] for row in rows]
    marked = sum(row["is_disambiguation"] for row in rows)
    dbname = stage.fetched().manifest().facts["site"]["dbname"]
    path.write_bytes(sql([[(page, "wikibase_item", b"Q%d" % page) for page in pages[1:]]], dbname or "any"))
    run_in_process(stage := FetchQids(**stage.param_kwargs))
    assert stage.manifest().rows == {"qids": len(pages) - 1, "disambiguations": marked}
    assert stage.manifest().facts["pages_without_qid"] == 1
    assert stage.is_current()
    os.utime(path, ns=(1, 1))
    assert not stage.is_current()
