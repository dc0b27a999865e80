"""A run: its values are checked, its file is whole at every moment, and a user's own lines in it stay."""

import re
import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from model.presets import PRESET_TABLES
from pipeline import storage
from tests.support import ROOT
from tests.support.properties import given, st
from tests.support.stages import run_of
from workflows.run.document import NAME
from workflows.run.file import Run, change_run, parse_set
from workflows.run.kinds import AUTO
from workflows.run.options import all_options, defaults, options
from workflows.run.tables import RECIPE, TABLES

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
WRONG = [
    ({"corpse": {}}, r"\[corpse\] is no table of a run file; did you mean corpus\?"),
    ({"corpus": 3}, r"corpus is 3, wanted a table \[corpus\]"),
    ({"corpus": {"vocab_sise": 3}}, r"\[corpus\] vocab_sise is no field; did you mean vocab_size\?"),
    ({"sequences": {"vocab_size": 3}}, r"\[sequences\] vocab_size is no field; it is in \[corpus\]"),
    ({"corpus": {"vocab_size": "many"}}, r"\[corpus\] vocab_size is 'many', wanted a whole number, 4 or"),
    ({"corpus": {"held_out": 1.5}}, r"\[corpus\] held_out is 1\.5, wanted a share between 0 and 1"),
    ({"corpus": {"allow_truncated": 1}}, r"\[corpus\] allow_truncated is 1, wanted true or false"),
    ({"corpus": {"dump": ["a"]}}, r"\[corpus\] dump is \['a'\], wanted a file, a URL or a wiki's name"),
    ({"pretraining": {"steps": "200"}}, r"\[pretraining\] steps is '200', wanted a whole number, or a list"),
    ({"fine_tuning": {"data": {"nr": "x"}}}, r"\[fine_tuning\] data is .*, wanted a table of entity_typing"),
    ({"fine_tuning": {"seeds": [1, 1]}}, r"\[fine_tuning\] seeds is \[1, 1\], wanted .* each value once"),
    ({"pretraining": {"seed": 2**63}}, r"\[pretraining\] seed is 9.*, wanted a whole number, .* below 2\^63"),
    ({"machine": {"spark_conf": {"x": "1"}}}, r"\[machine\] spark_conf is .*, wanted a table"),
    ({"corpus": {"block_size": 1}}, r"\[corpus\] block_size is 1, wanted a size of 4096 bytes or more"),
    ({"machine": {"device": "tpu"}}, r"\[machine\] device is 'tpu', wanted cpu, cuda or cuda:N, or auto"),
    ({"machine": {"spark_master": "x"}}, r"\[machine\] spark_master is 'x', wanted local, local\[N\]"),
    ({"preset": "huge"}, r"preset is 'huge', wanted one of tiny, demo, small, base, large, or auto"),
]


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
        (b"version = 2", "version is 2, this project reads 1; update the project"),
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


@pytest.mark.parametrize(("tables", "message"), WRONG)
def test_what_is_wrong_is_named_with_its_file_table_and_field(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=rf"^mine\.toml: {message}"):
        Run.of_tables(tables, workdir="work", source="mine.toml")


def test_every_default_is_a_value_of_its_kind() -> None:
    for table in TABLES:
        known, by_default = options(table), defaults(table)
        for name, value in by_default.items():
            assert value == AUTO or known[name].kind.read(value) == value, (table, name)
        assert by_default.keys() | RECIPE.keys() >= known.keys()


def test_each_option_is_declared_once_in_its_table_and_flags_have_one_meaning() -> None:
    names = [(table, name) for table, name, _ in all_options()]
    assert len(names) == len(set(names))
    flags: dict[str, list[str]] = {}
    for table, _, option in all_options():
        flags.setdefault(option.flag, []).append(table)
    del flags[""]
    assert all(tables in (["pretraining", "fine_tuning"], tables[:1]) for tables in flags.values())
    own = {field.name for table in TABLES.values() for field in fields(table)}
    assert not own & RECIPE.keys() - {"batch_size", "learning_rate", "tokens_per_batch", "precision",
                                      "gradient_checkpointing"}  # fmt: skip


@pytest.mark.parametrize("preset", PRESET_TABLES)
def test_what_is_left_open_is_the_presets(preset: str) -> None:
    tables = PRESET_TABLES[preset]
    run = run_of(preset=preset, corpus={"vocab_size": 7})
    assert run.corpus.vocab_size == 7
    assert run.sequences.max_words == tables["sequences"]["max_words"]
    assert run.linking.evaluated == tables["linking"]["evaluated"]
    assert run_of(preset=preset).corpus.vocab_size == tables["corpus"]["vocab_size"]


def test_the_preset_follows_from_the_base_model() -> None:
    assert (run_of().preset, run_of(pretraining={"base_model": "roberta-base"}).preset) == ("tiny", "base")


@given(
    share=st.floats(0, 1), size=st.integers(4, 10**9), seeds=st.lists(st.integers(0, 99), min_size=1, unique=True),
    text=st.text(max_size=20), steps=st.lists(st.integers(1, 10**6), min_size=1, max_size=2),
)  # fmt: skip
def test_a_run_is_the_same_after_a_journey_as_text(
    share: float, size: int, seeds: list[int], text: str, steps: list[int]
) -> None:
    run = run_of(
        "a/b",
        corpus={"held_out": share, "vocab_size": size},
        pretraining={"steps": steps},
        fine_tuning={"seeds": seeds, "tag_column": text},
    )
    again = Run.from_json(run.json)
    assert again == run
    assert hash(again) == hash(run)
