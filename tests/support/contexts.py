"""A folder as BuildContexts leaves it, made from pages in plain Python, without Spark."""

from pathlib import Path

from pipeline import schemas, storage
from pipeline.lookup import contexts
from tests.support import oracle_contexts as oracle
from tests.support import oracle_tables
from tests.support.mentions import DUMP, write_tables
from tests.support.oracle_tables import Pages


def write_contexts(
    folder: Path, pages: Pages, *, held_out: float = 0.0, most_words: int = 50
) -> oracle.Contexts:
    """Write the folder, its table in two files."""
    titles = oracle_tables.resolve_titles(pages, "fixed")
    made = oracle.contexts(pages, titles, held_out=held_out, most_words=most_words)
    middle = len(made.rows) // 3
    parts = [made.rows[:middle], made.rows[middle:]]
    files = write_tables(folder, contexts.TABLE, parts, schemas.CONTEXTS.schema)
    written = contexts.write_words(str(folder), sorted(made.words.items()))
    written += contexts.write_contexts(str(folder), [str(folder / each.path) for each in files])
    manifest = storage.Manifest(
        stage="BuildContexts",
        version=1,
        parameters={"held_out": held_out},
        inputs={},
        files=(*files, *written),
        drops=made.drops,
        facts={"paragraphs": made.paragraphs, "dump": [DUMP], "language": "en"},
    )
    storage.write_manifest(str(folder), manifest)
    return made
