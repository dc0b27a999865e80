"""Ends of sentences that a splitter found and that are none: before a small letter, after abbreviations and ordinals.

What the languages differ in is in `data/abbreviations.toml`.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

MAX_JOINED = 1000  # characters of a sentence behind which nothing is joined: more fills a sequence
MAX_BRACKETED = 400  # characters from an opening bracket on: one that lacks its end must not glue a paragraph
_NEAR = 24  # characters looked at before an end
_DAYS = 31

NEVER_FIRST = frozenset(",;:)]}，、；：）］｝」』】》〉،؛՝፣፤၊")  # what no sentence begins with
_OPENING = '([{"„“”«»‚‹›–—-'
_FIRST_LETTER = re.compile(rf"[\s{re.escape(_OPENING)}]*([^\W\d_])")
_FIRST_WORD = re.compile(rf"[\s{re.escape(_OPENING)}]*(\w+)(\.?)")
_INITIALS_GO_ON = re.compile(r"[^\W\d_]{1,2}\.")
_NUMBER = re.compile(r"(?:\d{1,4}\.?[-–/])?(\d+)")  # of a range, the last
_DATE_GOES_ON = re.compile(r"\d{1,2}\.|[12]\d{3}\b")
_ROMAN = re.compile(r"(?:XL|L?X{0,3})(?:IX|IV|V?I{0,3})")  # below 90: CC, DC and MD are seldom numbers
_PAIRS = (("(", ")"), ("[", "]"), ("（", "）"), ("［", "］"))
_BRACKETS = re.compile(r"[()\[\]（）［］]")
_LISTS = ("always", "before_number", "starters", "counts")
_GEORGIAN = range(0x10D0, 0x1100)  # small letters for Unicode, but sentences begin with them


@dataclass(frozen=True)
class Rules:
    """The words that a language writes with a dot; `data/abbreviations.toml` explains each."""

    ordinals: bool = False
    always: frozenset[str] = frozenset()
    before_number: frozenset[str] = frozenset()
    capital_nouns: bool = False
    starters: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()
    dotted: frozenset[str] = frozenset()  # all that may stand before a dot inside a sentence


@cache
def _tables() -> Mapping[str, Rules]:
    file = resources.files("pipeline.sequences").joinpath("data", "abbreviations.toml")
    tables: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
    rules = {}
    for language, table in tables.items():
        words = {name: frozenset(table.get(name, ())) for name in _LISTS}
        capital = {word.capitalize() for word in words["before_number"]}
        words["dotted"] = words["always"] | words["before_number"] | capital
        for code in (language, *table.get("also", ())):
            rules[code] = Rules(table.get("ordinals", False), capital_nouns=table.get("capital_nouns", False), **words)
    return rules


@cache
def find_rules(language: str) -> Rules:
    """The rules of a wiki's code; of "de-at" those of "de"; none for a language without a table."""
    tables = _tables()
    return tables.get(language) or tables.get(language.partition("-")[0]) or Rules()


def true_ends(text: str, ends: Iterable[int], language: str) -> list[int]:
    """Of the places in a text where a splitter ends one sentence and begins the next, those that are right.

    Each place is behind the blanks that follow a sentence.
    """
    rules = find_rules(language)
    dotted = rules.dotted
    pairs = [(text.find(pair[0]), text.rfind(pair[1]), *pair) for pair in _PAIRS if pair[0] in text]
    start, kept = 0, []
    for end in ends:
        # Most ends are between an ordinary word and one with a capital: those are seen here, without a call.
        last, follower = end - 2 if text[end - 1] == " " else end - 1, text[end]
        is_false = not follower.isupper() and (follower in NEVER_FIRST or _begins_small(text, start, end))
        if last == end - 1 and text[last] == ".":
            is_false = is_false or bool(_INITIALS_GO_ON.match(text, end))  # the C of "a.C."
        if text[last] == "." and not is_false:
            left = text.rfind(" ", start, last) + 1
            word = text[left:last]
            is_word = left > start and word.isalpha() and not word.isupper() and word not in dotted
            is_false = not is_word and _is_dotted(text, start, end, rules)
        for first, final, opening, closing in pairs:
            if first < end < final and text.count(opening, start, end) > text.count(closing, start, end):
                is_false = is_false or _is_bracketed(text, start, end)
        if not is_false or end - start > MAX_JOINED or "\n" in text[end - 1 : end + 1]:  # of two paragraphs
            kept.append(end)
            start = end
    return kept


def _is_bracketed(text: str, start: int, end: int) -> bool:
    """Return whether a bracket that opens behind `start` and holds `end` is closed soon enough."""
    opened: list[re.Match[str]] = []
    for found in _BRACKETS.finditer(text, start, end + MAX_BRACKETED):
        pair = next(pair for pair in _PAIRS if found[0] in pair)
        if found[0] == pair[0]:
            opened.append(found)
        elif opened and opened[-1][0] == pair[0]:
            at = opened.pop().start()
            if at < end < found.start() <= at + MAX_BRACKETED:
                return True
    return False


def _begins_small(text: str, start: int, end: int) -> bool:
    """Return whether a small letter follows, in a text whose script has capitals, that no capital follows (iPhone)."""
    if text[end].isalpha() and not text[end].islower():
        return False
    found = _FIRST_LETTER.match(text, end)
    if found is None or not _is_small(found[1]) or text[found.end() : found.end() + 1].isupper():
        return False
    before = next((each for each in reversed(text[max(start, end - _NEAR) : end]) if each.isalpha()), "a")
    return _is_small(before) or before.isupper()


def _is_small(letter: str) -> bool:
    return letter.islower() and ord(letter) not in _GEORGIAN


def _is_dotted(text: str, start: int, end: int, rules: Rules) -> bool:
    """Return whether the dot before `end` belongs to an abbreviation, an ordinal or a name's initial."""
    before = text[max(start, end - _NEAR) : end].rstrip()
    if not before.endswith("."):
        return False
    word = before[:-1].rpartition(" ")[2].lstrip(_OPENING)
    is_first = end - start <= _NEAR and word == before.strip(f"{_OPENING}. ")
    if word in rules.always or (is_first and word.lower() in rules.always):
        return True
    if word.lower() in rules.before_number:
        return text[end].isdecimal()
    if word[-1:].isdecimal():
        is_count = before.split()[-2:-1] and before.split()[-2].lower() in rules.counts
        return not is_count and _is_ordinal(text, word, end, rules, is_first=is_first)
    is_initial = len(word) == 1 and word.isupper() and bool(rules.starters)
    is_number = rules.ordinals and bool(word and _ROMAN.fullmatch(word))
    return (is_initial or is_number) and _goes_on(text, end, rules)


def _is_ordinal(text: str, word: str, end: int, rules: Rules, *, is_first: bool) -> bool:
    number = _NUMBER.fullmatch(word)
    if number is None:
        return False
    if is_first:
        return True  # of a list: a number alone is no sentence
    if not rules.ordinals or len(number[1]) > 2:
        return False
    if text[end].isdecimal():
        return int(number[1]) <= _DAYS and bool(_DATE_GOES_ON.match(text, end))
    # Where nouns have small letters, a name follows: few things that have a name are counted so far.
    return (rules.capital_nouns or int(number[1]) <= _DAYS) and _goes_on(text, end, rules)


def _goes_on(text: str, end: int, rules: Rules) -> bool:
    """Return whether a word follows with which no sentence is known to begin, or one more initial."""
    found = _FIRST_WORD.match(text, end)
    return found is not None and (found[1] not in rules.starters or (len(found[1]) == 1 and bool(found[2])))
