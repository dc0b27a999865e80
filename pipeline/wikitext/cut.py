"""The first pass over a page's wikitext: what spans lines and gives no running text is cut, in linear time."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pipeline.mediawiki.tags import BLOCK_TAGS, INLINE_CONTENT, INLINE_TAGS, KINDS
from pipeline.wikitext.blocks import keep_bars, split_blocks
from pipeline.wikitext.placeholders import ANGLE, BREAK, CUT, GONE, protect, without_controls
from pipeline.wikitext.templates.guess import MAY_BE_TEXT, guess
from pipeline.wikitext.templates.losses import Losses, count_loss, is_alone
from pipeline.wikitext.templates.rules import Arguments, Rule
from pipeline.wikitext.templates.table import TemplateTable, silent

# Each alternative begins with a literal, so that the search looks for five characters and skips all others; that a
# table begins a line is looked at by code.
_TOKENS = r"""<!--
    |<(?P<slash>/?)(?P<tag>[A-Za-z][A-Za-z0-9]*)(?![\w-])(?P<attributes>
        [^<>{]*+(?:(?:<!--(?:[^<>-]|-(?!->))*+-->|\{\{[^{}]*+\}\}|\{)[^<>{]*+)*+)>
    |\{\{(?P<template>[^{}<]*)\}\}(?!\})
    |\{(?P<open>\{+) | \}(?P<shut>\}+)
    |\{(?P<table>\|) | \|(?P<table_end>\})(?!\}(?!\}))"""
_LINKS = r" | \[(?:https?:)?//[^\[\]\n]*\] | \[(?P<link>\[) | \](?P<link_end>\])"
_INDENT = 64  # blanks and list marks before a table; more are not looked at
_END_TAGS = {name: re.compile(rf"</{name}\s*>", re.IGNORECASE | re.ASCII) for name in (*KINDS, "nowiki")}
_KNOWN_TAGS = "|".join(sorted({*KINDS, *INLINE_TAGS, *BLOCK_TAGS, "table"}))
_LEFT_TAG = re.compile(rf"</?(?:{_KNOWN_TAGS})(?![\w-])[^<>]*>", re.IGNORECASE | re.ASCII)
_BLANKS = re.compile(r"[ \t]*")
_NAME = re.compile(r"[^|{}<]*")  # of a template, behind its braces
_DEEPEST = 40  # templates in one another that show text, as in MediaWiki
_LONGER = 200  # characters that a template may show beyond twice its own source
_BEFORE = 300  # characters in which an open bracket is looked for
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
    rule: Rule | None = None  # of a template that shows text


class Tokens(NamedTuple):
    """The tokens of a wiki; brackets of other links count inside file links alone, where they may nest."""

    outside: re.Pattern[str]
    in_file: re.Pattern[str]


def tokens(file_prefixes: Iterable[str]) -> Tokens:
    """The tokens where links with these prefixes (in any case; none: no link) go with their captions."""
    names = "|".join(sorted(re.escape(name).replace(r"\ ", "[ _]") for name in file_prefixes))
    file = rf"\[(?P<file>\[)[ _]*(?i:{names})[ _]*:" if names else r"\[(?P<file>(?!))"
    outside = f"{_TOKENS} | {file}"
    return Tokens(re.compile(outside, re.VERBOSE), re.compile(outside + _LINKS, re.VERBOSE))


def cut(
    text: str, wanted: Tokens, templates: TemplateTable | None = None, title: str = ""
) -> tuple[str, Counter[str], Losses]:
    """(text without comments, tables, references, file links and the like, drops by reason, what templates cost).

    A template leaves the text that its rule shows on the page of this title, or nothing; without `templates` none shows
    any. Time is linear in the text.
    """
    text = without_controls(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    text = split_blocks(text)
    drops: Counter[str] = Counter()
    losses: Losses = {}
    text = _cut_once(_Cutter(text, wanted, templates, title), drops, losses)
    if "<" in text and _LEFT_TAG.search(text):  # its attributes held comments or templates
        text = _cut_once(_Cutter(text, wanted, templates, title), drops, losses)
    return keep_bars(text).replace("<", ANGLE), drops, losses


def _cut_once(cutter: "_Cutter", drops: Counter[str], losses: Losses) -> str:
    regions, text, templates = cutter.run(), cutter.text, cutter.templates
    for region in regions:
        if region.kind:
            _count_losses(drops, text, region)
            if region.kind == "templates" and templates:
                count_loss(losses, text, region.start, region.end, templates)
    return "".join(_pieces(text, regions, 0, len(text)))


def _as_value(shown: str) -> str:
    """Return a template's text in another's argument: an equals sign or a bar there is none of that one's."""
    return protect("|") if shown == "|" else shown.replace("=", protect("="))


