"""Mentions: where names stand in a text, how often they are links, and what they link to.

A name occurs where it stands between word boundaries, or where it is the anchor of a link; overlapping names each
count. `link_probability` = links / occurrences, `commonness` = links to the target / links.
"""

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa
import regex

from pipeline import storage
from pipeline.page_names import PageNames
from pipeline.tries import TextMap, TextSet, write_numbers

NAMES = "names.tries"
LOOKUP = "lookup.tries"
CANDIDATES = "candidates.arrow"
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
_CANDIDATE = pa.struct([("entity_id", pa.int32()), ("title", pa.string()), ("link_count", pa.int64())])
CANDIDATES_SCHEMA = pa.schema(
    [
        ("mention", pa.string()),
        ("total_links", pa.int64()),
        ("occurrences", pa.int64()),
        ("link_probability", pa.float64()),
        ("candidates", pa.list_(_CANDIDATE)),
    ]
)

_MAX_PAPER_TOKENS = 20
_ROWS_PER_BATCH = 4096

# Letters of scripts that are written without blanks: each is a word of its own. Marks of length and repetition belong
# to several of these scripts, so that Unicode gives them to none.
_UNSPACED = (
    r"[[\p{L}\p{N}]&&[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}"
    r"\u3006\u3031-\u3035\u30fc\uff70\uff9e\uff9f]]"
)
_WORD = rf"[[\p{{L}}\p{{N}}\p{{M}}]--{_UNSPACED}]+|{_UNSPACED}\p{{M}}*"
_TOKEN = regex.compile(rf"{_WORD}|[^\s\x1c-\x1f]", regex.V1)
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9]+|[^\sA-Za-z0-9]")


# Names in texts


def tokens(text: str) -> Iterator[Any]:
    """Matches of the words of a text, and of each character beside them that is no white space.

    Letters, digits and combining marks make words; in Han, Kana, Thai, Lao and Khmer every character is one. A
    position inside of none of these, where a mention may begin or end, is a word boundary.
    """
    return (_ASCII_TOKEN if text.isascii() else _TOKEN).finditer(text)


class NameSet(Protocol):
    """Names to look for. `longest`: characters of the longest one."""

    longest: int

    def prefixes(self, text: str) -> list[str]:
        """The names with which the text begins, the shortest first."""

    def __contains__(self, name: str) -> bool: ...


def find_names(text: str, names: NameSet) -> Iterator[tuple[int, int, str]]:
    """Every occurrence of a name between word boundaries as (start, end, name), overlapping ones too."""
    spans = [match.span() for match in tokens(text)]
    ends = {end for _, end in spans}
    prefixes = names.prefixes
    for start, _ in spans:
        for name in prefixes(text[start : start + names.longest]):
            end = start + len(name)
            if end in ends or text[end - 1].isspace():
                yield start, end, name


def longest_names(
    text: str, names: NameSet, wanted: Callable[[str], object] = bool
) -> Iterator[tuple[int, int, str]]:
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


def occurrences(text: str, links: Sequence[tuple[int, int]], names: NameSet) -> list[str]:
    """The name of each place of a paragraph that is a link, or that a name fills between word boundaries.

    Args:
        text: the paragraph.
        links: (start, end) of its anchors.
        names: the names to look for.
    """
    places = list(find_names(text, names))
    found = [name for _, _, name in places]
    if links:
        between_boundaries = {(start, end) for start, end, _ in places}
        beside = (text[start:end] for start, end in {*links} - between_boundaries)
        found += [name for name in beside if name in names]
    return found


def names_in_text(text: str, names: NameSet) -> set[str]:
    """The names that occur in a text after folding (profile `paper` counts pages, not occurrences)."""
    return {name for _, _, name in find_names(fold(text), names)}


def normalize_mention(anchor: str) -> str:
    """The mention that an anchor counts for in the profile `paper`: lower-cased, without accents.

    An anchor that counts for none (too long, or empty) gives an empty text.
    """
    folded = fold(anchor).strip()
    return folded if len(folded.split()) <= _MAX_PAPER_TOKENS else ""


