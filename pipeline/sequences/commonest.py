"""The commonest label of each held-out mention's text: the baseline that a model of masked entities has to beat.

A label is what a sequence holds: an entity's id, or [UNK] for all entities outside the vocabulary together. Links of
the held-out pages themselves do not count, since no model has seen them. Texts are decoded from word ids: of
lower-cased words (BERT's) only names that are written so are found.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import pyarrow as pa

from pipeline import schemas, storage
from pipeline.lookup.mentions import MentionTable
from pipeline.lookup.names import normalize_mention
from pipeline.sequences.packing import UNKNOWN_ENTITY
from pipeline.sequences.shards import HELD_OUT
from pipeline.sequences.tokenizer import WordTokenizer

COMMONEST = "commonest.arrow"
NONE = -1
_ROWS_PER_BATCH = 1024

Annotations = list[tuple[str, int]]  # mention text and label


def write_commonest(path: str, *, sequences: str, mentions: str, tokenizer: str) -> int:
    """Write a row for each held-out sequence, in their order: lists parallel to its `entity_ids`.

    Column `commonest` is the commonest label of each annotation's text, `commonest_known` the commonest one but
    [UNK]; -1 where the text links to none. The schema's metadata names the sequences' manifest by its SHA-256.

    Args:
        path: the Arrow IPC stream to write.
        sequences: folder of BuildSequences.
        mentions: folder of BuildMentionTable.
        tokenizer: the folder of the tokenizer that made the sequences.

    Returns:
        The number of rows.
    """
    table = MentionTable(mentions)
    rows = list(_annotations(sequences, WordTokenizer.load(tokenizer), folded=table.profile == "paper"))
    own = Counter(annotation for row in rows for annotation in row)
    answers = {text: _labels(table, text, own) for text in {text for text, _ in own}}
    schema = schemas.COMMONEST.schema.with_metadata({"sequences": storage.manifest_sha256(sequences)})
    columns = {
        name: [[answers[text][place] for text, _ in row] for row in rows]
        for place, name in enumerate(schema.names)
    }
    with storage.atomic_path(path) as temporary, pa.ipc.new_stream(temporary, schema) as writer:
        writer.write_table(pa.table(columns, schema=schema), max_chunksize=_ROWS_PER_BATCH)
    return len(rows)


def _annotations(folder: str, tokenizer: WordTokenizer, *, folded: bool) -> Iterator[Annotations]:
    """The annotations of each held-out sequence; names are folded where those of the table are."""
    for path in sorted(storage.read_manifest(folder).paths(folder, f"{HELD_OUT}/")):
        for row in storage.open_arrow(path).to_pylist():
            spans = zip(row["entity_starts"], row["entity_ends"], strict=True)
            texts = [tokenizer.decode(row["word_ids"][start:end]).strip() for start, end in spans]
            names = map(normalize_mention, texts) if folded else texts
            yield list(zip(names, row["entity_ids"], strict=True))


def _labels(table: MentionTable, text: str, own: Counter[tuple[str, int]]) -> Sequence[int]:
    """The commonest label of a text, and the commonest known one; of equals the first in the table."""
    counts: Counter[int] = Counter()
    mention = table.get(text)
    for candidate in mention.candidates if mention else ():
        counts[UNKNOWN_ENTITY if candidate.entity_id is None else candidate.entity_id] += candidate.link_count
    left = {label: count - own[text, label] for label, count in counts.items() if count > own[text, label]}
    known = {label: count for label, count in left.items() if label != UNKNOWN_ENTITY}
    return [max(each, key=each.__getitem__, default=NONE) for each in (left, known)]
