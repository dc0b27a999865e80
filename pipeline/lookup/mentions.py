"""The finished mention table, memory-mapped: what a name links to.

`link_probability` = links / occurrences, `commonness` = links to the target / links.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import schemas, storage
from pipeline.lookup.names import alike, compose_in_place, fold_in_place, longest_names, write_alike
from pipeline.lookup.page_names import PageNames
from pipeline.lookup.targets import Targets
from pipeline.mediawiki.conversions import find_conversion
from pipeline.storage.tries import TextMap, batches_of, write_numbered, write_numbers

LOOKUP = "lookup.tries"
ALIKE = "alike.tries"
CONVERTED = "converted.tries"  # of a wiki in several scripts
CANDIDATES = "candidates.arrow"
_ROWS_PER_BATCH = 4096


class MentionTarget(NamedTuple):
    """A target of a mention's links: the page's title, its id where it is in the vocabulary, and how many links."""

    entity_id: int | None
    title: str
    link_count: int
    commonness: float


@dataclass(frozen=True)
class MentionEntry:
    """A row of the mention table, its candidates by falling link count, ties by title."""

    name: str
    total_links: int
    occurrences: int
    link_probability: float
    candidates: tuple[MentionTarget, ...]


class MentionTable:
    """Looks names up in the finished mention table, which stays on disk, memory-mapped."""

    def __init__(self, folder: str) -> None:
        """Open the folder of the stage BuildMentionTable. Raises: ValueError: it is no such folder, or not complete."""
        manifest = storage.read_manifest(folder, "BuildMentionTable")
        self.folder, self.manifest = folder, manifest
        self.profile: str = manifest.parameters["profile"]
        self.longest: int = manifest.facts["longest_mention"]
        self._rows = TextMap(storage.join(folder, LOOKUP))
        has_scripts = self.profile == "fixed" and any(entry.path == CONVERTED for entry in manifest.files)
        self._conversion = find_conversion(manifest.facts["language"]) if has_scripts else None
        if self._conversion:
            self.longest *= 2  # letters of one script can be two of another
            self._converted = TextMap(storage.join(folder, CONVERTED))
        batches = self._batches = storage.open_arrow(storage.join(folder, CANDIDATES)).to_batches()
        self._cells = cache(lambda batch: [*map(storage.cells, _columns(batches[batch]))])

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    @cached_property
    def _alike(self) -> TextMap:
        return TextMap(storage.join(self.folder, ALIKE))

    @cached_property
    def pages(self) -> PageNames:
        """The names by which each page links."""
        return PageNames(self.folder, self.manifest)

    @cached_property
    def targets(self) -> Targets:
        """The targets of names: every page, and every title that is linked."""
        return Targets(self.folder, self.manifest.facts["language"])

    def prefixes(self, text: str) -> list[str]:
        """The names with which the text begins, the shortest first."""
        found = self._rows.prefixes(text)
        return sorted({*found, *self._converted.prefixes(text)}, key=len) if self._conversion else found

    def get(self, name: str) -> MentionEntry | None:
        """Return what the table says of a name, or None. In the profile `paper` names are folded (`fold`)."""
        number = self.number(name)
        if number is None:
            return None
        batch, row = divmod(number, _ROWS_PER_BATCH)
        total_links, occurrences, link_probability = (read(row) for read in self._cells(batch)[:3])
        return MentionEntry(name, total_links, occurrences, link_probability, tuple(self.candidates(number)))

    def names(self) -> Iterator[str]:
        """All names, in the order of their rows."""
        return _names(self.folder)

    def number(self, name: str) -> int | None:
        """The number of a name's row, or else of the name in another script of the wiki; or None."""
        number = self._rows.get(name)
        if number is None and self._conversion:
            key = self._conversion.keys(name)[0]
            number = self._converted.get(key)
            return self._rows.get(key) if number is None else number
        return number

    def alike(self, name: str) -> list[int]:
        """The numbers of the names that differ from this one in case, accents, punctuation and blanks at most."""
        return alike(self._alike, name)

    def total_links(self, number: int) -> int:
        """Return how many links the name has whose row has this number."""
        batch, row = divmod(number, _ROWS_PER_BATCH)
        return int(self._cells(batch)[0](row))

    def candidates(self, number: int, most: int | None = None) -> Iterator[MentionTarget]:
        """The candidates of the name whose row has this number, the `most` common ones where that is given."""
        batch, row = divmod(number, _ROWS_PER_BATCH)
        total_links, _, _, offsets, *columns = self._cells(batch)
        total, first, end = total_links(row), offsets(row), offsets(row + 1)
        places = range(first, end if most is None else min(end, first + most))
        for entity_id, title, link_count in zip(*(map(read, places) for read in columns), strict=True):
            yield MentionTarget(entity_id, title, link_count, link_count / total)

    def links_to(self, titles: Collection[str]) -> Counter[str]:
        """Return the number of links to each of these titles, of all names together; the whole table is read once."""
        wanted, found = pa.array(sorted(titles), pa.string()), Counter[str]()
        for *_, ends, counts in map(_columns, self._batches):
            is_wanted = pc.is_in(ends, value_set=wanted)
            pairs = (column.filter(is_wanted).to_pylist() for column in (ends, counts))
            for title, count in zip(*pairs, strict=True):
                found[title] += count
        return found

    def as_named(self, text: str) -> tuple[str, Sequence[int]]:
        """A text as names are looked for in it: as they are written, but in one of the wiki's scripts."""
        written, places = self.as_written(text)
        return self._conversion.in_place(written, places) if self._conversion else (written, places)

    def as_written(self, text: str) -> tuple[str, Sequence[int]]:
        """A text as the table writes names, and the place in the text of each of its positions and its end.

        That is composed (NFC) and with one blank for blanks and a line end at most; in the profile `paper` without case
        and accents instead, so that these do not matter.
        """
        return fold_in_place(text) if self.profile == "paper" else compose_in_place(text)

    def find(self, text: str) -> Iterator[tuple[int, int, MentionEntry]]:
        """The mentions in a text as (start, end, mention): longest first, between word boundaries, none overlapping."""
        named, places = self.as_named(text)
        for start, end, name in longest_names(named, self):
            mention = self.get(name)
            assert mention is not None
            yield places[start], places[end], mention


