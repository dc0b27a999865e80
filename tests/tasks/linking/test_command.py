"""The annotator's command line: what it prints, and what it says of bad input."""

import io
import json
from pathlib import Path

import pytest

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline.lookup.annotator import Annotator
from tasks.annotate import main
from tests.support.mentions import ARTICLES, DUMP, small_pages, write_mentions


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_mentions(tmp_path, small_pages(ARTICLES), size=4)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, data: bytes, *arguments: object) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))
    main([str(argument) for argument in arguments])


@pytest.mark.parametrize(("arguments", "page"), [([], None), (["--page", "C"], "C")])
def test_the_answer_is_json_with_places_in_the_text_as_it_is(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    page: str | None,
) -> None:
    text = "é😀\r\nAnn\rBob é"
    run(monkeypatch, text.encode(), "--mentions", folder, *arguments)
    out, err = capsys.readouterr()
    rows = json.loads(out)
    assert [text[row["start"] : row["end"]] for row in rows] == ["Ann", "Bob"]
    assert len(out.splitlines()) == len(rows) + 2
    expected = [vars(each) for each in Annotator.open(folder).annotate(text, page)]
    assert [{key: value for key, value in row.items() if key != "text"} for row in rows] == expected
    assert err == f"2 names, {1 + (page == 'C')} of them outside the vocabulary\n"


def test_a_text_without_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(monkeypatch, b"", "--mentions", folder)
    assert json.loads(capsys.readouterr().out) == []
    run(monkeypatch, b"Ann Bob", "--mentions", folder, "--min-link-probability", 1, "--min-commonness", 0.9)
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("arguments", "data", "message"),
    [
        (["--page", "Nobody"], b"", rf"error: .*: {DUMP} has no article or redirect 'Nobody'"),
        ([], b"ab\xff", "error: stdin: byte 2 is no UTF-8"),
        (["--entity-vocab", "none.tsv"], b"", "error: none.tsv: no entity vocabulary"),
        (["--mentions", "elsewhere"], b"", r"error: elsewhere/manifest\.json: not there"),
    ],
)
def test_bad_input_is_an_error_of_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], data: bytes, message: str
) -> None:
    with pytest.raises(SystemExit, match=message) as stopped:
        run(monkeypatch, data, "--mentions", folder, *arguments)
    assert "\n" not in str(stopped.value)


@pytest.mark.parametrize("value", ["2", "-0.1", "most", "nan"])
def test_shares_are_shares(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, b"", "--mentions", folder, f"--min-commonness={value}")
    assert f"{value}: wanted a number from 0 to 1" in capsys.readouterr().err
