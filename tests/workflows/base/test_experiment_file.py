"""The TOML file with the folders of data and weights, and the errors that it can have."""

import os
from pathlib import Path

import pytest
from workflows.base.experiment_file import EXAMPLES, TASKS, Missing, Sources, read_sources


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("conll", "luke", "mentions"):
        (tmp_path / name).mkdir()
    return tmp_path


def written(folder: Path, text: str) -> str:
    path = folder / "experiments.toml"
    path.write_text(text)
    return str(path)


def test_paths_are_relative_to_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(
        folder,
        'negative_label = "Other"\ntag_column = "ner"\nmentions = "mentions"\n[data]\nner = "conll"\n'
        '[weights]\nluke = "luke"\nroberta = "some/roberta-large"\n',
    )
    monkeypatch.chdir("/")
    assert read_sources(path) == Sources(
        path,
        {"ner": str(folder / "conll")},
        {"luke": str(folder / "luke"), "roberta": "some/roberta-large"},
        "Other",
        "ner",
        str(folder / "mentions"),
    )


def test_home_is_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    (folder / "elsewhere").mkdir()
    path = written(folder / "elsewhere", '[data]\nner = "~/conll"\n')
    assert read_sources(path).data == {"ner": str(folder / "conll")}


def test_a_task_that_is_not_named_has_no_data(folder: Path) -> None:
    sources = read_sources(written(folder, '[data]\nner = "conll"\n'))
    assert sources.data_folder("ner") == str(folder / "conll")
    with pytest.raises(Missing, match=r"experiments\.toml: \[data\] names no folder for cloze_qa") as missing:
        sources.data_folder("cloze_qa")
    assert missing.value.state == "no data"


def test_without_a_file_the_examples_are_the_data() -> None:
    for task in TASKS:
        assert read_sources("").data_folder(task) == str(EXAMPLES / task)
        assert (EXAMPLES / task).is_dir()


def test_a_changed_file_is_read_again(folder: Path) -> None:
    assert read_sources(written(folder, "")).data == {}
    path = written(folder, '[data]\nner = "conll"\n')
    os.utime(path, ns=(1, 1))
    assert read_sources(path).data == {"ner": str(folder / "conll")}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[data", r"experiments\.toml: no TOML \("),
        ("\udcff", r"experiments\.toml: no TOML \("),
        (
            'dat = "x"',
            r"dat is not known, did you mean data\? \(wanted: negative_label, tag_column, mentions, data, weights\)",
        ),
        ('[data]\nNER = "conll"', r"\[data\] NER is not known .*wanted: entity_typing"),
        ('[data]\nner = "nowhere"', r"\[data\] ner: no such folder .*nowhere; correct the path, or delete the line"),
        ("[data]\nner = 3", r'\[data\] ner is 3, wanted text, as "conll2003"'),
        ("data = 3", r"data is 3, wanted a table \[data\]"),
        ('[weights]\nluke = "./nowhere"', r"\[weights\] luke: no such folder"),
        ('[weights]\nbert = "x"', r"\[weights\] bert is not known.*wanted: luke, roberta"),
        ('mentions = "nowhere"', r"mentions: no such folder"),
        ("negative_label = true", r"negative_label is True, wanted text"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(folder: Path, text: str, message: str) -> None:
    path = folder / "experiments.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=message):
        read_sources(str(path))


def test_no_file() -> None:
    with pytest.raises(ValueError, match=r"--experiments nowhere\.toml: cannot be read \(No such file"):
        read_sources("nowhere.toml")
