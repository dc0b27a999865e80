"""Reads a page from mark to mark, and says which stretches of it are replaced by what."""

import re
from typing import NamedTuple

from pipeline.mediawiki.tags import BLOCK_TAGS, INLINE_CONTENT, INLINE_TAGS, KINDS
from pipeline.wikitext.cut.hidden import Elements
from pipeline.wikitext.cut.tokens import END_TAGS, UNCLOSED_FILE, Region, Tokens, outermost, pieces
from pipeline.wikitext.placeholders import BREAK, CUT, FORMULA, GONE, SPOKEN, protect
from pipeline.wikitext.templates.guess import MAY_BE_TEXT, guess
from pipeline.wikitext.templates.losses import is_alone
from pipeline.wikitext.templates.rules import Arguments, Rule
from pipeline.wikitext.templates.table import TemplateTable, silent

_INDENT = 64  # blanks and list marks before a table; more are not looked at
_COMMENTS_ALONE = re.compile(r"(?>(?:[ \t]*+<!--(?>.*?-->|.*))*)[ \t]*+(?:\n|\Z)", re.DOTALL)
_NAME = re.compile(r"[^|{}<]*")  # of a template, behind its braces
_EMPTY_TAGS = ("br", "hr", "wbr")
# MediaWiki's preprocessor takes these out: they leave nothing, as comments do, and what is behind them begins its line.
_NO_TAGS = ("noinclude", "onlyinclude", "translate", "tvar")
_NOT_HERE = "includeonly"  # goes with its content; without an end tag the rest of the page goes
_AROUND = re.compile(r"\[\[[^\[\]|\n]+\|\Z")  # of a file, which takes the place of a link's label
_SPOKEN = ("ipa", "audio", "respell")  # names of templates of pronunciations begin so
_RECORDING = re.compile(r"\|[^|{}\n]*\.(?:flac|midi?|mp3|og[agv]|opus|wav|webm)\s*[|}]", re.IGNORECASE)
_DEEPEST = 40  # templates in one another that show text, as in MediaWiki
_LONGER = 200  # characters that a template may show beyond twice its own source
_BEFORE = 300  # characters in which an open bracket is looked for


class _Open(NamedTuple):
    kind: str
    start: int
    end: int
    rule: Rule | None = None  # of a template that shows text


def _unspoken(arguments: Arguments) -> None:
    """The rule of a pronunciation that is left out."""


