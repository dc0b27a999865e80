"""The oracle of the corpus tables: titles, entity vocabulary and mention table in plain Python.

Dictionaries and loops over the extracted pages, written from what the documents say. It shares no code with
``pipeline``, uses no engine and holds everything in memory. Rows are dictionaries with the columns of the tables.
``oracle_sequences`` goes on from here.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

Row = dict[str, Any]

SPECIAL_ENTITIES = ("[PAD]", "[UNK]", "[MASK]")
MAX_PAPER_TOKENS = 20


@dataclass(frozen=True)
class Pages:
    """The tables of ExtractPages; the paragraphs by block, in the order of the files."""

    pages: list[Row]
    redirects: list[Row]
    blocks: list[list[Row]]
    profile: str = "fixed"

    @classmethod
    def read(cls, folder: str | Path, profile: str) -> "Pages":
        tables = {
            name: [pq.read_table(path).to_pylist() for path in sorted(Path(folder, name).glob("*.parquet"))]
            for name in ("pages", "redirects", "paragraphs")
        }
        pages, redirects = list(chain(*tables["pages"])), list(chain(*tables["redirects"]))
        return cls(pages, redirects, tables["paragraphs"], profile)

    @property
    def paragraphs(self) -> list[Row]:
        return list(chain(*self.blocks))


# Titles


def resolve_titles(pages: Pages, profile: str) -> dict[str, Row]:
    """Every title of a page or redirect, followed one hop after another; profile "paper" goes one hop only.

    A page stands before a redirect of its title, and of two redirects of one title the lesser target counts. A
    loop has no end, and no number of hops.
    """
    existing = {page["title"] for page in pages.pages}
    targets: dict[str, str] = {}
    for redirect in pages.redirects:
        source, target = redirect["source"], redirect["target"]
        if source not in existing:
            targets[source] = min(target, targets.get(source, target))
    rows = {title: _title_row(title, title, 0, "page") for title in existing}
    for title in targets:
        at, hops, seen = targets[title], 1, {title}
        while profile != "paper" and at in targets and at not in seen:
            seen.add(at)
            at, hops = targets[at], hops + 1
        if at in existing:
            rows[title] = _title_row(title, at, hops, "redirect")
        elif profile != "paper" and at in seen:
            rows[title] = _title_row(title, None, None, "loop")
        else:
            rows[title] = _title_row(title, at, hops, "missing")
    return rows


def _title_row(title: str, canonical: str | None, hops: int | None, status: str) -> Row:
    return {"title": title, "canonical": canonical, "hops": hops, "status": status}


def follow(target: str, titles: Mapping[str, Row]) -> tuple[str, str]:
    """(title, status) where a link ends; in a loop, and where nothing is known of the target, its own title."""
    row = titles.get(target)
    if row is None:
        return target, "missing"
    return row["canonical"] or target, row["status"]


def _links(
    pages: Pages, titles: Mapping[str, Row], rows: Iterable[Row] | None = None
) -> Iterator[tuple[str, str, str]]:
    """(anchor, title, status) of every link in some paragraphs or all; profile "paper" alone keeps what leads back."""
    for row in pages.paragraphs if rows is None else rows:
        for link in row["links"]:
            title, status = follow(link["target"], titles)
            if pages.profile == "paper" or title != row.get("title"):
                yield row["text"][link["start"] : link["end"]], title, status


def links(pages: Pages, titles: Mapping[str, Row]) -> list[Row]:
    """Every link: its page, its anchor, and where it ends."""
    return [
        {"page_id": paragraph["page_id"], "mention": anchor, "title": title, "status": status}
        for paragraph in pages.paragraphs
        for anchor, title, status in _links(pages, titles, [paragraph])
    ]


def coverage(pages: Pages, titles: Mapping[str, Row]) -> dict[str, int]:
    """Number of links by the status of their target."""
    return dict(Counter(status for _, _, status in _links(pages, titles)))


# Entity vocabulary


def build_vocab(
    pages: Pages, titles: Mapping[str, Row], *, size: int, missing_pages: str = "auto", elsewhere: Collection[str] = ()
) -> list[Row]:
    """The special entities, then existing articles by falling link count, ties by title.

    Where ``missing_pages`` is "in", linked titles without a page count, too, but for those with a prefix of
    ``elsewhere``.
    """
    page_ids: dict[str, int] = {}
    for page in pages.pages:
        page_ids[page["title"]] = min(page["page_id"], page_ids.get(page["title"], page["page_id"]))
    ends = [(title, status) for _, title, status in _links(pages, titles) if status != "loop"]
    if missing_pages == "in":
        absent = {title for title, status in ends if status == "missing"}
        page_ids.update(
            (title, -1) for title in absent if ":" not in title or title.split(":")[0].lower() not in elsewhere
        )
    counts = Counter(title for title, _ in ends if title in page_ids)
    chosen = sorted(counts, key=lambda title: (-counts[title], title))[: size - len(SPECIAL_ENTITIES)]
    rows = [(title, 0, -1) for title in SPECIAL_ENTITIES]
    rows += [(title, counts[title], page_ids[title]) for title in chosen]
    names = ("entity_id", "title", "link_count", "page_id")
    return [dict(zip(names, (number, *row), strict=True)) for number, row in enumerate(rows)]


def entity_ids(vocab: Iterable[Row]) -> dict[str, int]:
    """Title -> id of the entities that are articles."""
    return {row["title"]: row["entity_id"] for row in vocab if row["entity_id"] >= len(SPECIAL_ENTITIES)}


def aliases(titles: Mapping[str, Row], vocab: Iterable[Row]) -> dict[str, int]:
    """Every title that is or ends at an entity, to the entity's id."""
    ids = entity_ids(vocab)
    ends = {title: follow(title, titles)[0] for title in {*titles, *ids}}
    return {title: ids[end] for title, end in ends.items() if end in ids}


