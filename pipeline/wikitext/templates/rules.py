"""A template's arguments, and rules that say what it shows with them.

A rule is text with parameters, as the data file has it: ``{1}`` is a parameter, ``{lt|1}`` the first of several that is
given, ``{name|"Site"}`` a text where none is, ``{2..4:, }`` the positional ones from 2 to 4 with ", " between them,
``{#1}`` one that begins with a number, as the language writes it, ``{0}`` the template's own name, and ``<...>`` stands
only where all its parameters are given:

    >>> rule = compile_rule("{1}< ({2..4:, })>")
    >>> rule(Arguments("nihongo|[[Aikido]]|合気道|Aikidō"))
    '[[Aikido]] (合気道, Aikidō)'
    >>> rule(Arguments("nihongo|Aikido"))
    'Aikido'
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pipeline.mediawiki.numbers import ENGLISH, NumberFormat
from pipeline.wikitext.placeholders import BREAK, CUT, GONE, protect

Rule = Callable[["Arguments"], str | None]
"""Gives the text that a template shows, as wikitext; None where its arguments do not say."""

_BARS = re.compile(r"\[\[|\]\]|\|")
_TOKEN = re.compile(r'\{(?=[\w"#])([^{}]*)\}|(<)|(>)|((?:[^{}<>]|\{(?![\w"#]))+)')
_RANGE = re.compile(r"(\d+)\.\.(\d*):(.*)", re.DOTALL)
_SUPERSCRIPTS = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_BLOCK = "*#:;{|"  # at the beginning of a line they are marks
_MARKS = str.maketrans("", "", CUT + GONE)


class _Alternatives(NamedTuple):
    """The first argument that is given, else a text."""

    names: tuple[str, ...]
    otherwise: str
    is_number: bool


class _Range(NamedTuple):
    """Positional arguments with something between them; `last` is 0 for all."""

    first: int
    last: int
    joint: str


class _Optional(NamedTuple):
    """Pieces that stand only where all arguments in them are given."""

    pieces: "list[_Piece]"


_Piece = str | _Alternatives | _Range | _Optional


class Wiki(NamedTuple):
    """The facts of a wiki for rules: language, name, names of languages by code and of months, numbers."""

    language: str
    name: str
    languages: Mapping[str, str]
    months: Sequence[str]
    numbers: NumberFormat

    def month(self, month: str) -> str:
        """Return the name of a month by its number; what is no number stays."""
        found = self.months[int(month) - 1 : int(month)] if month.isdecimal() and len(month) < 3 else None
        return found[0] if found else month


_NO_WIKI = Wiki("en", "", {}, (), ENGLISH)


class Arguments(dict[str, str]):
    """The arguments of a template by name or number ("1", "2", ...; "0" is its name), without blanks around them.

    `source` is what stands between the braces, in which inner templates are replaced already. It stands on the `page`
    of that title in a wiki, and perhaps `alone` on its line.
    """

    def __init__(self, source: str, wiki: Wiki = _NO_WIKI, page: str = "", *, alone: bool = False) -> None:
        super().__init__()
        self.wiki, self.page, self.alone = wiki, page, alone
        parts = _split(source)
        self["0"] = next(parts).strip()
        number = 0
        for part in parts:
            name, equals, value = part.partition("=")
            name = name.strip()
            if not equals or "[" in name:
                number += 1
                name, value = str(number), part
            self[name] = _trimmed(value)

    def called(self, name: str) -> "Arguments":
        """Return the same arguments of the template that has another name."""
        self["0"] = name
        return self

    def given(self, *names: str) -> str:
        """The first of the arguments that has a text; "" where none has."""
        for name in names:
            if (value := self.get(name)) and self.shown(value):
                return value
        return ""

    @staticmethod
    def shown(value: str) -> str:
        """A value; "" where it holds nothing but what was cut."""
        if CUT not in value and GONE not in value:
            return value if value and not value.isspace() else ""
        return value if value.translate(_MARKS).strip() else ""

    def positional(self, first: int, last: int) -> list[str]:
        """The positional arguments from the first on that have a text, up to the last (0: all)."""
        numbers = map(int, filter(str.isdecimal, self))
        wanted = sorted(number for number in numbers if first <= number <= (last or number))
        return [text for number in wanted if (text := self.given(str(number)))]


def _split(source: str) -> Iterator[str]:
    """The parts between the bars that are in no link."""
    if "[[" not in source:
        yield from source.split("|")
        return
    start = depth = 0
    for mark in _BARS.finditer(source):
        if mark.group() != "|":
            depth = max(0, depth + (1 if mark.group() == "[[" else -1))
        elif not depth:
            yield source[start : mark.start()]
            start = mark.end()
    yield source[start:]


def _trimmed(value: str) -> str:
    """A value without blanks around it; one that is a list keeps its lines to itself."""
    bare = value.strip()
    is_block = "\n" in value and bare[:1] and bare[:1] in _BLOCK
    return f"\n{bare}\n" if is_block else bare


def superscript(number: str) -> str:
    """Digits as superscripts."""
    return number.translate(_SUPERSCRIPTS)


def constant(text: str) -> Rule:
    """The rule of a template that stands for characters, which are no marks; a bar parts the sides of a link."""
    shown = "|".join(map(protect, text.replace("\n", BREAK).split("|")))
    return lambda arguments: shown


@lru_cache(1 << 12)
def compile_rule(text: str) -> Rule:
    """The rule that a text says. Raises: ValueError for a bracket without its partner."""
    if not re.search(r'\{[\w"#]', text):
        return constant(text)
    pieces = _read(text)

    def show(arguments: Arguments) -> str | None:
        return _fill(pieces, arguments)

    return show


def _read(text: str) -> list[_Piece]:
    opened: list[list[_Piece]] = [[]]
    for token in _TOKEN.finditer(text):
        names, opens, shuts, plain = token.groups()
        if opens:
            opened.append([])
        elif shuts:
            inner = opened.pop()
            if not opened:
                raise ValueError(f"rule of a template: {text!r} has a bracket without its partner")
            opened[-1].append(_Optional(inner))
        elif names is not None:
            opened[-1].append(_parameter(names))
        elif plain is not None:
            opened[-1].append(plain.replace("\n", BREAK))
    if len(opened) > 1 or "".join(match.group() for match in _TOKEN.finditer(text)) != text:
        raise ValueError(f"rule of a template: {text!r} has a bracket without its partner")
    return opened[0]


def _parameter(names: str) -> _Alternatives | _Range:
    if found := _RANGE.fullmatch(names):
        return _Range(int(found[1]), int(found[2] or 0), found[3])
    *others, last = names.lstrip("#").split("|")
    if last.startswith('"'):
        return _Alternatives(tuple(others), last.strip('"'), names[0] == "#")
    return _Alternatives((*others, last), "", names[0] == "#")


def _fill(pieces: list[_Piece], arguments: Arguments) -> str | None:
    shown: list[str] = []
    for piece in pieces:
        if isinstance(piece, str):
            shown.append(piece)
        elif isinstance(piece, _Optional):
            shown.append(_fill(piece.pieces, arguments) or "")
        else:
            if isinstance(piece, _Range):
                value = piece.joint.join(arguments.positional(piece.first, piece.last))
            else:
                value = arguments.given(*piece.names) or piece.otherwise
                value = arguments.wiki.numbers.leading(value) if piece.is_number else value
            if not value:
                return None
            shown.append(value)
    return "".join(shown)
