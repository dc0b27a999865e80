"""Measures: ``{{convert|19000|sqft|m2}}`` as the English Wikipedia shows it, "19,000 square feet (1,800 m2)".

A result has the precision of what it was made from, and at least two significant digits, unless the template names
another.
"""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from pipeline.mediawiki.numbers import ENGLISH
from pipeline.wikitext.templates.rules import Arguments

_NUMBER = re.compile(r"[+\-−]?(?:\d[\d,]*)?(?:\.\d+)?(?:e[+\-]?\d{1,2})?")
_MIXED = re.compile(r"([+\-−]?)(?:(\d{1,9})[+ ])?(\d{1,9})[/⁄](\d{1,9})")
_RANGES = {
    **{word: f" {word} " for word in ("to", "and", "or", "by", "and(-)", "xx")},
    **{"-": "–", "–": "–", "to(-)": " to ", "to about": " to about "},
    **{"x": " by ", "×": " × ", "+/-": " ± ", "±": " ± "},
}  # fmt: skip
_PARTS = {"ftin": ("ft", "in"), "lboz": ("lb", "oz"), "stlb": ("st", "lb"), "miyd": ("mi", "yd")}
_MOST_DIGITS = 12
_NUMBERS = tuple(map(str, range(1, 13)))  # of arguments that are read


@dataclass(frozen=True)
class Unit:
    """A unit of measure; `size` and `offset` lead to the base unit of its `kind`."""

    kind: str
    symbol: str
    size: float
    to: str
    to_below_3: str = ""
    name: str = ""
    plural: str = ""
    us: str = ""
    us_plural: str = ""
    offset: float = 0.0

    def written(self, *, many: bool, us: bool) -> str:
        """Its name, in the plural or not, in British or American spelling; the symbol where it has none."""
        if not self.name:
            return self.symbol
        one, several = (self.us, self.us_plural) if us and self.us else (self.name, self.plural)
        return (several or f"{one}s") if many else one


@cache
def units() -> Mapping[str, Unit]:
    """All units by their codes."""
    data: dict[str, dict[str, Any]] = tomllib.loads(
        resources.files("pipeline.mediawiki").joinpath("data", "units.toml").read_text("utf-8")
    )
    same = data.pop("same")
    found = {code: Unit(kind, **unit) for kind, codes in data.items() for code, unit in codes.items()}
    return found | {name: found[code] for name, code in same.items()}


@dataclass(frozen=True)
class Measure:
    """Numbers as they were written, with what stands between them, in one unit.

    `more` holds further numbers in smaller units, as in 6 feet 4 inches.
    """

    written: tuple[str, ...]
    joints: tuple[str, ...]
    unit: Unit
    more: tuple[tuple[str, Unit], ...] = ()

    @property
    def values(self) -> list[float]:
        """The numbers in the base unit."""
        added = sum((number_of(number) or 0.0) * unit.size for number, unit in self.more)
        return [(number_of(text) or 0.0) * self.unit.size + self.unit.offset + added for text in self.written]

    def shown(self, numbers: list[str]) -> str:
        return "".join(number + joint for number, joint in zip(numbers, (*self.joints, ""), strict=True))


def grouped(number: str) -> str:
    """A number with a comma after each thousand, and a real minus sign."""
    return ENGLISH.written(number.replace(",", ""))


@lru_cache(1 << 12)
def number_of(text: str) -> float | None:
    """Return what a number says: 1,500, 1.5e6, −3, 5+1/2; None for anything else."""
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


def convert(arguments: Arguments, *, short: bool = False) -> str | None:
    """Return what ``{{convert}}`` shows, "5 miles (8.0 km)"; in ``short`` form, "5 mi (8.0 km)".

    A unit that is not known here leaves number and unit as they are written. None: there is no number.
    """
    given = [arguments.get(number, "") for number in _NUMBERS]
    measure, rest = _read(given)
    if measure is None:
        return f"{grouped(given[0])} {given[1]}".strip() if number_of(given[0]) is not None else None
    us = arguments.given("sp") == "us"
    targets, digits = _targets(rest, measure)
    outputs = [text for code in targets if (text := _converted(measure, code, digits, arguments))]
    form = "short" if short or arguments.given("abbr") in ("on", "in", "~") else "long"
    if arguments.given("adj") in ("on", "mid", "pre", "j") and form == "long":
        form = "joined"
    last = measure.written[-1] if len(measure.written) == 1 else "2"
    shown = measure.shown([grouped(number) for number in measure.written])
    shown += _named(measure.unit, last, form, us=us)
    for number, unit in measure.more:
        shown += f"{'-' if form == 'joined' else ' '}{grouped(number)}{_named(unit, number, form, us=us)}"
    return _together(shown, outputs, arguments)


