"""The dumps that are measured with: real ones, and larger ones that repeat the pages of a small one.

A copy has other titles and ids. It is one bzip2 stream, or Wikimedia's multistream: the head, then 100 pages a stream,
then the tail. Equal sources give equal bytes; what is held in memory is the source, never the copy.
"""

import bz2
import re
from collections.abc import Iterator, Set
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pipeline.storage.files import file_sha256

SMALL, LARGE, FEW, EMPTY = "enwiki-2016-206", "enwiki-2006-12k", "enwiki-2006-500", "almost-empty"
LAYOUTS = ("one stream", "multistream")
PAGES_A_STREAM = 100  # as in Wikimedia's multistream dumps
_PAGE = re.compile(rb"[ \t]*<page>.*?</page>\n?", re.DOTALL)
# The first id of a page is the page's own.
_PLACES = re.compile(rb"(.*?<title>)(.*?)(</title>.*?<id>)(\d+)(</id>.*)", re.DOTALL)
_REDIRECT = re.compile(rb'<redirect title="([^"]*)"')
# A link's target as it stands in XML; of "[[AT&amp;T#History|AT&amp;T]]" it is "AT&amp;T".
_TARGET = re.compile(rb"\[\[([^\[\]|#<>{}\n]*[^\[\]|#<>{}\n\s])(?<!&amp;)(?=\s*[|#\]])")
_TEXT = re.compile(rb"(<text[^>]*>).*(</text>)", re.DOTALL)


@dataclass(frozen=True)
class Dump:
    """A dump file: its name within a run, uncompressed XML, pages of every kind, copies of each, and its layout."""

    name: str
    path: Path
    xml_bytes: int
    pages: int
    copies: int = 1
    layout: str = LAYOUTS[0]

    def describe(self) -> dict[str, Any]:
        """Return the dump without its place on this machine."""
        facts = {key: value for key, value in asdict(self).items() if key != "path"}
        return {**facts, "file_bytes": self.path.stat().st_size, "sha256": file_sha256(str(self.path))}


def real_dump(path: Path) -> Dump:
    """Return a dump as it lies there; it is read once, whole, to count."""
    if not path.is_file():
        raise SystemExit(f"--data: no {path.name} in {path.parent}; its README.md describes it")
    xml = bz2.decompress(path.read_bytes())
    return Dump(path.name.removesuffix(".xml.bz2"), path, len(xml), xml.count(b"<page>"))


def almost_empty(source: Path, folder: Path) -> Dump:
    """Make the head of a dump with one real redirect and one line of article: all that it costs is start-up."""
    head, pages, tail = _split(source)
    redirect = next(page for page in pages if b"<redirect " in page)
    article = next(page for page in pages if b"<redirect " not in page)
    xml = head + redirect + _TEXT.sub(rb"\1A page with a [[link]].\2", article) + tail
    path = folder / f"{EMPTY}.xml.bz2"
    path.write_bytes(bz2.compress(xml))
    return Dump(EMPTY, path, len(xml), 2)


def repeated(source: Path, folder: Path, copies: int, *, linked: bool = False, multistream: bool = False) -> Dump:
    """Make a dump with every page of the source `copies` times.

    Copy n of a page has the title `<title> (copy n)`. With `linked` its links' targets have that ending, too, and its
    redirect's: titles, redirects, entities, missing pages, and the names that unpiped links show grow as the dump
    does. Targets with a prefix (files, categories, other languages) stay, unless the source has a page of that title.
    """
    kind = f"{'-linked' * linked}-{copies}x{'-multistream' * multistream}"
    name = source.name.removesuffix(".xml.bz2") + kind
    path, compressor, xml_bytes = folder / f"{name}.xml.bz2", bz2.BZ2Compressor(), 0
    head, pages, tail = _split(source)
    repeated_pages = _copies(pages, copies, linked)
    batches = iter(lambda: b"".join(islice(repeated_pages, PAGES_A_STREAM)), b"")
    with open(path, "wb") as stream:
        for part in chain([head], batches, [tail]):
            xml_bytes += len(part)
            stream.write(bz2.compress(part) if multistream else compressor.compress(part))
        if not multistream:
            stream.write(compressor.flush())
    return Dump(name, path, xml_bytes, copies * len(pages), copies, LAYOUTS[multistream])


def _copies(pages: list[bytes], copies: int, linked: bool) -> Iterator[bytes]:
    """Yield every page of every copy; ids of a copy grow by a power of ten above all of them."""
    places = [match for page in pages if (match := _PLACES.fullmatch(page))]
    if len(places) != len(pages):
        raise ValueError("a page without <title> before <id>")
    titles = {place[2] for place in places}
    step = 10 ** max(len(place[4]) for place in places)
    for copy in range(1, copies + 1):
        ending = b" (copy %d)" % copy
        for place in places:
            number = copy * step + int(place[4])
            page = b"%b%b%b%b%d%b" % (place[1], place[2], ending, place[3], number, place[5])
            yield link_within(page, ending, titles) if linked else page


def link_within(page: bytes, ending: bytes, titles: Set[bytes]) -> bytes:
    """Return a page's XML with the ending behind the targets of its links and of its redirect."""

    def changed(match: re.Match[bytes]) -> bytes:
        stays = b":" in match[1] and match[1].replace(b"_", b" ").strip() not in titles
        at = match.end(1) - match.start()
        return match[0] if stays else match[0][:at] + ending + match[0][at:]

    return _TARGET.sub(changed, _REDIRECT.sub(changed, page, count=1))


def _split(source: Path) -> tuple[bytes, list[bytes], bytes]:
    """Return the XML before the first page, each page, and the XML behind the last."""
    xml = bz2.decompress(source.read_bytes())
    pages = list(_PAGE.finditer(xml))
    if not pages:
        raise ValueError(f"{source}: no <page> in it; wanted a MediaWiki export")
    return xml[: pages[0].start()], [page[0] for page in pages], xml[pages[-1].end() :]
