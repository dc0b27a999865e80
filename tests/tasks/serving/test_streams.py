"""Lines in, answers out: order, batches by time, what a bad line costs, and the command as people use it."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tasks.io.records import Record
from tasks.predict import main
from tasks.serving.predict import load
from tasks.serving.streams import AT_ONCE, BYTES_AT_ONCE, batches, lines_of, numbered, replies
from tests.support import ROOT
from tests.support.asked import Command, objects
from tests.support.properties import given, st


def length(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Answers with the length of the text; some texts cannot be answered, and one breaks the model."""
    texts = [record.text("text") for record in records]
    if "break" in texts:
        raise RuntimeError("broken")
    return [{"length": len(text)} for text in texts]


LINES = st.lists(
    st.sampled_from(['{"text": "a"}', '{"text": "break"}', '{"text": 3}', "{", "", "  ", "[]"]), max_size=12
)


@given(LINES)
def test_each_line_has_the_answer_that_it_has_alone(lines: list[str]) -> None:
    given = list(numbered([line.encode() for line in lines], "x"))
    together = replies(length, given)
    alone = [reply for each in given for reply in replies(length, [each])]
    assert together == alone
    assert [reply.given for reply in together] == [each for each in given if each.text().strip()]
    for reply in together:
        where = reply.given.where
        assert reply.error.startswith(f"{where}: ") or reply.values == {"text": "a", "length": 1}


@given(st.lists(st.binary(max_size=6), max_size=8))
def test_lines_are_those_of_a_file(chunks: list[bytes]) -> None:
    class Stream:
        """Gives what has come, as a pipe does."""

        def __init__(self) -> None:
            self.left = [chunk for chunk in chunks if chunk]

        def read(self, size: int) -> bytes:
            return self.left.pop(0) if self.left else b""

    whole = b"".join(chunks)
    wanted = [line.removesuffix(b"\n") for line in io.BytesIO(whole)]
    assert list(lines_of(Stream())) == wanted


def test_batches_are_bounded_and_reading_fails_where_it_does() -> None:
    def lines() -> Iterator[bytes]:
        yield from (b"x" for _ in range(5))
        raise OSError("gone")

    sizes = []
    with pytest.raises(OSError, match="gone"):
        sizes.extend(len(batch) for batch in batches(numbered(lines()), size=2, wait=5))
    assert [len(batch) for batch in batches(numbered([b"x"] * 5), size=2, wait=5)] == [2, 2, 1]
    assert len(next(batches(numbered([b"x"] * (AT_ONCE + 1)), wait=5))) == AT_ONCE
    long = [b"x" * (BYTES_AT_ONCE - 1), b"xx", b"x" * 3 * BYTES_AT_ONCE, b"x", b"x"]
    assert [len(batch) for batch in batches(numbered(long), wait=5)] == [2, 1, 2]


