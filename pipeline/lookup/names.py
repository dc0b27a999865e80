"""Names: what a name is, and where names occur in a text.

A name occurs where it reaches from one word boundary to another, or where it is the anchor of a link; overlapping
names each count.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import regex
from numpy.typing import NDArray

from pipeline.mediawiki.languages import UNSPACED_SCRIPTS, read_table
from pipeline.storage.tries import TextMap, write_numbers

_MAX_PAPER_TOKENS, _MAX_PAPER_CHARACTERS = 20, 1000

# Letters of scripts that are written without blanks: each is a word of its own. Marks of length and repetition belong
# to several of these scripts, so that Unicode gives them to none.
UNSPACED = rf"[[\p{{L}}\p{{N}}]&&[{UNSPACED_SCRIPTS}\u3006\u3031-\u3035\u30fc\uff70\uff9e\uff9f]]"
MARKS = r"[\p{M}]"
WORD_CHARACTERS = rf"[[\p{{L}}\p{{N}}\p{{M}}]--{UNSPACED}]"
# The letters that most words have are asked about first, which takes half as long.
_TOKEN = regex.compile(rf"[[A-Za-z0-9]||{WORD_CHARACTERS}]+|{UNSPACED}{MARKS}*|[^\s\x1c-\x1f]", regex.V1)
_ASCII_NO_LETTER = str.maketrans("", "", "".join(chr(c) for c in range(128) if not chr(c).isalnum()))
_END = "\x1f"  # of the letters of a name, behind which stands the name; tries end a text at \0
# What stands in brackets at the end of a title, and a comma, in Latin and in Chinese writing.
_BRACKETS = re.compile(r"(?<=\S)\s*[(\uff08][^()\uff08\uff09]*[)\uff09]$")
_COMMA = re.compile(r"(?<=\S)(?:, |\uff0c)")
_ODD_BLANKS = re.compile(r"\s{2}|[^\S ]")
# Blanks that are not one blank, and what stands between them.
_PARTS = re.compile(r"\s{2,}|[^\S ]|(?:\S| (?!\s))+")
_LINE_END = re.compile(r"\r\n|[\n\v\f\r\x85\u2028\u2029]")
# With its marks; of Korean, which Unicode has in parts, a syllable.
_LETTER = regex.compile(r"[\u1100-\u115f][\u1160-\u11a7]?[\u11a8-\u11ff]?|\P{M}?\p{M}+|\P{M}")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
_WORDS = re.compile(r"[A-Za-z0-9\x80-\U0010ffff]+")  # any, between signs and blanks of ASCII
_LONGEST_ACRONYM = 8
FORMS: dict[str, dict[str, Any]] = read_table("forms")  # of names, by language


def tokens(text: str) -> Iterator[Any]:
    """Matches of the words of a text, and of each character beside them that is no white space.

    Letters, digits and combining marks make words; in scripts without blanks every
    character is one. A position inside of none of these, where a mention may begin or end, is a word boundary.
    """
    return (_ASCII_TOKEN if text.isascii() else _TOKEN).finditer(text)


def words_of(text: str) -> list[str]:
    """The words of a text, without signs."""
    if text.isascii():
        return _ASCII_WORD.findall(text)
    parts = ((part,) if part.isascii() else _TOKEN.findall(part) for part in _WORDS.findall(text))
    return [word for part in parts for word in part if word[0].isalnum()]


def folded_words(text: str) -> set[str]:
    """The words of a text, each folded (`fold`)."""
    return {*words_of(text.lower())} if text.isascii() else {fold(word) for word in words_of(text)}


class NameSet(Protocol):
    """Names to look for. `longest`: characters of the longest one."""

    longest: int

    def prefixes(self, text: str) -> list[str]:
        """Return the names with which the text begins, the shortest first."""


def longest_names(text: str, names: NameSet, wanted: Callable[[str], object] = bool) -> Iterator[tuple[int, int, str]]:
    """Occurrences of names between word boundaries that do not overlap: from left to right, the longest first.

    Names for which `wanted` is false count as none, so that they hide no shorter ones.
    """
    spans = [match.span() for match in tokens(text)]
    ends = {end for _, end in spans}
    prefixes, longest = names.prefixes, names.longest
    position = 0
    for start, _ in spans:
        if start < position:
            continue
        for name in reversed(prefixes(text[start : start + longest])):
            end = start + len(name)
            if (end in ends or text[end - 1].isspace()) and wanted(name):
                yield start, end, name
                position = end
                break


def normalize_mention(anchor: str) -> str:
    """The mention that an anchor counts for in the profile `paper`: lower-cased, without accents.

    An anchor that counts for none (too long, or empty) gives an empty text.
    """
    if len(anchor) > _MAX_PAPER_CHARACTERS:
        return ""
    folded = fold(anchor).strip()
    return folded if len(folded.split()) <= _MAX_PAPER_TOKENS else ""


def fold(text: str) -> str:
    """Lower-cased and without accents, as the paper's code counted names."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")


