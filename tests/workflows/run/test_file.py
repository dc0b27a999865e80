"""run.toml: a user's own lines stay, each change is told, and the file is whole at every moment."""

import re
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline import storage
from tests.support import ROOT
from workflows.run.document import NAME
from workflows.run.file import change_run, parse_set
from workflows.run.values import Run

REWRITES = """
import sys
from pipeline import storage
from workflows.run.file import change_run, parse_set
number = 0
while True:
    number += 1
    size, long = f"corpus.vocab_size={number % 9 + 4}", "linking.language=" + "x" * 9999
    change_run(sys.argv[1], [parse_set(size), parse_set(long)])
    storage.record_finished(sys.argv[1], [(f"Stage {number % 5}", f"folder-{number}")])
    print(number, flush=True)
"""


def test_the_first_command_writes_the_file_and_later_ones_read_it(tmp_path: Path) -> None:
    change_run(str(tmp_path), [parse_set("corpus.held_out=0.25"), parse_set("fine_tuning.data.ner=none")])
    found = Run.read(str(tmp_path))
    assert (found.corpus.held_out, dict(found.fine_tuning.data)) == (0.25, {"ner": "none"})
    text = (tmp_path / NAME).read_text()
    assert "# vocab_size: entities in the vocabulary" in text
    assert tomllib.loads(text)["version"] == 1


def test_a_users_lines_stay_and_changes_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / NAME
    path.write_text("# mine\n[corpus]\nheld_out = 0.5  # half\nvocab_size = 9\n")
    with caplog.at_level("INFO", "workflows"):
        change_run(str(tmp_path), [parse_set("corpus.vocab_size=8"), parse_set("corpus.held_out=0.5")])
    assert caplog.messages == [f"{path}: corpus.vocab_size = 8 (was 9)"]
    assert path.read_text() == "# mine\n[corpus]\nheld_out = 0.5  # half\nvocab_size = 8\n"


def test_a_run_may_begin_from_another_file(tmp_path: Path) -> None:
    (tmp_path / "vocab.tsv").write_text("")
    (tmp_path / "mine.toml").write_text('# mine\n[corpus]\nentity_vocab = "vocab.tsv"\n')
    work = tmp_path / "work"
    change_run(str(work), [parse_set("corpus.held_out=0.5")])
    run = change_run(str(work), [parse_set("corpus.vocab_size=7")], str(tmp_path / "mine.toml"))
    assert (run.corpus.held_out, run.corpus.vocab_size) == (0.01, 7), "nothing is left of the other run"
    assert Run.read(str(work)).corpus.entity_vocab == str(tmp_path / "vocab.tsv")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"steps 200", r"no TOML"),
        (b"\xff", "no UTF-8"),
        (b"version = 2", "version is 2, and this project reads 1; update the project"),
    ],
)
def test_a_file_that_is_no_run(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(ValueError, match=f"^{re.escape(str(tmp_path / NAME))}: {message}"):
        Run.read(str(tmp_path))


@pytest.mark.parametrize("wrong", ["pretraining.steps=0", "pretraining.phases=new,old", "corpus.held_out=2"])
def test_what_is_wrong_is_not_written(tmp_path: Path, wrong: str) -> None:
    change_run(str(tmp_path), [parse_set("corpus.held_out=0.5")])
    before = (tmp_path / NAME).read_bytes()
    with pytest.raises(ValueError, match=r"steps|phases|held_out"):
        change_run(str(tmp_path), [parse_set(wrong)])
    assert (tmp_path / NAME).read_bytes() == before


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b'\xef\xbb\xbfpreset = "demo"\n')
    assert change_run(str(tmp_path), [parse_set("corpus.held_out=0.25")]).preset == "demo"
    assert Run.read(str(tmp_path)).corpus.held_out == 0.25


def test_a_kill_leaves_whole_files(tmp_path: Path) -> None:
    for _ in range(3):
        command = [sys.executable, "-c", REWRITES, str(tmp_path)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            process.stdout.readline()
            time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
        assert Run.read(str(tmp_path)).linking.language == "x" * 9999
        assert storage.finished_stages(str(tmp_path))


def test_two_commands_at_once_keep_their_values(tmp_path: Path) -> None:
    def change(number: int) -> int:
        own = parse_set(f"corpus.vocab_size={number}")
        return change_run(str(tmp_path), [own]).corpus.vocab_size

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(change, range(4, 40))) == list(range(4, 40))
    assert 4 <= Run.read(str(tmp_path)).corpus.vocab_size < 40
