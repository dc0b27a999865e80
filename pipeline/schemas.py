"""Every table that a stage writes: its columns, and what each of them means, from schemas.toml.

A meaning is for people and for the documentation; none is written into a file.
"""

import tomllib
from collections.abc import Mapping
from functools import partial
from importlib import resources
from typing import Any, NamedTuple

import pyarrow as pa


class Table(NamedTuple):
    """A table's schema, and for each column a few words on what it holds."""

    schema: pa.Schema
    meanings: Mapping[str, str]


def _read_columns() -> dict[str, dict[str, Any]]:
    """Return the columns of each stage's tables: a column's type and its meaning by its name."""
    stages = tomllib.loads(resources.files("pipeline").joinpath("schemas.toml").read_text("utf-8"))
    for name, own in stages["LinkDocuments"].items():
        columns = stages["ExtractPages"][name].items()
        stages["LinkDocuments"][name] = {each: (kind, own.get(each, meaning)) for each, (kind, meaning) in columns}
    stages["BuildSequences"]["held_out"] = stages["BuildSequences"]["sequences"]
    return stages


def _type(kind: Any, word_vocab_size: int) -> pa.DataType:
    match kind:
        case [element, *size]:
            return pa.list_(_type(element, word_vocab_size), *size)
        case dict():
            return pa.struct([(name, _type(each, word_vocab_size)) for name, each in kind.items()])
        case "word_id":  # 16 bits wide where the vocabulary allows it
            return pa.uint16() if word_vocab_size <= 1 << 16 else pa.int32()
    return pa.type_for_alias(kind)


def _table(columns: Mapping[str, Any], word_vocab_size: int = 1 << 16) -> Table:
    schema = pa.schema([(name, _type(kind, word_vocab_size)) for name, (kind, _) in columns.items()])
    return Table(schema, {name: meaning for name, (_, meaning) in columns.items()})


_COLUMNS = _read_columns()


# The tables of sequences and of the words of entities' titles, by the size of the word vocabulary.
sequences = partial(_table, _COLUMNS["BuildSequences"]["sequences"])
title_words = partial(_table, _COLUMNS["BuildSequences"]["title_words.arrow"])
# By stage, and by the folder or file that holds the table.
TABLES: Mapping[str, Mapping[str, Table]] = {
    stage: {name: _table(columns) for name, columns in tables.items()} for stage, tables in _COLUMNS.items()
}


def _tables(stage: str, *names: str) -> list[Table]:
    return [TABLES[stage][name] for name in names]


PAGES, PARAGRAPHS, REDIRECTS = _tables("ExtractPages", "pages", "paragraphs", "redirects")
ANNOTATIONS = PARAGRAPHS.schema.field("links").type
[QIDS] = _tables("FetchQids", "qids")
[TITLES] = _tables("ResolveRedirects", "titles")
[LINKS] = _tables("ResolveLinks", "links")
[ENTITIES] = _tables("BuildEntityVocab", "entity_vocab.parquet")
[MERGED_ENTITIES] = _tables("MergeEntities", "entities.parquet")
[ENTITY_CHANGES] = _tables("DiffDumps", "entity_changes.parquet")
MENTIONS, PAGE_NAMES = _tables("BuildMentionTable", "mentions", "page_names")
TARGETS, CANDIDATES = _tables("BuildMentionTable", "targets", "candidates.arrow")
CONTEXTS, CONTEXT_ROWS, WORDS = _tables("BuildContexts", "contexts", "contexts.arrow", "words.arrow")
PAGE_TITLES, TITLE_VECTORS = _tables("BuildContexts", "page_titles", "vectors.arrow")
VECTOR_SIZE: int = TITLE_VECTORS.schema.field("vector").type.list_size
LOST_PAGES, WORD_STARTS = _tables("BuildSequences", "rejected", "word_starts.arrow")
[COMMONEST] = _tables("Pretrain", "commonest.arrow")
