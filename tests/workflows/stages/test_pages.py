"""Stages that read the dump: a user's own rules for a wiki."""

from pathlib import Path

import pytest

from pipeline import storage
from tests.support.stages import run_in_process, run_of
from workflows import BuildEntityVocab, ExtractPages, FetchDump, ReadTemplates
from workflows.stages.pages import CorpusStage

DUMP = """<mediawiki xml:lang="en"><siteinfo><dbname>cooks</dbname></siteinfo>
<page><title>Soup</title><ns>0</ns><id>1</id>
<revision><text>Eat {{dish|the soup}} with [[Bread]].</text></revision></page>
<page><title>Bread</title><ns>0</ns><id>2</id><revision><text>Bread.</text></revision></page>
</mediawiki>"""


def test_rules_are_known_by_their_content(tmp_path: Path) -> None:
    def of(kind: type[CorpusStage], text: str, name: str = "") -> str:
        name = name or f"{text[-3:-2]}.toml"
        (tmp_path / name).write_text(text)
        rules = {"wiki_rules": str(tmp_path / name)} if text else {}
        return kind(settings=run_of(tmp_path, corpus={"dump": "simplewiki", "dump_templates": True, **rules})).hash8

    first, second = "variants = ['a']", "variants = ['b']"
    for kind in (ExtractPages, ReadTemplates, BuildEntityVocab):
        assert len({of(kind, ""), of(kind, first), of(kind, second)}) == 3
        assert of(kind, first) == of(kind, first, "moved.toml")
    assert of(FetchDump, "") == of(FetchDump, first)


def test_rules_that_cannot_be_read_are_told_before_the_run(tmp_path: Path) -> None:
    run = run_of(tmp_path, corpus={"dump": "simplewiki", "wiki_rules": str(tmp_path / "none.toml")})
    with pytest.raises(ValueError, match=r"corpus.wiki_rules .*none.toml: cannot be read"):
        _ = ExtractPages(settings=run).hash8


@pytest.mark.slow
def test_pages_are_extracted_by_the_rules(tmp_path: Path) -> None:
    (tmp_path / "dump.xml").write_text(DUMP)
    (tmp_path / "rules.toml").write_text("[templates]\ntext = { dish = '{1}' }")
    corpus = {"dump": str(tmp_path / "dump.xml"), "wiki_rules": str(tmp_path / "rules.toml")}
    run_in_process(stage := ExtractPages(settings=run_of(tmp_path / "work", corpus=corpus)))
    rows = [row for path in stage.manifest().paths(stage.folder, "paragraphs/") for row in storage.read_rows(path)]
    assert [row["text"] for row in rows] == ["Eat the soup with Bread.", "Bread."]
