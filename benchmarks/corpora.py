"""Larger dumps for benchmarks: the real pages of a small dump, repeated under new titles and ids.

Each is written twice with the same XML: as one bzip2 stream, and as Wikimedia's multistream (the head, then 100 pages
a stream, then the tail, with the index file beside it). Equal sources give equal bytes; what is held in memory is
the source, never the copy.
"""

import bz2
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Set
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PAGES_A_STREAM = 100  # as in Wikimedia's multistream dumps
VERSION = 1  # of the layout of made dumps: files that another version made are made anew
_CHUNK = 1 << 20
_PAGE = re.compile(rb"[ \t]*<page>.*?</page>\n?", re.DOTALL)
_TITLE = re.compile(rb"<title>(.*?)</title>", re.DOTALL)
_ID = re.compile(rb"<id>(\d+)</id>")  # the first of a page is the page's own
_REDIRECT = re.compile(rb'<redirect title="([^"]*)"')
# A link's target as it stands in XML; of "[[AT&amp;T#History|AT&amp;T]]" it is "AT&amp;T".
_TARGET = re.compile(rb"\[\[([^\[\]|#<>{}\n]*[^\[\]|#<>{}\n\s])(?<!&amp;)(?=\s*[|#\]])")
_ARTICLE = b"""  <page>
    <title>Almost empty</title>
    <ns>0</ns>
    <id>999999999</id>
    <revision>
      <id>1</id>
      <timestamp>2016-01-01T00:00:00Z</timestamp>
      <model>wikitext</model>
      <format>text/x-wiki</format>
      <text xml:space="preserve">A page with a [[link]].</text>
    </revision>
  </page>
"""


@dataclass(frozen=True)
class Dump:
    """A dump file to measure with.

    Attributes:
        name: unique within a run.
        path: the file.
        xml_bytes: bytes of uncompressed XML.
        pages: pages of every kind.
        copies: how often each page of the source stands in it.
        layout: "one stream" or "multistream".
    """

    name: str
    path: Path
    xml_bytes: int
    pages: int
    copies: int = 1
    layout: str = "one stream"

    @property
    def megabytes(self) -> float:
        """10^6 bytes of uncompressed XML."""
        return self.xml_bytes / 1e6

    def describe(self) -> dict[str, Any]:
        """The dump without its place on this machine."""
        facts = {key: value for key, value in asdict(self).items() if key != "path"}
        return {**facts, "file_bytes": self.path.stat().st_size, "sha256": _sha256(self.path)}


def real_dump(path: Path) -> Dump:
    """A dump as it lies there; it is read once, to count. A missing file raises FileNotFoundError."""
    xml_bytes, pages, rest = 0, 0, b""
    with bz2.open(path) as stream:
        while chunk := stream.read(_CHUNK):
            xml_bytes += len(chunk)
            pages += (rest + chunk).count(b"<page>")
            rest = chunk[-len(b"<page>") + 1 :]
    return Dump(path.name.removesuffix(".xml.bz2"), path, xml_bytes, pages)


def almost_empty(source: Path, folder: Path) -> Dump:
    """The head of a dump with one real redirect and one line of article: all that it costs is start-up."""
    head, pages, tail = _split(source)
    redirect = next(page for page in pages if b"<redirect " in page)
    xml = head + redirect + _ARTICLE + tail
    path = folder / "almost-empty.xml.bz2"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bz2.compress(xml))
    return Dump("almost-empty", path, len(xml), 2)


def repeated(source: Path, folder: Path, copies: int) -> tuple[Dump, Dump]:
    """A dump with every page of the source `copies` times: as one stream, and as multistream.

    Dumps that an earlier run made in the folder from the same source are taken as they are.
    """
    name = f"{source.name.removesuffix('.xml.bz2')}-{copies}x"
    facts = _made_once(folder, name, source, copies, lambda: _write(source, folder, name, copies))
    size, pages = facts["xml_bytes"], facts["pages"]
    one, many = (folder / f"{name}{ending}.xml.bz2" for ending in ("", "-multistream"))
    return (
        Dump(name, one, size, pages, copies),
        Dump(f"{name}-multistream", many, size, pages, copies, "multistream"),
    )


def linked(source: Path, folder: Path, copies: int) -> Dump:
    """A dump with every page of the source `copies` times, whose links and redirects stay within their copy.

    Copy n of a page has the title `<title> (copy n)`, and so have its links' targets and its redirect's: titles,
    redirects, entities, missing pages, and the names that unpiped links show grow as the dump does. Targets with a
    prefix (files, categories, other languages) stay, unless the source has a page of that title.
    """
    name = f"{source.name.removesuffix('.xml.bz2')}-linked-{copies}x"
    path = folder / f"{name}.xml.bz2"
    facts = _made_once(folder, name, source, copies, lambda: _write_linked(source, path, copies))
    return Dump(name, path, facts["xml_bytes"], facts["pages"], copies)


