"""Counts the names of a set in many texts at once; `pipeline.lookup.names` finds the same ones text by text.

Texts are one row of code points here. The key of a span is a polynomial of its code points; it follows from the sums
up to the span's two ends, so that a look-up costs the same however long the span is. A file has the keys of all names,
and a table that says of most other keys that no name has them, and that no name begins with them.

In "New York!" words and signs begin or end at 0, 3, 4, 8 and 9. With the names "New York" and "York", these spans are
looked up: 0-3, 0-4 and 0-8, as long as a name can go on, and 4-8 and 8-9.

Two different texts have the same key by chance with a probability of 2^-64. In the whole English Wikipedia one
occurrence is counted wrongly with a probability of about 1 %. Keys can also be made to meet: by Thue-Morse words for
every odd base, and by a search for most other sums. So the names that share a key with another name are compared letter
by letter. A text that is no name but has the key of one counts for it; who writes such a text could as well write the
name.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from pipeline import storage
from pipeline.lookup.names import MARKS, UNSPACED, WORD_CHARACTERS, mixed

Keys = NDArray[np.uint64]
Positions = NDArray[np.int64]

_CODE_POINTS = 0x110000
# None of the others is a letter, a digit, a mark or white space.
_ASSIGNED = ((0, 0x40000), (0xE0000, 0xE0200))
_SPACE, _WORD, _UNSPACED, _MARK, _OTHER = range(5)
_SEPARATOR = "\ud800"  # behind each text; a text of a file cannot have it
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
_NAME, _BEGINNING = 1, 2  # the bits of a slot
_SLOTS_PER_NAME = 16
_AT_ONCE = 1 << 18  # code points, and the rest of a text


class Links(NamedTuple):
    """Spans of texts that are links: the text's number, and the place in code points, half open."""

    texts: Positions
    starts: Positions
    ends: Positions


_NOTHING = np.empty(0, np.int64)
NO_LINKS = Links(_NOTHING, _NOTHING, _NOTHING)