def fold(text: str) -> str:
    """Lower-cased and without accents, as the paper's code counted names."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")


def _fold_in_place(text: str) -> tuple[str, Sequence[int]]:
    """A folded text, and for each of its positions (and its end) the position in the text that it comes from."""
    if text.isascii():
        return text.lower(), range(len(text) + 1)
    folded = [fold(character) for character in text]
    places = [position for position, part in enumerate(folded) for _ in part]
    return "".join(folded), [*places, len(text)]


class Names(TextSet):
    """A set of names, memory-mapped."""

    def __init__(self, path: str, longest: int) -> None:
        super().__init__(path)
        self.longest = longest


# The finished table


@dataclass(frozen=True)
class Candidate:
    """A target of a mention's links: the page's title, its id where it is in the vocabulary, and how many links."""

    entity_id: int | None
    title: str
    link_count: int
    commonness: float


@dataclass(frozen=True)
class Mention:
    """A row of the mention table, its candidates by falling link count, ties by title."""

    name: str
    total_links: int
    occurrences: int
    link_probability: float
    candidates: tuple[Candidate, ...]


class MentionTable:
    """Looks names up in the finished mention table, which stays on disk, memory-mapped."""

    def __init__(self, folder: str) -> None:
        """Open the folder of the stage BuildMentionTable.

        Raises:
            ValueError: it is no such folder, or not whole.
        """
        manifest = storage.read_manifest(folder)
        if manifest.stage != "BuildMentionTable":
            raise ValueError(f"{folder}: made by {manifest.stage}; wanted the folder of BuildMentionTable")
        self.folder, self.manifest = folder, manifest
        self.profile: str = manifest.parameters["profile"]
        self.longest: int = manifest.facts["longest_mention"]
        self._rows = TextMap(storage.join(folder, LOOKUP))
        # The values of a row one by one are there sooner than the row of a table.
        batches = storage.open_arrow(storage.join(folder, CANDIDATES)).to_batches()
        self._columns = [
            (*batch.columns[1:4], batch.column(4).offsets, *batch.column(4).values.flatten())
            for batch in batches
        ]

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    @cached_property
    def pages(self) -> PageNames:
        """The names by which each page links."""
        return PageNames(self.folder, self.manifest)

    def prefixes(self, text: str) -> list[str]:
        """The names with which the text begins, the shortest first."""
        return self._rows.prefixes(text)

    def get(self, name: str) -> Mention | None:
        """What the table says of a name, or None. In the profile `paper` names are folded (`fold`)."""
        number = self._rows.get(name)
        if number is None:
            return None
        batch, row = divmod(number, _ROWS_PER_BATCH)
        *facts, offsets, entity_ids, titles, link_counts = self._columns[batch]
        total_links, occurrences, link_probability = (column[row].as_py() for column in facts)
        candidates = []
        for place in range(offsets[row].as_py(), offsets[row + 1].as_py()):
            entity_id, title, link_count = (
                column[place].as_py() for column in (entity_ids, titles, link_counts)
            )
            candidates.append(Candidate(entity_id, title, link_count, link_count / total_links))
        return Mention(name, total_links, occurrences, link_probability, tuple(candidates))

    def as_named(self, text: str) -> tuple[str, Sequence[int]]:
        """A text as the table writes names, and the place in the text of each of its positions and its end.

        In the profile `paper` that is without case and accents, so that these do not matter.
        """
        return _fold_in_place(text) if self.profile == "paper" else (text, range(len(text) + 1))

    def find(self, text: str) -> Iterator[tuple[int, int, Mention]]:
        """The mentions in a text as (start, end, mention): longest first, between word boundaries, none overlapping."""
        named, places = self.as_named(text)
        for start, end, name in longest_names(named, self):
            mention = self.get(name)
            assert mention is not None
            yield places[start], places[end], mention


def write_lookup(folder: str, tables: Sequence[str]) -> list[storage.FileEntry]:
    """Write what `MentionTable` reads, beside the mention table itself.

    Args:
        folder: the stage's folder.
        tables: the table's files, each ordered by mention and title, every mention in one of them.
    """
    with (
        storage.atomic_path(storage.join(folder, CANDIDATES)) as aside,
        pa.ipc.new_stream(aside, CANDIDATES_SCHEMA) as writer,
    ):
        count = write_numbers(storage.join(folder, LOOKUP), _write_candidates(tables, writer))
    return [storage.describe(folder, name, count) for name in (CANDIDATES, LOOKUP)]


def _write_candidates(
    tables: Sequence[str], writer: pa.ipc.RecordBatchStreamWriter
) -> Iterator[tuple[str, int]]:
    """Write a row for each mention; gives each mention with its row's number."""
    rows = itertools.chain.from_iterable(map(storage.read_rows, tables))
    mentions = (
        _candidates_row(group) for _, group in itertools.groupby(rows, key=lambda row: row["mention"])
    )
    number = 0
    while batch := list(itertools.islice(mentions, _ROWS_PER_BATCH)):
        columns = zip(*batch, strict=True)
        fields = zip(columns, CANDIDATES_SCHEMA, strict=True)
        arrays = [storage.to_array(column, field.type) for column, field in fields]
        writer.write_batch(pa.record_batch(arrays, schema=CANDIDATES_SCHEMA))
        for row in batch:
            yield row[0], number
            number += 1


def _candidates_row(group: Iterator[dict[str, Any]]) -> tuple[Any, ...]:
    rows = sorted(group, key=lambda row: (-row["link_count"], row["title"]))
    candidates = [(row["entity_id"], row["title"], row["link_count"]) for row in rows]
    first = rows[0]
    return (
        first["mention"],
        first["total_links"],
        first["occurrences"],
        first["link_probability"],
        candidates,
    )