SPAN = '{"text": "Ada met Bob.", "start": %s, "end": %s}'
PAIR = '{"text": "Ada met Bob.", "head": %s, "tail": %s}'
ASKED = '{"question": "Who?", "text": "Ada met Bob.", %s}'
CLOZE = '{"question": "@placeholder met Bob", "text": "Ada met Bob.", "entities": %s}'
# A task, a line, and what must be said of it; nothing: it is answered.
HOSTILE: list[tuple[str, bytes | str, str]] = [
    ("ner", "{", "not JSON"),
    ("ner", '{"text": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deep"),
    ("ner", '{"text": NaN}', "NaN is no value of JSON"),
    ("ner", '{"text": "a", "weights": [-1e999]}', "NaN or a number above 1e308, which JSON has not"),
    ("ner", "", ""),
    ("ner", b'{"text": "caf\xe9"}', "byte 13 is not UTF-8"),
    ("ner", b'\xef\xbb\xbf{"text": "Ada"}', ""),
    ("ner", '{"text": "\\ud800"}', r"\ud800 is half of a surrogate pair, in text;"),
    ("ner", '{"words": ["\\udfff"]}', r"\udfff is half of a surrogate pair, in words[0];"),
    ("ner", '{"\\ud800": 1, "text": "a"}', r"\ud800 is half of a surrogate pair, in a name in the object;"),
    ("ner", '{"text": "\\ud83d\\ude00 Ada"}', ""),
    ("ner", '{"text": "a\\u0000b"}', ""),
    ("ner", '{"text": "' + "Ada " * 5000 + '"}', ""),
    ("ner", '{"text": "' + "a" * 20000 + '"}', ""),
    ("ner", '{"text": 3}', "text is 3; wanted a text"),
    ("ner", '{"text": ""}', ""),
    ("ner", '{"text": " \\n "}', ""),
    ("ner", '{"text": "Ada. Bob.", "sentences": [[0, 4], [5, 9]]}', ""),
    ("ner", '{"text": "Ada. Bob.", "sentences": [[0, 4], [3, 9]]}', "sentences[1] begins at 3, before 4"),
    ("ner", '{"text": "Ada", "sentences": "all"}', "wanted a list of [start, end]"),
    ("ner", '{"words": []}', ""),
    ("ner", '{"words": [""]}', "words[0] is ''; wanted a word that is not blank; leave it out"),
    ("ner", '{"words": ["Ada", "\\u200b", "left"]}', "words[1] is '\\u200b'; wanted a word that is not blank"),
    ("ner", '{"words": ["New York", "\\u00ad", "."]}', ""),
    ("ner", '{"text": "Ada", "words": ["Ada"]}', "both text and words; give one of them"),
    ("entity_typing", SPAN % (0, 3), ""),
    ("entity_typing", SPAN % (3, 3), "wanted a start below the end, within 0 to 12 characters"),
    ("entity_typing", SPAN % ("0.0", 3), "start is 0.0; wanted a character's number"),
    ("entity_typing", SPAN % (3, 4), "blanks alone"),
    ("relation_classification", PAIR % ("[0, 3]", "[8, 11]"), ""),
    ("relation_classification", PAIR % ("[0, 3]", "[0, 3]"), ""),
    ("relation_classification", PAIR % ("[0]", "[8, 11]"), "head is [0]; wanted two whole numbers"),
    ("relation_classification", PAIR % ("[0, 3]", "[8, 99]"), "tail spans 8 to 99"),
    ("cloze_qa", CLOZE % "[[0, 3], [8, 11]]", ""),
    ("cloze_qa", CLOZE % '[{"start": 0, "end": 3, "title": "x"}]', ""),  # as the annotator prints them
    ("cloze_qa", CLOZE % "[[0, 30]]", "entities[0] spans 0 to 30"),
    ("cloze_qa", CLOZE.replace("@placeholder", "Who") % "[[0, 3]]", "@placeholder"),
    ("extractive_qa", ASKED % '"entities": []', ""),
    ("extractive_qa", ASKED % '"entities": [3]', "entities"),
    ("extractive_qa", ASKED % '"entities": [{"start": 0, "end": 3, "entity_id": 99}]', "entity_ids"),
    ("extractive_qa", ASKED % '"entities": [{"start": 0, "end": 3, "entity_id": -4}]', ""),
    ("extractive_qa", ASKED % '"entities": [{"start": 0, "end": 99, "entity_id": 3}]', "start, end spans 0 to 99"),
    ("extractive_qa", ASKED % '"page": 3', "page is 3; wanted a text"),
    ("cloze_qa", CLOZE.replace("Ada met Bob.", " ") % "[]", "text is empty; wanted a text"),
    ("cloze_qa", CLOZE % '[{"start": 0}]', "entities[0] is [0, null]; wanted two whole numbers"),
    ("extractive_qa", '{"question": " ", "text": "Ada"}', "question is empty"),
    ("extractive_qa", '{"question": "' + "Who " * 3000 + '?", "text": "Ada"}', ""),
]  # fmt: skip


@pytest.mark.parametrize("task", ["ner", "entity_typing", "relation_classification", "cloze_qa", "extractive_qa"])
def test_hostile_lines(
    folder: Path, task: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = Command(monkeypatch, capsys, load(folder / f"{task}-luke", device="cpu"), folder / f"{task}-luke")
    for line, wanted in ((line, wanted) for name, line, wanted in HOSTILE if name == task):
        printed = objects(ask(line, status=int(bool(wanted)))[0])
        assert len(printed) == bool(line.strip()), line[:80]
        for each in printed:
            assert ("error" in each) == bool(wanted), (line[:80], each)
            if wanted:
                assert each["error"].startswith("stdin:1: "), each
                assert wanted in each["error"], (line[:80], each)


def command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "tasks.predict", str(folder), "--device", "cpu", *options]


def started(folder: Path, *options: str) -> subprocess.Popen[str]:
    """The command, with pipes to all that it reads and writes."""
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command(folder / "ner-luke", *options), cwd=ROOT, text=True, **pipes)


