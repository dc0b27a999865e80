"""Links that are read together lead where each alone leads."""

import tracemalloc
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.dump.pages import read_site_info
from pipeline.wikitext.extract import extract
from pipeline.wikitext.link_rules import LinkRules, link_rules
from pipeline.wikitext.templates import table
from pipeline.wikitext.templates.table import TemplateTable
from tests.support import DATA

SITE = read_site_info(str(DATA / "wiki-40.xml"))
SITES = {"English": SITE, "Turkish": replace(SITE, language="tr"), "a dictionary": replace(SITE, case="case-sensitive")}
PARTS = ["a", "i", "Z", "7", " ", "  ", "'", "''", ":", "#", "_", "%20", "&amp;"]
PARTS += ["Category:", "fr:", "é", "e\u0301"]
PARTS += [".", "..", "/", "./", "}", "~~~", "//", "http:", "\x03", "WP:"]
PARTS += ["ß", "日", "\u00a0", "\u2003", "\x05", "\t", "~", "^", "(", ",", "-", "<", "x" * 61]
RAW = st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("".join)


@pytest.mark.parametrize("site", SITES)
@given(raws=st.lists(RAW, max_size=8))
@example(raws=["boat", "Boat (vessel)", "i", "été", "category:X", "x" * 60, "x" * 61])
@example(raws=["e", "\u0301 begins with a mark"])
def test_together_and_alone_are_the_same(site: str, raws: list[str]) -> None:
    rules = link_rules(SITES[site], "fixed")
    assert rules.resolve_all(raws) == [rules.resolve(raw) for raw in raws]


@pytest.mark.parametrize("written", ["{}", "Template:{}", "été {}", "a:{}", "{}#b"])
def test_names_of_any_length_leave_no_memory_behind(written: str) -> None:
    """A hostile page has as many long names as it likes; what is remembered of a dump stays small."""
    rules, templates = LinkRules(SITE, "fixed"), TemplateTable(SITE)
    rules.resolve(written), templates.find(written)
    tracemalloc.start()
    try:
        for number in range(500):
            name = written.format(f"{number} " + "x" * 10_000)
            rules.resolve(name)
            templates.find(name)
            extract(f"{{{{convert|1|{name}|km}}}} {{{{convert|{number}{'7' * 9000}|km|{name}}}}}", SITE)
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


def test_names_that_come_late_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_KNOWN_NAMES", 4)
    asked: list[str] = []
    templates = TemplateTable(SITE, lambda name: asked.append(name))
    for name in ("a1", "a2", "a3", "a4", "a5", "a6", "a5", "a6", "a5"):
        templates.find(name)
    assert asked == ["a1", "a2", "a3", "a4", "a5", "a6"]