# Mention table

_OWN_WORDS = (
    *("CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "IDEOGRAPHIC", "HANGZHOU NUMERAL"),
    *("HIRAGANA", "HENTAIGANA", "KATAKANA", "HALFWIDTH KATAKANA", "VERTICAL KANA", "THAI", "LAO", "KHMER"),
    *("MYANMAR", "JAVANESE", "BALINESE", "TAI THAM", "TAI LE", "NEW TAI LUE", "YI ", "BOPOMOFO"),
)


@cache
def _kind(character: str) -> str:
    """The kind of a character in words: a letter, a word of its own, a mark, or (empty) no part of any."""
    category = unicodedata.category(character)[0]
    if category in "LN":
        return "own" if unicodedata.name(character, "").startswith(_OWN_WORDS) else "letter"
    return "mark" if category == "M" else ""


def word_boundaries(text: str) -> list[int]:
    """The positions where one word ends or another begins, or that lie between no words; both edges, too."""
    boundaries = []
    word = ""  # the kind of the word that ends here
    for position, character in enumerate(text):
        kind = _kind(character)
        if not (word and kind == "mark") and not (word == kind == "letter"):
            boundaries.append(position)
            word = "letter" if kind == "mark" else kind
    return [*boundaries, len(text)]


def fold(text: str) -> str:
    """Lower-cased, without accents."""
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")


def mention_of(anchor: str, profile: str) -> str:
    """The mention that an anchor counts for; empty for none."""
    if profile == "paper":
        folded = fold(anchor).strip()
        return folded if len(folded.split()) <= MAX_PAPER_TOKENS else ""
    return anchor if anchor.strip() and len(anchor) <= 100 else ""


class NameFinder:
    """Finds names in texts. Only lengths that names of the same beginning have are tried at a position."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)
        self.lengths: dict[str, set[int]] = defaultdict(set)
        for name in self.names:
            self.lengths[name[:3]].add(len(name))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The places of names between word boundaries, overlapping ones too; none begins with white space."""
        boundaries = word_boundaries(text)
        on_boundary = set(boundaries)
        for start in boundaries:
            if text[start : start + 1].isspace():
                continue
            for length in {n for size in (1, 2, 3) for n in self.lengths.get(text[start : start + size], ())}:
                if start + length in on_boundary and text[start : start + length] in self.names:
                    yield start, start + length


def _occurrences(pages: Pages, names: set[str]) -> Counter[str]:
    """Size of the union of the spans where a name is linked and those where it stands between boundaries."""
    finder = NameFinder(names)
    counts: Counter[str] = Counter()
    for row in pages.paragraphs:
        linked = {(link["start"], link["end"]) for link in row["links"]}
        spans = linked | set(finder.spans(row["text"]))
        counts.update(row["text"][start:end] for start, end in spans)
    return counts


def _pages_with(pages: Pages, names: set[str]) -> Counter[str]:
    """Number of pages that hold a name, folded, between boundaries or as a link."""
    finder = NameFinder(names)
    found = set()
    for row in pages.paragraphs:
        text = fold(row["text"])
        found |= {(row["page_id"], text[start:end]) for start, end in finder.spans(text)}
        anchors = (row["text"][link["start"] : link["end"]] for link in row["links"])
        found |= {(row["page_id"], fold(anchor).strip()) for anchor in anchors}
    return Counter(name for _, name in found)


def mention_table(pages: Pages, titles: Mapping[str, Row], vocab: Iterable[Row], profile: str) -> list[Row]:
    """The rows by mention, then title."""
    links: dict[str, Counter[str]] = defaultdict(Counter)
    for anchor, title, _ in _links(pages, titles):
        if mention := mention_of(anchor, profile):
            links[mention][title] += 1
    names = set(links)
    occurrences = (_pages_with if profile == "paper" else _occurrences)(pages, names)
    ids = entity_ids(vocab)
    return [
        {
            "mention": mention, "entity_id": ids.get(title), "title": title, "link_count": count,
            "total_links": links[mention].total(), "occurrences": occurrences[mention],
            "link_probability": min(1.0, links[mention].total() / occurrences[mention]),
            "commonness": count / links[mention].total(),
        }
        for mention in sorted(names)
        for title, count in sorted(links[mention].items())
    ]  # fmt: skip


def page_names(pages: Pages, titles: Mapping[str, Row], profile: str) -> list[Row]:
    """The names of each page that link to one title only, and how many link to several, by page."""
    targets: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in pages.paragraphs:
        for anchor, title, _ in _links(pages, titles, [row]):
            if mention := mention_of(anchor, profile):
                targets[row["page_id"]][mention].add(title)
    rows = []
    for page in sorted(pages.pages, key=lambda page: page["title"]):
        found = sorted(targets[page["page_id"]].items())
        names = [{"mention": name, "title": min(ends)} for name, ends in found if len(ends) == 1]
        rows.append({"page": page["title"], "names": names, "ambiguous": len(found) - len(names)})
    return rows


def targets(pages: Pages, vocab: Iterable[Row], mentions: Iterable[Row]) -> list[Row]:
    """Each page, entity, and title that a mention links to, by title."""
    page_ids: dict[str, int] = {}
    for page in pages.pages:
        page_ids[page["title"]] = min(page["page_id"], page_ids.get(page["title"], page["page_id"]))
    ids = entity_ids(vocab)
    found = {*page_ids, *ids, *(row["title"] for row in mentions)}
    return [
        {"title": title, "page_id": page_ids.get(title, -1), "entity_id": ids.get(title), "qid": None}
        for title in sorted(found)
    ]


def letters_of(text: str) -> str:
    """A text without case, accents, and all that is no letter, digit or mark."""
    decomposed = unicodedata.normalize("NFD", text.casefold().lower())
    kinds = ((each, unicodedata.category(each)) for each in decomposed)
    return "".join(each for each, kind in kinds if kind != "Mn" and kind[0] in "LMN")


def longest_spans(text: str, names: Collection[str]) -> list[tuple[int, int]]:
    """Names between word boundaries from left to right, at each place the longest; none begins with white space."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted(NameFinder(names).spans(text), key=lambda span: (span[0], -span[1])):
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
    return spans
