"""A folder as BuildContexts leaves it: made from pages in plain Python, or of words that are given; without Spark."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipeline import schemas
from pipeline.lookup import contexts
from pipeline.lookup.contexts import ContextTable
from pipeline.lookup.title_vectors import write_vectors
from tests.support import oracle_contexts as oracle
from tests.support import oracle_tables
from tests.support.manifests import write_manifest
from tests.support.mentions import DUMP, write_tables
from tests.support.oracle_tables import Pages


def write_contexts(folder: Path, pages: Pages, *, held_out: float = 0.0, most_words: int = 50) -> oracle.Contexts:
    """Write the folder, its table in two files."""
    titles = oracle_tables.resolve_titles(pages, "fixed")
    made = oracle.contexts(pages, titles, held_out=held_out, most_words=most_words)
    middle = len(made.rows) // 3
    _write(folder, [made.rows[:middle], made.rows[middle:]], made.words, made.paragraphs, held_out, made.drops)
    return made


def write_context_table(
    folder: Path,
    weights: Mapping[str, Mapping[str, float]],
    held_out: float = 1.0,
    vectors: Mapping[str, Sequence[float]] | None = None,
) -> ContextTable:
    """Write the folder: each title has these words with these weights, of any length; all words are as rare.

    `vectors` begin with these numbers, the others being 0; a title without any has no length.
    """
    rows = []
    for title, of in sorted(weights.items()):
        order = sorted(of, key=lambda word: (-of[word], word))
        length = float(np.linalg.norm([*of.values()]))
        rows.append({"title": title, "words": order, "weights": [of[word] / length for word in order]})
    words = {word: 10 for of in weights.values() for word in of}
    _write(folder, [rows], words, 100, held_out, vectors=vectors)
    return ContextTable(str(folder))


def _write(
    folder: Path,
    parts: Sequence[Sequence[dict[str, Any]]],
    words: Mapping[str, int],
    paragraphs: int,
    held_out: float = 0.0,
    drops: Mapping[str, int] | None = None,
    vectors: Mapping[str, Sequence[float]] | None = None,
) -> None:
    files = write_tables(folder, contexts.TABLE, [[*part] for part in parts], schemas.CONTEXTS.schema)
    written = contexts.write_words(str(folder), sorted(words.items()))
    written += contexts.write_contexts(str(folder), [str(folder / each.path) for each in files])
    titles = [row["title"] for part in parts for row in part]
    numbers = np.zeros((len(titles), schemas.VECTOR_SIZE), np.float16)
    for title, vector in (vectors or {}).items():
        numbers[titles.index(title), : len(vector)] = vector
    written.append(write_vectors(str(folder), [numbers]))
    others = {"drops": drops or {}, "facts": {"paragraphs": paragraphs, "dump": [DUMP], "language": "en"}}
    write_manifest(folder, "BuildContexts", (*files, *written), parameters={"held_out": held_out}, **others)
