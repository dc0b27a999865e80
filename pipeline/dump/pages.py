"""A Wikipedia XML dump as pages: any export schema, block by block.

A block owns the pages whose `<page>` tag begins in its data, and its reader goes on past the end of the block to
finish the last of them.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from pipeline.dump.containers import TruncatedDump, read_head
from pipeline.dump.cutting import END, PageCutter, Rejected, read_tail, reject
from pipeline.mediawiki.languages import database_name
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import redirect_target
from pipeline.storage.blocks import Block

logger = logging.getLogger("pipeline")

_REMEDY = "Download it again, or pass --set corpus.allow_truncated=true to take the pages that are whole"
_NAMESPACE = re.compile(rb"<ns>\s*(-?\d{1,9})\s*</ns>")
_ID = re.compile(r"\s*0*+([0-9]{1,19})\s*")
_MOST_CHARACTERS = 8 << 20  # of a text; MediaWiki allows 2 MiB, and work takes many times its memory
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"


@dataclass(frozen=True)
class Page:
    """A page with its newest revision's wikitext. `redirect` is (title, fragment) where the page is one."""

    page_id: int
    title: str
    namespace: int
    redirect: tuple[str, str] | None
    text: str


def _id_of(element: ElementTree.Element) -> int:
    """The number of a page or revision; 0 where it has none, or one that is beyond a table's 64 bits."""
    match = _ID.fullmatch(element.findtext("id", ""))
    number = int(match[1]) if match else 0
    return number if number < 2**63 else 0


def parse_page(
    data: bytes, site: SiteInfo, counts: Counter[str], profile: str = "fixed", wanted: int = 0
) -> Page | Rejected | None:
    """Return the page of a `<page>` element; None where it is dropped and counted, `Rejected` where it cannot be read.

    The element is parsed alone, where XML has no entity to expand. Profile `paper` decides the namespace by the
    title's prefix; pages of others than `wanted` are dropped.
    """
    try:
        return _parse(data, site, counts, profile, wanted)
    except (ElementTree.ParseError, ValueError):  # a namespace that is no number counts as broken, too
        return reject(data, "broken_xml")


def _parse(data: bytes, site: SiteInfo, counts: Counter[str], profile: str, wanted: int) -> Page | Rejected | None:
    # Of templates there is one page among many others, which need not be parsed.
    if wanted and (ns := _NAMESPACE.search(data)) and int(ns[1]) != wanted:
        counts["pages:other_namespace"] += 1
        return None
    element = ElementTree.fromstring(data)
    if element.tag.startswith("{") or any(child.tag.startswith("{") for child in element):
        _without_namespaces(element)
    title = element.findtext("title") or ""
    page_id = _id_of(element)
    if not title:
        return Rejected(page_id, "", "no_title")
    namespace = element.findtext("ns")
    by_prefix = namespace is None or profile == "paper"
    number = site.namespace_of(title) if by_prefix else int(namespace or 0)
    if number != wanted:
        counts["pages:other_namespace"] += 1
        return None
    if not page_id:
        return Rejected(0, title, "no_id")
    revisions = element.findall("revision")
    counts["revisions:superseded"] += max(0, len(revisions) - 1)
    newest = max(revisions, key=lambda each: (each.findtext("timestamp", ""), _id_of(each)), default=None)
    reason, text = _wikitext(newest)
    if reason:
        counts[f"pages:{reason}"] += 1
        return None
    if len(text) > _MOST_CHARACTERS:
        return Rejected(page_id, title, "page_too_large")
    target = redirect_target(text, site)
    marked = element.find("redirect")
    if target is None and marked is not None and marked.get("title"):
        target = (marked.get("title", ""), "")
    return Page(page_id, title, number, target, text)


def _without_namespaces(page: ElementTree.Element) -> None:
    for element in page.iter():
        element.tag = element.tag.rpartition("}")[2]


