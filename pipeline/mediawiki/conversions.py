"""Titles of a wiki in several scripts: what they are in the one script in which they are compared."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pipeline.mediawiki.languages import base_language, read_table


class Conversion:
    """Letters of several scripts as those of one; and words of one region as another's, in these letters."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        letters, words = _pairs(table["letters"]), _pairs(table.get("words", ""))
        capitals = {old.capitalize(): new[:1].upper() + new[1:] for old, new in letters.items() if old.islower()}
        self._is_lower = table.get("lower", False)
        self._letters = capitals | letters
        self._pattern = _any_of(self._letters)
        both_ways = (words, {new: old for old, new in words.items()}) if words else ()
        self._words = [(forms, _any_of(forms)) for forms in both_ways]

    def keys(self, title: str) -> list[str]:
        """The title in the script of the comparison; then, where it has such words, in those of other regions."""
        own = _replaced(title.lower() if self._is_lower else title, self._letters, self._pattern)
        others = (_replaced(own, forms, pattern) for forms, pattern in self._words)
        return list(dict.fromkeys([own, *others]))

    def in_place(self, text: str, places: Sequence[int]) -> tuple[str, Sequence[int]]:
        """A text in the script of the comparison; `places` are those of its positions and its end, as they then are."""
        pieces, kept, end = list[str](), list[int](), 0
        if self._is_lower and len(small := text.lower()) == len(text):
            text = small
        for found in self._pattern.finditer(text):
            form = self._letters[found[0]]
            pieces += text[end : found.start()], form
            kept += [*places[end : found.start()], *[places[found.start()]] * len(form)]
            end = found.end()
        return "".join(pieces) + text[end:], [*kept, *places[end:]]


def _any_of(words: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(words, key=len, reverse=True))))


def _replaced(text: str, forms: Mapping[str, str], pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda found: forms[found[0]], text)


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return {old: new.replace("∅", "") for old, new in zip(words[::2], words[1::2], strict=True)}


@cache
def find_conversion(language: str) -> Conversion | None:
    """The conversion of a wiki's language; None where it is written in one script."""
    tables, code = read_table("conversions")["conversions"], base_language(language)
    return next((Conversion(table) for table in tables if code in table["languages"]), None)
