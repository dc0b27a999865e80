"""Numbers as a language writes them: its decimal mark, its groups of digits and its digits.

>>> [number_format(language).written("1234567.5") for language in ("de", "sv", "hi")]
['1.234.567,5', '1 234 567,5', '12,34,567.5']
"""

import re
from functools import cache
from typing import NamedTuple

from pipeline.mediawiki.languages import base_language, read_table

_NUMBER = re.compile(r"([-−]?)(\d*)(\.\d+)?(?:[Ee]([+-]?\d{1,3}))?", re.ASCII)
_AT_START = re.compile(r"([+\-−±~≈<>]?\s*)(\d+(?:\.\d+)?)(?![\d.,]*\d)", re.ASCII)
_LAKHS = re.compile(r"(?<=\d)(?=(?:\d\d)*\d{3}$)", re.ASCII)
_THOUSANDS = re.compile(r"(?<=\d)(?=(?:\d{3})+$)", re.ASCII)
_MOST_DIGITS = 60  # of a number that is grouped: no text has more


class NumberFormat(NamedTuple):
    """The signs of a language's numbers; `least` digits stand before the first mark of thousands."""

    decimal: str = "."
    thousands: str = ","
    digits: str = "0123456789"
    lakhs: bool = False
    least: int = 1

    def written(self, number: str) -> str:
        """Return a number of ASCII digits as the language writes it; anything else as it is."""
        found = _NUMBER.fullmatch(number)
        if not found or not (found[2] or found[3]) or len(number) > _MOST_DIGITS or found[4]:
            return number
        sign, whole, behind = "−" * bool(found[1]), found[2], found[3] or ""
        if len(whole) >= 3 + self.least:
            whole = (_LAKHS if self.lakhs else _THOUSANDS).sub(self.thousands, whole)
        return self.in_digits(sign + whole + behind.replace(".", self.decimal))

    def in_digits(self, text: str) -> str:
        return text.translate(str.maketrans("0123456789", self.digits))

    def leading(self, text: str) -> str:
        """Return a text that begins with a number, which is written anew; "" where it does not."""
        text = text.strip()
        found = _AT_START.match(text)
        if not found:
            return text if text[:1].isdecimal() or text[1:2].isdecimal() else ""
        return found[1] + self.written(found[2]) + text[found.end() :]

    def raw(self, text: str) -> str:
        """Return the number that the language writes so, in digits alone."""
        text = text.translate(str.maketrans(self.digits, "0123456789")).replace("−", "-")
        text = text.replace("\u00a0", " ").replace(self.thousands, "")
        return text.replace(self.decimal, ".").replace(",", "")


ENGLISH = NumberFormat()


@cache
def number_format(language: str) -> NumberFormat:
    """Return how the wikis in a language write numbers."""
    return NumberFormat(**read_table("numbers").get(base_language(language), {}))
