"""Artefacts as readable text."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline import look, schemas, storage
from pipeline.dump.pages import read_site_info
from pipeline.jobs.extract_pages import PageExtractor
from pipeline.storage.blocks import Block, PageMarker
from tests.support import DATA
from tests.support.manifests import write_manifest

ROW = {
    "page_id": 1,
    "title": "A\x1b[31m",
    "paragraph": 0,
    "section": "",
    "text": "😀 The ape\x07 eats.",
    "links": [{"start": 6, "end": 9, "target": "Apes"}],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "paragraphs").mkdir()
    for number, rows in enumerate([[], [ROW]]):
        table = pa.Table.from_pylist(rows, schemas.PARAGRAPHS.schema)
        pq.write_table(table, tmp_path / f"paragraphs/block-0000{number}.parquet")
    (tmp_path / "entity_vocab.tsv").write_text("[PAD]\t0\n[UNK]\t0\n")
    files = (
        storage.describe(str(tmp_path), "paragraphs/block-00000.parquet", 0),
        storage.describe(str(tmp_path), "paragraphs/block-00001.parquet", 1),
        storage.describe(str(tmp_path), "entity_vocab.tsv", 2),
    )
    drops = {"links:file": 2, "links:category": 1234}
    facts = {"metrics": {"test": {"f1": 0.5}}}
    others = {"rows": {"pages": 1}, "drops": drops, "facts": facts, "parameters": {"profile": "fixed"}}
    write_manifest(tmp_path, "ExtractPages", files, **others)
    return tmp_path


def test_a_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert look.main([str(folder)]) == 0
    text = capsys.readouterr().out
    assert "ExtractPages (version 1)" in text
    assert text.index("links:category  1,234") < text.index("links:file")
    assert "paragraphs: 2 files, 1 rows" in text
    assert "metrics.test.f1  0.5" in text
    assert "😀 The [[ape -> Apes]]" in text
    assert "[PAD]" in text
    assert "\x1b" not in text
    assert "\x07" not in text


@pytest.mark.parametrize("sign", "\x00\x1b\r\x7f\x85\x9b\u061c\u200e\u2028\u202e\u2066\u2069")
def test_nothing_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str], sign: str) -> None:
    """Wherever it stands: in a value, in a column's name, in a text, in a name of a manifest, in an error."""
    pq.write_table(pa.table({f"a{sign}b": [f"c{sign}d", None]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"text": [f"e{sign}f"], "links": [[]]}), tmp_path / "b.parquet")
    write_manifest(tmp_path, "S", drops={f"m{sign}n": 1}, parameters={f"i{sign}j": f"k{sign}l"})
    assert [look.main([str(tmp_path / name)]) for name in ("a.parquet", "b.parquet", "")] == [0, 0, 0]
    assert look.main([str(tmp_path), "--table", f"o{sign}p"]) == 1
    shown = "".join(capsys.readouterr())
    assert sign not in shown
    for pair in ("ab", "cd", "ef", "ij", "kl", "mn"):
        assert ascii(sign)[1:-1].join(pair) in shown


def test_signs_of_languages_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["می\u200cخواهم", "क्\u200dष", "1\u202f000", "co\u00adop", "שלום", "a\tb", "東京", "\u00a0é"]
    pq.write_table(pa.table({"word": words}), tmp_path / "words.parquet")
    assert look.main([str(tmp_path / "words.parquet"), "--rows", "9"]) == 0
    shown = capsys.readouterr().out
    assert [word for word in words if word not in shown] == []


def test_one_table_and_one_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert look.main([str(folder), "--table", "entity_vocab.tsv", "--rows", "1"]) == 0
    text = capsys.readouterr().out
    assert "[UNK]" not in text
    assert "The ape" not in text
    assert look.main([str(folder / "paragraphs/block-00001.parquet")]) == 0
    assert "1 rows: page_id int64" in capsys.readouterr().out


def test_a_page_with_its_links_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, folder = str(DATA / "wiki-40.xml"), str(tmp_path)
    arguments = {"site": read_site_info(path).to_dict(), "profile": "fixed", "allow_truncated": False}
    record = PageExtractor(arguments)(Block(0, path, 0, 1 << 30), folder, PageMarker(f"{folder}/page.txt"))
    write_manifest(folder, "ExtractPages", record.files)
    row = max(storage.read_rows(f"{folder}/paragraphs/block-00000.parquet"), key=lambda row: len(row["links"]))
    for page in (row["title"], str(row["page_id"])):
        assert look.main([folder, "--page", page]) == 0
        text = capsys.readouterr().out
        assert text.startswith(f"{row['title']} (page {row['page_id']})")
        assert look.mark_links(row["text"], row["links"]) in text
        assert not row["section"] or f"== {row['section']} ==" in text
    for nowhere in ("Nowhere", "9" * 20, "9" * 5000):
        assert look.main([folder, "--page", nowhere]) == 1
        assert f"no article '{nowhere}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["", "--table", "x"], "no table 'x'; it has entity_vocab.tsv, paragraphs"),
        (["nowhere"], "nowhere: no such folder"),
        (["x.parquet"], "error: "),
    ],
)
def test_what_cannot_be_shown(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    (folder / "x.parquet").write_bytes(b"no table")
    for name in ("pages-1", "links-2"):
        storage.write_bytes(str(folder / "stages" / name / "manifest.json"), b"{}")
    assert look.main([str(folder / arguments[0]), *arguments[1:]]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
