"""Texts of templates that no pattern of parameters says: dates, languages, ships, numbers.

`FUNCTIONS` has a maker of rules by the name that the data file gives it. A maker takes the names of languages and what
stands behind its own name in the file. English wikis alone have the templates whose words are English here.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date as Date
from functools import partial

from pipeline.wikitext.templates.rules import Arguments, Rule
from pipeline.wikitext.templates.units import convert, grouped

Maker = Callable[[Mapping[str, str], str], Rule]
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
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
_NUMBER = re.compile(r"[+\-−]?[\d,]*\.?\d+")


def _plain(function: Callable[[Arguments], str | None]) -> Maker:
    return lambda languages, option: function


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


def language(languages: Mapping[str, str], option: str) -> Rule:
    """``{{lang-kw|Bosvena}}``: "Cornish: Bosvena", the text alone where the language has no name here."""

    def show(arguments: Arguments) -> str | None:
        code = arguments.name.strip().replace("_", "-").partition("-")[2].lower()
        return _in_language(arguments, languages.get(code, ""), first=1)

    return show


def language_by_code(languages: Mapping[str, str], option: str) -> Rule:
    """``{{langx|kw|Bosvena}}``: the same with the code as an argument."""

    def show(arguments: Arguments) -> str | None:
        name = languages.get(arguments.given("1").lower(), "")
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


def written_date(year: str, month: str, day: str, *, day_first: bool = True) -> str:
    """Numbers as a date in words; what is no number stays."""
    name = MONTHS[int(month) - 1] if month.isdecimal() and 1 <= int(month) <= 12 else month
    day = day.lstrip("0") if day.isdecimal() else day
    if day and name and not day_first:
        return f"{name} {day}, {year}"
    return " ".join(filter(None, (day, name, year)))


def date(arguments: Arguments) -> str | None:
    """Year, month and day in numbers; the day first where `df` says so."""
    year, month, day = (arguments.given(str(number)) for number in (1, 2, 3))
    if not year or not year.isdecimal():
        return year or None
    return written_date(year, month, day, day_first=arguments.given("df") in ("y", "yes"))


def as_of(arguments: Arguments) -> str | None:
    """ "As of 2014", in small letters or "Since 2014" where that is asked for."""
    if text := arguments.given("alt"):
        return text
    year, month, day = (arguments.given(str(number)) for number in (1, 2, 3))
    if not year:
        return None
    words = "since" if arguments.given("since") else "as of"
    is_small = arguments.given("lc") or "lc" in (arguments.given("4"), day, month)
    shown = written_date(year, month, day, day_first=arguments.given("df") != "us")
    return f"{words if is_small else words.capitalize()} {shown}" + arguments.given("post")


def age(arguments: Arguments) -> str | None:
    """Years between two dates; the age today of one date is no text of a dump."""
    numbers = [arguments.given(str(number)) for number in range(1, 7)]
    try:
        born, died = (Date(*map(int, numbers[start : start + 3])) for start in (0, 3))
    except ValueError:
        return None
    return str(died.year - born.year - ((died.month, died.day) < (born.month, born.day)))


def ship(languages: Mapping[str, str], option: str) -> Rule:
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


def value(arguments: Arguments) -> str | None:
    """``{{val|1.5|0.2|u=kg|e=3}}``: a number with its uncertainty, power of ten and unit."""
    number = arguments.given("1")
    if not number:
        return None
    plus, minus = arguments.given("2"), arguments.given("3")
    if plus:
        number += f" +{plus.lstrip('+')} −{minus.lstrip('−-')}" if minus else f"±{plus}"
    if exponent := arguments.given("e"):
        number = f"({number})" if plus else number
        number += f"×10{superscript(exponent)}"
    unit = arguments.given("u", "ul")
    per = arguments.given("up", "upl")
    return (
        arguments.given("p") + number + f" {unit}" * bool(unit) + f"/{per}" * bool(per) + arguments.given("s")
    )


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


def formatnum(arguments: Arguments) -> str | None:
    """``{{formatnum:12345}}``: with commas."""
    number = arguments.name.partition(":")[2].strip()
    return grouped(number) if _NUMBER.fullmatch(number) else arguments.shown(number) or None


FUNCTIONS: Mapping[str, Maker] = {
    "link": _plain(link),
    "sortname": _plain(sortname),
    "lang": language,
    "langx": language_by_code,
    "chinese": _plain(chinese),
    "date": _plain(date),
    "as_of": _plain(as_of),
    "age": _plain(age),
    "ship": ship,
    "val": _plain(value),
    "power_of_ten": _plain(power_of_ten),
    "frac": _plain(partial(fraction, stroke="⁄")),
    "sfrac": _plain(partial(fraction, stroke="/")),
    "music": _plain(music),
    "formatnum": _plain(formatnum),
    "lower": _plain(lambda arguments: arguments.name.partition(":")[2].strip().lower()),
    "upper": _plain(lambda arguments: arguments.name.partition(":")[2].strip().upper()),
    "convert": _plain(convert),
    "cvt": _plain(lambda arguments: convert(arguments, short=True)),
}
