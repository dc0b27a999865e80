"""The first pass over a page's wikitext: what spans lines and gives no running text is cut, in linear time.

Characters that must not be read as markup later (from ``<nowiki>``, and every ``<`` left over) travel as
Unicode noncharacters, which no text may contain, and are turned back by ``reveal`` when the paragraphs are
finished.
"""

# ruff: noqa: SIM905

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_PROTECTED = "[]{}|'<>=*:_-!~"  # not those of character references
_PROTECT = {ord(char): 0xFDD0 + index for index, char in enumerate(_PROTECTED)}
_REVEAL = {hidden: char for char, hidden in _PROTECT.items()}
CUT = "\ufdee"  # stands where something was cut, so that link trails do not reach across
BREAK = "\ufdef"  # stands for <br> and the edges of block elements
_NONCHARACTERS = re.compile("[\ufdd0-\ufdef]")
_ANGLE = chr(_PROTECT[ord("<")])

# Tags whose content is no running text, by the drop that they count as. They do not nest: the first end tag
# ends them.
_CONTENT_TAGS = {
    "references": "ref references",
    "math": "math chem ce",
    "galleries": "gallery imagemap",
    "code": "pre syntaxhighlight source",
    "extensions": """categorytree charinsert dynamicpagelist graph hiero includeonly indicator inputbox
    mapframe maplink phonos rss score templatedata templatestyles timeline""",
}
_KINDS = {tag: kind for kind, tags in _CONTENT_TAGS.items() for tag in tags.split()}
_BLOCK_TAGS = frozenset(
    """blockquote br caption center dd div dl dt h1 h2 h3 h4 h5 h6 hr li ol p poem section td th tr
    ul""".split()
)
_INLINE_TAGS = frozenset(
    """a abbr b bdi bdo big cite code data del dfn em font i ins kbd langconvert mark noinclude nowiki
    onlyinclude q rb rbc rp rt rtc ruby s samp small span strike strong sub sup time translate tt tvar u
    var wbr""".split()
)
_TAGS = "|".join(sorted({"table", *_KINDS, *_BLOCK_TAGS, *_INLINE_TAGS}))
_TOKEN = re.compile(
    rf"""<!--
    |<(?P<slash>/?)(?P<tag>{_TAGS})(?![\w-])(?P<attributes>[^<>]*)>
    |(?P<open>\{{\{{+) | (?P<shut>\}}\}}+)
    |(?P<table>^[ \t:*#;]*\{{\|) | (?P<table_end>^[ \t]*\|\}}(?!\}}(?!\}})))
    |(?P<link>\[\[(?:(?P<prefix>[^\[\]\{{\}}<>|:\n]{{1,60}}):)?) | (?P<link_end>\]\])""",
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_END_TAGS = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE) for name in (*_KINDS, "nowiki")}
_LINE_REST = re.compile(r"[ \t]*(?:\n|\Z)")
_HOLDS_LINKS = ("templates", "tables", "references", "galleries", "files")


class Region(NamedTuple):
    """A stretch of the source that is replaced; ``kind`` is "" where no text is lost."""

    start: int
    end: int
    replacement: str
    kind: str


class _Open(NamedTuple):
    kind: str
    start: int
    end: int