def _pieces(text: str, regions: list[Region], position: int, last: int) -> Iterator[str]:
    for start, end, replacement, _ in regions:
        yield text[position:start]
        yield replacement
        position = end
    yield text[position:last]


def _count_losses(drops: Counter[str], text: str, region: Region) -> None:
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


class _Cutter:
    """One pass over a page: tokens in, regions out."""

    def __init__(self, text: str, wanted: Tokens, templates: TemplateTable | None, title: str) -> None:
        self.text, self.title, self.wanted, self.templates = text, title, wanted, templates
        self.regions: list[Region] = []
        self.stack: list[_Open] = []
        self.depth = {"templates": 0, "tables": 0, "files": 0, "links": 0}
        self.unseen = 0  # open tables, files and templates of which a reader sees nothing
        self.endless: set[str] = set()  # tags that have no further end tag: nobody searches for one again

    def run(self) -> list[Region]:
        position, text, depth, (outside, in_file) = 0, self.text, self.depth, self.wanted
        while match := (in_file if depth["files"] else outside).search(text, position):
            position = self.step(match)
        self.close_rest()
        return _outermost(self.regions)

    def close_rest(self) -> None:
        """Close what never ends: a template loses its braces, a table its rows, a file link its line."""
        covered = 0
        for left in self.stack:
            if left.kind == "templates":
                self.regions.append(Region(left.start, left.end, " ", "markup:unclosed_template"))
            elif left.kind == "tables" and self.text[left.start] != "<":
                self.regions.append(Region(left.start, left.end, f"{GONE}\n|-", ""))
            elif left.kind == "files" and left.start >= covered:
                line_end = self.text.find("\n", left.start)
                covered = line_end if line_end >= 0 else len(self.text)
                self.regions.append(Region(left.start, covered, GONE, "markup:unclosed_file"))

    def step(self, match: re.Match[str]) -> int:
        """Handle one token; the position to go on from."""
        kind = match.lastgroup
        start, end = match.span()
        if kind == "template":
            self.template(start, end, self.rule(start + 2, start))
        elif kind == "attributes":
            return self.tag(match)
        elif kind == "open":
            rule = self.rule(end, start) if end - start == 2 else None
            self.push(_Open("templates", start, end, rule))
        elif kind == "shut":
            self.close_braces(start, end)
        elif kind in ("table", "table_end"):
            self.table(start, end, begins=kind == "table")
        elif kind in ("file", "link"):
            self.push(_Open("files" if kind == "file" else "links", start, end))
        elif kind == "link_end":
            self.close_link(end)
        else:
            return self.comment(start) if self.text[start] == "<" else end
        return end

    def push(self, opened: _Open) -> None:
        self.stack.append(opened)
        self.depth[opened.kind] += 1
        self.unseen += opened.rule is None and opened.kind != "links"

    def pop(self) -> _Open:
        opened = self.stack.pop()
        self.depth[opened.kind] -= 1
        self.unseen -= opened.rule is None and opened.kind != "links"
        return opened

    def rule(self, behind_braces: int, start: int) -> Rule | None:
        """The rule of the template that begins at `start`; None where it shows nothing there."""
        if self.unseen or self.templates is None or self.depth["templates"] >= _DEEPEST:
            return None
        if (name := _NAME.match(self.text, behind_braces)) is None:
            return None
        folded, rule = self.templates.find(name.group())
        if rule is None and MAY_BE_TEXT.match(self.text, name.end()):
            return guess
        if folded in self.templates.spoken:
            line = self.text[max(0, start - _BEFORE) : start].rpartition("\n")[2]
            if sum(map(line.count, "(（")) > sum(map(line.count, ")）")):
                return None
        return None if rule is silent else rule

    def template(self, start: int, end: int, rule: Rule | None) -> None:
        """A template leaves what its rule shows; templates in it have left theirs already."""
        shown = None
        if rule and self.templates:
            first = len(self.regions)
            while first and self.regions[first - 1].start >= start:
                first -= 1
            source = self.text[start + 2 : end - 2]
            if inner := _outermost(self.regions[first:]):
                source = "".join(_pieces(self.text, inner, start + 2, end - 2))
            alone = is_alone(self.text, start, end)
            shown = rule(Arguments(source, self.templates.wiki, self.title, alone=alone))
        if shown is None or len(shown) > 2 * (end - start) + _LONGER:
            self.cut(start, end, GONE, "templates")
        else:
            # To the template around it neither is a mark.
            shown = _as_value(shown) if self.depth["templates"] else shown
            self.cut(start, end, shown, "templates:shown_by_guess" if rule is guess else "")

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

    def table(self, start: int, end: int, *, begins: bool) -> None:
        """A table mark counts only at the beginning of a line, behind blanks, comments or the marks of a list."""
        first, latest = start, len(self.regions)
        while True:
            before = self.text[max(0, first - _INDENT) : first]
            margin = before.rstrip(" \t:*#;" if begins else " \t")
            first -= len(before) - len(margin)
            latest -= 1
            if latest < 0 or self.regions[latest].end != first or self.regions[latest].kind != "comments":
                break
            first = self.regions[latest].start
        if first and self.text[first - 1] != "\n":
            return
        if begins:
            self.push(_Open("tables", first, end))
        else:
            self.close("tables", end, "\n")

    def close_link(self, end: int) -> None:
        if self.stack and self.stack[-1].kind in ("links", "files"):
            opened = self.pop()
            if opened.kind == "files":
                self.cut(opened.start, end, GONE, "files")

    def close_braces(self, start: int, end: int) -> None:
        """Match a run of ``}`` with open runs of ``{``: three make a parameter, two a template."""
        while end - start >= 2 and self.depth["templates"]:
            opened = self.pop_until("templates")
            width = min(3, opened.end - opened.start, end - start)
            start += width
            self.template(opened.end - width, start, opened.rule if width == 2 else None)
            if opened.end - width - opened.start >= 2:
                self.push(_Open("templates", opened.start, opened.end - width))
        if end - start >= 2:
            self.regions.append(Region(start, end, " ", "markup:stray_braces"))

    def comment(self, start: int) -> int:
        """A comment goes; comments that fill a line take it along, as in MediaWiki."""
        end = self.comment_end(start)
        before = self.text[max(0, start - _INDENT) : start]
        margin = before.rstrip(" \t")
        if not margin or margin[-1] == "\n":
            behind = self.skip_blanks(end)
            while self.text.startswith("<!--", behind):
                behind = self.skip_blanks(self.comment_end(behind))
            if self.text[behind : behind + 1] in ("", "\n"):
                start -= len(before) - len(margin)
                end = min(behind + 1, len(self.text))
        self.cut(start, end, "", "comments")
        return end

    def comment_end(self, start: int) -> int:
        closing = self.text.find("-->", start + 4)
        return closing + 3 if closing >= 0 else len(self.text)

    def skip_blanks(self, position: int) -> int:
        blanks = _BLANKS.match(self.text, position)
        return blanks.end() if blanks else position

    def tag(self, match: re.Match[str]) -> int:
        """An HTML or extension tag; what only looks like one is text."""
        slash, name, attributes = match.group("slash", "tag", "attributes")
        name = name.lower()
        start, end = match.span()
        empty = attributes.endswith("/")
        if name in KINDS or name == "nowiki":
            return self.content_tag(name, start, end, closing=bool(slash), empty=empty)
        if name in INLINE_TAGS:
            self.regions.append(Region(start, end, CUT, ""))
        elif name in BLOCK_TAGS:
            self.regions.append(Region(start, end, BREAK, ""))
        elif name == "table":
            self.regions.append(Region(start, end, BREAK, ""))
            if slash:
                self.close("tables", end, "\n")
            elif not empty:
                self.push(_Open("tables", start, end))
        else:
            return start + 1
        return end

    def content_tag(self, name: str, start: int, end: int, *, closing: bool, empty: bool) -> int:
        last = None
        if not closing and not empty and name not in self.endless:
            last = _END_TAGS[name].search(self.text, end)
            if last is None:
                self.endless.add(name)
        if last is None:
            lost = "" if empty or name == "nowiki" else "markup:unclosed_tag"
            mark = CUT if name == "nowiki" else CUT + GONE if name in INLINE_CONTENT else BREAK
            self.regions.append(Region(start, end, mark, lost))
            return end
        if name == "nowiki":
            literal = protect(self.text[end : last.start()].replace("\n", " ").replace(BREAK, ":"))
            self.regions.append(Region(start, last.end(), CUT + literal + CUT, ""))
        else:
            inline = name in INLINE_CONTENT or "inline" in self.text[start:end]
            self.regions.append(Region(start, last.end(), CUT + GONE if inline else BREAK, KINDS[name]))
        return last.end()


def _outermost(regions: list[Region]) -> list[Region]:
    """The regions in order, without those that lie inside another."""
    kept: list[Region] = []
    reached = 0
    for region in sorted(regions, key=lambda region: (region.start, -region.end)):
        if region.start >= reached:
            kept.append(region)
            reached = region.end
    return kept
