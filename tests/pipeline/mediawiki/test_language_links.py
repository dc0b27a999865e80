"""The links of a page to the same page in other languages."""

from time import process_time

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import find_language_links

SITE = SiteInfo("en", "enwiki", "first-letter", ())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x\n[[de:Affe]]\n[[ja:猿]][[de:Affe]]", [("de", "Affe"), ("ja", "猿")]),
        ("[[ De : Affe_(Tier) ]]", [("de", "Affe_(Tier)")]),
        ("[[zh-min-nan:Kâu]]", [("zh-min-nan", "Kâu")]),
        ("[[:de:Affe]] and [[fr:Singe|an ape]]", [("fr", "Singe")]),
        ("<!-- [[de:Affe]] --> [[fr:Singe]] <!-- [[it:Scimmia]]", [("fr", "Singe")]),
        ("<nowiki>[[de:Affe]]</nowiki> [[fr:Singe]] <PRE >[[it:Scimmia]]</Pre\n>", [("fr", "Singe")]),
        ("[[en:Ape]] [[Category:Apes]] [[wikt:ape]] [[File:Ape.png]] [[de:]] [[de: _ ]]", []),
        ("[[de:Affe", []),
    ],
)
def test_links_that_stand_for_the_page(text: str, found: list[tuple[str, str]]) -> None:
    assert find_language_links(text, SITE) == found


def test_a_page_of_brackets_takes_no_time() -> None:
    started = process_time()
    for text in (
        "[[de:" * 400_000,
        "[[" + "_" * 2_000_000,
        "<!--" * 500_000,
        "[[a" * 600_000,
        "[[" + "a-" * 1_000_000,
        "<pre" * 500_000,
    ):
        assert find_language_links(text, SITE) == []
    assert process_time() - started < 60
