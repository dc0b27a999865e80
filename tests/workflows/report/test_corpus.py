"""The report's figures of the corpus, against brute force over the same rows."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import schemas, storage
from pipeline.lookup.entities import EntityVocab
from pipeline.sequences.shards import SIZES, describe_sequences
from tests.support.manifests import write_manifest
from tests.support.shards import random_rows, write_sequences
from workflows.report import corpus
from workflows.report.corpus import entity_figures, lost_text, ranked_entities, sequence_rows

HOSTILE = '</script><script>alert(1)</script>\u2028"'


def write_vocab(folder: Path, entities: Sequence[tuple[str, int]]) -> str:
    specials = [("[PAD]", 0), ("[UNK]", 0), ("[MASK]", 0)]
    titles, counts = zip(*[*specials, *entities], strict=True)
    EntityVocab(titles, counts, (-1,) * len(titles)).write(str(folder))
    return str(folder)


def test_entities_by_rank(tmp_path: Path) -> None:
    """The order of a given vocabulary is another one than that of this dump's links."""
    folder = write_vocab(tmp_path, [("b", 2), ("never", 0), ("a", 2), (HOSTILE, 9)])
    ranked = ranked_entities(folder)
    assert ranked == [(9, 6, HOSTILE), (2, 5, "a"), (2, 3, "b"), (0, 4, "never")]
    figures = entity_figures(ranked)
    assert (figures["entities"], figures["never_linked"]) == (4, 1)
    assert [row["title"] for row in figures["top"]] == [HOSTILE, "a", "b", "never"]


def test_a_corpus_without_links(tmp_path: Path) -> None:
    ranked = ranked_entities(write_vocab(tmp_path, []))
    assert entity_figures(ranked) == {"entities": 0, "never_linked": 0, "top": []}


def write_templates(folder: Path, blocks: Sequence[Sequence[tuple[str, int, int, int, str]]]) -> str:
    """The folder of ExtractPages, as far as its lost text is read."""
    schema, files = schemas.TABLES["ExtractPages"]["templates"].schema, []
    (folder / "templates").mkdir(parents=True)
    for number, rows in enumerate(blocks):
        path = f"templates/block-{number:05d}.parquet"
        columns = [dict(zip(schema.names, row, strict=True)) for row in rows]
        pq.write_table(pa.Table.from_pylist(columns, schema), folder / path)
        files.append(storage.describe(str(folder), path, len(rows)))
    write_manifest(folder, "ExtractPages", files)
    return str(folder)


def test_lost_text_is_summed_over_the_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [
        [("a", 1, 2, 3, "{{a|first}}"), (HOSTILE, 1, 9, 0, f"{{{{{HOSTILE}}}}}")],
        [],
        [("a", 10, 20, 30, "{{a|later}}"), ("b", 1, 9, 0, "{{b}}"), ("c", 1, 0, 0, "")],
        [("<tab>", 2, 0, 0, "<tab>x"), ("<aside>", 1, 0, 0, "<aside>")],
        [("<tab>", 3, 0, 0, "<tab>y")],
    ]
    found = lost_text(write_templates(tmp_path / "all", blocks))
    assert [found[name] for name in ("templates", "uses", "words", "links")] == [4, 14, 40, 33]
    assert [tuple(row.values()) for row in found["top"]] == [
        ("a", 11, 22, 33, "{{a|first}}"),
        (HOSTILE, 1, 9, 0, f"{{{{{HOSTILE}}}}}"),
        ("b", 1, 9, 0, "{{b}}"),
        ("c", 1, 0, 0, ""),
    ], "most words first, ties by name"
    assert found["tags"] == {"<aside>": 1, "<tab>": 5}
    monkeypatch.setattr(corpus, "COSTLIEST_TEMPLATES", 1)
    short = lost_text(str(tmp_path / "all"))
    assert (short["templates"], [row["template"] for row in short["top"]]) == (4, ["a"])


@pytest.mark.parametrize("blocks", [[], [[], []]])
def test_no_text_was_lost(tmp_path: Path, blocks: list[list[tuple[str, int, int, int, str]]]) -> None:
    found = lost_text(write_templates(tmp_path, blocks))
    assert found == {"templates": 0, "uses": 0, "words": 0, "links": 0, "top": [], "tags": {}}


def test_sequences_are_counted(tmp_path: Path) -> None:
    rows, held_out = random_rows(50), random_rows(9, seed=1)
    write_sequences(tmp_path, rows, held_out=held_out)
    paths = {part: sorted((tmp_path / part).glob("*.arrow")) for part in ("sequences", "held_out")}
    parts = {part: describe_sequences([*map(str, files)]) for part, files in paths.items()}
    (tmp_path / "statistics.json").write_text(json.dumps(parts))
    found = sequence_rows(str(tmp_path))
    assert [row["part"] for row in found] == ["training", "held out"]
    for row, expected in zip(found, (rows, held_out), strict=True):
        assert row["sequences"] == len(expected)
        assert row["words"] == sum(len(each["word_ids"]) for each in expected)
        assert not row.keys() & set(SIZES)
