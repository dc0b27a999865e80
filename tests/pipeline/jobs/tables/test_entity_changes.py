"""The changes of an earlier vocabulary's entities: small pairs of dumps, any pair, and English of 2006 and 2016."""

import bz2
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.jobs.tables.entity_changes import WAYS, WITH_PAGE, changes_of, find_pages, updated
from pipeline.lookup.entities import SPECIAL_ENTITIES, EntityVocab

OLD = "entity_id int, old_title string, old_page_id long, old_qid string"
PAGES = "title string, page_id long, link_count long, qid string, is_disambiguation boolean"
TITLES = "title string, canonical string, hops int, status string, page_id long"
# Title, page id and QID in the earlier vocabulary.
ENTITIES = [
    ("Ape", 1, "Q1"),
    ("Android", 2, "Q2"),  # renamed, and its title is another page's
    ("Turkey", 3, None),  # a redirect, and a page of its own no more
    ("Türkiye", 4, "Q4"),
    ("Mercury", 5, None),  # another page's title
    ("Jaguar", 6, None),  # the page is a disambiguation page now
    ("Nowhere", 7, None),
    ("Linked", -1, None),
    ("Pluto", 8, "Q8"),  # written anew, with another page id
    ("Burma", 9, None),  # renamed, and then made a redirect
]
NOW = [
    ("Ape", 1, 9, "Q1", False),
    ("Android (robot)", 2, 5, "Q2", False),
    ("Android", 20, 50, "Q20", False),
    ("Türkiye", 4, 7, "Q4", False),
    ("Mercury", 21, 6, None, False),
    ("Jaguar", 6, 1, None, True),
    ("Linked", -1, 2, None, False),
    ("Pluto", 22, 3, "Q8", False),
    ("Moon", 23, 1, None, False),
    ("Myanmar", 24, 3, None, False),
]


def vocab_of(entities: list[tuple[str, int, str | None]], count: int = 1) -> EntityVocab:
    titles, page_ids, qids = zip(*entities, strict=True)
    special = len(SPECIAL_ENTITIES)
    counts = (0,) * special + (count,) * len(entities)
    return EntityVocab((*SPECIAL_ENTITIES, *titles), counts, (-1,) * special + page_ids, (None,) * special + qids)


def found_of(spark: Any, vocab: EntityVocab, pages: list[Any], titles: list[Any]) -> list[dict[str, Any]]:
    qids = vocab.qids or (None,) * len(vocab)
    rows = list(zip(range(len(vocab)), vocab.titles, vocab.page_ids, qids, strict=True))[len(SPECIAL_ENTITIES) :]
    frames = (
        spark.createDataFrame(rows, OLD),
        spark.createDataFrame(pages, PAGES),
        spark.createDataFrame(titles, TITLES),
    )
    return [row.asDict() for row in find_pages(*frames).collect()]


def top_of(pages: list[Any]) -> list[dict[str, Any]]:
    names = [each.split()[0] for each in PAGES.split(", ")]
    return [dict(zip(names, page, strict=True)) for page in sorted(pages, key=lambda page: (-page[2], page[0]))]


