"""Figures about finished sequences: how many, how long, and what is in them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import storage
from pipeline.lookup.entities import UNK_ID

STATISTICS = "statistics.json"
SIZES = ("words_per_sequence", "entities_per_sequence", "words_per_mention")


def describe_sequences(paths: Sequence[str]) -> dict[str, Any]:
    """Counts over shards, which are memory-mapped and read a batch at a time.

    Args:
        paths: Arrow files of sequences.

    Returns:
        `sequences`, `words` (tokens without [CLS] and [SEP]), `annotations`, `unknown_entities` ([UNK] among them),
        `unknown_share`, and by their size the numbers of sequences (`words_per_sequence`, `entities_per_sequence`) and
        of annotations (`words_per_mention`).
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
        "words": _weighted(sizes["words_per_sequence"].items()),
        "annotations": annotations,
        "unknown_entities": unknown,
        "unknown_share": unknown / annotations if annotations else 0.0,
        **{name: {str(size): counts[size] for size in sorted(counts)} for name, counts in sizes.items()},
    }


def _add(counts: Counter[int], values: pa.Array) -> None:
    for row in pc.value_counts(values).to_pylist():
        counts[row["values"]] += row["counts"]


def _weighted(counts: Iterable[tuple[int, int]]) -> int:
    return sum(size * count for size, count in counts)


def summary(counts: Mapping[str, int]) -> dict[str, float]:
    """Mean, median, 95th percentile (nearest rank) and largest of sizes that are counted; all 0 where there is none."""
    sizes = sorted((int(size), count) for size, count in counts.items())
    total = sum(count for _, count in sizes)
    if not total:
        return {"mean": 0.0, "median": 0, "p95": 0, "largest": 0}
    reached = list(accumulate(count for _, count in sizes))

    def at(share: float) -> int:
        return sizes[bisect_left(reached, share * total)][0]

    return {"mean": _weighted(sizes) / total, "median": at(0.5), "p95": at(0.95), "largest": sizes[-1][0]}
