"""Mentions: where names stand in a text, how often they are links, and what they link to.

A name occurs where it stands between word boundaries, or where it is the anchor of a link; overlapping names each
count. `link_probability` = links / occurrences, `commonness` = links to the target / links.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import regex

from pipeline import storage

NAMES = "names.marisa"
SCHEMA = pa.schema(
    [
        ("mention", pa.string()),
        ("entity_id", pa.int32()),
        ("title", pa.string()),
        ("link_count", pa.int64()),
        ("total_links", pa.int64()),
        ("occurrences", pa.int64()),
        ("link_probability", pa.float64()),
        ("commonness", pa.float64()),
    ]
)

MAX_MENTION_CHARACTERS = 100
_MAX_PAPER_TOKENS = 20

# Scripts that are written without blanks: every character is a word of its own.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}"
_WORD = regex.compile(rf"[[\p{{L}}\p{{N}}\p{{M}}]--[{_UNSPACED}]]{{2,}}|[{_UNSPACED}]\p{{M}}+", regex.V1)


def inner_positions(text: str) -> set[int]:
    """Positions inside a word, where no mention may begin or end. All other positions are word boundaries."""
    return {position for match in _WORD.finditer(text) for position in range(match.start() + 1, match.end())}


def find_names(text: str, names: "Names") -> Iterator[tuple[int, int, str]]:
    """Every occurrence of a name between word boundaries as (start, end, name), overlapping ones too."""
    inner = inner_positions(text)
    for start in range(len(text)):
        if start in inner or text[start].isspace():
            continue
        for name in names.prefixes(text[start : start + MAX_MENTION_CHARACTERS]):
            if start + len(name) not in inner:
                yield start, start + len(name), name


def normalize_mention(anchor: str, profile: str) -> str:
    """The mention that an anchor counts for: the anchor itself; `paper`: lower-cased, without accents.

    An anchor that counts for none (too long, or empty) gives an empty text.
    """
    if profile == "paper":
        anchor = fold(anchor).strip()
        return anchor if 0 < len(anchor.split()) <= _MAX_PAPER_TOKENS else ""
    return anchor if 0 < len(anchor) <= MAX_MENTION_CHARACTERS and not anchor.isspace() else ""


def fold(text: str) -> str:
    """Lower-cased and without accents, as the paper's code counted names."""
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")


def count_occurrences(text: str, links: Sequence[tuple[int, int]], names: "Names") -> Counter[str]:
    """How often each name occurs in a paragraph, as a link or between word boundaries.

    Args:
        text: the paragraph.
        links: (start, end) of its anchors.
        names: the names to look for.
    """
    places = set(find_names(text, names))
    places |= {(start, end, text[start:end]) for start, end in links if text[start:end] in names}
    return Counter(name for _, _, name in places)


def names_in_text(text: str, names: "Names") -> set[str]:
    """The names that occur in a text after folding (profile `paper` counts pages, not occurrences)."""
    return {name for _, _, name in find_names(fold(text), names)}


class Names:
    """A set of names in a memory-mapped trie, so that any number of processes share it."""

    def __init__(self, path: str) -> None:
        import marisa_trie

        self._trie = marisa_trie.Trie().mmap(path)

    def prefixes(self, text: str) -> list[str]:
        """The names with which the text begins."""
        return self._trie.prefixes(text)

    def __contains__(self, name: str) -> bool:
        return name in self._trie

    def __len__(self) -> int:
        return len(self._trie)


def write_names(path: str, names: Iterable[str]) -> int:
    """Write the set of names to a local path; returns how many there are."""
    import marisa_trie

    trie = marisa_trie.Trie(sorted(names))
    with storage.atomic_path(path) as aside:
        trie.save(aside)
    return len(trie)
