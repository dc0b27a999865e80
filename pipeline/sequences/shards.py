"""Sequences as Arrow IPC streams, one shard for each block of pages; and figures about finished ones."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import schemas, storage
from pipeline.lookup.entities import SPECIAL_ENTITIES, UNK_ID
from pipeline.lookup.held_out import HELD_OUT
from pipeline.lookup.names import name_of
from pipeline.sequences.packing import Sequence as WordSequence
from pipeline.sequences.tokenizer import WordTokenizer

ROWS_PER_BATCH = 1024
WORD_STARTS, TITLE_WORDS = "word_starts.arrow", "title_words.arrow"
STATISTICS = "statistics.json"
SEQUENCE_COLUMNS = ("word_ids", "entity_ids", "entity_starts", "entity_ends")
SIZES = ("words_per_sequence", "entities_per_sequence", "words_per_mention")
SEEN = "sequences"  # folder of what pretraining sees
PARTS = (SEEN, HELD_OUT)


class ShardWriter:
    """Writes sequences to an Arrow IPC stream in batches of a fixed size: the same rows give the same bytes."""

    def __init__(self, writer: pa.ipc.RecordBatchStreamWriter, schema: pa.Schema) -> None:
        self.count = 0
        self._pending: list[tuple[int, WordSequence]] = []
        self._schema = schema
        self._writer = writer

    def extend(self, page_id: int, sequences: Iterable[WordSequence]) -> None:
        """Add the sequences of a page."""
        self._pending += [(page_id, sequence) for sequence in sequences]
        while len(self._pending) >= ROWS_PER_BATCH:
            self.write()

    def write(self) -> None:
        """Write the sequences that have come, a batch at most."""
        rows, self._pending = self._pending[:ROWS_PER_BATCH], self._pending[ROWS_PER_BATCH:]
        columns = {name: [getattr(sequence, name) for _, sequence in rows] for name in SEQUENCE_COLUMNS}
        columns["page_id"] = [page_id for page_id, _ in rows]
        arrays = [pa.array(columns[field.name], field.type) for field in self._schema]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        self.count += len(rows)


@contextlib.contextmanager
def shard(path: str, schema: pa.Schema) -> Iterator[ShardWriter]:
    """Write sequences to a local file that appears complete or not at all."""
    with storage.arrow_writer(path, schema) as writer:
        rows = ShardWriter(writer, schema)
        yield rows
        if rows._pending:
            rows.write()


def write_word_starts(folder: str, word_starts: Sequence[bool]) -> storage.FileEntry:
    """Write the table that makes whole words recoverable, a row for each token id."""
    table = pa.table([pa.array(word_starts, pa.bool_())], schema=schemas.WORD_STARTS.schema)
    with storage.arrow_writer(storage.join(folder, WORD_STARTS), table.schema) as writer:
        writer.write_table(table)
    return storage.describe(folder, WORD_STARTS, table.num_rows)


def write_title_words(folder: str, titles: Sequence[str], tokenizer: WordTokenizer) -> storage.FileEntry:
    """Write the words of entities' titles, a row for each id."""
    schema = schemas.title_words(tokenizer.vocab_size).schema
    with storage.arrow_writer(storage.join(folder, TITLE_WORDS), schema) as writer:
        for first in range(0, len(titles), ROWS_PER_BATCH):
            some = titles[first : first + ROWS_PER_BATCH]
            # The special entities have no words.
            given = ["" if title in SPECIAL_ENTITIES else title for title in some]
            texts = [given, [name_of(title) for title in given]]
            words = [tokenizer.encode(each, [True] * len(each)) for each in texts]
            columns = zip((some, *words), schema.types, strict=True)
            writer.write_batch(pa.record_batch([pa.array(*each) for each in columns], schema=schema))
    return storage.describe(folder, TITLE_WORDS, len(titles))


def describe_sequences(paths: Iterable[str]) -> dict[str, Any]:
    """Counts over shards, which are memory-mapped and read a batch at a time.

    They are `sequences`, `words` (tokens without [CLS] and [SEP]), `annotations`, `unknown_entities` ([UNK] among
    them), `unknown_share`, and by their size the numbers of sequences (`words_per_sequence`,
    `entities_per_sequence`) and of annotations (`words_per_mention`).
    """
    sizes: dict[str, Counter[int]] = {name: Counter() for name in SIZES}
    unknown = 0
    for path in paths:
        for batch in storage.open_arrow(path).to_batches():
            entity_ids = batch.column("entity_ids")
            starts, ends = (batch.column(name).flatten() for name in ("entity_starts", "entity_ends"))
            _add(sizes["words_per_sequence"], pc.list_value_length(batch.column("word_ids")))
            _add(sizes["entities_per_sequence"], pc.list_value_length(entity_ids))
            _add(sizes["words_per_mention"], pc.subtract(ends, starts))
            unknown += pc.sum(pc.equal(entity_ids.flatten(), UNK_ID)).as_py() or 0
    annotations = sizes["words_per_mention"].total()
    return {
        "sequences": sizes["words_per_sequence"].total(),
        "words": sum(size * count for size, count in sizes["words_per_sequence"].items()),
        "annotations": annotations,
        "unknown_entities": unknown,
        "unknown_share": unknown / annotations if annotations else 0.0,
        **{name: {str(size): counts[size] for size in sorted(counts)} for name, counts in sizes.items()},
    }


def _add(counts: Counter[int], values: pa.Array) -> None:
    for row in pc.value_counts(values).to_pylist():
        counts[row["values"]] += row["counts"]