def _wikitext(revision: ElementTree.Element | None) -> tuple[str, str]:
    """The reason why a revision has no wikitext ("" where it has) and its wikitext."""
    text = revision.find("text") if revision is not None else None
    if revision is None or text is None:
        return "no_revision", ""
    if text.get("deleted") is not None:
        return "deleted_text", ""
    if (revision.findtext("model") or "wikitext").strip() != "wikitext":
        return "not_wikitext", ""
    if not (text.text or "").strip():
        return "text_elsewhere" if text.get("location") or text.get("id") else "empty_text", ""
    return "", text.text or ""


def read_pages(
    block: Block,
    site: SiteInfo,
    counts: Counter[str],
    *,
    profile: str = "fixed",
    allow_truncated: bool = False,
    wanted: int = 0,
    most: int = 0,
) -> Iterator[Page | Rejected]:
    """Yield the pages of the wanted namespace that begin in the block, holding one page at a time.

    With `most` it ends when so many pages are counted.

    Raises: TruncatedDump: the dump ends in the middle (with `allow_truncated`: counted as `pages:truncated`).
    ValueError: the compressed data are damaged.
    """
    cutter = PageCutter(block)
    try:
        for data in cutter:
            counts["pages_read"] += 1
            page = data if isinstance(data, Rejected) else parse_page(data, site, counts, profile, wanted)
            if page is not None:
                yield page
            if counts["pages_read"] == most:
                return
    except TruncatedDump as error:
        if not allow_truncated:
            raise TruncatedDump(f"{error}. {_REMEDY}") from None
        counts["pages:truncated" if cutter.in_page else "dump:end_missing"] += 1


# The head and the tail of a dump


def read_site_info(path: str) -> SiteInfo:
    """Language, namespaces and case by a dump's `<siteinfo>`. Raises: ValueError: it is no export, or has no page."""
    head, encoding = read_head(path)
    if encoding.lower() not in ("utf-8", "utf8", "us-ascii"):
        raise ValueError(f"{path}: its XML is {encoding}; wanted UTF-8; convert the file and its first line")
    if not re.match(rb"<mediawiki[\s>]", head):
        raise ValueError(
            f"{path}: no <mediawiki> element at its beginning; wanted a MediaWiki export, its elements without prefix"
        )
    language, has_page, element = "", False, ElementTree.Element("siteinfo")
    parser: Any = ElementTree.XMLPullParser(("start", "end"))
    try:
        parser.feed(head)
        for event, found in parser.read_events():
            name = found.tag.rpartition("}")[2]
            language = language or found.get(_LANGUAGE, "")
            element = found if (event, name) == ("end", "siteinfo") else element
            if has_page := name == "page":
                break
        _without_namespaces(element)
        namespaces = tuple((int(ns.get("key", "0")), ns.text or "") for ns in element.iter("namespace"))
    except (ElementTree.ParseError, ValueError) as error:
        raise ValueError(f"{path}: its <siteinfo> is broken ({error}); download it again") from None
    if not has_page:
        raise ValueError(f"{path}: no <page> in its first {len(head)} bytes; the dump is empty")
    if not language:
        logger.warning("%s: its <mediawiki> has no xml:lang; it is read as English", path)
    code, case = language or "en", element.findtext("case", "first-letter")
    dbname = database_name(code, element.findtext("dbname", ""), element.findtext("base", ""))
    return SiteInfo(code, dbname, case, namespaces, name=element.findtext("sitename", ""))


def check_end(path: str) -> None:
    """Find a broken download before hours of work: the last data of the file must close the export.

    Raises: TruncatedDump: the file ends in the middle. ValueError: the compressed data are damaged.
    """
    try:
        is_complete = END.search(read_tail(path))
    except TruncatedDump as error:
        raise TruncatedDump(f"{error}. {_REMEDY}") from None
    if not is_complete:
        raise TruncatedDump(f"{path}: its end lacks </mediawiki>, so it was cut. {_REMEDY}")
