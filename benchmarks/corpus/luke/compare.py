"""LUKE's own builder beside this project's tables: vocabularies, links, sequences, and where they differ.

The builder is told anew from its public code: entities are counted over the links of wikipedia2vec's database, each
target followed through one redirect (as wikipedia2vec 1.x did; 2.0 follows ten), titles of pages alone are kept, and
the order is that of the counts. Its text is the database's.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpus.dumps import articles
from benchmarks.corpus.luke.places import parts_of
from benchmarks.corpus.stages import stage_folder
from benchmarks.harness.workloads import Record
from pipeline import storage
from pipeline.dump.pages import read_site_info
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import normalize_title
from pipeline.sequences.packing import Limits, build_page
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.wikitext.paragraphs import Link, Paragraph

TOP = (100, 1000, 5000)
_SPECIAL = 3
_TRAIL = re.compile(r"\[\[[^\[\]]*\]\][a-z]")


@dataclass(frozen=True)
class Database:
    """What wikipedia2vec's database of a dump holds; its pages are read from the file each time."""

    path: Path
    titles: frozenset[str]
    redirects: Mapping[str, str]
    resolved: Mapping[str, str]

    @classmethod
    def open(cls, path: Path) -> "Database":
        with open(path, encoding="utf-8") as lines:
            head = json.loads(next(lines))
        return cls(path, frozenset(head["titles"]), head["redirects"], head["resolved"])

    def pages(self) -> Iterator[tuple[str, list[Any]]]:
        with open(self.path, encoding="utf-8") as lines:
            next(lines)
            yield from (tuple(json.loads(line)) for line in lines)

    def one_hop(self, title: str) -> str:
        return self.redirects.get(title, title)

    def ten_hops(self, title: str) -> str:
        return self.resolved.get(title) or self.redirects.get(title, title)

    def links(self) -> Iterator[tuple[str, str]]:
        """(page, target) of every link."""
        for page, paragraphs in self.pages():
            for _, links in paragraphs:
                yield from ((page, target) for target, _, _ in links)


def vocabulary(counts: Mapping[str, int], titles: frozenset[str]) -> dict[str, int]:
    """LUKE's entities: titles of pages but categories', by falling count."""
    kept = {t: n for t, n in counts.items() if t in titles and not t.startswith("Category:")}
    return dict(sorted(kept.items(), key=lambda item: -item[1]))


def our_vocabulary(workdir: Path) -> dict[str, int]:
    path = stage_folder(workdir, "BuildEntityVocab") / "entity_vocab.parquet"
    rows = list(storage.read_rows(str(path), ["title", "link_count"]))[_SPECIAL:]
    return {row["title"]: row["link_count"] for row in rows}


def our_links(workdir: Path) -> Iterator[tuple[str, str]]:
    """(page, article) of every link of ours that ends at an article."""
    ends = {
        row["title"]: row["canonical"]
        for row in _rows(workdir, "ResolveRedirects", "titles")
        if row["status"] in ("page", "redirect")
    }
    for row in _rows(workdir, "ExtractPages", "paragraphs", ["title", "links"]):
        targets = (link["target"] for link in row["links"])
        yield from ((row["title"], ends[target]) for target in targets if target in ends)


def _rows(workdir: Path, stage: str, name: str, columns: list[str] | None = None) -> Iterator[Record]:
    for path in sorted((stage_folder(workdir, stage) / name).glob("*.parquet")):
        yield from storage.read_rows(str(path), columns)


def overlap(ours: Mapping[str, int], theirs: Mapping[str, int]) -> list[Record]:
    """Share of the k most linked entities that both have."""
    rows = []
    for k in (*TOP, max(len(ours), len(theirs))):
        mine, other = set(list(ours)[:k]), set(list(theirs)[:k])
        if min(len(mine), len(other)) < k and k in TOP:
            continue
        row = {"top": k, "ours": len(mine), "LUKE's": len(other), "in both": len(mine & other)}
        row["share"] = len(mine & other) / max(len(mine), len(other), 1)
        same = sum(ours[title] == theirs[title] for title in mine & other)
        rows.append(row | {"the same count": same})
    return rows


