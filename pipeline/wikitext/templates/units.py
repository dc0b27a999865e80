"""Measures: ``{{convert|19000|sqft|m2}}`` as the English Wikipedia shows it, "19,000 square feet (1,800 m2)".

A result has the precision of what it was made from, and at least two significant digits, unless the template names
another. Codes of units may have a prefix (`MW`, `e6acre`) and be quotients or products of others (`oilbbl/d`, `lb.ft`).
"""

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, NamedTuple

from pipeline.mediawiki.languages import base_language, read_table
from pipeline.wikitext.templates.rules import Arguments, superscript

_NUMBER = re.compile(r"[+\-−]?(?:\d[\d,]*)?(?:\.\d+)?(?:e[+\-]?\d{1,2})?", re.ASCII)
_MIXED = re.compile(r"([+\-−]?)(?:(\d{1,9})[+ ])?(\d{1,9})[/⁄](\d{1,9})", re.ASCII)
_THOUSANDS = re.compile(r"e(3|6|9|12|15)(?=\D)")
_PARTS = {"ftin": ("ft", "in"), "lboz": ("lb", "oz"), "stlb": ("st", "lb"), "miyd": ("mi", "yd")}
_MOST_DIGITS = 12
_LARGEST, _SMALLEST = 9, 5  # digits before and zeros behind the point of a number that is no power of ten
_LONGEST = 40  # characters of a number, and of the code of a unit
_NUMBERS = tuple(map(str, range(1, 13)))  # of arguments that are read


class Unit(NamedTuple):
    """A unit of measure; `size` and `offset` lead to the base unit of its `kind`, a quotient where it is `inverse`."""

    kind: str
    symbol: str
    size: float
    to: str = ""
    names: Sequence[str] = ()  # one and many in British spelling, one and many in American
    to_below_3: str = ""
    offset: float = 0.0
    si: bool = False  # whether kilo and the like may precede it
    inverse: bool = False

    def written(self, *, many: bool, us: bool) -> str:
        return self.names[2 * us + many] if self.names else self.symbol

    def base(self, number: float) -> float:
        """Return a number of these units in the base unit."""
        return self.size / number if self.inverse and number else number * self.size + self.offset

    def of_base(self, value: float) -> float:
        return self.size / value if self.inverse and value else (value - self.offset) / self.size

    def times(self, size: float, symbol: str, word: str, to: str) -> "Unit":
        """Return the unit that is so many times as large, with what stands before its symbol and its names."""
        names = tuple(word + name for name in self.names)
        return self._replace(symbol=symbol + self.symbol, size=self.size * size, to=to, names=names, to_below_3="")


@cache
def _tables() -> dict[str, Any]:
    data = dict(read_table("units"))
    tables: dict[str, Any] = {name: data.pop(name) for name in ("same", "ranges", "prefixes", "scales")}
    units = {code: Unit(kind, **unit) for kind, codes in data.items() for code, unit in codes.items()}
    return tables | {"units": units | {name: units[code] for name, code in tables["same"].items()}}


def unit_of(code: str) -> Unit | None:
    """Return the unit that a code means: one of the table, with a prefix, or made of others; None for no unit."""
    # A hostile page has as many long codes as it likes.
    return _unit_of(code) if len(code) <= _LONGEST else None


@lru_cache(1 << 12)
def _unit_of(code: str) -> Unit | None:
    known: Mapping[str, Unit] = _tables()["units"]
    if code in known or not code:
        return known.get(code)
    if (scale := _THOUSANDS.match(code)) and (found := unit_of(code[scale.end() :])):
        to = " ".join(scale[0] + each for each in found.to.split())
        word, symbol = f"{_tables()['scales'][scale[1]]} ", f"×10{superscript(scale[1])} "
        return found.times(10.0 ** int(scale[1]), symbol, word, to)
    for prefix, (word, size) in _tables()["prefixes"].items():
        if code.startswith(prefix) and (found := known.get(code[len(prefix) :])) and found.si:
            return found.times(size, prefix, word, found.to)
    for mark, joint in (("/", " per "), (".", "-")):
        left, _, right = code.partition(mark)
        if right and (one := unit_of(left)) and (other := unit_of(right)):
            ends = [other.written(many=False, us=us) for us in (False, False, True, True)]
            names = [(one.names or [one.symbol] * 4)[place] + joint + end for place, end in enumerate(ends)]
            size = one.size / other.size if mark == "/" else one.size * other.size
            to = " ".join(f"{each}{mark}{right}" for each in one.to.split())
            symbol = one.symbol + mark.replace(".", "⋅") + other.symbol
            return Unit(one.kind + mark + other.kind, symbol, size, to, tuple(names))
    return None