class Cutter:
    """One pass over a page: tokens in, regions out."""

    def __init__(self, text: str, wanted: Tokens, templates: TemplateTable | None, title: str) -> None:
        self.text, self.title, self.wanted, self.templates = text, title, wanted, templates
        self.regions: list[Region] = []
        self.stack: list[_Open] = []
        self.depth = {"templates": 0, "tables": 0, "files": 0, "links": 0}
        self.unseen = 0  # open tables, files and templates of which a reader sees nothing
        self.elements = Elements(text)
        self.endless: set[str] = set()  # tags that have no further end tag: nobody searches for one again

    def run(self) -> list[Region]:
        position, text, depth, (outside, in_file) = 0, self.text, self.depth, self.wanted
        while match := (in_file if depth["files"] else outside).search(text, position):
            position = self.step(match)
        self.close_rest()
        return outermost(self.regions)

    def close_rest(self) -> None:
        """Close what never ends: a template loses its braces, a table its rows, a file link its line."""
        covered = 0
        for left in self.stack:
            if left.kind == "templates":
                self.regions.append(Region(left.start, left.end, " ", "markup:unclosed_template"))
            elif left.kind == "tables" and self.text[left.start] != "<":
                self.regions.append(Region(left.start, left.end, f"{GONE}\n|-", ""))
            elif left.kind == "files" and left.start >= covered:
                name = UNCLOSED_FILE.match(self.text, left.start)
                covered = name.end() if name else left.end
                self.regions.append(Region(left.start, covered, GONE, "markup:unclosed_file"))

    def step(self, match: re.Match[str]) -> int:
        """Handle one token; the position to go on from."""
        kind = match.lastgroup
        start, end = match.span()
        if kind == "template":
            is_mark = end - start == 6 and self.templates and self.text[start:end] in ("{{(!}}", "{{!)}}")
            if not is_mark or not self.table(start, end, begins=self.text[start + 2] == "("):
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
        if folded in self.templates.spoken:
            line = self.text[max(0, start - _BEFORE) : start].rpartition("\n")[2]
            in_bracket = sum(map(line.count, "(（")) > sum(map(line.count, ")）"))
            if in_bracket or _RECORDING.match(self.text, name.end()):
                return _unspoken
        elif rule is None or rule is silent:
            if folded.lower().startswith(_SPOKEN):
                return _unspoken
            return guess if rule is None and MAY_BE_TEXT.match(self.text, name.end()) else None
        return rule

    def template(self, start: int, end: int, rule: Rule | None) -> None:
        """A template leaves what its rule shows; templates in it have left theirs already."""
        shown = None
        if rule and self.templates:
            first = len(self.regions)
            while first and self.regions[first - 1].start >= start:
                first -= 1
            source = self.text[start + 2 : end - 2]
            if inner := outermost(self.regions[first:]):
                source = "".join(pieces(self.text, inner, start + 2, end - 2))
            alone = rule is guess and is_alone(self.text, start, end)
            shown = rule(Arguments(source, self.templates.wiki, self.title, alone=alone))
        if shown is None or len(shown) > 2 * (end - start) + _LONGER:
            is_spoken = rule is _unspoken and not self.depth["templates"]
            self.cut(start, end, SPOKEN if is_spoken else GONE, "templates")
        else:
            if self.depth["templates"]:  # to the template around it neither a bar nor an equals sign is a mark
                shown = protect("|") if shown == "|" else shown.replace("=", protect("="))
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

    def table(self, start: int, end: int, *, begins: bool) -> bool:
        """Return whether a table mark counts: it begins a line, behind blanks, comments or the marks of a list."""
        first, latest = start, len(self.regions)
        while True:
            before = self.text[max(0, first - _INDENT) : first]
            margin = before.rstrip(" \t:*#;" if begins else " \t")
            first -= len(before) - len(margin)
            latest -= 1
            if latest < 0 or self.regions[latest].end != first or self.regions[latest].replacement:
                break
            first = self.regions[latest].start
        counts = not first or self.text[first - 1] == "\n"
        if counts and begins:
            self.push(_Open("tables", first, end))
        elif counts:
            self.close("tables", end, "\n")
        return counts

    def close_link(self, end: int) -> None:
        if self.stack and self.stack[-1].kind in ("links", "files"):
            opened = self.pop()
            if opened.kind == "files":
                first = max(0, opened.start - _BEFORE) if self.text.startswith("]]", end) else opened.start
                around = _AROUND.search(self.text, first, opened.start)
                self.cut(around.start() if around else opened.start, end + 2 * bool(around), GONE, "files")

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
            before_point = self.text[end : end + 1] in tuple(".,;:!?)")
            self.regions.append(Region(start, end, CUT if before_point else " ", "markup:stray_braces"))

    def comment(self, start: int) -> int:
        """A comment goes; comments that fill a line take it along, as in MediaWiki."""
        closing = self.text.find("-->", start + 4)
        end = closing + 3 if closing >= 0 else len(self.text)
        before = self.text[max(0, start - _INDENT) : start]
        margin = before.rstrip(" \t")
        if (not margin or margin[-1] == "\n") and (line := _COMMENTS_ALONE.match(self.text, end)):
            start -= len(before) - len(margin)
            end = line.end()
        self.cut(start, end, "", "comments")
        return end

    def tag(self, match: re.Match[str]) -> int:
        """An HTML or extension tag; what only looks like one is text."""
        slash, name, attributes = match.group("slash", "tag", "attributes")
        name = name.lower()
        start, end = match.span()
        empty = attributes.endswith("/")
        if name in KINDS or name == "nowiki":
            return self.content_tag(name, start, end, closing=bool(slash), empty=empty)
        if name in INLINE_TAGS or name in BLOCK_TAGS:
            mark = BREAK if name in BLOCK_TAGS else "" if name in _NO_TAGS and self.templates else CUT
            if attributes and not (slash or empty or self.unseen or name in _EMPTY_TAGS) and self.templates:
                end = self.elements.end(start, end, attributes)
            self.regions.append(Region(start, end, mark, "hidden" if end > match.end() else ""))
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
            last = END_TAGS[name].search(self.text, end)
            if last is None:
                self.endless.add(name)
        if name == _NOT_HERE and self.templates:
            stop = last.end() if last else end if empty or closing else len(self.text)
            self.regions.append(Region(start, stop, "", KINDS[name] if stop > end else ""))
            return stop
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
            is_formula = KINDS[name] == "math" and self.templates and not self.depth["templates"]
            mark = CUT + (FORMULA if is_formula else GONE) if inline else BREAK
            self.regions.append(Region(start, last.end(), mark, KINDS[name]))
        return last.end()
