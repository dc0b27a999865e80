"""The commonest label of each held-out mention's text: the baseline that a model of masked entities has to beat.

A label is what a sequence holds: an entity's id, or [UNK] for all entities outside the vocabulary together. Links of
the held-out pages themselves do not count, also those that are in no sequence, since no model has seen them. Texts are
decoded from word ids. Where these have lost case or accents (BERT's), a text stands for all names of the table that
become the same. These texts and the held-out pages' links alone are held in memory, with a few numbers of each
annotation.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline import schemas, storage
from pipeline.lookup.held_out import HELD_OUT, is_held_out
from pipeline.lookup.mentions import MentionTable
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
    begins, both = pa.array(offsets, pa.int32()), zip(schema, answers.T, strict=True)
    columns = [pa.ListArray.from_arrays(begins, pa.array(column, each.type.value_type)) for each, column in both]
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
    words, table, manifest = WordTokenizer.load(tokenizer), MentionTable(mentions), storage.read_manifest(sequences)
    lengths, places, texts = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)], dict[str, int]()
    for path in sorted(manifest.paths(sequences, f"{HELD_OUT}/")):
        for batch in storage.open_arrow(path).to_batches():
            lengths.append(batch.column("entity_ids").value_lengths().to_numpy().astype(np.int64))
            named = (_named(text, table.profile) for text in _texts(batch, words))
            places.append(np.array([texts.setdefault(text, len(texts)) for text in named], np.int64))
    rows = rows_of_texts(texts, table, words)
    own = _own_links(links, manifest.parameters["held_out"], table, set(chain.from_iterable(rows)))
    return np.cumsum(np.concatenate(lengths)), np.concatenate(places), (_counts(table, each, own) for each in rows)


def rows_of_texts(texts: Iterable[str], table: MentionTable, words: WordTokenizer) -> list[list[int]]:
    """For each of these texts, which are as a tokenizer leaves them, the rows of the names that become it."""
    if words.keeps_spelling:
        return [[] if (row := table.number(text)) is None else [row] for text in texts]
    rows: dict[str, list[int]] = {text: [] for text in texts}
    names, first = table.names(), 0
    while some := list(islice(names, _NAMES_AT_ONCE)):
        for row, ids in enumerate(words.encode(some, [False] * len(some)), first):
            if (name := _named(words.decode(ids), table.profile)) in rows:
                rows[name].append(row)
        first += len(some)
    return list(rows.values())


def _named(text: str, profile: str) -> str:
    """A text as the table of that profile has names."""
    return normalize_mention(text) if profile == "paper" else text


def _texts(batch: pa.RecordBatch, tokenizer: WordTokenizer) -> Iterator[str]:
    """The texts of all annotations of a batch."""
    for words, starts, ends in zip(
        *(batch.column(name).to_pylist() for name in ("word_ids", "entity_starts", "entity_ends")), strict=True
    ):
        for start, end in zip(starts, ends, strict=True):
            yield tokenizer.decode(words[start:end]).strip()


def _own_links(folder: str, share: float, table: MentionTable, known: set[int]) -> dict[int, Counter[str]]:
    """Return how often the held-out pages link to each title by the names of these rows, by the row."""
    found: dict[int, Counter[str]] = {}
    for path in storage.read_manifest(folder, "ResolveLinks").paths(folder, "links/"):
        for batch in storage.read_batches(path, ["page_id", "mention", "title"]):
            pages = [page for page in pc.unique(batch.column("page_id")).to_pylist() if is_held_out(page, share)]
            rows = batch.filter(pc.is_in(batch.column("page_id"), pa.array(pages, pa.int64())))
            texts, titles = (rows.column(name).to_pylist() for name in ("mention", "title"))
            for text, title in zip(texts, titles, strict=True):
                number = table.number(_named(text, table.profile))
                if number in known:
                    found.setdefault(number, Counter())[title] += 1
    return found


def _counts(table: MentionTable, rows: Iterable[int], own: Mapping[int, Counter[str]]) -> dict[int, int]:
    """The labels of the names in these rows, and their links but for the held-out pages' own."""
    left: Counter[int] = Counter()
    for row in rows:
        taken = own.get(row, Counter[str]())
        for candidate in table.candidates(row):
            label = UNKNOWN_ENTITY if candidate.entity_id is None else candidate.entity_id
            left[label] += candidate.link_count - taken[candidate.title]
    return {label: count for label, count in left.items() if count > 0}


def _commonest(counts: Mapping[int, int]) -> list[int]:
    """The commonest label of a text, and the commonest known one; of equals the first in the table."""
    known = {label: count for label, count in counts.items() if label != UNKNOWN_ENTITY}
    return [max(each, key=each.__getitem__, default=NONE) for each in (counts, known)]
