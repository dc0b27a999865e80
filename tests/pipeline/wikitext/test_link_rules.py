"""Links that are read together lead where each alone leads."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.dump.pages import read_site_info
from pipeline.wikitext.link_rules import link_rules
from tests.support import DATA

SITE = read_site_info(str(DATA / "wiki-40.xml"))
SITES = {
    "English": SITE,
    "Turkish": replace(SITE, language="tr"),
    "a dictionary": replace(SITE, case="case-sensitive"),
}
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
