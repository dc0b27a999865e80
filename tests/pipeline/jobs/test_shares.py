"""The share of pages that a stage may lose before it fails, and its error then."""

import re
from typing import Any

import pytest

from pipeline import storage
from pipeline.dump.pages import read_site_info
from pipeline.jobs import extract_pages
from pipeline.storage.failures import check_pages, check_share
from tests.support import DATA


@pytest.mark.parametrize(
    ("lost", "total", "limit"),
    [
        (0, 0, 0.0),
        (0, 1, 0.0),
        (1, 4, 0.0),
        (2, 10, 0.001),
        (10, 40, 0.001),
        (10, 10**6, 0.0),
        (1, 2, 0.5),
        (12, 12_000, 0.001),
    ],
)
def test_few_lost_pages_stop_nothing(lost: int, total: int, limit: float) -> None:
    check_pages({"broken_xml": lost}, total, limit)


@pytest.mark.parametrize(
    ("lost", "total", "limit"),
    [(1, 1, 0.001), (1, 2, 0.001), (1, 3, 0.0), (5, 10, 0.001), (10, 39, 0.001), (11, 10**6, 0.0)],
)
def test_many_lost_pages_stop_a_stage_however_small_the_dump(lost: int, total: int, limit: float) -> None:
    with pytest.raises(ValueError, match=rf"{lost} of {total:,} pages .*\({lost} broken_xml\)"):
        check_pages({"broken_xml": lost}, total, limit)


def test_ten_short_sentences_are_allowed_in_the_smallest_dump() -> None:
    check_share("sentences", {"too_short": 10}, 11, 0.0, "sequences.max_dropped_sentences")


def test_a_dump_without_an_article_says_what_became_of_its_pages() -> None:
    def run(*_: object) -> dict[int, storage.Result]:
        rows = {"pages": 0, "paragraphs": 0, "redirects": 1, "rejected": 1201, "links": 0}
        drops = {"pages:other_namespace": 2, "rejected:no_title": 1, "rejected:broken_xml": 1200}
        return {0: storage.Result((), rows, drops, {"pages_read": 1204})}

    dump = str(DATA / "wiki-40.xml")
    options: Any = {"site": read_site_info(dump).to_dict(), "profile": "fixed", "allow_truncated": False}
    message = (
        "no article among its 1,204 pages (1,200 rejected as broken_xml, 2 in other namespaces, 1 redirects, 1 "
        "rejected as no_title); wanted a dump of articles"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        extract_pages.build(run, [dump], 1 << 20, "", **options, dump="dump.xml")
