"""Fetching a dump: measured, told of garbage behind it, and known again."""

import contextlib
import hashlib
import importlib.util
from pathlib import Path

import pytest

from pipeline import storage
from pipeline.dump import fetch
from pipeline.dump.download import Source
from tests.support import DATA

DUMP = DATA / "wiki-40.xml"


def build(dump: Path, folder: Path, *, allow_truncated: bool = False) -> storage.Result:
    return fetch.build(
        str(dump),
        str(folder),
        allow_truncated=allow_truncated,
        progress=lambda name: contextlib.nullcontext(lambda done, total: None),
    )


def test_a_local_dump_is_measured(tmp_path: Path) -> None:
    content = DUMP.read_bytes()
    result = build(DUMP, tmp_path)
    assert result.files == ()
    assert result.rows == {"files": 1, "bytes": len(content)}
    part = {"name": DUMP.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert result.facts["parts"] == [part]
    assert result.facts["site"]["language"] == "en"


@pytest.mark.parametrize("allow_truncated", [False, True])
def test_garbage_behind_a_dump_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, allow_truncated: bool
) -> None:
    dump = tmp_path / "wiki.xml.bz2"
    dump.write_bytes(DUMP.with_suffix(".xml.bz2").read_bytes() + bytes(1000))
    assert build(dump, tmp_path / "stage", allow_truncated=allow_truncated).rows["files"] == 1
    assert len(caplog.messages) == 1
    assert "1000 bytes behind its bzip2 data" in caplog.text


def test_a_local_dump_is_known_again_until_it_changes(tmp_path: Path) -> None:
    dump, folder = tmp_path / "wiki.xml", tmp_path / "stage"
    dump.write_bytes(DUMP.read_bytes())
    assert not fetch.is_unchanged(fetch.find_parts(str(dump)), str(folder))
    build(dump, folder)
    assert fetch.is_unchanged(fetch.find_parts(str(dump)), str(folder))
    dump.touch()
    assert not fetch.is_unchanged(fetch.find_parts(str(dump)), str(folder))


def test_parts_of_an_older_dump_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source("wiki-2.xml", "https://example.org/wiki-2.xml")
    monkeypatch.setattr(fetch, "remote_sources", lambda dump: [source])
    monkeypatch.setattr(fetch, "download", lambda source, path, show: Path(path).write_text("new"))
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("wiki-1.xml", "wiki-1b.xml.part", "wiki-1b.xml.part.version", "wiki-2.xml.part"):
        (parts / name).touch()
    sources = fetch.download_parts("wiki", str(tmp_path), lambda name: contextlib.nullcontext(lambda done, total: None))
    assert [Path(each.location) for each in sources] == [parts / "wiki-2.xml"]
    assert sorted(path.name for path in parts.iterdir()) == ["wiki-2.xml", "wiki-2.xml.part"]


def test_demo_dump_without_gensim(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install --no-deps gensim==4\.4\.0"):
        fetch.demo_dump()
