"""Titles of a wiki in several scripts: what they are in the one script in which they are compared."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from pipeline.mediawiki.languages import base_language, read_table


class Conversion:
    """Letters of several scripts as those of one; and words of one region as another's, in these letters."""

    def __init__(self, table: Mapping[str, str | bool]) -> None:
        letters = _pairs(str(table["letters"]))
        capitals = {
            letter.capitalize(): form[:1].upper() + form[1:]
            for letter, form in letters.items()
            if letter.islower()
        }
        words = _pairs(str(table.get("words", "")))
        self._is_lower = bool(table.get("lower"))
        self._letters = _Replacement(capitals | letters)
        self._words = [
            _Replacement(each) for each in (words, {new: old for old, new in words.items()}) if each
        ]

    def keys(self, title: str) -> list[str]:
        """The title in the script of the comparison; then, where it has such words, in those of other regions."""
        own = self._letters(title.lower() if self._is_lower else title)
        return list(dict.fromkeys([own, *(words(own) for words in self._words)]))

    def in_place(self, text: str, places: Sequence[int]) -> tuple[str, Sequence[int]]:
        """A text in the script of the comparison; `places` are those of its positions and its end, as they then are."""
        pieces, kept, end = list[str](), list[int](), 0
        if self._is_lower and len(small := text.lower()) == len(text):
            text = small
        for start, stop, form in self._letters.find(text):
            pieces += text[end:start], form
            kept += places[end:start]
            kept += [places[start]] * len(form)
            end = stop
        return "".join(pieces) + text[end:], [*kept, *places[end:]]


class _Replacement:
    def __init__(self, forms: Mapping[str, str]) -> None:
        self._forms = forms
        self._pattern = re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True))))

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        return ((*match.span(), self._forms[match[0]]) for match in self._pattern.finditer(text))

    def __call__(self, text: str) -> str:
        return self._pattern.sub(lambda match: self._forms[match[0]], text)


def _pairs(text: str) -> dict[str, str]:
    words = text.split()
    return {old: new.replace("∅", "") for old, new in zip(words[::2], words[1::2], strict=True)}


@cache
def _tables() -> dict[str, Mapping[str, str | bool]]:
    tables = read_table("conversions")["conversions"]
    return {language: table for table in tables for language in table["languages"]}


@cache
def find_conversion(language: str) -> Conversion | None:
    """The conversion of a wiki's language; None where it is written in one script."""
    table = _tables().get(base_language(language))
    return Conversion(table) if table else None
