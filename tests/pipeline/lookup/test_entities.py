"""The entity vocabulary and its files."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.lookup.entities import SPECIAL_ROWS, EntityVocab, alias_rows
from pipeline.storage.tries import TextMap, write_numbers

PAGES = [("Top", 9, 60), ("Ape", 5, 10), ("Zebra", 5, 30), ("Ångström", 5, 20), ("😀", 5, 40), ("Rare", 1, 50)]


def vocab_of(pages: Sequence[tuple[str, int, int]]) -> EntityVocab:
    return EntityVocab.of_rows([*SPECIAL_ROWS, *((*page, None) for page in pages)])


def test_written_formats(tmp_path: Path) -> None:
    vocab = vocab_of(PAGES[:3])
    files = vocab.write(str(tmp_path))
    assert {entry.path for entry in files} == {f"entity_vocab.{end}" for end in ("parquet", "tsv", "jsonl", "json")}
    assert EntityVocab.load(str(tmp_path)) == vocab
    tsv = (tmp_path / "entity_vocab.tsv").read_text().splitlines()
    assert tsv == ["[PAD]\t0", "[UNK]\t0", "[MASK]\t0", "Top\t9", "Ape\t5", "Zebra\t5"]
    rows = [json.loads(line) for line in (tmp_path / "entity_vocab.jsonl").read_text().splitlines()]
    assert rows[3] == {"id": 3, "entities": [["Top", None]], "count": 9}
    assert json.loads((tmp_path / "entity_vocab.json").read_text()) == {**vocab.ids(), "[MASK2]": 6}


def test_special_entities_come_first() -> None:
    with pytest.raises(ValueError, match=r"\[PAD\]"):
        EntityVocab(("A",), (1,), (1,))


@pytest.mark.parametrize(
    ("name", "counts", "page_ids"),
    [
        ("", True, True),
        ("entity_vocab.parquet", True, True),
        ("entity_vocab.tsv", True, False),
        ("entity_vocab.jsonl", True, False),
        ("entity_vocab.json", False, False),
    ],
)
def test_every_format_is_read_back(tmp_path: Path, name: str, counts: bool, page_ids: bool) -> None:
    vocab = vocab_of(PAGES)
    vocab.write(str(tmp_path))
    back = EntityVocab.load(str(tmp_path / name))
    assert back.titles == vocab.titles
    assert back.link_counts == (vocab.link_counts if counts else (0,) * 9)
    assert back.page_ids == (vocab.page_ids if page_ids else (-1,) * 9)


def test_a_multilingual_release(tmp_path: Path) -> None:
    """An entity has a title a language; one without a title in ours is there under a name nobody links to."""
    path = tmp_path / "vocab.jsonl"
    entities = [
        *([[title, language] for language in ("en", "de")] for title in ("[PAD]", "[UNK]", "[MASK]")),
        [["Vienna", "en"], ["Wien", "de"]],
        [["Only English", "en"]],
    ]
    rows = [{"id": number, "entities": titles, "count": 5} for number, titles in enumerate(entities)]
    path.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    assert EntityVocab.load(str(path), "de").titles[3:] == ("Wien", "en:Only English")
    assert EntityVocab.load(str(path), "en").titles[3:] == ("Vienna", "Only English")


SPECIAL_LINES = "[PAD]\t0\n[UNK]\t0\n[MASK]\t0\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.tsv", SPECIAL_LINES + "Ape\n", "line 4 is 'Ape'; wanted a title, a tab and a count"),
        ("v.tsv", SPECIAL_LINES + "Ape\t2\nApe\t1\n", "'Ape' has the ids 3 and 4"),
        ("v.tsv", "Ape\t2\n", r"begins with \('Ape',\)"),
        ("v.tsv", "", "holds no entity"),
        ("v.json", '{"[MASK]": 0, "[UNK]": 1, "[PAD]": 2}', r"begins with \('\[MASK\]'"),
        ("v.json", '{"[PAD]": 0, "[UNK]": 1, "[MASK]": 3}', "the entity id 2 is missing or there twice"),
        ("v.json", "{", r"not an entity vocabulary in the format \.json"),
        ("v.json", '{"[PAD]": "x"}', r"found the entity \('x', '\[PAD\]', 0\); wanted a whole number"),
        ("v.json", '{"[PAD]": 0.5}', r"found the entity \(0\.5, "),
        ("v.jsonl", '{"id": 0, "entities": [[5, null]], "count": 1}\n', r"found the entity \(0, 5, 1\)"),
        ("v.jsonl", '{"id": 0, "entities": ["Ape"], "count": 1}\n', "not an entity vocabulary in the"),
        ("v.parquet", "PAR1", "not readable as Parquet"),
        ("v.txt", "Ape", r"wanted a file \.parquet, \.tsv, \.jsonl or \.json"),
    ],
)
def test_bad_vocabularies_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=message) as error:
        EntityVocab.load(str(tmp_path / name))
    assert name in str(error.value)


def test_a_vocabulary_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.tsv"):
        with pytest.raises(ValueError, match="no entity vocabulary; wanted a file"):
            EntityVocab.load(str(path))


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
    ids = {"Ape": 3, "😀": 4}
    path = str(tmp_path / "aliases.tries")
    pq.write_table(pa.Table.from_pylist(titles), tmp_path / "titles.parquet")
    assert write_numbers(path, alias_rows([str(tmp_path / "titles.parquet")], ids)) == 3
    aliases = TextMap(path)
    assert len(aliases) == 3
    wanted = {"Ape": 3, "Apes": 3, "😀": 4}
    wanted |= dict.fromkeys(("Loop", "Gone", "Small", "[MASK]", "", "Ap"))
    assert {title: aliases.get(title) for title in wanted} == wanted