@pytest.mark.parametrize("has_qids", [True, False])
@pytest.mark.parametrize("is_whole", [True, False])
def test_each_change_has_its_reason(spark: Any, has_qids: bool, is_whole: bool) -> None:
    entities = [(title, page_id, qid if has_qids else None) for title, page_id, qid in ENTITIES]
    pages = [(*page[:3], page[3] if has_qids else None, page[4]) for page in NOW]
    old = vocab_of(entities)
    titles = [(page[0], page[0], 0, "page", None) for page in pages if page[1] > 0]
    titles += [("Turkey", "Türkiye", 1, "redirect", 30), ("Union of Burma", "Myanmar", 1, "redirect", 9)]
    changes = changes_of(old, found_of(spark, old, pages, titles), top_of(pages), is_whole=is_whole)
    by_page = "qid" if has_qids else "page_id"
    lost = "gone" if is_whole else "not_in_dump"
    assert [(each.old_title, each.change, each.by, each.title) for each in changes] == [
        ("Ape", "same", by_page, "Ape"),
        ("Android", "renamed", by_page, "Android (robot)"),
        ("Turkey", "merged", "redirect", "Türkiye"),
        ("Türkiye", "same", by_page, "Türkiye"),
        ("Mercury", "split_off", None, None),
        ("Jaguar", "disambiguation", "page_id", "Jaguar"),
        ("Nowhere", lost, None, None),
        ("Linked", "same", "title", "Linked"),
        ("Pluto", "same", "qid", "Pluto") if has_qids else ("Pluto", "split_off", None, None),
        ("Burma", "renamed", "redirect", "Myanmar"),
        (None, "new", None, "Android"),
        (None, "new", None, "Mercury"),
        *([] if has_qids else [(None, "new", None, "Pluto")]),
        (None, "new", None, "Moon"),
    ]
    entities_now = updated(old, changes)
    assert entities_now.vocab.titles[: len(old)] == (
        *SPECIAL_ENTITIES, "Ape", "Android (robot)", "Turkey", "Türkiye", "Mercury#7", "Jaguar", "Nowhere", "Linked",
        "Pluto" if has_qids else "Pluto#11", "Myanmar",
    )  # fmt: skip
    assert entities_now.ids["Android"] == len(old)
    assert entities_now.drops["entities:merged"] == 1


@pytest.mark.parametrize("has_qids", [True, False])
def test_page_ids_of_another_wiki_are_refused(spark: Any, has_qids: bool) -> None:
    """Also where its pages have the same items, as those of another language have."""
    old = vocab_of(
        [(title, page_id + 1000, qid if has_qids else None) for title, page_id, qid in ENTITIES if page_id > 0]
    )
    pages = [(*page[:3], page[3] if has_qids else None, page[4]) for page in NOW]
    titles = [(page[0], page[0], 0, "page", None) for page in pages]
    with pytest.raises(ValueError, match=r"--update-from: 6 .* 0 the same; it is another wiki's"):
        changes_of(old, found_of(spark, old, pages, titles), top_of(pages), is_whole=True)


def test_a_later_dump_may_have_again_what_this_one_lacks(spark: Any) -> None:
    """By its page id, whatever it is called by then; what was merged stays the page of the other."""

    def after(old: EntityVocab, *pages: tuple[str, int], moved: str = "Ape") -> EntityVocab:
        rows = [(title, page_id, 1, qid, False) for title, page_id, qid in ((*page, f"Q{page[1]}") for page in pages)]
        titles = [(page[0], page[0], 0, "page", None) for page in rows] + [(moved, "Monkey", 1, "redirect", 9)]
        return updated(old, changes_of(old, found_of(spark, old, rows, titles), [], is_whole=False)).vocab

    first = vocab_of([("Ape", 1, "Q1"), ("Monkey", 2, "Q2"), ("Moon", 3, "Q3"), ("Sun", 4, "Q4")])
    partial = after(first, ("Monkey", 2), ("Sun", 4))
    assert partial.qids[3:] == ("Q1", "Q2", "Q3", "Q4")
    whole = after(partial, ("Old World monkey", 2), ("Luna", 3), ("Sun", 4), moved="Monkeys")
    assert whole.titles[3:] == ("Ape", "Old World monkey", "Luna", "Sun")
    assert whole.page_ids[3:] == (-1, 2, 3, 4)


NAMES = st.sampled_from("ABCDEFGH")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[EntityVocab, list[dict[str, Any]], list[Any]]:
    """A vocabulary, rows as find_pages could give, and the pages of a dump."""
    names = draw(st.lists(NAMES, unique=True, min_size=1))
    old = vocab_of([(name, -1, None) for name in names])  # with page ids most would have to be the same
    pages = [(name, draw(st.integers(-1, 9)), draw(st.integers(0, 9)), None, draw(st.booleans())) for name in "ABCDEFG"]
    rows = top_of(pages)
    found = []
    for entity in draw(st.sets(st.integers(3, len(old) - 1))):
        found.append({"entity_id": entity, "rank": draw(st.integers(0, 4)), **draw(st.sampled_from(rows))})
    return old, found, pages