class Measure:
    """Numbers as they were written, with what stands between them there and in a conversion, in one unit.

    `more` holds further numbers in smaller units, as in 6 feet 4 inches.
    """

    def __init__(self, written: list[str], joints: list[tuple[str, str]], unit: Unit) -> None:
        self.written, self.joints, self.unit = written, joints, unit
        self.more: list[tuple[str, Unit]] = []

    @property
    def values(self) -> list[float]:
        """The numbers in the base unit."""
        added = sum((number_of(number) or 0.0) * unit.size for number, unit in self.more)
        return [self.unit.base(number_of(text) or 0.0) + added for text in self.written]

    def shown(self, numbers: list[str], unit: str, side: int) -> str:
        """Return numbers with a unit behind the last, or behind each of several dimensions."""
        parts = ["", *((unit if joint[side] == " × " else "") + joint[side] for joint in self.joints)]
        return "".join(part + number for part, number in zip(parts, numbers, strict=True)) + unit


def number_of(text: str) -> float | None:
    """Return what a number says: 1,500, 1.5e6, −3, 5+1/2; None for anything else."""
    return _number_of(text) if len(text) <= _LONGEST else None


@lru_cache(1 << 12)
def _number_of(text: str) -> float | None:
    if mixed := _MIXED.fullmatch(text):
        sign, whole, top, bottom = mixed.groups()
        found = int(whole or 0) + Fraction(int(top), int(bottom)) if int(bottom) else None
        return None if found is None else float(-found if sign in ("-", "−") and sign else found)
    if not _NUMBER.fullmatch(text) or not any(map(str.isdigit, text)):
        return None
    return float(text.replace(",", "").replace("−", "-"))


def digits_of(text: str) -> int:
    """Digits behind the point of a number as it is written; below 0 where it ends in zeros before the point."""
    number, _, exponent = text.replace(",", "").partition("e")
    whole, dot, behind = number.partition(".")
    if "/" in text:
        return 0
    found = len(behind) if dot else -(len(whole) - len(whole.rstrip("0"))) if whole.strip("0+-−") else 0
    return found - int(exponent or 0)


def convert(arguments: Arguments, option: str = "") -> str | None:
    """Return what ``{{convert}}`` shows, "5 miles (8.0 km)"; with an option short, "5 mi (8.0 km)".

    Other languages than English have the symbols of units, which need no translation. A unit that is not known here
    leaves numbers and unit as they are written. None: there is no number.
    """
    given = [arguments.get(number, "") for number in _NUMBERS]
    ranges, place = _tables()["ranges"], 1
    while place + 2 < len(given) and given[place] in ranges:
        place += 2
    written, code, rest = given[:place:2], given[place], given[place + 1 :]
    if any(number_of(number) is None for number in written):
        return None
    unit = unit_of(code) or Unit("", code, 1.0)
    measure = Measure(written, [ranges[joint] for joint in given[1:place:2]], unit)
    while len(rest) > 1 and number_of(rest[0]) is not None and (smaller := unit_of(rest[1])):
        if smaller.kind != unit.kind:
            break
        measure.more.append((rest[0], smaller))
        rest = rest[2:]
    shape = _Shape(arguments, rest, option)
    targets, digits = _targets([text for text in rest if text != shape.words], measure)
    found = [text for code in targets if (text := _converted(measure, code, digits, arguments, shape))]
    return _together(_as_written(measure, shape), found, arguments, flipped=shape.flipped)


class _Shape:
    """The forms of a measure: short " km", long " kilometres", joined "-kilometre"."""

    def __init__(self, arguments: Arguments, rest: list[str], option: str) -> None:
        self.numbers, is_english = arguments.wiki.numbers, base_language(arguments.wiki.language) == "en"
        abbreviated = "on" if option or not is_english else arguments.given("abbr")
        self.adjective = arguments.given("adj")
        self.flipped = "flip" in (arguments.given("order"), arguments.given("disp"))
        self.us = arguments.given("sp") == "us"
        is_joined = self.adjective in ("on", "mid", "j") or arguments.given("sing") == "on"
        name = "joined" if is_joined else "long"
        self.first = "short" if abbreviated in ("on", "in", "~") else name
        self.second = name if abbreviated in ("off", "none") else "short"
        if self.flipped and self.first == name:
            self.first, self.second = self.second, name
        # Words that are no unit stand behind the measure, or before its unit.
        words = [text for text in rest if text and number_of(text) is None and text != "-"]
        self.words = words[-1] if words and self.adjective in ("mid", "pre") else ""

    def grouped(self, number: str) -> str:
        """Return a number with its marks of thousands, and a real minus sign."""
        return self.numbers.written(number.replace(",", ""))

    def named(self, unit: Unit, number: str, form: str) -> str:
        """Return the unit behind a number."""
        if form == "short" or not unit.names:
            return unit.symbol if unit.symbol[:1] in ("/", "×", "") else f" {unit.symbol}"
        if form == "joined":
            return "-" + unit.written(many=False, us=self.us).replace(" ", "-")
        return " " + unit.written(many=number_of(number) not in (1, -1), us=self.us)


