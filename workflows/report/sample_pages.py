"""Pages for the report's reader: some by chance, the densest ones, with every annotation and where it ends.

The sample is a function of the pages alone: those with the smallest hashes of their ids, and those with most links.
"""

import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import storage

BY_CHANCE = 20
DENSEST = 4
PAGE_CHARACTERS = 8000
_LINK_STARTS = "links.list.element.start"  # of a link's parts the smallest to read


def sample_pages(extracted: str, titles: str, vocab: str) -> dict[str, Any]:
    """Pages with their annotations.

    Args:
        extracted, titles, vocab: folders of the stages ExtractPages, ResolveRedirects and BuildEntityVocab.

    Returns:
        `of`: all pages with text; `characters`: what is shown of one at most, but for its first paragraph's end;
        `targets`: [title after redirects, status, whether it is an entity of the vocabulary] of all that is linked;
        `pages`: each with `title`, `by` (chance, links), `links` and `paragraphs` (those of the page), `shown`,
        `cut` (characters that the first paragraph had more, or 0), and its `text`: [section, [text, or [anchor,
        number of its target], ...]] of each paragraph that is shown.
    """
    manifest = storage.read_manifest(extracted)
    paths = manifest.paths(extracted, "pages/")
    chance, total = pages_by_chance(paths)
    densest = pages_by_links(manifest.paths(extracted, "paragraphs/"))
    chosen = {row["page_id"]: row for row in _rows_of(paths, densest)} | {
        row["page_id"]: row for row in chance
    }
    paragraphs = _paragraphs(manifest.paths(extracted, "paragraphs/"), chosen)
    order = [row["page_id"] for row in chance]
    order += [number for number in densest if number not in order]
    pages = [_page(chosen[number]["title"], paragraphs[number]) for number in order]
    for number, page in zip(order, pages, strict=True):
        page["by"] = "links" if number in densest else "chance"
    linked = sorted({part[1] for page in pages for _, text in page["text"] for part in text if part[1:]})
    return {"of": total, "characters": PAGE_CHARACTERS, **_with_targets(pages, linked, titles, vocab)}


def pages_by_chance(paths: Sequence[str]) -> tuple[list[dict[str, Any]], int]:
    """The pages with text whose ids have the smallest hashes, in the order of these; and how many have text."""
    total = 0

    def candidates() -> Iterator[tuple[bytes, int, str]]:
        nonlocal total
        for path in paths:
            for row in storage.read_rows(path, ["page_id", "title", "paragraph_count"]):
                if row["paragraph_count"]:
                    total += 1
                    key = hashlib.sha256(str(row["page_id"]).encode()).digest()
                    yield key, row["page_id"], row["title"]

    best = heapq.nsmallest(BY_CHANCE, candidates())
    return [{"page_id": number, "title": title} for _, number, title in best], total


def pages_by_links(paths: Sequence[str]) -> list[int]:
    """Ids of the pages with most links, most first, ties by id; a page's paragraphs are together in one file."""
    best: list[tuple[int, int]] = []
    for path in paths:
        counts: dict[int, int] = {}
        for batch in storage.read_batches(path, ["page_id", _LINK_STARTS]):
            links = pc.list_value_length(batch.column("links"))
            table = pa.table({"page_id": batch.column("page_id"), "links": links})
            for row in table.group_by("page_id").aggregate([("links", "sum")]).to_pylist():
                counts[row["page_id"]] = counts.get(row["page_id"], 0) + row["links_sum"]
        best = heapq.nlargest(
            DENSEST, [*best, *((count, -number) for number, count in counts.items() if count)]
        )
    return [-number for _, number in best]


def _rows_of(paths: Iterable[str], page_ids: Iterable[int]) -> Iterator[dict[str, Any]]:
    wanted = pa.array(sorted(page_ids), pa.int64())
    for path in paths:
        for batch in storage.read_batches(path, ["page_id", "title"]):
            yield from batch.filter(pc.is_in(batch.column("page_id"), value_set=wanted)).to_pylist()


def _paragraphs(paths: Iterable[str], page_ids: Iterable[int]) -> dict[int, list[dict[str, Any]]]:
    """The paragraphs of pages, by id."""
    wanted = pa.array(sorted(page_ids), pa.int64())
    pages: dict[int, list[dict[str, Any]]] = {number: [] for number in wanted.to_pylist()}
    for path in paths:
        # Without the texts it is soon known which files hold none of them.
        ids = storage.read_batches(path, ["page_id"])
        if any(pc.any(pc.is_in(batch.column(0), value_set=wanted)).as_py() for batch in ids):
            for batch in storage.read_batches(path, rows=1024):
                for row in batch.filter(pc.is_in(batch.column("page_id"), value_set=wanted)).to_pylist():
                    pages[row["page_id"]].append(row)
    return pages


def _page(title: str, paragraphs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The part of a page that is shown: paragraphs up to so many characters, of the first one at least these."""
    text, characters, cut = [], 0, 0
    for number, paragraph in enumerate(paragraphs):
        characters += len(paragraph["text"])
        if characters > PAGE_CHARACTERS and number:
            break
        cut = max(cut, len(paragraph["text"]) - PAGE_CHARACTERS)
        text.append([paragraph["section"], pieces(paragraph["text"][:PAGE_CHARACTERS], paragraph["links"])])
    return {
        "title": title,
        "links": sum(len(paragraph["links"]) for paragraph in paragraphs),
        "paragraphs": len(paragraphs),
        "shown": len(text),
        "cut": cut,
        "text": text,
    }


def pieces(text: str, links: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """A text cut at its links: [text] or [anchor, target]. Links that go beyond its end are plain text."""
    parts, at = [], 0
    for link in links:
        if link["end"] <= len(text):
            if link["start"] > at:
                parts.append([text[at : link["start"]]])
            parts.append([text[link["start"] : link["end"]], link["target"]])
            at = link["end"]
    return [*parts, [text[at:]]] if at < len(text) else parts


def _with_targets(
    pages: Sequence[dict[str, Any]], linked: Sequence[str], titles: str, vocab: str
) -> dict[str, Any]:
    """The pages with numbers for the titles that they link to, and what is known of these."""
    from pipeline.lookup.entities import ALIASES, Aliases

    known = dict.fromkeys(linked, ("", "missing"))
    wanted = pa.array(linked, pa.string())
    for path in storage.read_manifest(titles).paths(titles, "titles/"):
        for batch in storage.read_batches(path, ["title", "canonical", "status"]):
            for row in batch.filter(pc.is_in(batch.column("title"), value_set=wanted)).to_pylist():
                known[row["title"]] = (row["canonical"] or "", row["status"])
    aliases = Aliases(storage.join(vocab, ALIASES))
    rows = [
        [canonical or title, status, aliases.get(title) is not None]
        for title, (canonical, status) in known.items()
    ]
    numbers = {title: number for number, title in enumerate(linked)}
    for page in pages:
        for _, text in page["text"]:
            text[:] = [[part[0], numbers[part[1]]] if part[1:] else part[0] for part in text]
    return {"targets": rows, "pages": list(pages)}