def fold_in_place(text: str) -> tuple[str, Sequence[int]]:
    """A folded text, and for each of its positions (and its end) the position in the text that it comes from."""
    if text.isascii():
        return text.lower(), range(len(text) + 1)
    folded = [fold(character) for character in text]
    places = [position for position, part in enumerate(folded) for _ in part]
    return "".join(folded), [*places, len(text)]


def name_of(title: str) -> str:
    """A title without what tells it apart from others: "Mercury (planet)" and "Paris, Texas" are Mercury and Paris."""
    name = _COMMA.split(_BRACKETS.sub("", title), maxsplit=1)[0]
    return _BRACKETS.sub("", name) or title


def without_article(name: str, language: str) -> str:
    """A name without an article at its beginning: "the Alps" is Alps."""
    articles = FORMS.get(language, {}).get("articles", ())
    return next((name[len(each) :] for each in articles if name.lower().startswith(each)), name)


def initials_of(title: str, language: str) -> set[str]:
    """The initials of a title's words, in capitals: of all, and of those alone that begin with one.

    "Bank of Japan" has BOJ and BJ. What stands in brackets is left out, as is an article.
    """
    name = _BRACKETS.sub("", title) if title.endswith((")", "\uff09")) else title
    letters = "".join([word[0] for word in words_of(without_article(name, language))])
    return {each for each in (letters.upper(), "".join(filter(str.isupper, letters))) if acronym_of(each)}


def acronym_of(words: Sequence[str]) -> str:
    """The letters of a name that may be initials, such as "U.N."; empty for another."""
    letters = "".join(words)
    return letters if letters.isupper() and 1 < len(letters) <= _LONGEST_ACRONYM else ""


def page_title(text: str) -> str:
    """A page's title as a dump has it, also where it comes from an address: without underscores and fragment."""
    return " ".join(text.partition("#")[0].replace("_", " ").split())


def letters_of(text: str) -> str:
    """Return what is left of a name without case, accents, punctuation and blanks: "U.S.A." and "usa" have the same."""
    if text.isascii():
        return text.lower().translate(_ASCII_NO_LETTER)
    return "".join(each for each in fold(text.casefold()) if unicodedata.category(each)[0] in "LMN")


def write_alike(path: str, rows: Iterable[tuple[str, int]]) -> int:
    """Write names, each there once, with their numbers, to be found by their letters; returns how many there are.

    A name of signs alone is left out.
    """
    keys = ((f"{letters}{_END}{name}", number) for name, number in rows if (letters := letters_of(name)))
    return write_numbers(path, keys)


def alike(names: TextMap, name: str) -> list[int]:
    """The numbers of the names that `write_alike` wrote with the same letters, by name."""
    letters = letters_of(name)
    return [number for _, number in sorted(names.beginning_with(letters + _END))] if letters else []


def compose_in_place(text: str) -> tuple[str, Sequence[int]]:
    """A text as names are spelled, and for each of its positions (and its end) the position in the text.

    Letters and their marks are composed (NFC). A run of blanks is one blank, also where a line ends in it; of a run in
    which more lines end two ends of lines are left, which stand in no name.
    """
    if not _ODD_BLANKS.search(text) and unicodedata.is_normalized("NFC", text):
        return text, range(len(text) + 1)
    parts: list[str] = []
    places: list[int] = []
    for match in _PARTS.finditer(text):
        part, start = match[0], match.start()
        if part.isspace():
            blank = " " if len(_LINE_END.findall(part)) < 2 else "\n\n"
            parts.append(blank)
            places += range(start, start + len(blank))
        elif unicodedata.is_normalized("NFC", part):
            parts.append(part)
            places += range(start, match.end())
        else:
            for letter in _LETTER.finditer(part):
                composed, place = unicodedata.normalize("NFC", letter[0]), start + letter.start()
                parts.append(composed)
                is_same = composed == letter[0]
                places += range(place, place + len(composed)) if is_same else [place] * len(composed)
    return "".join(parts), [*places, len(text)]


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers in which each bit of the given ones changes about half of the bits, as SplitMix64 mixes."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))
