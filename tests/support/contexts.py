"""A folder as BuildContexts leaves it, of words that are given, without Spark."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import schemas, storage
from pipeline.lookup import contexts
from pipeline.lookup.contexts import ContextTable


def write_context_table(
    folder: Path, weights: Mapping[str, Mapping[str, float]], paragraphs: int = 100
) -> ContextTable:
    """A table in which each title has these words with these weights, of any length; a tenth of paragraphs has each."""
    words = sorted({word for of in weights.values() for word in of})
    files = contexts.write_words(str(folder), [(word, paragraphs // 10) for word in words])
    rows = []
    for title, of in sorted(weights.items()):
        order = sorted(of, key=lambda word: (-of[word], word))
        length = float(np.linalg.norm([*of.values()]))
        rows.append({"title": title, "words": order, "weights": [of[word] / length for word in order]})
    path = folder / "contexts/part-0.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schemas.CONTEXTS.schema), path)
    files += contexts.write_contexts(str(folder), [str(path)])
    manifest = storage.Manifest("BuildContexts", 1, {}, {}, tuple(files), facts={"paragraphs": paragraphs})
    storage.write_manifest(str(folder), manifest)
    return ContextTable(str(folder))