def _columns(batch: pa.RecordBatch) -> list[pa.Array]:
    """The columns behind the name, with those of all candidates, and before these where those of each name begin."""
    candidates = batch.column(4)
    return [*batch.columns[1:4], candidates.offsets, *candidates.values.flatten()]


def write_lookup(folder: str, tables: Sequence[str], language: str) -> list[storage.FileEntry]:
    """Write what `MentionTable` reads, beside the mention table itself; `language` is the wiki's.

    Each file is in the order of mentions and titles, and has all rows of its mentions.
    """
    schema = schemas.CANDIDATES.schema
    batches = batches_of(_candidates_rows(tables), schema, _ROWS_PER_BATCH)
    written = write_numbered(folder, CANDIDATES, schema, LOOKUP, batches)
    rows = ((name, number) for number, name in enumerate(_names(folder)))
    if conversion := find_conversion(language):
        pairs = ((conversion.keys(name)[0], name, number) for number, name in enumerate(_names(folder)))
        others = ((key, number) for key, name, number in pairs if key != name)
        count = write_numbers(storage.join(folder, CONVERTED), others)
        written.append(storage.describe(folder, CONVERTED, count))
    return [*written, storage.describe(folder, ALIKE, write_alike(storage.join(folder, ALIKE), rows))]


def _names(folder: str) -> Iterator[str]:
    for batch in storage.open_arrow(storage.join(folder, CANDIDATES)).to_batches():
        yield from batch.column(0).to_pylist()


def _candidates_rows(tables: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each mention."""
    of_names = ["mention", "total_links", "occurrences", "link_probability"]
    links = storage.read_tuples(tables, [*of_names, "entity_id", "title", "link_count"])
    for name, rows in itertools.groupby(links, key=itemgetter(0, 1, 2, 3)):
        yield *name, sorted((row[4:] for row in rows), key=lambda row: (-row[2], row[1]))