def tied(counts: Mapping[str, int]) -> int:
    """Entities whose count another one has: their order, and so their id, was left to chance."""
    frequency = Counter(counts.values())
    return sum(frequency[count] > 1 for count in counts.values())


def link_kinds(database: Database) -> list[Record]:
    """LUKE's links by what becomes of them."""
    kinds = Counter(_kind(page, target, database) for page, target in database.links())
    return [{"LUKE's links": kind, "links": count} for kind, count in kinds.most_common()]


def _kind(page: str, target: str, database: Database) -> str:
    base, mark, _ = target.partition("#")
    first = database.one_hop(target)
    if first in database.titles:
        return "end at a page" if first == target else "end at a page through one redirect"
    if mark:
        ends = not base or database.ten_hops(_upper(base.strip())) in database.titles
        kind = "of the same page" if not base or base == page else "of another page"
        return f"with a fragment, {kind}" if ends else "with a fragment, the page missing"
    if target.startswith("Category:"):
        return "to categories"
    if database.ten_hops(target) in database.titles:
        return "end at a page through two or more redirects"
    foreign = "with a colon (other languages, other namespaces), no such page"
    return foreign if ":" in target else "page missing"


def _upper(title: str) -> str:
    return title[:1].upper() + title[1:]


Resolve = Callable[[str], str]


def steps(database: Database, workdir: Path, dump: Path, site: SiteInfo) -> list[Record]:
    """From LUKE's links that end at entities to ours, cause by cause, each with all before it."""

    def without_fragment(target: str) -> str:
        return _upper(target.partition("#")[0].rstrip())

    def normal(target: str) -> str:
        return normalize_title(target, site)[0]

    changes: list[tuple[str, Resolve]] = [
        ("LUKE's builder", database.one_hop),
        ("the #fragment is removed", lambda t: database.one_hop(without_fragment(t))),
        ("titles are normalised as MediaWiki does", lambda t: database.one_hop(normal(t))),
        ("redirects are followed to their end", lambda t: database.ten_hops(normal(t))),
    ]
    links = list(database.links())
    rows: list[Record] = []
    before = 0
    for cause, resolve in changes:
        ends = Counter((page, title) for page, t in links if (title := resolve(t)) in database.titles)
        rows.append({"cause": cause, "links": ends.total() - before})
        before = ends.total()
    mine = Counter(our_links(workdir))
    for cause, sign, units in (("only LUKE's", -1, ends - mine), ("only ours", 1, mine - ends)):
        parts = by_part(units, dump, site, lambda t: database.ten_hops(normal(t)))
        rows += [{"cause": f"{cause}: {part}", "links": sign * count} for part, count in parts.most_common()]
    rows.append({"cause": "ours", "links": mine.total()})
    assert sum(row["links"] for row in rows[:-1]) == mine.total()
    return rows


def by_part(units: Counter[tuple[str, str]], dump: Path, site: SiteInfo, resolve: Resolve) -> Counter[str]:
    """The parts of their pages that links (page, article) stand in."""
    wanted: dict[str, dict[str, int]] = {}
    for (title, article), count in units.items():
        wanted.setdefault(title, {})[article] = count
    parts: Counter[str] = Counter()
    for page in articles(dump, site):
        if left := wanted.pop(page.title, None):
            for part, count in parts_of(page.text, left, resolve):
                parts[part] += count
    parts["page that only one has"] += sum(sum(left.values()) for left in wanted.values())
    return +parts