def _named(unit: Unit, number: str, form: str, *, us: bool) -> str:
    """The unit behind a number: short " km", long " kilometres", joined "-kilometre"."""
    if form == "short" or not unit.name:
        return unit.symbol if unit.symbol[0] == "/" else f" {unit.symbol}"
    if form == "joined":
        return "-" + unit.written(many=False, us=us).replace(" ", "-")
    return " " + unit.written(many=number_of(number) not in (1, -1), us=us)


def _together(shown: str, outputs: list[str], arguments: Arguments) -> str:
    display = arguments.given("disp")
    if not outputs or display == "preunit":
        return shown
    if arguments.given("order") == "flip":
        shown, outputs = outputs[0], [shown, *outputs[1:]]
    others = "; ".join(outputs)
    if display in ("out", "output only", "output number only", "number"):
        return others
    joint = {"or": " or ", "comma": ", ", "/": "/", "slash": "/"}.get(display)
    return f"{shown}{joint}{others}" if joint else f"{shown} ({others})"


def _read(given: list[str]) -> tuple[Measure | None, list[str]]:
    """(the measure that is converted, the arguments behind it)."""
    written, joints, position = [given[0]], list[str](), 1
    while position + 1 < len(given) and given[position] in _RANGES:
        joints.append(_RANGES[given[position]])
        written.append(given[position + 1])
        position += 2
    unit = units().get(given[position]) if position < len(given) else None
    if unit is None or any(number_of(number) is None for number in written):
        return None, []
    more, rest = [], given[position + 1 :]
    while len(rest) > 1 and number_of(rest[0]) is not None and (smaller := units().get(rest[1])):
        if smaller.kind != unit.kind:
            break
        more.append((rest[0], smaller))
        rest = rest[2:]
    return Measure(tuple(written), tuple(joints), unit, tuple(more)), rest


def _targets(rest: list[str], measure: Measure) -> tuple[list[str], int | None]:
    """(codes of the units wanted, digits behind the point where they are named)."""
    wanted, digits = [text for text in rest if text], None
    if wanted and re.fullmatch(r"-?\d", wanted[-1]):
        digits = int(wanted.pop())
    unit = measure.unit
    is_small = unit.to_below_3 and abs(number_of(measure.written[0]) or 0.0) < 3
    codes = " ".join(wanted[:1]) or (unit.to_below_3 if is_small else unit.to)
    return ([codes] if codes in units() else re.split(r"[ +]", codes)), digits


def _converted(measure: Measure, code: str, digits: int | None, arguments: Arguments) -> str | None:
    """The measure in another unit, with its symbol; None where that is no unit of the same kind."""
    parts = _PARTS.get(code)
    target = units().get(parts[0] if parts else code)
    if target is None or target.kind != measure.unit.kind:
        return None
    values = [(value - target.offset) / target.size for value in measure.values]
    if parts:
        return _in_parts(values[0], *parts)
    written = [*measure.written[:-1], measure.more[-1][0] if measure.more else measure.written[-1]]
    places = max(
        _precision(text, value, digits, arguments) for text, value in zip(written, values, strict=True)
    )
    rounded = [_rounded(value, places + bool(measure.more)) for value in values]
    symbol = target.symbol if target.symbol[0] == "/" else f" {target.symbol}"
    if arguments.given("abbr") in ("off", "none"):
        many = rounded[-1] != "1"
        symbol = " " + target.written(many=many, us=arguments.given("sp") == "us")
    return measure.shown(rounded) + symbol


def _in_parts(value: float, large: str, small: str) -> str:
    """Feet and inches, to the whole inch, and the like."""
    ratio = round(units()[large].size / units()[small].size)
    whole, rest = divmod(round(value * ratio), ratio)
    parts = [f"{grouped(str(whole))} {units()[large].symbol}"] if whole else []
    return " ".join([*parts, f"{rest} {units()[small].symbol}"])


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


def _rounded(value: float, digits: int) -> str:
    digits = max(-_MOST_DIGITS, min(_MOST_DIGITS, digits))
    number = round(value, digits)
    return grouped(f"{number:.{max(0, digits)}f}")