def test_a_caller_asks_and_reads_in_turn(folder: Path) -> None:
    with started(folder) as process:
        for number in range(4):
            process.stdin.write(json.dumps({"text": "Ada met Bob.", "n": number}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["n"] == number
        process.stdin.close()
        assert process.wait(10) == 0


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A process that is started now can be interrupted, also where the tests run in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_a_closed_pipe_and_ctrl_c_are_no_tracebacks(folder: Path) -> None:
    line = json.dumps({"text": "Ada met Bob."}) + "\n"
    with started(folder) as process:
        process.stdout.close()
        try:
            process.stdin.write(line * 5000)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.wait(60) == 1
        assert "Traceback" not in process.stderr.read()
    with started(folder) as process:
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(10) == 130
        assert "Traceback" not in process.stderr.read()


def test_closed_streams_are_told(folder: Path, tmp_path: Path) -> None:
    asked = " ".join(map(str, command(folder / "ner-luke")))
    for closed in ("<&-", ">&-"):
        done = subprocess.run(["sh", "-c", f"{asked} {closed}"], cwd=ROOT, text=True, capture_output=True, input="")
        assert (done.returncode, done.stderr) == (
            1,
            "error: stdin or stdout is closed; questions come by the one, and answers go to the other: open both\n",
        )
    (tmp_path / "text").write_text("Ada met Bob.")
    asked += f" --text {tmp_path / 'text'} <&-"
    done = subprocess.run(["sh", "-c", asked], cwd=ROOT, text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["text"] == "Ada met Bob.", "files need no stdin"


def test_stopping_ends_while_the_caller_still_writes(folder: Path) -> None:
    with started(folder, "--on-error", "stop") as process:
        process.stdin.write("{\n")
        process.stdin.flush()
        assert process.wait(60) == 1
        assert process.stderr.read().startswith("error: stdin:1: not JSON")


def test_lines_that_are_left_out_are_counted(ask: Command) -> None:
    out, told = ask('{}\n{"text": "Ada"}\n{}\n[]', "--on-error", "skip")
    assert len(out.splitlines()) == 1
    assert told.splitlines()[0].startswith("left out: 2: no field 'text'")
    assert told.splitlines()[1].startswith("left out: 1: found []; wanted a JSON object (the first at stdin:")


@pytest.mark.parametrize("damage", ["labels", "weights", "no weights", "tokenizer", "config"])
def test_damaged_folders_are_named(folder: Path, tmp_path: Path, damage: str) -> None:
    model = tmp_path / "model"
    shutil.copytree(folder / "ner-luke", model)
    config = json.loads((model / "config.json").read_text())
    if damage == "labels":
        del config["labels"]
    elif damage == "config":
        config["model"]["more"] = 1
    elif damage == "tokenizer":
        shutil.rmtree(model / "tokenizer")
    else:
        content = (model / "model.safetensors").read_bytes()
        (model / "model.safetensors").write_bytes(content[: len(content) // 2])
    if damage == "no weights":
        (model / "model.safetensors").unlink()
    (model / "config.json").write_text(json.dumps(config))
    with pytest.raises(SystemExit, match=f"^error: .*{model.name}"):
        main([str(model), "--device", "cpu"])
