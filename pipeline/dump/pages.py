"""A Wikipedia XML dump as pages: any export schema, block by block.

A block owns the pages whose `<page>` tag begins in its data, and its reader goes on past the end of the block to
finish the last of them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from pipeline import storage
from pipeline.dump.containers import detect_format, read_range
from pipeline.dump.gzip_index import TruncatedDump, gzip_data_size
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import redirect_target
from pipeline.storage.blocks import Block

MAX_PAGE_BYTES = 64 << 20  # of XML, every revision of the page together
_CHUNK = 1 << 20
_HEAD_BYTES = 1 << 20
_TAIL = 64  # bytes kept from one piece to the next: more than any tag looked for
_REMEDY = "Download it again, or pass --set corpus.allow_truncated=true to take the pages that are whole"
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf|\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)  # before the root element
_NAMESPACE = re.compile(rb"<ns>\s*(-?\d{1,9})\s*</ns>")
_PAGE, _PAGE_END, _END = b"<page>", b"</page>", b"</mediawiki>"


@dataclass(frozen=True)
class Page:
    """A page with its newest revision's wikitext. `redirect` is (title, fragment) where the page is one."""

    page_id: int
    title: str
    namespace: int
    redirect: tuple[str, str] | None
    text: str


@dataclass(frozen=True)
class Rejected:
    """A page that could not be read, with the reason."""

    page_id: int
    title: str
    reason: str


