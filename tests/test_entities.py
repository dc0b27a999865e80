"""The entity vocabulary and its files."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.entities import MASK_ID, Aliases, EntityVocab, alias_rows, write_aliases

COUNTS = [
    ("Zebra", 5, 30),
    ("Ape", 5, 10),
    ("😀", 5, 40),
    ("Ångström", 5, 20),
    ("Rare", 1, 50),
    ("Top", 9, 60),
]


def test_ranked_by_count_then_title_in_code_points() -> None:
    vocab = EntityVocab.rank(COUNTS, 8)
    assert vocab.titles == ("[PAD]", "[UNK]", "[MASK]", "Top", "Ape", "Zebra", "Ångström", "😀")
    assert vocab.link_counts == (0, 0, 0, 9, 5, 5, 5, 5)
    assert vocab.page_ids == (-1, -1, -1, 60, 10, 30, 20, 40)
    assert vocab.ids()["[MASK]"] == MASK_ID == 2


@given(st.permutations(COUNTS), st.integers(4, 12))
def test_order_of_the_counts_does_not_matter(counts: list[tuple[str, int, int]], size: int) -> None:
    assert EntityVocab.rank(counts, size) == EntityVocab.rank(COUNTS, size)


def test_written_formats(tmp_path: Path) -> None:
    vocab = EntityVocab.rank(COUNTS, 6)
    files = vocab.write(str(tmp_path))
    assert {entry.path for entry in files} == {
        f"entity_vocab.{end}" for end in ("parquet", "tsv", "jsonl", "json")
    }
    assert EntityVocab.load(str(tmp_path)) == vocab
    tsv = (tmp_path / "entity_vocab.tsv").read_text().splitlines()
    assert tsv == ["[PAD]\t0", "[UNK]\t0", "[MASK]\t0", "Top\t9", "Ape\t5", "Zebra\t5"]
    lines = [json.loads(line) for line in (tmp_path / "entity_vocab.jsonl").read_text().splitlines()]
    assert lines[3] == {"id": 3, "entities": [["Top", None]], "count": 9}
    assert json.loads((tmp_path / "entity_vocab.json").read_text()) == vocab.ids()


def test_special_entities_come_first() -> None:
    with pytest.raises(ValueError, match=r"\[PAD\]"):
        EntityVocab(("A",), (1,), (1,))


def test_aliases(tmp_path: Path) -> None:
    titles = [
        {"title": "Ape", "canonical": "Ape", "status": "page"},
        {"title": "Apes", "canonical": "Ape", "status": "redirect"},
        {"title": "Loop", "canonical": None, "status": "loop"},
        {"title": "Gone", "canonical": "Nowhere", "status": "missing"},
        {"title": "Small", "canonical": "Small", "status": "page"},
        {"title": "[MASK]", "canonical": "[MASK]", "status": "page"},
        {"title": "😀", "canonical": "😀", "status": "page"},
    ]
    ids = EntityVocab.rank([("Ape", 2, 1), ("😀", 1, 2)], 5).ids()
    path = str(tmp_path / "aliases.marisa")
    assert write_aliases(path, alias_rows(titles, ids)) == 3
    aliases = Aliases(path)
    assert len(aliases) == 3
    found = {
        title: aliases.get(title)
        for title in ("Ape", "Apes", "😀", "Loop", "Gone", "Small", "[MASK]", "", "Ap")
    }
    assert found == {
        "Ape": 3,
        "Apes": 3,
        "😀": 4,
        **dict.fromkeys(("Loop", "Gone", "Small", "[MASK]", "", "Ap")),
    }
