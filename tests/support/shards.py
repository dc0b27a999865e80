"""A folder of sequences as the corpus stage leaves it, small and random."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline import storage
from tests.support.manifests import write_manifest

WORDS, ENTITIES = 60, 12
SPECIAL_IDS = [0, 1, 2, 3, 59]


def random_rows(count: int, seed: int = 0, longest: int = 30) -> list[dict[str, Any]]:
    """Sequences of 2 words to so many with up to 5 entities (never none)."""
    generator = np.random.default_rng(seed)
    rows = []
    for page in range(count):
        words = generator.integers(4, 59, size=generator.integers(2, longest + 1))
        starts = np.sort(generator.integers(0, len(words), size=generator.integers(1, 6)))
        ends = np.minimum(starts + generator.integers(1, 5, size=len(starts)), len(words))
        entities = generator.integers(1, ENTITIES, size=len(starts))
        rows.append(
            {
                "word_ids": words.tolist(),
                "entity_ids": entities.tolist(),
                "entity_starts": starts.tolist(),
                "entity_ends": ends.tolist(),
                "page_id": page + 1000,
            }
        )
    return rows


def write_arrow(path: Path, table: pa.Table, rows_per_batch: int = 7) -> None:
    """Write an Arrow IPC stream of several record batches."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows_per_batch)


def write_sequences(
    folder: Path,
    rows: list[dict[str, Any]],
    shards: int = 3,
    held_out: list[dict[str, Any]] | None = None,
    **facts: Any,
) -> Path:
    """Write shards, word starts (every even id begins a word) and the manifest; return the folder."""
    schema = pa.schema(
        {
            "word_ids": pa.list_(pa.uint16()),
            "entity_ids": pa.list_(pa.int32()),
            "entity_starts": pa.list_(pa.int16()),
            "entity_ends": pa.list_(pa.int16()),
            "page_id": pa.int64(),
        }
    )
    tables: dict[str, pa.Table] = {}
    for part, part_rows in (("sequences", rows), ("held_out", held_out)):
        for number, indices in enumerate(np.array_split(np.arange(len(part_rows or [])), shards)):
            if part_rows is not None:
                own = [part_rows[index] for index in indices]
                tables[f"{part}/block-{number:05d}.arrow"] = pa.Table.from_pylist(own, schema=schema)
    tables["title_words.arrow"] = title_words()
    tables["word_starts.arrow"] = pa.table({"word_start": [index % 2 == 0 for index in range(WORDS)]})
    for path, table in tables.items():
        write_arrow(folder / path, table)
    files = [storage.describe(str(folder), path, table.num_rows) for path, table in tables.items()]
    defaults = {
        "word_vocab_size": WORDS, "entity_vocab_size": ENTITIES, "cls_id": 0, "sep_id": 2, "pad_id": 1,
        "mask_id": 59, "unk_id": 3, "special_ids": SPECIAL_IDS, "max_words": 32, "max_entities": 5,
        "max_mention_words": 3,
    }  # fmt: skip
    write_manifest(folder, "BuildSequences", files, facts=defaults | facts)
    return folder


def write_long_sequences(folder: Path, count: int = 3000, longest: int = 510, words_a_mention: int = 14) -> Path:
    """Write random sequences of few ids, with an entity every so many words; their lengths are drawn evenly."""
    generator, rows = np.random.default_rng(0), []
    for page in range(count):
        size = int(generator.integers(20, longest + 1))
        starts = np.arange(0, size - 3, words_a_mention)
        ends = starts + generator.integers(1, 4, size=len(starts))
        row = {"word_ids": generator.integers(4, 59, size=size), "entity_starts": starts, "entity_ends": ends}
        row["entity_ids"] = generator.integers(1, ENTITIES, size=len(starts))
        rows.append({name: value.tolist() for name, value in row.items()} | {"page_id": page})
    return write_sequences(folder, rows, max_words=longest + 2, max_entities=longest // words_a_mention + 1)


def title_words() -> pa.Table:
    """Titles of one to three words, whose names are their first ones; the special entities and the last have none."""
    words = [
        [] if entity < 3 or entity == ENTITIES - 1 else [4 + entity + more for more in range(1 + entity % 3)]
        for entity in range(ENTITIES)
    ]
    ids = pa.list_(pa.uint16())
    return pa.table(
        {
            "title": [f"title {entity}" for entity in range(ENTITIES)],
            "title_word_ids": pa.array(words, ids),
            "name_word_ids": pa.array([each[:1] for each in words], ids),
        }
    )
