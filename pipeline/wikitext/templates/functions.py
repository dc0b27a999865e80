"""Texts of templates that no pattern of parameters says: dates, languages, ships, numbers.

`FUNCTIONS` has a maker of rules by the name that the data file gives it. A maker takes the wiki and what stands behind
its own name in the file. English wikis alone have the templates whose words are English here.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date as Date
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from pipeline.mediawiki.numbers import ENGLISH, NumberFormat
from pipeline.wikitext.templates.rules import Arguments, Rule, compile_rule
from pipeline.wikitext.templates.units import convert


class Wiki(NamedTuple):
    """What rules ask of a wiki: its language and name, names of languages by code and of months, and its numbers."""

    language: str
    name: str
    languages: Mapping[str, str]
    months: Sequence[str]
    numbers: NumberFormat

    def month(self, month: str) -> str:
        """Return the name of a month by its number; what is no number stays."""
        found = self.months[int(month) - 1 : int(month)] if month.isdecimal() and len(month) < 3 else None
        return found[0] if found else month


Maker = Callable[[Wiki, str], Rule]
_SUPERSCRIPTS = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_SHARPS = {
    "flat": "♭",
    "b": "♭",
    "sharp": "♯",
    "#": "♯",
    "natural": "♮",
    "doublesharp": "𝄪",
    "doubleflat": "𝄫",
}
_CHINESE = {
    "c": "Chinese",
    "t": "traditional Chinese",
    "s": "simplified Chinese",
    "p": "pinyin",
    "hp": "pinyin",
    "w": "Wade–Giles",
    "j": "Jyutping",
    "y": "Yale",
}
_NUMBER = re.compile(r"(?:-(?=[\d.]))?(?:\d+|(?=\.\d))(?:\.\d*)?", re.ASCII)
_CENTURY = re.compile(r"[IVX]+|\d{1,2}")
_JOINTS = frozenset(
    ("à", "et", "ou", "x", "×", "-", "–", "to", "and", "or", "a", "y", "o", "e", "und", "bis")
)
_INTEGER = re.compile(r"[+\-−]?\d{1,3}", re.ASCII)


def _plain(function: Callable[[Arguments], str | None]) -> Maker:
    return lambda wiki, option: function


def superscript(number: str) -> str:
    """Digits as superscripts."""
    return number.replace("-", "−").translate(_SUPERSCRIPTS)


def link(arguments: Arguments) -> str | None:
    """A link to a page that may only exist in another language: the local title with its label.

    In French the title may stand in `fr`. The other language's, `trad`, is a text where it is alone, and no link.
    """
    title = arguments.given("1", "fr")
    label = arguments.given("lt", "texte", "text", "display") or title or arguments.given("trad")
    return (title if "[[" in title else f"[[{title}|{label}]]") if title else label or None


def sortname(arguments: Arguments) -> str | None:
    """First and last name, linked to the page of that name unless another is named."""
    name = " ".join(arguments.positional(1, 2))
    if not name or arguments.given("nolink"):
        return name or None
    other = arguments.given("dab")
    title = arguments.given("3") or (f"{name} ({other})" if other else name)
    return f"[[{title}|{name}]]"


def language(wiki: Wiki, option: str) -> Rule:
    """``{{lang-kw|Bosvena}}``: "Cornish: Bosvena", the text alone where the language has no name here."""

    def show(arguments: Arguments) -> str | None:
        code = arguments["0"].replace("_", "-").partition("-")[2].lower()
        return _in_language(arguments, wiki.languages.get(code, ""), first=1)

    return show


def language_by_code(wiki: Wiki, option: str) -> Rule:
    """``{{langx|kw|Bosvena}}``: the same with the code as an argument."""

    def show(arguments: Arguments) -> str | None:
        name = wiki.languages.get(arguments.given("1").lower(), "")
        return _in_language(arguments, name, first=2)

    return show


def _in_language(arguments: Arguments, name: str, first: int) -> str | None:
    text = arguments.given(str(first), "text")
    if not text:
        return None
    if arguments.get("label") is not None:  # an empty label is none
        name = "" if arguments["label"] == "none" else arguments["label"]
    parts = [f"{name}: {text}" if name else text]
    if romanized := arguments.given("translit", "tr", str(first + 1)):
        parts.append(f"romanized: {romanized}" if name else romanized)
    if meaning := arguments.given("lit", "translation", str(first + 2)):
        parts.append(f"lit. '{meaning}'" if name else meaning)
    return ", ".join(parts)


def chinese(arguments: Arguments) -> str | None:
    """The forms of a Chinese name, each with what it is."""
    forms = [f"{label}: {arguments.given(key)}" for key, label in _CHINESE.items() if arguments.given(key)]
    return "; ".join(forms) or arguments.given("1") or None


def written_date(wiki: Wiki, arguments: Arguments, *, day_first: bool = True) -> str:
    """Year, month and day in numbers as a date in words; what is no number stays."""
    year, name, day = (arguments.given(str(number)) for number in (1, 2, 3))
    name = wiki.month(name)
    day = day.lstrip("0") if day.isdecimal() else day
    if day and name and not day_first:
        return f"{name} {day}, {year}"
    return " ".join(filter(None, (day, name, year)))


def date(wiki: Wiki, option: str) -> Rule:
    """Year, month and day in numbers; the day first where `df` says so."""

    def show(arguments: Arguments) -> str | None:
        if not arguments.given("1").isdecimal():
            return arguments.given("1") or None
        return written_date(wiki, arguments, day_first=arguments.given("df") in ("y", "yes"))

    return show


def day_first(wiki: Wiki, option: str) -> Rule:
    """``{{date|1|5|1990}}``: day, month and year; `option` is a word between them, or how the first day is written."""
    joint, first = (" ", option) if option[:1].isdigit() else (f" {option} ".replace("  ", " "), "")

    def show(arguments: Arguments) -> str | None:
        day, month, year = (arguments.given(str(number)) for number in (1, 2, 3))
        day = day.lstrip("0") if day.isdecimal() else day
        day = re.sub(r"^1(?= |$)", first or "1", day)
        return joint.join(filter(None, (day, wiki.month(month), year))) or None

    return show


def as_of(wiki: Wiki, option: str) -> Rule:
    """ "As of 2014", in small letters or "Since 2014" where that is asked for."""

    def show(arguments: Arguments) -> str | None:
        if text := arguments.given("alt"):
            return text
        if not arguments.given("1"):
            return None
        words = "since" if arguments.given("since") else "as of"
        if not (arguments.given("lc") or "lc" in arguments.positional(2, 4)):
            words = words.capitalize()
        shown = written_date(wiki, arguments, day_first=arguments.given("df") != "us")
        return f"{words} {shown}" + arguments.given("post")

    return show


def either(wiki: Wiki, option: str) -> Rule:
    """The first of two rules where an argument is given, else the second: ``ARGUMENT||RULE||RULE``."""
    name, given, otherwise = option.split("||")
    rules = [compile_rule(rule, wiki.numbers) for rule in (otherwise, given)]
    return lambda arguments: rules[bool(arguments.given(name))](arguments)


def centuries(wiki: Wiki, option: str) -> Rule:
    """``{{sp|XI|e|et|XII|e}}``: centuries, each with its ending, and what stands between and behind them."""

    def show(arguments: Arguments) -> str | None:
        texts = [text for text in arguments.positional(1, 0) if text.lower() not in ("e", "er", "s")]
        numbers = [bool(_CENTURY.fullmatch(text)) for text in texts]
        if all(numbers):
            texts, numbers = [*texts[:-1], "et", *texts[-1:]], [*numbers[:-1], False, *numbers[-1:]]
        endings = [
            ("er" if text == "I" else "e") * number for text, number in zip(texts, numbers, strict=True)
        ]
        return " ".join([text + ending for text, ending in zip(texts, endings, strict=True)] + [option])

    return show


def unqualified(arguments: Arguments) -> str | None:
    """``{{souverain|Jacques II (roi d'Angleterre)}}``: a link that does not show what stands in brackets."""
    title = arguments.given("1")
    return f"[[{title}|{title.partition(' (')[0]}]]{arguments.given('2')}" if title else None


def age(arguments: Arguments) -> str | None:
    """Years between two dates; the age today of one date is no text of a dump."""
    numbers = [arguments.given(str(number)) for number in range(1, 7)]
    try:
        born, died = (Date(*map(int, numbers[start : start + 3])) for start in (0, 3))
    except ValueError:
        return None
    return str(died.year - born.year - ((died.month, died.day) < (born.month, born.day)))


def ship(wiki: Wiki, option: str) -> Rule:
    """``{{USS|Nimitz|CVN-68|6}}``: a link to the ship, of whose name the last argument says what is shown."""

    def show(arguments: Arguments) -> str | None:
        offset = 0 if option else 1
        prefix = option or arguments.given("1")
        name, number, form = (arguments.given(str(offset + place)) for place in (1, 2, 3))
        if not name:
            return None
        full = f"{prefix} {name}".strip()
        title = f"{full} ({number})" if number else full
        shown = {"1": number, "2": full, "3": f"{name} ({number})", "5": name, "6": name}.get(form, title)
        return f"[[{title}|{shown or title}]]"

    return show


def value(wiki: Wiki, option: str) -> Rule:
    """``{{val|1.5|0.2|u=kg|e=3}}``: a number with its uncertainty, power of ten and unit; nothing without a number."""

    def show(arguments: Arguments) -> str | None:
        number, plus, minus = (wiki.numbers.leading(arguments.given(each)) for each in ("1", "2", "3"))
        if not number:
            return None
        if plus:
            number += f" +{plus.lstrip('+')} −{minus.lstrip('−-')}" if minus else f"±{plus}"
        if exponent := arguments.given("e"):
            number = f"({number})" if plus else number
            number += f"×10{superscript(exponent)}"
        unit = arguments.given("u", "ul")
        per = arguments.given("up", "upl")
        number += f" {unit}" * bool(unit) + f"/{per}" * bool(per)
        return arguments.given("p") + number + arguments.given("s")

    return show


def quantity(wiki: Wiki, option: str) -> Rule:
    """``{{unité|8.3|J|mol|-1|e=6}}``: a number with its power of ten, and units, each with an exponent behind it."""

    def show(arguments: Arguments) -> str | None:
        number, *units = arguments.positional(1, 0) or [""]
        if not (shown := wiki.numbers.leading(number)):
            return None
        if exponent := arguments.given("e"):
            shown += f"×10{superscript(exponent)}"
        for before, unit in pairwise([number, *units]):
            is_exponent = _INTEGER.fullmatch(unit) and before not in _JOINTS and not before[-1].isdecimal()
            shown += superscript(unit) if is_exponent else f" {wiki.numbers.leading(unit) or unit}"
        return shown

    return show


def power_of_ten(arguments: Arguments) -> str | None:
    """``2{{e|-7}}``: 2×10⁻⁷."""
    exponent = arguments.given("1").replace("–", "−")
    return f"×10{superscript(exponent)}" if exponent else None


def fraction(arguments: Arguments, stroke: str) -> str | None:
    """One argument is a denominator, two a fraction, three a whole number and a fraction."""
    numbers = arguments.positional(1, 3)
    whole = numbers[0] + " " if len(numbers) == 3 else ""
    top = numbers[-2] if len(numbers) > 1 else "1"
    return f"{whole}{top}{stroke}{numbers[-1]}" if numbers else None


def music(arguments: Arguments) -> str | None:
    """Accidentals; other words stay."""
    return "".join(_SHARPS.get(each, each) for each in arguments.positional(1, 0)) or None


def formatnum(wiki: Wiki, option: str) -> Rule:
    """``{{formatnum:12345}}``: each number of a text as the language writes it; with R digits alone."""

    def show(arguments: Arguments) -> str | None:
        number, form = arguments.shown(_behind_colon(arguments)), arguments.given("1").upper()
        if form == "R":
            return wiki.numbers.raw(number) or None
        if form == "NOSEP":
            return wiki.numbers.in_digits(number) or None
        return _NUMBER.sub(lambda found: wiki.numbers.written(found[0]), number) or None

    return show


def _behind_colon(arguments: Arguments) -> str:
    return arguments["0"].partition(":")[2].strip()


def _cased(change: Callable[[str], str]) -> Maker:
    """A function that changes the letters of its argument."""
    return _plain(lambda arguments: change(_behind_colon(arguments)) or None)


def _first(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: change(text[:1]) + text[1:]


def page_title(arguments: Arguments) -> str | None:
    """``{{PAGENAME}}``: the title of the page, or that behind the colon without its namespace."""
    named = _behind_colon(arguments)
    return (named.partition(":")[2] or named).strip() or arguments.page or None


def _convert(wiki: Wiki, option: str) -> Rule:
    """Measures as in English; other languages have the symbols of units, which need no translation."""
    short = wiki.numbers != ENGLISH or option == "short"

    def show(arguments: Arguments) -> str | None:
        shown = convert(arguments, short=short)
        return shown and wiki.numbers.localized(shown)

    return show


FUNCTIONS: Mapping[str, Maker] = {
    "link": _plain(link),
    "sortname": _plain(sortname),
    "lang": language,
    "langx": language_by_code,
    "chinese": _plain(chinese),
    "date": date,
    "day_first": day_first,
    "as_of": as_of,
    "either": either,
    "centuries": centuries,
    "unqualified": _plain(unqualified),
    "before_christ": _plain(lambda arguments: f"{arguments['0'].lstrip('-')} av. J.-C."),
    "age": _plain(age),
    "ship": ship,
    "val": value,
    "quantity": quantity,
    "power_of_ten": _plain(power_of_ten),
    "frac": _plain(partial(fraction, stroke="⁄")),
    "sfrac": _plain(partial(fraction, stroke="/")),
    "music": _plain(music),
    "formatnum": formatnum,
    "lower": _cased(str.lower),
    "upper": _cased(str.upper),
    "lower_first": _cased(_first(str.lower)),
    "upper_first": _cased(_first(str.upper)),
    "page": _plain(page_title),
    "site": lambda wiki, option: lambda arguments: wiki.name or None,
    "language": lambda wiki, option: lambda arguments: wiki.language,
    "empty": _plain(lambda arguments: ""),
    "convert": _convert,
}