def their_sequences(
    database: Database, tokenizer: WordTokenizer, limits: Limits, language: str, *, unknown: bool
) -> Record:
    """Sequences of LUKE's page processing over the database's text, with LUKE's vocabulary.

    The page processing is the pipeline's profile `paper` (`unknown`: with links to no entity as [UNK]), which the
    measurement of its speed shows to give the same sequences.
    """
    counts = Counter(database.one_hop(target) for _, target in database.links())
    ids = {title: n + _SPECIAL for n, title in enumerate(vocabulary(counts, database.titles))}
    settings: Record = {"language": language, "tokenizer": tokenizer, "limits": limits}
    settings["profile"] = "fixed" if unknown else "paper"
    facts: Counter[str] = Counter()
    for title, paragraphs in database.pages():
        if title.partition(":")[0].lower() in ("image", "file", "category") and ":" in title:
            continue
        # The splitter fails on wide blanks, of which the pipeline's own text has none; the offsets stay.
        texts = ((re.sub(r"\s", " ", text), links) for text, links in paragraphs)
        page = [_paragraph(text, links, database) for text, links in texts]
        _, drops, found = build_page(page, entity_id=lambda t: ids.get(database.one_hop(t)), **settings)
        facts.update(found)
        facts.update({f"dropped {reason}": count for reason, count in drops.items()})
        facts.update({"paragraphs": len(page)})
    return dict(facts)


def _paragraph(text: str, links: Iterable[tuple[str, int, int]], database: Database) -> Paragraph:
    """A paragraph as the page processing sees it: links to categories that show their prefix are blanks."""
    kept = []
    for target, start, end in links:
        is_category = database.one_hop(target).startswith("Category:")
        if is_category and text[start:end].lower().startswith("category:"):
            text = text[:start] + " " * (end - start) + text[end:]
        elif start < end:
            kept.append(Link(start, end, target))
    return Paragraph("", text, tuple(kept))


def source_facts(dump: Path, workdir: Path, site: SiteInfo) -> dict[str, int]:
    """What of the sources the two builders read differently: counts over articles and over our paragraphs."""
    texts = (row["text"] for row in _rows(workdir, "ExtractPages", "paragraphs", ["text"]))
    beyond = sum(not text.isascii() and max(text) > "\uffff" for text in texts)
    trails = sum(len(_TRAIL.findall(page.text)) for page in articles(dump, site))
    return {"link_trails": trails, "paragraphs_beyond_bmp": beyond}


def category_links(database: Database) -> dict[str, int]:
    """Links to categories by whether their text shows the prefix, by which LUKE's page processing knows them."""
    counts = Counter({"prefix shown, so blanked": 0, "prefix hidden, so kept as text": 0})
    for _, paragraphs in database.pages():
        for text, links in paragraphs:
            for target, start, end in links:
                if database.one_hop(target).startswith("Category:"):
                    shown = text[start:end].lower().startswith("category:")
                    counts["prefix shown, so blanked" if shown else "prefix hidden, so kept as text"] += 1
    return dict(counts)


def compare(
    database: Database, workdir: Path, dump: Path, tokenizer: WordTokenizer, limits: Limits
) -> Record:
    """All of it for one dump whose stages have run in the work directory."""
    site = read_site_info(str(dump))
    ours = our_vocabulary(workdir)
    one_hop, ten_hops = (
        vocabulary(Counter(hops(target) for _, target in database.links()), database.titles)
        for hops in (database.one_hop, database.ten_hops)
    )
    given = (database, tokenizer, limits, site.language)
    return {
        "pages": len(database.titles),
        "redirects": len(database.redirects),
        "entities": {"ours": len(ours), "one hop": len(one_hop), "ten hops": len(ten_hops)},
        "tied": {"ours": tied(ours), "one hop": tied(one_hop)},
        "overlap": overlap(ours, one_hop),
        "kinds": link_kinds(database),
        "categories": category_links(database),
        "source": source_facts(dump, workdir, site),
        "steps": steps(database, workdir, dump, site),
        "sequences": {
            "dropped": their_sequences(*given, unknown=False),
            "[UNK]": their_sequences(*given, unknown=True),
        },
    }
