"""Texts of templates that no pattern of parameters says: dates, languages, ships, numbers.

`FUNCTIONS` has a function by the name that the data file gives it. It takes the arguments and `option`, what stands
behind its name in the file. English wikis alone have the templates whose words are English here.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date as Date
from itertools import pairwise

from pipeline.mediawiki.languages import read_table
from pipeline.wikitext.templates.rules import Arguments, compile_rule, superscript
from pipeline.wikitext.templates.units import convert

_WORDS: Mapping[str, Mapping[str, str]] = read_table("words")
_NUMBER = re.compile(r"(?:-(?=[\d.]))?(?:\d+|(?=\.\d))(?:\.\d*)?", re.ASCII)
_CENTURY = re.compile(r"[IVX]+|\d{1,2}")
_JOINTS = frozenset(("à", "et", "ou", "x", "×", "-", "–", "to", "and", "or", "a", "y", "o", "e", "und", "bis"))
_LONGEST_PART = 16  # characters of a fraction's
_SLASHED = re.compile(r"\d\d?/\d\d?/\d{1,4}", re.ASCII)
_INTEGER = re.compile(r"[+\-−–]?\d{1,3}", re.ASCII)


def link(arguments: Arguments, option: str) -> str | None:
    """A link to a page that may only exist in another language: the local title with its label.

    In French the title may stand in `fr`. The other language's, `trad`, is a text where it is alone, and no link.
    """
    title = arguments.given("1", "fr")
    label = arguments.given("lt", "texte", "text", "display") or title or arguments.given("trad")
    return (title if "[[" in title else f"[[{title}|{label}]]") if title else label or None


def unqualified(arguments: Arguments, option: str) -> str | None:
    """``{{souverain|Jacques II (roi d'Angleterre)}}``: a link that does not show what stands in brackets."""
    title, more = arguments.given("1"), arguments.given("2")
    if _CENTURY.fullmatch(more):
        title, more = f"{title} {more}", ""
    return f"[[{title}|{title.partition(' (')[0]}]]{more}" if title else None


def lang(arguments: Arguments, option: str) -> str | None:
    """``{{lang-kw|Bosvena}}``: "Cornish: Bosvena", the text alone where the language has no name here.

    With the option `code` as ``{{langx|kw|Bosvena}}``.
    """
    code = arguments.given("1") if option else arguments["0"].replace("_", "-").partition("-")[2]
    name, first = arguments.wiki.languages.get(code.lower(), ""), 2 if option else 1
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


def chinese(arguments: Arguments, option: str) -> str | None:
    """The forms of a Chinese name, each with what it is."""
    forms = [f"{label}: {text}" for key, label in _WORDS["chinese"].items() if (text := arguments.given(key))]
    return "; ".join(forms) or arguments.given("1") or None


def date(arguments: Arguments, option: str) -> str | None:
    """Year, month and day in numbers; the day first where `df` or the option says so."""
    year, month, day = (arguments.given(number) for number in "123")
    if not year.isdecimal():
        return year or None
    month, day = arguments.wiki.month(month), day.lstrip("0")
    if day and month and not (option or arguments.given("df") in ("y", "yes")):
        return f"{month} {day}, {year}"
    return " ".join(filter(None, (day, month, year)))


def day_first(arguments: Arguments, option: str) -> str | None:
    """``{{date|1|5|1990}}``: day, month and year; `option` is a word between them, or how the first day is written."""
    day, month, year = (arguments.given(number) for number in "123")
    if _SLASHED.fullmatch(day):
        day, month, year = day.split("/")
    day = re.sub(r"^1(?= |$)", option if option[:1].isdigit() else "1", re.sub(r"^0(?=\d)", "", day))
    joint = f" {option} " if option.isalpha() else " "
    return joint.join(filter(None, (day, arguments.wiki.month(month), year))) or None


def as_of(arguments: Arguments, option: str) -> str | None:
    """ "As of 2014", in small letters or "Since 2014" where that is asked for."""
    if (text := arguments.given("alt")) or not arguments.given("1"):
        return text or None
    words = "since" if arguments.given("since") else "as of"
    if not (arguments.given("lc") or "lc" in arguments.positional(2, 4)):
        words = words.capitalize()
    shown = date(arguments, "" if arguments.given("df") == "us" else "day first")
    return f"{words} {shown}{arguments.given('post')}"


def age(arguments: Arguments, option: str) -> str | None:
    """Years between two dates; the age today of one date is no text of a dump."""
    numbers = [arguments.given(str(number)) for number in range(1, 7)]
    try:
        born, died = (Date(*map(int, numbers[start : start + 3])) for start in (0, 3))
    except (ValueError, OverflowError):
        return None
    return str(died.year - born.year - ((died.month, died.day) < (born.month, born.day)))


def centuries(arguments: Arguments, option: str) -> str | None:
    """``{{sp|XI|e|et|XII|e}}``: centuries, each with its ending, and what stands between and behind them."""
    given = arguments.positional(1, 0)
    texts = [text for text in given if text.lower() not in ("e", "er", "s")]
    shown = [text + ("er" if text == "I" else "e") if _CENTURY.fullmatch(text) else text for text in texts]
    if all(map(_CENTURY.fullmatch, texts)):
        shown.insert(-1, "et")
    is_plural = not {"et", "ou", "s"}.isdisjoint([*shown, *map(str.lower, given)])
    return " ".join([*shown, option if is_plural else option.replace("es", "e", 1)]) if shown else None


def either(arguments: Arguments, option: str) -> str | None:
    """The rule behind the first argument that is given, or the last rule: ``ARGUMENT||RULE||RULE``."""
    *pairs, otherwise = option.split("||")
    rules = (rule for name, rule in zip(pairs[::2], pairs[1::2], strict=True) if arguments.given(name))
    return compile_rule(next(rules, otherwise))(arguments)


def ship(arguments: Arguments, option: str) -> str | None:
    """``{{USS|Nimitz|CVN-68|6}}``: a link to the ship, of whose name the last argument says what is shown."""
    offset = 0 if option else 1
    name, number, form = (arguments.given(str(offset + place)) for place in (1, 2, 3))
    if not name:
        return None
    full = f"{option or arguments.given('1')} {name}".strip()
    title = f"{full} ({number})" if number else full
    shown = {"1": number, "2": full, "3": f"{name} ({number})", "5": name, "6": name}.get(form, title)
    return f"[[{title}|{shown or title}]]"


def val(arguments: Arguments, option: str) -> str | None:
    """``{{val|1.5|0.2|u=kg|e=3}}``: a number with its uncertainty, power of ten and unit; nothing without a number."""
    number, plus, minus = (arguments.wiki.numbers.leading(arguments.given(each)) for each in "123")
    if not number:
        return None
    if plus:
        number += f" +{plus.lstrip('+')} −{minus.lstrip('−-')}" if minus else f"±{plus}"
    if exponent := arguments.given("e"):
        number = f"({number})" if plus else number
        number += f"×10{superscript(exponent)}"
    unit, per = arguments.given("u", "ul"), arguments.given("up", "upl")
    number += f" {unit}" * bool(unit) + f"/{per}" * bool(per)
    return arguments.given("p") + number + arguments.given("s")


def quantity(arguments: Arguments, option: str) -> str | None:
    """``{{unité|8.3|J|mol|-1|e=6}}``: a number with its power of ten, and units, each with an exponent behind it."""
    numbers = arguments.wiki.numbers
    number, *parts = arguments.positional(1, 0) or [""]
    if not (shown := numbers.leading(number)):
        return None
    if exponent := arguments.given("e"):
        shown += f"×10{superscript(exponent)}"
    for before, part in pairwise([number, *parts]):
        is_exponent = _INTEGER.fullmatch(part) and before not in _JOINTS and not before[-1].isdecimal()
        shown += superscript(part) if is_exponent else f" {numbers.leading(part) or part}"
    return shown


def power_of_ten(arguments: Arguments, option: str) -> str | None:
    """``2{{e|-7}}``: 2×10⁻⁷; with an option the exponent alone."""
    exponent = re.sub("–|&minus;", "−", arguments.given("1"))
    return ("" if option else "×10") + superscript(exponent) if _INTEGER.fullmatch(exponent) else None


def fraction(arguments: Arguments, option: str) -> str | None:
    """One argument is a denominator, two a fraction, three a whole number and a fraction."""
    numbers = arguments.positional(1, 3)
    if not numbers or max(map(len, numbers)) > _LONGEST_PART:
        return None
    whole = numbers[0] + " " if len(numbers) == 3 else ""
    top = numbers[-2] if len(numbers) > 1 else "1"
    return f"{whole}{top}{option}{numbers[-1]}"


def music(arguments: Arguments, option: str) -> str | None:
    """Accidentals; other words stay."""
    return "".join(_WORDS["music"].get(each, each) for each in arguments.positional(1, 0)) or None


def formatnum(arguments: Arguments, option: str) -> str | None:
    """``{{formatnum:12345}}``: each number of a text as the language writes it; with R digits alone."""
    text, form, numbers = _behind_colon(arguments), arguments.given("1").upper(), arguments.wiki.numbers
    if form == "R":
        return numbers.raw(text) or None
    if form == "NOSEP":
        return numbers.in_digits(text) or None
    return _NUMBER.sub(lambda found: numbers.written(found[0]), text) or None


def _behind_colon(arguments: Arguments) -> str:
    return arguments.shown(arguments["0"].partition(":")[2].strip())


def cased(arguments: Arguments, option: str) -> str | None:
    """``{{ucfirst:abc}}``: an argument in capitals or in small letters, or its first letter alone."""
    text, change = _behind_colon(arguments), str.upper if "upper" in option else str.lower
    size = 1 if "first" in option else len(text)
    return change(text[:size]) + text[size:] or None


def variable(arguments: Arguments, option: str) -> str | None:
    """``{{PAGENAME}}``: what a wiki or a page is called; of a title behind the colon what follows its namespace."""
    named = _behind_colon(arguments)
    page = (named.partition(":")[2] or named).strip() or arguments.page
    site, language = arguments.wiki.name or None, arguments.wiki.language
    return {"page": page or None, "site": site, "language": language, "namespace": ""}[option]


FUNCTIONS: Mapping[str, Callable[[Arguments, str], str | None]] = {
    function.__name__: function
    for function in (
        link, unqualified, lang, chinese, date, day_first, as_of, age, centuries, either, ship, val, quantity,
        power_of_ten, fraction, music, formatnum, cased, variable, convert,
    )
}  # fmt: skip
