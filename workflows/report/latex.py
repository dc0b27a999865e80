"""Text that LaTeX prints as it is."""

import json
import unicodedata
from pathlib import Path
from typing import Any

# Besides LaTeX's special characters: "-" is alone, or two would be a dash; "[", "]" and "*" would be options of the
# command before them, such as the end of a row.
_TABLES = json.loads(Path(__file__).with_name("templates").joinpath("latex.json").read_text(encoding="utf-8"))
CHARACTERS: dict[str, str] = _TABLES["characters"]
ACCENTS: dict[str, str] = _TABLES["accents"]
BREAK = r"\allowbreak{}"
UNBROKEN = 20  # characters, which are less than a line even as numbers


def escape(value: Any) -> str:
    """Text that LaTeX prints as it is; white space is one blank, and a character without a glyph its number.

    A long word, such as a path, may be broken: it would run over the edge of the page.
    """
    return " ".join(map(_escape_word, str(value).split()))


def _escape_word(word: str) -> str:
    starts = range(0, len(word), UNBROKEN)
    return BREAK.join("".join(map(_escape_character, word[start : start + UNBROKEN])) for start in starts)


def _escape_character(character: str) -> str:
    if character in CHARACTERS:
        return CHARACTERS[character]
    if " " <= character <= "~":
        return character
    base, *marks = list(unicodedata.normalize("NFD", character))
    if base.isascii() and base.isalpha() and len(marks) == 1 and marks[0] in ACCENTS:
        return f"\\{ACCENTS[marks[0]]}{{{base}}}"
    return rf"\texttt{{U+{ord(character):04X}}}"
