"""A template's own page: what of it is transcluded, and the rule of a body that is text and parameters alone.

>>> transcluded("<!-- a -->{{{1}}} <includeonly>b</includeonly><noinclude>{{documentation}}</noinclude>")
'{{{1}}} b'
>>> rule = compile_body("[[{{{1}}}|{{{2|{{{1}}}}}}]]")
>>> rule(Arguments("link|Ape")), rule(Arguments("link|Ape|apes")), rule(Arguments("link"))
('[[Ape|Ape]]', '[[Ape|apes]]', None)
"""

import re
from typing import NamedTuple

from pipeline.mediawiki.tags import INLINE_TAGS
from pipeline.wikitext.placeholders import BREAK, CUT, GONE, protect
from pipeline.wikitext.templates.rules import Arguments, Rule

MOST_CHARACTERS = 2000  # of a body; few calls may show more than a tenth of that
_ONLY = re.compile(r"<onlyinclude>(.*?)(?:</onlyinclude>|\Z)", re.DOTALL)
# A comment that fills a line takes it along; what never ends takes the rest, as in MediaWiki.
_UNSEEN = re.compile(
    r"""^[ \t]*(?><!--.*?-->)[ \t]*\n
    | <!--.*?(?:-->|\Z)
    | <noinclude\b[^<>]*(?:/>|>.*?(?:</noinclude\s*>|\Z))
    | </?includeonly\b[^<>]*>""",
    re.VERBOSE | re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9]*)(?![\w-])([^<>]*)>")
_TAGS = INLINE_TAGS - {"nowiki"}
_HIDDEN = re.compile(r"display\s*:\s*none", re.IGNORECASE)
_MARK = re.compile(r"\{\{\{|\}\}\}|\[\[|\]\]|\|")
_BRACE = re.compile(r"[{}]")
_LIST = ("*", "#", ":", ";")  # they begin a line wherever the template stands
_DEEPEST = 40  # parameters in one another


class _Parameter(NamedTuple):
    name: str
    default: "list[_Piece] | None"


_Piece = str | _Parameter


class _Open:
    """A parameter that is being read, or the body around all of them: its parts between bars."""

    def __init__(self) -> None:
        self.parts: list[list[_Piece]] = [[]]
        self.links = 0  # in how many links it stands

    def add(self, text: str) -> None:
        if _BRACE.search(text):
            raise ValueError("a brace of another template, a parser function or a table")
        self.parts[-1].append(text)

    def parameter(self) -> _Parameter:
        """Its name and its default; what follows a second bar counts for nothing."""
        names = [piece if isinstance(piece, str) else "{" for piece in self.parts[0]]
        if "{" in names:
            raise ValueError("a parameter in a parameter's name")
        return _Parameter("".join(names).strip(), self.parts[1] if len(self.parts) > 1 else None)


def transcluded(text: str) -> str:
    """Return what of a template's page stands where it is used, in linear time."""
    if "<onlyinclude>" in text and "</onlyinclude>" in text:
        text = "".join(_ONLY.findall(text))
    return _UNSEEN.sub("", text) if "<" in text else text


def compile_body(body: str) -> Rule:
    """The rule of a body; it shows nothing where a parameter without a default is not given.

    Raises: ValueError: it is not simple: it calls other templates, functions or modules, or is more than a line's text.
    """
    pieces = _read(_TAG.sub(_tag, body))

    def show(arguments: Arguments) -> str | None:
        shown = _fill(pieces, arguments, MOST_CHARACTERS + 2 * sum(map(len, arguments.values())))
        if shown is None or Arguments.shown(shown):
            return f"\n{shown}" if shown and shown.startswith(_LIST) else shown
        return GONE + " " * any(map(str.isspace, shown))

    return show


def _tag(tag: re.Match[str]) -> str:
    name = tag[1].lower()
    if name != "br" and (name not in _TAGS or _HIDDEN.search(tag[2])):
        raise ValueError(f"a tag <{name}>")
    return BREAK if name == "br" else CUT


def _read(body: str) -> list[_Piece]:
    if "<" in body:
        raise ValueError("a bracket of no tag")
    opened, end = [_Open()], 0
    for found in _MARK.finditer(body):
        top, mark = opened[-1], found.group()
        top.add(body[end : found.start()])
        end = found.end()
        if mark == "{{{" and len(opened) <= _DEEPEST:
            opened.append(_Open())
        elif mark == "}}}" and len(opened) > 1:
            opened.pop()
            opened[-1].parts[-1].append(top.parameter())
        elif mark == "|" and not top.links:
            if len(opened) > 1:
                top.parts.append([])
            elif body[: found.start()].rpartition("\n")[2].strip():
                top.add(protect("|"))
            else:
                raise ValueError("a row of a table")
        else:
            top.links = max(0, top.links + (mark == "[[") - (mark == "]]"))
            top.add(mark)
    opened[-1].add(body[end:])
    if len(opened) > 1:
        raise ValueError("a parameter that never ends")
    return opened[0].parts[0]


def _fill(pieces: list[_Piece], arguments: Arguments, most: int) -> str | None:
    """The pieces with their arguments; None where one is missing, or where they are longer than `most`."""
    shown: list[str] = []
    for piece in pieces:
        value: str | None
        if isinstance(piece, str):
            value = piece
        elif (value := arguments.get(piece.name)) is None and piece.default is not None:
            value = _fill(piece.default, arguments, most)
        if value is None or (most := most - len(value)) < 0:
            return None
        shown.append(value)
    return "".join(shown)