class _Cutter:
    """One pass over a page: tokens in, regions out."""

    def __init__(self, text: str, file_prefixes: frozenset[str]) -> None:
        self.text = text
        self.file_prefixes = file_prefixes
        self.regions: list[Region] = []
        self.stack: list[_Open] = []
        self.depth: Counter[str] = Counter()
        self.endless: set[str] = (
            set()
        )  # tags that have no further end tag, so that nobody searches for one again

    def run(self) -> list[Region]:
        position = 0
        while match := _TOKEN.search(self.text, position):
            position = self.step(match)
        self.close_rest()
        return outermost(self.regions)

    def close_rest(self) -> None:
        """What never ends: a template loses its braces, a table its rows, a file link its line."""
        covered = 0
        for left in self.stack:
            if left.kind == "templates":
                self.regions.append(Region(left.start, left.end, " ", "markup:unclosed_template"))
            elif left.kind == "tables" and self.text[left.start] != "<":
                self.regions.append(Region(left.start, left.end, "|", ""))
            elif left.kind == "files" and left.start >= covered:
                line_end = self.text.find("\n", left.start)
                covered = line_end if line_end >= 0 else len(self.text)
                self.regions.append(Region(left.start, covered, CUT, "markup:unclosed_file"))

    def step(self, match: re.Match[str]) -> int:
        """Handle one token; the position to go on from."""
        kind = match.lastgroup
        if match["tag"]:
            return self.tag(match)
        if kind == "open":
            self.push(_Open("templates", match.start(), match.end()))
        elif kind == "shut":
            self.close_braces(match.start(), match.end())
        elif kind == "table":
            self.push(_Open("tables", match.start(), match.end()))
        elif kind == "table_end":
            self.close("tables", match.end(), "\n")
        elif kind in ("link", "prefix"):
            name = (match["prefix"] or "").strip(" _").replace("_", " ").lower()
            self.push(_Open("files" if name in self.file_prefixes else "links", match.start(), match.end()))
            return match.start() + 2
        elif kind == "link_end":
            return self.close_link(match.end())
        else:
            return self.comment(match.start())
        return match.end()

    def push(self, opened: _Open) -> None:
        self.stack.append(opened)
        self.depth[opened.kind] += 1

    def pop(self) -> _Open:
        opened = self.stack.pop()
        self.depth[opened.kind] -= 1
        return opened

    def pop_until(self, kind: str) -> _Open:
        """Close what was left open inside; amortised, since each opener leaves the stack once."""
        while self.stack[-1].kind != kind:
            inner = self.pop()
            if inner.kind == "templates":
                self.regions.append(Region(inner.start, inner.end, " ", "markup:unclosed_template"))
        return self.pop()

    def cut(self, start: int, end: int, replacement: str, kind: str) -> None:
        while self.regions and self.regions[-1].start >= start:
            self.regions.pop()
        self.regions.append(Region(start, end, replacement, kind))

    def close(self, kind: str, end: int, replacement: str) -> None:
        if self.depth[kind]:
            self.cut(self.pop_until(kind).start, end, replacement, kind)

    def close_link(self, end: int) -> int:
        if self.stack and self.stack[-1].kind in ("links", "files"):
            opened = self.pop()
            if opened.kind == "files":
                self.cut(opened.start, end, CUT, "files")
        return end

    def close_braces(self, start: int, end: int) -> None:
        """Match a run of ``}`` with open runs of ``{``: three make a parameter, two a template."""
        while end - start >= 2 and self.depth["templates"]:
            opened = self.pop_until("templates")
            width = min(3, opened.end - opened.start, end - start)
            start += width
            self.cut(opened.end - width, start, CUT, "templates")
            if opened.end - width - opened.start >= 2:
                self.push(_Open("templates", opened.start, opened.end - width))
        if end - start >= 2:
            self.regions.append(Region(start, end, " ", "markup:stray_braces"))

    def comment(self, start: int) -> int:
        """A comment goes; one that fills its lines takes the line break along, as in MediaWiki."""
        closing = self.text.find("-->", start + 4)
        end = closing + 3 if closing >= 0 else len(self.text)
        alone = _LINE_REST.match(self.text, end) if self.text[start - 1 : start] in ("", "\n") else None
        self.cut(start, alone.end() if alone else end, "", "comments")
        return alone.end() if alone else end

    def tag(self, match: re.Match[str]) -> int:
        name = match["tag"].lower()
        start, end = match.span()
        empty = match["attributes"].endswith("/")
        if name in _KINDS or name == "nowiki":
            return self.content_tag(name, start, end, closing=bool(match["slash"]), empty=empty)
        if name == "table":
            self.regions.append(Region(start, end, BREAK, ""))
            if match["slash"]:
                self.close("tables", end, "\n")
            elif not empty:
                self.push(_Open("tables", start, end))
            return end
        self.regions.append(Region(start, end, BREAK if name in _BLOCK_TAGS else CUT, ""))
        return end

    def content_tag(self, name: str, start: int, end: int, *, closing: bool, empty: bool) -> int:
        last = None
        if not closing and not empty and name not in self.endless:
            last = _END_TAGS[name].search(self.text, end)
            if last is None:
                self.endless.add(name)
        if last is None:
            lost = "" if empty or name == "nowiki" else "markup:unclosed_tag"
            self.regions.append(Region(start, end, CUT, lost))
            return end
        if name == "nowiki":
            literal = self.text[end : last.start()].translate(_PROTECT)
            self.regions.append(Region(start, last.end(), CUT + literal + CUT, ""))
        else:
            self.regions.append(Region(start, last.end(), CUT, _KINDS[name]))
        return last.end()


def outermost(regions: Iterable[Region]) -> list[Region]:
    """The regions in order, without those that lie inside another."""
    kept: list[Region] = []
    for region in sorted(regions, key=lambda region: (region.start, -region.end)):
        if not kept or region.start >= kept[-1].end:
            kept.append(region)
    return kept


def cut(text: str, file_prefixes: frozenset[str]) -> tuple[str, Counter[str]]:
    """(text without comments, templates, tables, references and the like, drops by reason).

    Links whose prefix is in ``file_prefixes`` (lower-cased) go with their captions. Time is linear in the
    text.
    """
    text = _NONCHARACTERS.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    regions = _Cutter(text, file_prefixes).run()
    drops: Counter[str] = Counter()
    for region in regions:
        drops.update(_losses(text, region))
    return "".join(_pieces(text, regions)).replace("<", _ANGLE), drops


def _pieces(text: str, regions: list[Region]) -> Iterator[str]:
    position = 0
    for region in regions:
        yield text[position : region.start]
        yield region.replacement
        position = region.end
    yield text[position:]


def _losses(text: str, region: Region) -> dict[str, int]:
    """What one region drops: itself, and the links inside."""
    if not region.kind:
        return {}
    if ":" in region.kind:
        return {region.kind: 1}
    losses = {"links:file" if region.kind == "files" else f"{region.kind}:cut": 1}
    links = text.count("[[", region.start, region.end) - (region.kind == "files")
    if region.kind in _HOLDS_LINKS and links:
        losses[f"links:in_{region.kind}"] = links
    return losses


def reveal(text: str) -> str:
    """The text with protected characters turned back; the length stays."""
    return text.translate(_REVEAL) if _NONCHARACTERS.search(text) else text


def protect(text: str) -> str:
    """The text with every character that could be read as markup hidden; the length stays."""
    return text.translate(_PROTECT)
