"""Pieces of texts in which blanks part phrases, not words, and few marks end a sentence: Thai, Lao, Khmer, Burmese.

They are no sentences. They end where a reader pauses, and are long enough to be kept and short enough to fit.
"""

import re
import unicodedata
from collections.abc import Iterator

from pipeline.sequences.boundaries import NEVER_FIRST

# Thai, Northern Thai, Isan; Lao, Khmer; Burmese and its kin (Shan, Mon, Pa'o, Arakanese, Karen); Tai Lue and Tai Le;
# Tibetan, Dzongkha.
LANGUAGES = frozenset(
    "th nod tts lo km my shn mnw blk rki ksw kjp pwo khb tdd bo dz".split()  # noqa: SIM905
)
MIN = 20  # characters of a piece, but where a paragraph is shorter
ENOUGH = 60  # characters after which a blank ends a piece
MAX = 160  # characters of a piece: 480 bytes, which fit into 512 tokens even where each byte is one

_PAUSES = re.compile(
    r"""(?P<end>[។៕៚။།༎༔๚๛!?！？]["'”’»)\]\s]*)  # marks that end a sentence
    |(?P<blank>\s+)
    |(?P<weak>[၊\u200b]+)                        # a comma; the blank without width between words
    |(?P<open>[(\[])|(?P<close>[)\]])""",
    re.VERBOSE,
)
_WEAK, _BLANK, _END = 1, 2, 3
_BEFORE_CONSONANT = "เแโใไເແໂໃໄ"  # vowels that are written before their consonant
_JOINERS = "\u1039\u17d2\u200c\u200d"  # bind the next letter to the one before


def phrase_ends(text: str) -> list[int]:
    """Places in a text where one piece ends and the next begins: ascending, none at the text's edges."""
    ends: list[int] = []
    start = 0
    waiting: list[tuple[int, int]] = []  # pauses of this piece that did not end it: (worth, place)
    for place, worth in _pauses(text):
        while place - start > MAX:
            start = max(waiting)[1] if waiting else _between_letters(text, start, start + MAX)
            ends.append(start)
            waiting = [pause for pause in waiting if pause[1] - start >= MIN]
        if place - start >= (ENOUGH if worth == _BLANK else MIN) and worth != _WEAK:
            start = place
            ends.append(place)
            waiting = []
        elif place - start >= MIN:
            waiting.append((worth, place))
    ends = [end for end in ends if end < len(text)]
    if ends and len(text) - ends[-1] < MIN and len(text) - [0, *ends][-2] <= MAX:
        ends.pop()
    return ends


def _pauses(text: str) -> Iterator[tuple[int, int]]:
    """(place behind it, worth) of each pause; at last the text's end."""
    is_open = False
    for found in _PAUSES.finditer(text):
        kind, place = found.lastgroup, found.end()
        if kind in ("open", "close"):
            is_open = kind == "open"
        elif kind == "weak" or is_open:
            yield place, _WEAK
        elif kind == "end":
            yield place, _END
        elif text[place : place + 1] not in NEVER_FIRST:
            # A blank beside a number or behind an abbreviation's dot is no pause.
            around = text[found.start() - 1 : found.start()] + text[place : place + 1]
            yield place, _WEAK if "." in around or any(map(str.isdecimal, around)) else _BLANK
    yield len(text), _END


def _between_letters(text: str, start: int, place: int) -> int:
    """The last place not behind `place` that parts no letter from its marks."""
    for at in range(place, max(start, place - MIN), -1):
        bound = unicodedata.category(text[at]).startswith("M") or text[at] in _JOINERS
        if not bound and text[at - 1] not in _BEFORE_CONSONANT + _JOINERS:
            return at
    return place