class NameKeys:
    """The keys of a set of names, in two files of `write_keys` that any number of processes map."""

    def __init__(self, path: str) -> None:
        self.keys: Keys = np.load(f"{path}.keys", mmap_mode="r")
        self._table: NDArray[np.uint8] = np.load(f"{path}.table", mmap_mode="r")
        self._shift = _shift(len(self.keys))
        self._own: dict[str, int] = json.loads(storage.read_bytes(f"{path}.shared"))
        self._shared = _Texts([*self._own]).whole()

    def of_names(self, names: Sequence[str]) -> Keys:
        """The key of each of these texts."""
        return self.own(_Texts(names).whole(), names.__getitem__)

    def own(self, keys: Keys, text_of: Callable[[int], str]) -> Keys:
        """The keys, where several names share one with the name's own in its place; the texts are in their order."""
        for place in np.flatnonzero(np.isin(keys, self._shared)).tolist() if self._own else ():
            keys[place] = self._own.get(text_of(place), keys[place])
        return keys

    def look_up(self, keys: Keys) -> NDArray[np.uint8]:
        """Return whether a name may have each key, and whether one may begin so; a "no" is certain."""
        slots = keys >> self._shift
        return self._table[slots >> np.uint64(2)] >> ((slots & np.uint64(3)) * np.uint64(2)).astype(np.uint8)

    def count(self, keys: Keys) -> tuple[Positions, Positions]:
        """(rows of names, how often each is among the keys)."""
        found, counts = np.unique(keys, return_counts=True)
        rows = self.rows(found)
        return rows[rows >= 0], counts[rows >= 0]

    def rows(self, keys: Keys) -> Positions:
        """The row of each key among those of the names, or -1; fast where the keys are in order."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        rows = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[rows] == keys, rows, -1)


def write_keys(path: str, batches: Callable[[], Iterable[Sequence[str]]], count: int) -> None:
    """Write the files of `NameKeys`: `path`.keys, `path`.table, and `path`.shared.

    The batches are read twice where names share a key. None is empty, and each name is there once.
    """
    keys, filled = np.empty(count, np.uint64), 0
    table = np.zeros(1 << (62 - int(_shift(count))), np.uint8)
    for batch in batches():
        texts = _Texts(batch)
        names, beginnings = texts.whole(), texts.beginnings()
        keys[filled : filled + len(names)] = names
        filled += len(names)
        for found, bit in ((names, _NAME), (beginnings, _BEGINNING)):
            slots = found >> _shift(count)
            bits = np.uint8(bit) << ((slots & np.uint64(3)) * np.uint64(2)).astype(np.uint8)
            np.bitwise_or.at(table, slots >> np.uint64(2), bits)
    once, counts = np.unique(keys[:filled], return_counts=True)
    shared, once = once[counts > 1], once[counts == 1]
    alike = [
        name
        for batch in (batches() if len(shared) else ())
        for name, is_shared in zip(batch, np.isin(_Texts(batch).whole(), shared).tolist(), strict=True)
        if is_shared
    ]
    small = keys[:filled][keys[:filled] < 2 * count]
    free = np.setdiff1d(np.arange(len(alike) + len(small), dtype=np.uint64), small)[: len(alike)]
    own = dict(zip(sorted(alike), free.tolist(), strict=True))  # numbers that are no name's key
    for name, array in (("keys", np.union1d(once, free)), ("table", table)):
        with storage.atomic_output(f"{path}.{name}") as stream:
            np.save(stream, array)
    storage.write_bytes(f"{path}.shared", json.dumps(own).encode())


def _shift(names: int) -> np.uint64:
    """Return how far a key is shifted to be a slot of the table, which has a power of two of them."""
    return np.uint64(64 - max(8, (_SLOTS_PER_NAME * names).bit_length()))


def find_keys(texts: Sequence[str], links: Links, known: NameKeys) -> Iterator[tuple[Positions, Keys]]:
    """Each place that is a link, or that a name fills between word boundaries, if a name has its key.

    Gives the text's number and the key of each, for some texts after others. Keys may still be those of no name.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    cuts = np.flatnonzero(np.diff(np.cumsum(lengths) // _AT_ONCE)) + 1
    for first, last in pairwise(np.unique([0, *cuts, len(texts)]).tolist()):
        among = slice(*np.searchsorted(links.texts, (first, last)))
        inside = Links(links.texts[among] - first, links.starts[among], links.ends[among])
        places, keys = _Texts(texts[first:last]).find(inside, known)
        yield places + first, keys