@given(pairs(), st.integers(0, 7), st.booleans())
def test_ids_stay_and_no_page_has_two_of_them(
    pair: tuple[EntityVocab, list[dict[str, Any]], list[Any]], most: int, is_whole: bool
) -> None:
    old, found, pages = pair
    top = [row for row in top_of(pages) if row["link_count"]][:most]
    changes = changes_of(old, found, top, is_whole=is_whole)
    assert [each.entity_id for each in changes] == list(range(3, 3 + len(changes)))
    assert [each.old_title for each in changes[: len(old) - 3]] == list(old.titles[3:])
    entities = updated(old, changes)
    assert len(set(entities.vocab.titles)) == len(entities.vocab)
    with_page = [each for each in changes if each.change in WITH_PAGE]
    assert max(Counter(each.title for each in with_page).values(), default=0) <= 1
    assert entities.ids == {each.title: each.entity_id for each in with_page}
    ranks = {row["entity_id"]: (row["rank"], row["title"]) for row in found}
    for each in changes[: len(old) - 3]:
        assert (each.title is None) == (each.entity_id not in ranks)
        if each.change == "merged":
            owner = entities.ids[str(each.title)]
            assert ranks[owner][0] <= ranks[each.entity_id][0]
    assert {each.title for each in changes} >= {row["title"] for row in top}
    assert updated(entities.vocab, ()).vocab.titles == SPECIAL_ENTITIES
    assert sum(entities.drops.values()) == len(changes) - len(with_page)


def pages_of(path: Path) -> dict[int, tuple[str, str | None]]:
    """The title of each page of a dump, and of what it redirects to, by page id; read without the project's code."""
    found: dict[int, tuple[str, str | None]] = {}
    with bz2.open(path) as stream:
        for _, element in ElementTree.iterparse(stream):
            if element.tag.endswith("}page"):
                fields = {each.tag.rpartition("}")[2]: each for each in element}
                redirect = fields["redirect"].get("title") if "redirect" in fields else None
                found[int(fields["id"].text or 0)] = str(fields["title"].text), redirect
                element.clear()
    return found


def test_pages_of_2006_are_found_in_2016_whatever_they_are_called(spark: Any, shared: Path) -> None:
    """By their page ids; and no page that has an earlier title now gets the row of another."""
    before, after = (
        pages_of(shared / "data/wikipedia" / f"enwiki-{name}.xml.bz2") for name in ("2006-12k", "2016-206")
    )
    both = sorted(before.keys() & after.keys())
    renamed = [number for number in both if before[number][0] != after[number][0]]
    assert (len(both), len(renamed)) == (206, 13)
    old = vocab_of([(title, number, None) for number, (title, _) in before.items()])
    pages = [(title, number, 1, None, False) for number, (title, redirect) in after.items() if not redirect]
    titles = [(title, title, 0, "page", None) for title, _, *_ in pages]
    lacking = {target for _, target in after.values() if target} - {page[0] for page in pages}
    pages += [(title, -1, 1, None, False) for title in sorted(lacking)]
    titles += [(title, target, 1, "redirect", number) for number, (title, target) in after.items() if target]
    changes = changes_of(old, found_of(spark, old, pages, titles), top_of(pages), is_whole=False)
    of_page = dict(zip(before, changes, strict=False))
    articles = {number for number, (_, redirect) in after.items() if not redirect}
    assert all(
        (of_page[number].title, of_page[number].by) == (after[number][0], "page_id") for number in articles & set(both)
    )
    [redirected] = {*renamed} - articles
    assert (of_page[redirected].title, of_page[redirected].by) == (after[redirected][1], "redirect")
    owners = {each.title: each.entity_id for each in changes if each.change in WITH_PAGE}
    for title in ("Android", "Austin", "Asia Minor", "Argument", "Appeal"):
        earlier = old.ids()[title]
        assert owners.get(title) != earlier
        assert changes[earlier - 3].title != title
    assert not any(each.change == "gone" for each in changes)
    assert WAYS == ("qid", "page_id", "redirect", "redirect", "title")