def _as_written(measure: Measure, shape: _Shape) -> str:
    numbers = [shape.grouped(number) for number in measure.written]
    named = shape.named(measure.unit, "2" if len(numbers) > 1 else measure.written[0], shape.first)
    before, behind = (f" {shape.words}", "") if shape.adjective == "pre" else ("", shape.words)
    shown = measure.shown(numbers, before + named, 0)
    joint = "-" if shape.first == "joined" else " "
    for number, part in measure.more:
        shown += joint + shape.grouped(number) + shape.named(part, number, shape.first)
    return shown + behind


def _together(shown: str, outputs: list[str], arguments: Arguments, *, flipped: bool) -> str:
    display = arguments.given("disp")
    if not outputs or display == "preunit":
        return shown
    if flipped:
        shown, outputs = outputs[0], [shown, *outputs[1:]]
    others = "; ".join(outputs)
    if display in ("out", "output only"):
        return others
    if display in ("output number only", "number"):
        return re.sub(r"[^\d]+$", "", others)
    joint = {"or": " or ", "comma": ", ", "/": "/", "slash": "/", "br": " "}.get(display)
    return f"{shown}{joint}{others}" if joint else f"{shown} ({others})"


def _targets(rest: list[str], measure: Measure) -> tuple[list[str], int | None]:
    """(codes of the units wanted, digits behind the point where they are named)."""
    wanted, digits = [text for text in rest if text], None
    if wanted and re.fullmatch(r"-?\d", wanted[-1], re.ASCII):
        digits = int(wanted.pop())
    unit = measure.unit
    is_small = unit.to_below_3 and abs(number_of(measure.written[0]) or 0.0) < 3
    codes = " ".join(wanted[:1]) or (unit.to_below_3 if is_small else unit.to)
    return ([codes] if unit_of(codes) else re.split(r"[ +]", codes)), digits


def _converted(measure: Measure, code: str, digits: int | None, arguments: Arguments, shape: _Shape) -> str | None:
    """The measure in another unit, with its symbol or name; None where that is no unit of the same kind."""
    parts = [_tables()["units"][part] for part in _PARTS.get(code, ())]
    target = parts[0] if parts else unit_of(code)
    if target is None or target.kind != measure.unit.kind:
        return None
    values = [target.of_base(value) for value in measure.values]
    if parts:
        return _in_parts(values[0], parts[0], parts[1], shape)
    written = [*measure.written[:-1], measure.more[-1][0] if measure.more else measure.written[-1]]
    places = [_precision(text, value, digits, arguments) for text, value in zip(written, values, strict=True)]
    rounded = [_rounded(value, max(places) + bool(measure.more), shape) for value in values]
    return measure.shown(rounded, shape.named(target, rounded[-1], shape.second), 1)


def _in_parts(value: float, large: Unit, small: Unit, shape: _Shape) -> str:
    """Feet and inches, to the whole inch, and the like."""
    ratio = round(large.size / small.size)
    whole, rest = divmod(round(value * ratio), ratio)
    parts = [f"{shape.grouped(str(whole))} {large.symbol}"] if whole else []
    return " ".join([*parts, f"{rest} {small.symbol}"])


def _precision(written: str, value: float, digits: int | None, arguments: Arguments) -> int:
    """Digits behind the point of a result."""
    if digits is not None:
        return digits
    places = math.floor(math.log10(abs(value))) if value else 0
    if (figures := arguments.given("sigfig")).isdecimal():
        return int(figures) - 1 - places
    number = abs(number_of(written) or 0.0)
    if not value or not number:
        return max(0, digits_of(written))
    if not -_MOST_DIGITS < places < _MOST_DIGITS:
        return 1 - places
    adjusted = digits_of(written) + math.floor(math.log10(number / abs(value)) + 0.02)
    return max(adjusted, 1 - places)


def _rounded(value: float, digits: int, shape: _Shape) -> str:
    """A number with so many digits behind the point; a very large or small one as a power of ten."""
    power = math.floor(math.log10(abs(value))) if value else 0
    if power < -_SMALLEST or power >= _LARGEST:
        behind = max(0, min(_MOST_DIGITS, digits + power))
        return f"{shape.grouped(f'{value / 10.0**power:.{behind}f}')}×10{superscript(str(power))}"
    digits = max(-_MOST_DIGITS, min(_MOST_DIGITS, digits))
    return shape.grouped(f"{round(value, digits):.{max(0, digits)}f}")
