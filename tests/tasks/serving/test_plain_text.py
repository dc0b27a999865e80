"""Plain text through the command: documents from lines and files, sentences, places, errors."""

import gzip
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("sentencex", reason="plain text is split into sentences by sentencex")

from pipeline.sequences.sentences import split
from tasks.predict import main
from tasks.serving.plain_text import hidden_line_ends, question, sentences
from tasks.serving.predict import Predictor
from tests.support.asked import Command, objects
from tests.support.properties import given, st

TEXT = "Abraham Lincoln was born in Kentucky. 😀 He doesn't know Bob O'Neil of the U.S. Army.\r"


def test_a_line_is_a_document(ask: Command, model: Predictor) -> None:
    out, told = ask(f"\ufeff{TEXT}\n\nAda left.\n", "--text")
    first, second = objects(out)
    assert told == ""
    assert (first["text"], second["text"]) == (TEXT.removesuffix("\r"), "Ada left.")
    assert first["sentences"] == [[0, 37], [38, len(TEXT) - 1]] == [[*span] for span in split(TEXT, "en")]
    assert second["sentences"] == [[0, 9]]
    assert first["entities"]
    for each in first["entities"]:
        assert any(start <= each["start"] < each["end"] <= end for start, end in first["sentences"])
        assert not TEXT[each["start"]].isspace()
        assert not TEXT[each["end"] - 1].isspace()
    given = {"text": first["text"], "sentences": first["sentences"]}
    [again] = model.predict([given])
    assert again["entities"] == first["entities"], "the same as asked in JSON"


def test_languages_have_their_sentences(ask: Command) -> None:
    text = "Er kam am 3. Oktober nach Bern. Sie blieb."
    for language, wanted in (("de", [[0, 31], [32, 42]]), ("de-at", [[0, 31], [32, 42]])):
        [answer] = objects(ask(text, "--text", "--language", language)[0])
        assert answer["sentences"] == wanted
    [answer] = objects(ask(text, "--text", "--language", "none")[0])
    assert "sentences" not in answer


def test_lines_may_end_as_windows_has_them(ask: Command) -> None:
    assert ask(b"Ada left.\r\n\r\nBob left.\r\n", "--text")[0] == ask(b"Ada left.\n\nBob left.\n", "--text")[0]


def test_a_file_is_a_document(ask: Command, tmp_path: Path) -> None:
    text = "Ada Lovelace\nleft London. She\nmet Bob.\n \nA heading\n\nThe end"
    paths = [tmp_path / name for name in ("one.txt", "gone.txt", "latin.txt", "two")]
    paths[0].write_bytes(b"\xef\xbb\xbf" + text.encode())
    paths[2].write_bytes(b"caf\xe9")
    paths[3].write_text("Bob left.")
    out, _ = ask("", "--text", *paths, status=1)
    one, gone, latin, two = objects(out)
    assert (one["file"], one["text"], two["file"]) == (str(paths[0]), text, str(paths[3]))
    parts = [text[start:end] for start, end in one["sentences"]]
    assert parts == ["Ada Lovelace\nleft London.", "She\nmet Bob.", "A heading", "The end"]
    assert gone == {"error": f"{paths[1]}: No such file or directory; wanted a text file", "file": str(paths[1])}
    assert latin["error"] == f"{paths[2]}: byte 3 is not UTF-8; convert the input"
    paths[2].write_bytes(gzip.compress(b"Ada"))
    packed = objects(ask("", "--text", paths[2], status=1)[0])
    assert [each["error"] for each in packed] == [f"{paths[2]}: packed (gzip); unpack it"]
    out, told = ask("", "--text", *paths, "--on-error", "skip")
    assert [each["file"] for each in objects(out)] == [str(paths[0]), str(paths[3])]
    assert told.count("left out: 1: ") == 2
    out, told = ask("", "--text", *paths, "--on-error", "stop", status=1)
    assert [each["file"] for each in objects(out)] == [str(paths[0])]
    assert told == f"error: {paths[1]}: No such file or directory; wanted a text file\n"