class _Texts:
    """Texts as one row of code points, each with a separator behind it.

    `kinds` is what each code point is to words; `bounds` are where words, and characters beside them, begin or end:
    all places that are not inside a word.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        row = _SEPARATOR.join([*texts, ""]).encode("utf-32-le", "surrogatepass")
        self._points = points = np.frombuffer(row, np.uint32)
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        self.ends = np.cumsum(lengths + 1) - 1
        self.starts = self.ends - lengths
        self.kinds = _kinds()[points]
        self._inside = _inside_words(self.kinds)
        self.bounds = np.flatnonzero(~self._inside)
        powers, self._inverses = _powers(len(points).bit_length())
        self._sums = np.zeros(len(points) + 1, np.uint64)
        np.cumsum(_values()[points] * powers[: len(points)], out=self._sums[1:])

    def keys(self, starts: Positions, ends: Positions) -> Keys:
        """The keys of spans."""
        return (self._sums[ends] - self._sums[starts]) * self._inverses[starts]

    def whole(self) -> Keys:
        """The key of each text."""
        return self.keys(self.starts, self.ends)

    def beginnings(self) -> Keys:
        """The keys of all that texts have in front of a bound, themselves included."""
        texts = np.searchsorted(self.ends, self.bounds)
        texts = np.minimum(texts, len(self.starts) - 1)
        is_inside = self.bounds > self.starts[texts]
        return np.unique(self.keys(self.starts[texts[is_inside]], self.bounds[is_inside]))

    def find(self, links: Links, known: NameKeys) -> tuple[Positions, Keys]:
        """(the text, the key) of each place that is a link or lies between bounds, where the table says yes."""
        begins = self.kinds[self.bounds[:-1]] != _SPACE
        open_ = np.flatnonzero(begins)
        begun, ended = ([each] for each in self._beside(links))
        keys = [self.keys(begun[0], ended[0])]
        further = 0
        while len(open_):
            further += 1
            open_ = open_[: np.searchsorted(open_, len(self.bounds) - further)]
            starts, ends = self.bounds[open_], self.bounds[open_ + further]
            these = self.keys(starts, ends)
            says = known.look_up(these)
            is_name = (says & _NAME) != 0
            begun.append(starts[is_name])
            ended.append(ends[is_name])
            keys.append(these[is_name])
            open_ = open_[(says & _BEGINNING) != 0]
        starts, ends = np.concatenate(begun), np.concatenate(ended)

        def text_of(number: int) -> str:
            span = self._points[starts[number] : ends[number]]
            return span.tobytes().decode("utf-32-le", "surrogatepass")

        return np.searchsorted(self.ends, starts), known.own(np.concatenate(keys), text_of)

    def _beside(self, links: Links) -> tuple[Positions, Positions]:
        """(start, end) of the links that do not lie between bounds, each span once."""
        starts, ends = self.starts[links.texts] + links.starts, self.starts[links.texts] + links.ends
        is_between = ~self._inside[starts] & ~self._inside[ends] & (self.kinds[starts] != _SPACE)
        spans = np.unique(np.stack((starts[~is_between], ends[~is_between])), axis=1)
        return spans[0], spans[1]


def _inside_words(kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return whether each position from 0 to the end lies inside a word."""
    inside = np.zeros(len(kinds) + 1, np.bool_)
    is_word, is_mark = kinds == _WORD, kinds == _MARK
    if is_mark.any():
        # A mark belongs to the letter before it; behind a letter that is a word of its own it ends that word.
        letters = np.maximum.accumulate(np.where(is_mark, 0, np.arange(len(kinds))))
        belongs = is_mark & (kinds[letters] == _UNSPACED)
        is_word |= is_mark & ~belongs
        inside[:-1] = belongs
    inside[1:-1] |= is_word[1:] & is_word[:-1]
    return inside


@cache
def _kinds() -> NDArray[np.uint8]:
    """Return what each code point is to words."""
    kinds = np.full(_CODE_POINTS, _OTHER, np.uint8)
    for first, last in _ASSIGNED:
        part = "".join(map(chr, range(first, last)))
        found = kinds[first:last]
        found[[character.isspace() for character in part]] = _SPACE
        for kind, pattern in ((_WORD, WORD_CHARACTERS), (_MARK, MARKS), (_UNSPACED, UNSPACED)):
            for match in regex.finditer(f"(?V1){pattern}+", part):
                found[slice(*match.span())] = kind
    kinds[ord(_SEPARATOR)] = _SPACE
    return kinds


@cache
def _values() -> Keys:
    """A number without a pattern for each code point."""
    return mixed(np.arange(1, _CODE_POINTS + 1, dtype=np.uint64) * np.uint64(_BASE))


@cache
def _powers(bits: int) -> tuple[Keys, Keys]:
    """Powers of the base from the 0th on, and of its inverse, for this many bits of positions."""
    size = (1 << bits) + 1
    powers = []
    for base in (_BASE, pow(_BASE, -1, 1 << 64)):
        factors = np.full(size, base, np.uint64)
        factors[0] = 1
        powers.append(np.cumprod(factors))
    return powers[0], powers[1]
