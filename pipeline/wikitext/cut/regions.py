"""The stretches of a page that the cut replaces, and what they drop."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

_HOLDS_LINKS = ("templates", "tables", "references", "galleries", "files", "hidden")


class Region(NamedTuple):
    """A stretch of the source that is replaced; ``kind`` is "" where no text is lost."""

    start: int
    end: int
    replacement: str
    kind: str


def outermost(regions: list[Region]) -> list[Region]:
    """The regions in order, without those that lie inside another."""
    kept: list[Region] = []
    reached = 0
    for region in sorted(regions, key=lambda region: (region.start, -region.end)):
        if region.start >= reached:
            kept.append(region)
            reached = region.end
    return kept


def pieces(text: str, regions: list[Region], position: int, last: int) -> Iterator[str]:
    for start, end, replacement, _ in regions:
        yield text[position:start]
        yield replacement
        position = end
    yield text[position:last]


def count_drops(drops: Counter[str], text: str, region: Region) -> None:
    """Count what one region drops: itself, and the links inside."""
    kind = region.kind
    if ":" in kind:
        drops[kind] += 1
        return
    drops["links:file" if kind == "files" else f"{kind}:cut"] += 1
    if kind in _HOLDS_LINKS:
        links = text.count("[[", region.start, region.end) - (kind == "files")
        if links:
            drops[f"links:in_{kind}"] += links