def test_a_blank_file_is_a_document_without_entities(ask: Command, tmp_path: Path) -> None:
    path = tmp_path / "blank.txt"
    path.write_text(" \n\n")
    for language, found in (("en", {"sentences": []}), ("none", {})):
        out, _ = ask("", "--text", path, "--language", language)
        assert objects(out) == [{"file": str(path), "text": " \n\n", **found, "entities": []}]
    out, _ = ask("", "--text", path, "--format", "brat", "--output", tmp_path / "out")
    assert (tmp_path / "out" / "blank.ann").read_text() == ""


def test_what_breaks_a_splitter_is_named(ask: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline.sequences import sentences as splitters

    def broken(text: str, language: str) -> list[str]:
        if "break" in text:
            raise RuntimeError("sentencex: broken")
        return [text]

    monkeypatch.setattr(splitters, "_pieces", broken)
    out, _ = ask("It will break. Now.\nAda left.\n", "--text", status=1)
    bad, good = objects(out)
    assert bad == {"error": "stdin:1: RuntimeError: sentencex: broken", "line": 1}
    assert good["text"] == "Ada left."


def test_without_the_splitters_package_lines_are_sentences(ask: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pipeline.sequences.sentences")
    monkeypatch.setitem(sys.modules, "sentencex", None)
    out, _ = ask("Ada left.", "--text", status=1)
    [answer] = objects(out)
    assert answer["error"].startswith("stdin:1: sentences are found by the package sentencex, which is not installed")
    [answer] = objects(ask("Ada left.", "--text", "--language", "none")[0])
    assert answer["text"] == "Ada left."


def test_other_tasks_are_not_asked_with_text(folder: Path) -> None:
    model = str(folder / "relation_classification-luke")
    with pytest.raises(SystemExit, match=r"^error: --text: .* is no model of ner, which alone is asked"):
        main([model, "--device", "cpu", "--text"])
    with pytest.raises(SystemExit, match=r"^error: --format html: .* is no ner model; it answers in JSON"):
        main([model, "--device", "cpu", "--format", "html"])


@pytest.mark.parametrize(
    "lines",
    [
        ['The screen is 15" wide.', "Bob came to Paris.", 'Another is 17" wide.', "They left."],
        ["It was the '90s.", "Bob came.", "The dogs' food was bad.", "They left."],
        ["It's “open.", "Ada's friend left."],
        ["It's true that Mr.\nSmith left."],
        ['He said: "I met Mr.\nSmith," and left.'],
        ["Ada's friend from the U.S.\ngovernment came."],
        ["He can't say, i.e.\nhe will not."],
        ["Ada wrote (see p.\n12) that."],
    ],
)
def test_a_stray_mark_hides_no_end_of_a_line(lines: list[str]) -> None:
    text = "\n".join(lines)
    assert [text[start:end] for start, end in sentences(text, "en")] == lines


def test_a_mark_that_is_never_closed_takes_no_time() -> None:
    begin = time.monotonic()
    text = '("' + "Ada left.\n" * 50_000
    assert len(list(hidden_line_ends(text))) == len(sentences(text, "en")) == 50_000
    assert time.monotonic() - begin < 20


PARTS = [*"\"()' \n\t!", "Ada", "left.", "\n\n", "\r\n", "😀", "U.S.", "http://a.b"]


@given(st.lists(st.sampled_from(PARTS)))
def test_sentences_are_spans_in_order(parts: list[str]) -> None:
    text = "".join(parts)
    spans = sentences(text, "en")
    assert question("x", text, "en").values == {"text": text, "sentences": [[*span] for span in spans]}
    assert [place for span in spans for place in span] == sorted(place for span in spans for place in span)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    for start, end in spans:
        assert text[start:end] == text[start:end].strip()
        assert "\n\n" not in text[start:end]