class _PageCutter:
    """Cuts the `<page>...</page>` slices that begin in a block out of its data; too large a page comes rejected."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.pieces = read_range(block.path, block.start, block.end, block.index)
        self.buffer = bytearray()
        self.owned = 0  # how many bytes at the buffer's beginning belong to the block
        self.owns_end = False  # whether the newest data belong to the block
        self.ended = False
        self.seen_end = False
        self.in_page = False

    def _more(self) -> bool:
        piece = next(self.pieces, None)
        if piece is None:
            self.ended = True
            return False
        data, owned = piece
        self.owns_end = owned
        self.owned += len(data) if owned else 0
        self.buffer += data
        return True

    def _drop(self, count: int) -> None:
        del self.buffer[:count]
        self.owned = max(0, self.owned - count)

    def _next_page(self) -> bool:
        """Move the buffer to the next `<page>` that begins in the block; False where there is none."""
        while True:
            found = self.buffer.find(_PAGE)
            if found >= 0:
                if found >= self.owned:
                    return False
                self._drop(found)
                return True
            self.seen_end = self.seen_end or _END in self.buffer
            # Data behind the block are read only to finish a tag that may begin in it.
            if self.buffer and self.owned <= len(self.buffer) - len(_PAGE) + 1:
                return False
            self._drop(max(0, len(self.buffer) - _TAIL))
            if not self._more():
                return False

    def _finish_page(self) -> bytes | Rejected:
        searched, oversize = 0, None
        while (end := self.buffer.find(_PAGE_END, searched)) < 0:
            if len(self.buffer) > MAX_PAGE_BYTES:
                oversize = oversize or reject(bytes(self.buffer[:_CHUNK]), "page_too_large")
                self._drop(len(self.buffer) - _TAIL)
            searched = max(0, len(self.buffer) - _TAIL)
            if not self._more():
                raise TruncatedDump(f"{self.block.path}: ends in the middle of a page ({self._title()})")
        page = oversize or bytes(self.buffer[: end + len(_PAGE_END)])
        self._drop(end + len(_PAGE_END))
        return page

    def _title(self) -> str:
        title = re.search(rb"<title>(.*?)</title>", self.buffer[:_CHUNK], re.DOTALL)
        return repr(title[1].decode("utf-8", "replace")) if title else "before its title is complete"

    def __iter__(self) -> Iterator[bytes | Rejected]:
        if self.block.start == 0 and self._more():
            self._drop(len(self.buffer) - len(_PROLOG.sub(b"", self.buffer, 1)))
        while self._next_page():
            self.in_page = True
            page = self._finish_page()
            self.in_page = False
            yield page
        # A block may begin inside the end tag, so the file's tail decides.
        if (
            self.ended
            and self.owns_end
            and not self.seen_end
            and _END not in _tail(self.block.path, self.block.index)
        ):
            raise TruncatedDump(f"{self.block.path}: ends without {_END.decode()}, behind a complete page")


def _newest(page: ElementTree.Element) -> ElementTree.Element | None:
    """The newest revision: by timestamp, then by id."""

    def age(revision: ElementTree.Element) -> tuple[str, int]:
        return revision.findtext("timestamp", ""), int(revision.findtext("id") or 0)

    return max(page.findall("revision"), key=age, default=None)


def parse_page(
    data: bytes, site: SiteInfo, counts: Counter[str], profile: str = "fixed", wanted: int = 0
) -> Page | Rejected | None:
    """Return the page of a `<page>` element; None where it is dropped and counted, `Rejected` where it cannot be read.

    The element is parsed alone, where XML has no entity to expand. Profile `paper` decides the namespace by the
    title's prefix; pages of others than `wanted` are dropped.
    """
    try:
        return _parse(data, site, counts, profile, wanted)
    except (ElementTree.ParseError, ValueError):  # an id or namespace that is no number counts as broken, too
        return reject(data, "broken_xml")


def reject(data: bytes, reason: str) -> Rejected:
    """Reject a page whose XML cannot be used; its id and title as far as they can be read."""
    number = re.search(rb"<id>(\d{1,18})</id>", data)
    title = re.search(rb"<title>([^<]*)</title>", data)
    name = title[1].decode("utf-8", "replace") if title else ""
    return Rejected(int(number[1]) if number else 0, name, reason)


def _parse(
    data: bytes, site: SiteInfo, counts: Counter[str], profile: str, wanted: int
) -> Page | Rejected | None:
    # Of templates there is one page among many others, which need not be parsed.
    if wanted and (ns := _NAMESPACE.search(data)) and int(ns[1]) != wanted:
        counts["pages:other_namespace"] += 1
        return None
    element = ElementTree.fromstring(data)
    title = element.findtext("title") or ""
    page_id = int(element.findtext("id") or 0)
    if not title:
        return Rejected(page_id, "", "no_title")
    namespace = element.findtext("ns")
    by_prefix = namespace is None or profile == "paper"
    number = site.namespace_of(title) if by_prefix else int(namespace or 0)
    if number != wanted:
        counts["pages:other_namespace"] += 1
        return None
    revisions = element.findall("revision")
    counts["revisions:superseded"] += max(0, len(revisions) - 1)
    reason, text = _wikitext(_newest(element))
    if reason:
        counts[f"pages:{reason}"] += 1
        return None
    target = redirect_target(text, site)
    marked = element.find("redirect")
    if target is None and marked is not None and marked.get("title"):
        target = (marked.get("title", ""), "")
    return Page(page_id, title, number, target, text)


def _wikitext(revision: ElementTree.Element | None) -> tuple[str, str]:
    """The reason why a revision has no wikitext ("" where it has) and its wikitext."""
    text = revision.find("text") if revision is not None else None
    if revision is None or text is None:
        return "no_revision", ""
    if text.get("deleted") is not None:
        return "deleted_text", ""
    if (revision.findtext("model") or "wikitext") != "wikitext":
        return "not_wikitext", ""
    if not (text.text or "").strip():
        return "empty_text", ""
    return "", text.text or ""


def read_pages(
    block: Block,
    site: SiteInfo,
    counts: Counter[str],
    *,
    profile: str = "fixed",
    allow_truncated: bool = False,
    wanted: int = 0,
) -> Iterator[Page | Rejected]:
    """Yield the pages of the wanted namespace that begin in the block, holding one page at a time.

    Raises: TruncatedDump: the dump ends in the middle (with `allow_truncated`: counted as `pages:truncated`).
    ValueError: the compressed data are damaged.
    """
    cutter = _PageCutter(block)
    try:
        for data in cutter:
            counts["pages_read"] += 1
            page = data if isinstance(data, Rejected) else parse_page(data, site, counts, profile, wanted)
            if page is not None:
                yield page
    except TruncatedDump as error:
        if not allow_truncated:
            raise TruncatedDump(f"{error}. {_REMEDY}") from None
        counts["pages:truncated" if cutter.in_page else "dump:end_missing"] += 1


# The head and the tail of a dump


def read_site_info(path: str) -> SiteInfo:
    """Language, namespaces and letter case from a dump's `<siteinfo>`.

    Raises: ValueError: the file is no MediaWiki export, or holds no page.
    """
    head = bytearray()
    try:
        for data, _ in read_range(path, 0, storage.file_size(path) or 0):
            head += data
            if _PAGE in _PROLOG.sub(b"", head, 1) or len(head) > _HEAD_BYTES:
                break
    except TruncatedDump:
        if not head:
            raise
    text = _PROLOG.sub(b"", head, 1).decode("utf-8", "replace")
    if "<mediawiki" not in text:
        raise ValueError(f"{path}: no <mediawiki> element at its beginning; wanted a MediaWiki export")
    if "<page>" not in text:
        raise ValueError(f"{path}: no <page> in its first {len(head)} bytes; the dump is empty")
    language = re.search(r'<mediawiki[^>]*?xml:lang="([^"]*)"', text)
    siteinfo = re.search(r"<siteinfo>.*?</siteinfo>", text, re.DOTALL)
    try:
        element = ElementTree.fromstring(siteinfo[0] if siteinfo else "<siteinfo/>")
        namespaces = tuple((int(ns.get("key", "0")), ns.text or "") for ns in element.iter("namespace"))
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"{path}: its <siteinfo> is broken ({error}); download it again") from None
    return SiteInfo(
        language=language[1] if language else "en",
        dbname=element.findtext("dbname", ""),
        case=element.findtext("case", "first-letter"),
        namespaces=namespaces,
        name=element.findtext("sitename", ""),
    )


def _tail(path: str, index: str = "") -> bytes:
    """The last data of a dump file, decompressed; empty for gzip without an index, which has no way to its end."""
    kind = detect_format(path)
    if kind == "gz" and not index:
        return b""
    size = gzip_data_size(index) if index else storage.file_size(path) or 0
    start, tail = size, b""
    while start > 0 and not tail:  # a bzip2 block has hardly more than 900,000 bytes, padding any number
        start = max(0, size - 2 * max(size - start, 1_000_000))
        for data, _ in read_range(path, start, size, index):
            tail = (tail + data).rstrip()[-4096:]
    return tail


def check_end(path: str, index: str = "") -> None:
    """Find a broken download before hours of work: the last data of the file must close the export.

    A gzip file without an index is checked when it is read. Raises: TruncatedDump: the file ends in the middle.
    """
    try:
        is_complete = (detect_format(path) == "gz" and not index) or _END in _tail(path, index)
    except TruncatedDump as error:
        raise TruncatedDump(f"{error}. {_REMEDY}") from None
    if not is_complete:
        raise TruncatedDump(f"{path}: its end lacks {_END.decode()}, so it was cut. {_REMEDY}")