def _made_once(
    folder: Path, name: str, source: Path, copies: int, make: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The facts about dumps of that name: those on disk, where they were made of the same, or else of new ones."""
    facts_path = folder / f"{name}.json"
    wanted: dict[str, Any] = {"version": VERSION, "source": _sha256(source), "copies": copies}
    facts = _read_facts(facts_path, folder)
    if any(facts.get(key) != value for key, value in wanted.items()):
        folder.mkdir(parents=True, exist_ok=True)
        facts_path.unlink(missing_ok=True)
        facts = {**wanted, **make()}
        facts_path.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    return facts


def _write_linked(source: Path, path: Path, copies: int) -> dict[str, Any]:
    head, pages, tail = _split(source)
    titles = {match[1] for page in pages if (match := _TITLE.search(page))}
    compressor = bz2.BZ2Compressor()
    count, xml_bytes, step = 0, len(head) + len(tail), _step(pages)
    with open(path, "wb") as stream:
        stream.write(compressor.compress(head))
        for number, _, page in _copies(pages, copies):
            page = link_within(page, b" (copy %d)" % (number // step), titles)
            stream.write(compressor.compress(page))
            count, xml_bytes = count + 1, xml_bytes + len(page)
        stream.write(compressor.compress(tail) + compressor.flush())
    return {"xml_bytes": xml_bytes, "pages": count, "files": {path.name: os.path.getsize(path)}}


def link_within(page: bytes, ending: bytes, titles: Set[bytes]) -> bytes:
    """A page's XML with the ending behind the targets of its links and of its redirect."""

    def stays(target: bytes) -> bool:
        return b":" in target and target.replace(b"_", b" ").strip() not in titles

    def link(match: re.Match[bytes]) -> bytes:
        return match[0] if stays(match[1]) else match[0] + ending

    def redirect(match: re.Match[bytes]) -> bytes:
        return match[0] if stays(match[1]) else match[0][:-1] + ending + b'"'

    return _TARGET.sub(link, _REDIRECT.sub(redirect, page, count=1))


def _read_facts(path: Path, folder: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        whole = all((folder / file).stat().st_size == size for file, size in facts["files"].items())
    except (OSError, ValueError, KeyError):
        return {}
    return facts if whole else {}


def _split(source: Path) -> tuple[bytes, list[bytes], bytes]:
    """The XML before the first page, each page, and the XML behind the last."""
    with bz2.open(source) as stream:
        xml = stream.read()
    pages = list(_PAGE.finditer(xml))
    if not pages:
        raise ValueError(f"{source}: no <page> in it; wanted a MediaWiki export")
    return xml[: pages[0].start()], [page[0] for page in pages], xml[pages[-1].end() :]


def _copies(pages: list[bytes], copies: int) -> Iterator[tuple[int, bytes, bytes]]:
    """(id, title as it stands in the XML, page) of every page of every copy."""
    places = []
    for page in pages:
        title, number = _TITLE.search(page), _ID.search(page)
        if not title or not number or title.end() > number.start():
            raise ValueError(f"a page without <title> before <id>: {page[:200]!r}")
        places.append((page, title, number))
    step = _step(pages)
    for copy in range(1, copies + 1):
        for page, title, number in places:
            new_title, new_id = title[1] + b" (copy %d)" % copy, copy * step + int(number[1])
            middle = page[title.end(1) : number.start(1)]
            new_page = page[: title.start(1)] + new_title + middle + b"%d" % new_id + page[number.end(1) :]
            yield new_id, new_title, new_page


def _step(pages: list[bytes]) -> int:
    """What is added to the ids of a copy: a power of ten above all of them."""
    return 10 ** max(len(number[1]) for page in pages if (number := _ID.search(page)))


def _write(source: Path, folder: Path, name: str, copies: int) -> dict[str, Any]:
    """Write both layouts and the index; the dump's facts."""
    head, pages, tail = _split(source)
    paths = [
        folder / f"{name}{ending}.bz2" for ending in (".xml", "-multistream.xml", "-multistream-index.txt")
    ]
    count, xml_bytes = 0, len(head) + len(tail)
    compressor, index = bz2.BZ2Compressor(), bz2.BZ2Compressor()
    with open(paths[0], "wb") as one, open(paths[1], "wb") as many, open(paths[2], "wb") as index_file:
        one.write(compressor.compress(head))
        many.write(bz2.compress(head))
        for batch in _batches(_copies(pages, copies)):
            xml = b"".join(page for _, _, page in batch)
            lines = b"".join(b"%d:%d:%s\n" % (many.tell(), number, title) for number, title, _ in batch)
            one.write(compressor.compress(xml))
            many.write(bz2.compress(xml))
            index_file.write(index.compress(lines))
            count, xml_bytes = count + len(batch), xml_bytes + len(xml)
        one.write(compressor.compress(tail) + compressor.flush())
        many.write(bz2.compress(tail))
        index_file.write(index.flush())
    sizes = {path.name: os.path.getsize(path) for path in paths}
    return {"xml_bytes": xml_bytes, "pages": count, "files": sizes}


def _batches(pages: Iterator[tuple[int, bytes, bytes]]) -> Iterator[list[tuple[int, bytes, bytes]]]:
    batch = []
    for page in pages:
        batch.append(page)
        if len(batch) == PAGES_A_STREAM:
            yield batch
            batch = []
    if batch:
        yield batch


def _sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
