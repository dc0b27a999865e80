"""The commonest label of each held-out mention's text: the baseline that a model of masked entities has to beat.

A label is what a sequence holds: an entity's id, or [UNK] for all entities outside the vocabulary together. Links of
the held-out pages themselves do not count, also those that are in no sequence, since no model has seen them. Texts are
decoded from word ids. Where these have lost case or accents (BERT's), a text stands for all names of the table that
become the same. These texts and the held-out pages' links alone are held in memory, with a few numbers of each
annotation.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline import schemas, storage
from pipeline.lookup.held_out import HELD_OUT, is_held_out
from pipeline.lookup.mentions import MentionTable, MentionTarget
from pipeline.lookup.names import normalize_mention
from pipeline.sequences.packing import UNKNOWN_ENTITY
from pipeline.sequences.tokenizer import WordTokenizer

COMMONEST = "commonest.arrow"
NONE = -1
_ROWS_PER_BATCH = 1024
_NAMES_AT_ONCE = 1 << 14

Numbers = NDArray[np.int64]


def write_commonest(path: str, *, sequences: str, links: str, mentions: str, tokenizer: str) -> int:
    """Write a row for each held-out sequence: lists parallel to its `entity_ids`; return how many there are.

    Column `commonest` is the commonest label of each annotation's text, `commonest_known` the commonest one but
    [UNK]; -1 where the text links to none. The schema's metadata names the sequences' manifest by its SHA-256.
    `sequences`, `links` and `mentions` are folders of BuildSequences, ResolveLinks and BuildMentionTable;
    `tokenizer` made the sequences.
    """
    offsets, places, counts = held_out_counts(sequences=sequences, links=links, mentions=mentions, tokenizer=tokenizer)
    labels = np.array([_commonest(each) for each in counts], np.int64).reshape(-1, 2)
    answers = labels[places]
    schema = schemas.COMMONEST.schema.with_metadata({"sequences": storage.manifest_sha256(sequences)})
    columns = [
        pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(column, field.type.value_type))
        for field, column in zip(schema, answers.T, strict=True)
    ]
    with storage.arrow_writer(path, schema) as writer:
        writer.write_table(pa.table(columns, schema=schema), max_chunksize=_ROWS_PER_BATCH)
    return len(offsets) - 1


def held_out_counts(
    *, sequences: str, links: str, mentions: str, tokenizer: str
) -> tuple[Numbers, Numbers, Iterator[dict[int, int]]]:
    """Return how often the text of each held-out annotation links to each label, beside the held-out pages' own links.

    These are where the annotations of each held-out sequence begin, and where the last ones end; for each annotation
    the place of its text among all texts; for each text, one after the other, its labels and their links.
    """
    words, mention_table = WordTokenizer.load(tokenizer), MentionTable(mentions)
    table = mention_table if words.keeps_spelling else Respelled(mention_table, words, sequences)
    offsets, names = _annotations(sequences, words, table)
    known, places = np.unique(names, return_inverse=True)
    share = storage.read_manifest(sequences).parameters["held_out"]
    own = _own_links(links, share, table, set(known.tolist()) - {NONE})
    return offsets, places, (_counts(table, number, own) for number in known.tolist())


class Respelled:
    """The mention table by texts as a tokenizer leaves them; those of the held-out annotations alone."""

    def __init__(self, table: MentionTable, tokenizer: WordTokenizer, sequences: str) -> None:
        self.table, self.profile, self.tokenizer = table, table.profile, tokenizer
        texts = (text for batch in _batches(sequences) for text in _texts(batch, tokenizer))
        wanted = {_named(text, table.profile) for text in texts}
        self.numbers = {text: place for place, text in enumerate(sorted(wanted))}
        self.rows: list[list[int]] = [[] for _ in wanted]
        names, first = table.names(), 0
        while some := list(islice(names, _NAMES_AT_ONCE)):
            for row, name in enumerate(self.respell(some), first):
                place = self.numbers.get(name)
                if place is not None:
                    self.rows[place].append(row)
            first += len(some)

    def respell(self, texts: Sequence[str]) -> list[str]:
        """Texts as the tokenizer leaves them."""
        ids = self.tokenizer.encode(texts, [False] * len(texts))
        return [_named(self.tokenizer.decode(each), self.profile) for each in ids]

    def number(self, name: str) -> int | None:
        """The number of a text, or None where no name becomes it."""
        place = self.numbers.get(name)
        return place if place is not None and self.rows[place] else None

    def candidates(self, number: int) -> Iterator[MentionTarget]:
        """The candidates of all names that become that text."""
        return chain.from_iterable(map(self.table.candidates, self.rows[number]))


def _named(text: str, profile: str) -> str:
    """A text as the table of that profile has names."""
    return normalize_mention(text) if profile == "paper" else text


def _batches(folder: str) -> Iterator[pa.RecordBatch]:
    """The held-out sequences."""
    for path in sorted(storage.read_manifest(folder).paths(folder, f"{HELD_OUT}/")):
        yield from storage.open_arrow(path).to_batches()


def _annotations(folder: str, tokenizer: WordTokenizer, table: MentionTable | Respelled) -> tuple[Numbers, Numbers]:
    """Of all held-out sequences where the annotations of each begin, and where the last ones end.

    Then, of each annotation, the number of its name in the table (-1: not there).
    """
    lengths, names = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)]
    for batch in _batches(folder):
        lengths.append(batch.column("entity_ids").value_lengths().to_numpy().astype(np.int64))
        found = (table.number(_named(text, table.profile)) for text in _texts(batch, tokenizer))
        names.append(np.array([NONE if number is None else number for number in found], np.int64))
    return np.cumsum(np.concatenate(lengths)), np.concatenate(names)


def _texts(batch: pa.RecordBatch, tokenizer: WordTokenizer) -> Iterator[str]:
    """The texts of all annotations of a batch."""
    for words, starts, ends in zip(
        *(batch.column(name).to_pylist() for name in ("word_ids", "entity_starts", "entity_ends")), strict=True
    ):
        for start, end in zip(starts, ends, strict=True):
            yield tokenizer.decode(words[start:end]).strip()


def _own_links(folder: str, share: float, table: MentionTable | Respelled, known: set[int]) -> dict[int, Counter[str]]:
    """Return how often the held-out pages link to each title by each known name, by the name's number."""
    found: dict[int, Counter[str]] = {}
    for path in storage.read_manifest(folder, "ResolveLinks").paths(folder, "links/"):
        for batch in storage.read_batches(path, ["page_id", "mention", "title"]):
            pages = [page for page in pc.unique(batch.column("page_id")).to_pylist() if is_held_out(page, share)]
            rows = batch.filter(pc.is_in(batch.column("page_id"), pa.array(pages, pa.int64())))
            texts, titles = (rows.column(name).to_pylist() for name in ("mention", "title"))
            if isinstance(table, Respelled):
                texts = table.respell(texts)
            for text, title in zip(texts, titles, strict=True):
                number = table.number(_named(text, table.profile))
                if number in known:
                    found.setdefault(number, Counter())[title] += 1
    return found


def _counts(table: MentionTable | Respelled, number: int, own: Mapping[int, Counter[str]]) -> dict[int, int]:
    """The labels of the name with that number (-1 has none), and their links but for the held-out pages' own."""
    left: Counter[int] = Counter()
    taken = Counter(own.get(number))
    for candidate in table.candidates(number) if number != NONE else ():
        label = UNKNOWN_ENTITY if candidate.entity_id is None else candidate.entity_id
        left[label] += candidate.link_count - taken.pop(candidate.title, 0)
    return {label: count for label, count in left.items() if count > 0}


def _commonest(counts: Mapping[int, int]) -> list[int]:
    """The commonest label of a text, and the commonest known one; of equals the first in the table."""
    known = {label: count for label, count in counts.items() if label != UNKNOWN_ENTITY}
    return [max(each, key=each.__getitem__, default=NONE) for each in (counts, known)]
