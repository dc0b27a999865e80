"""The oracle of entities in several languages: plain Python over the extracted pages of each wiki.

It goes on from ``oracle_tables`` and shares no code with ``pipeline``.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.parquet as pq

from tests.support.oracle_tables import Pages, Row, build_vocab, follow, resolve_titles

Page = tuple[str, str]  # language and title


def all_pages(wikis: Mapping[str, str | Path]) -> dict[Page, Row]:
    """Every page of the wikis, and every linked title without one."""
    found: dict[Page, Row] = {}
    for language, folder in wikis.items():
        pages = Pages.read(folder, "fixed")
        for page in sorted(pages.pages, key=lambda page: -page["page_id"]):
            found[language, page["title"]] = {**page, "link_count": 0}
        for row in build_vocab(pages, resolve_titles(pages, "fixed"), size=1 << 40, missing_pages="in")[3:]:
            found[language, row["title"]] = row
    return found


def named_pages(wikis: Mapping[str, str | Path]) -> list[tuple[Page, Page]]:
    """The interlanguage links between two wikis, after redirects."""
    titles = {language: resolve_titles(Pages.read(folder, "fixed"), "fixed") for language, folder in wikis.items()}
    found = set()
    for language, folder in wikis.items():
        for path in Path(folder, "language_links").glob("*.parquet"):
            for row in pq.read_table(path).to_pylist():
                if row["language"] in wikis and row["language"] != language:
                    title = row["other_title"].replace("_", " ")
                    title = title[:1].upper() + title[1:]
                    found.add(((language, row["title"]), (row["language"], follow(title, titles[row["language"]])[0])))
    return sorted(found)


def groups_of(links: Iterable[tuple[Page, Page]], pages: Mapping[Page, Row], order: list[str]) -> list[set[Page]]:
    """Pages that links connect, one of a language at most in each group.

    Pairs that name each other are first, then those of the most links, then by language and title.
    """
    known = {link for link in links if link[0] in pages and link[1] in pages}
    place = {language: number for number, language in enumerate(order)}

    def rank(pair: frozenset[Page]) -> tuple[bool, int, list[tuple[int, str]]]:
        one, two = sorted(pair, key=lambda page: (place[page[0]], page[1]))
        is_mutual = (one, two) in known and (two, one) in known
        ends = [(place[language], title) for language, title in (one, two)]
        return not is_mutual, -pages[one]["link_count"] - pages[two]["link_count"], ends

    groups = [{page} for page in {page for link in known for page in link}]
    for pair in sorted({frozenset(link) for link in known}, key=rank):
        touched = [group for group in groups if group & pair]
        together = set().union(*touched)
        if len({language for language, _ in together}) == len(together):
            groups = [group for group in groups if not group & pair] + [together]
    return groups


def merged(
    pages: Mapping[Page, Row], order: list[str], *, qids: Mapping[Page, str], groups: Iterable[set[Page]], size: int
) -> list[Row]:
    """The entities from id 3 on: the most linked first, ties by item, or by language and title of the first page."""
    place = {language: number for number, language in enumerate(order)}
    group_of = {page: frozenset(group) for group in groups for page in group}
    members: dict[object, list[Page]] = defaultdict(list)
    for page in pages:
        members[qids[page] if page in qids else group_of.get(page, page)].append(page)
    rows = []
    for own in members.values():
        best: dict[str, Page] = {}
        for page in sorted(own, key=lambda page: (-pages[page]["link_count"], page[1])):
            best.setdefault(page[0], page)
        chosen = sorted(best.values(), key=lambda page: place[page[0]])
        qid = qids.get(chosen[0])
        count = sum(pages[page]["link_count"] for page in chosen)
        if count:
            rows.append((-count, qid or ":".join(chosen[0]), qid, chosen))
    return [
        {
            "entity_id": number, "qid": qid, "link_count": -count,
            "pages": [
                {"language": page[0], **{name: pages[page][name] for name in ("title", "page_id", "link_count")}}
                for page in chosen
            ],
        }
        for number, (count, _, qid, chosen) in enumerate(sorted(rows, key=lambda row: row[:2])[: size - 3], 3)
    ]  # fmt: skip
