"""The page elements of an export, cut out of a block's data.

MediaWiki writes neither comments nor CDATA sections. Other programs do; what looks like a tag in them is none.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline import storage
from pipeline.dump.containers import PROLOG, TruncatedDump, detect_format, read_range
from pipeline.storage.blocks import Block

MAX_PAGE_BYTES = 64 << 20  # of XML, every revision of the page together
END = re.compile(rb"</mediawiki\s*>")
_HIDDEN = {b"<!--": b"-->", b"<![CDATA[": b"]]>"}
# A tag and what may hide one, in one pass: all begin with a character that is rare, since in text it is escaped.
_PAGE, _PAGE_END = (re.compile(rb"<(?:%s(?=[> \t\r\n])|!--|!\[CDATA\[)" % tag) for tag in (b"page", b"/page"))
_TAG = len(b"<page")
_CHUNK = 1 << 20
_TAIL = 64  # bytes kept from one piece to the next: more than any tag looked for


@dataclass(frozen=True)
class Rejected:
    """A page that could not be read, with the reason."""

    page_id: int
    title: str
    reason: str


class PageCutter:
    """Cuts the `<page>...</page>` slices that begin in a block out of its data; too large a page comes rejected."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.pieces = read_range(block.path, block.start, block.end)
        self.buffer = bytearray()
        self.owned = 0  # how many bytes at the buffer's beginning belong to the block
        self.owns_end = False  # whether the newest data belong to the block
        self.hidden_until = b""  # in a comment or a CDATA section: what ends it
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

    def _find(self, tag: re.Pattern[bytes], at: int) -> tuple[int, int]:
        """(where a tag begins that is not hidden, or -1; where to search on when there are more data)."""
        while True:
            if self.hidden_until:
                if (end := self.buffer.find(self.hidden_until, at)) < 0:
                    break
                at, self.hidden_until = end + len(self.hidden_until), b""
            if (found := tag.search(self.buffer, at)) is None:
                break
            if found[0] not in _HIDDEN:
                return found.span()
            at, self.hidden_until = found.end(), self._hides(_HIDDEN[found[0]])
        return -1, max(at, len(self.buffer) - _TAIL)

    def _hides(self, end: bytes) -> bytes:
        """Return the end of a hidden part. Raises: ValueError: blocks may begin in such parts."""
        path = self.block.path
        size = storage.file_size(path) or 0
        if self.block.start or self.block.end < size:
            raise ValueError(
                f"{path}: has a comment or a CDATA section behind its beginning; wanted an export as MediaWiki "
                f"writes it, which has none; pass --set corpus.block_size={size} to read it in one piece"
            )
        return end

    def _next_page(self) -> bool:
        """Move the buffer to the next `<page>` that begins in the block; False where there is none."""
        at = 0
        while True:
            found, at = self._find(_PAGE, at)
            if found >= 0:
                if found >= self.owned:
                    return False
                self._drop(found)
                return True
            self.seen_end = self.seen_end or END.search(self.buffer) is not None
            # Data behind the block are read only to finish a tag that may begin in it.
            if self.buffer and self.owned <= len(self.buffer) - _TAG:
                return False
            dropped = max(0, len(self.buffer) - _TAIL)
            self._drop(dropped)
            at = max(0, at - dropped)
            if not self._more():
                return False

    def _finish_page(self) -> bytes | Rejected:
        at, oversize = 0, None
        while True:
            found, at = self._find(_PAGE_END, at)
            end = self.buffer.find(b">", found) + 1 if found >= 0 else 0
            if end:
                break
            if len(self.buffer) > MAX_PAGE_BYTES:
                oversize = oversize or reject(bytes(self.buffer[:_CHUNK]), "page_too_large")
                dropped = len(self.buffer) - _TAIL
                self._drop(dropped)
                at = max(0, at - dropped)
            at = found if found >= 0 else at
            if not self._more():
                raise TruncatedDump(f"{self.block.path}: ends in the middle of a page ({self._title()})")
        page = oversize or bytes(self.buffer[:end])
        self._drop(end)
        return page

    def _title(self) -> str:
        title = re.search(rb"<title>(.*?)</title>", self.buffer[:_CHUNK], re.DOTALL)
        return repr(title[1].decode("utf-8", "replace")) if title else "before its title is complete"

    def __iter__(self) -> Iterator[bytes | Rejected]:
        if self.block.start == 0 and self._more():
            self._drop(len(self.buffer) - len(PROLOG.sub(b"", self.buffer, 1)))
        while self._next_page():
            self.in_page = True
            page = self._finish_page()
            self.in_page = False
            yield page
        # A block may begin inside the end tag, so the file's tail decides.
        is_last = self.ended and self.owns_end and not self.seen_end
        if is_last and not END.search(read_tail(self.block.path)):
            raise TruncatedDump(f"{self.block.path}: ends without </mediawiki>, behind a complete page")


def reject(data: bytes, reason: str) -> Rejected:
    """Reject a page whose XML cannot be used; its id and title as far as they can be read."""
    number = re.search(rb"<id\b[^>]*>\s*(\d{1,18})\s*</id", data)
    title = re.search(rb"<title\b[^>]*>([^<]*)</title", data)
    name = title[1].decode("utf-8", "replace") if title else ""
    return Rejected(int(number[1]) if number else 0, name, reason)


def read_tail(path: str) -> bytes:
    """The last data of a dump file, decompressed; the way to the end of a gzip file leads through all of it."""
    is_gzip = detect_format(path) == "gz"
    size = storage.file_size(path) or 0
    start, tail = size, b""
    while start > 0 and not tail:  # a bzip2 block has hardly more than 900,000 bytes, padding any number
        start = 0 if is_gzip else max(0, size - 2 * max(size - start, 1_000_000))
        for data, _ in read_range(path, start, size):
            tail = (tail + data).rstrip()[-4096:]
    return tail
