"""Formats that users have, through the command: read, fine-tuned on and scored as they are."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tasks.finetuning.registry import TASKS
from tasks.io.data_folder import SPLITS, split_file
from tasks.ner import task as ner
from tasks.ner.columns import ColumnFile
from tasks.score import main as score
from tests.support.fine_tuned import EXAMPLES, pretrained
from tests.support.stages import run_luigi, run_of, write_run
from workflows import FineTune
from workflows.stages.task_stage import data_identity

Rows = Sequence[dict[str, Any]]


def tables_of(folder: Path, **tuning: Any) -> dict[str, Any]:
    """The tables of a run that fine-tunes tiny weights, which are written into the folder."""
    pretrained(folder)
    given = {"weights": {"luke": str(folder / "weights")}, "preset": "tiny", **tuning}
    tokenizer = {"tokenizer": str(folder / "tokenizer")}
    return {"sequences": tokenizer, "fine_tuning": given, "machine": {"device": "cpu"}}


def examples(split: str) -> ColumnFile:
    return ner.TASK.read(split_file(EXAMPLES / "ner", split))


# Writers: a folder, the name of the split, and its examples


def table_of(rows: Rows, classes: str = "") -> Any:
    """A data set whose column `classes` holds numbers, with their names."""
    import datasets

    data = datasets.Dataset.from_list(list(rows))
    if classes:
        label = datasets.ClassLabel(names=sorted({name for row in rows for name in row[classes]}))
        data = data.cast_column(classes, datasets.Sequence(label))
    return data


def write_saved(folder: Path, split: str, file: ColumnFile) -> None:
    """Two Arrow files, as `save_to_disk` writes large data sets."""
    rows = [{"tokens": list(each.words), "NER": [row[-1] for row in each.rows]} for each in file.sentences]
    table_of(rows, "NER").save_to_disk(str(folder / split), num_shards=2)


def write_conllu(folder: Path, split: str, file: ColumnFile) -> None:
    blocks = [
        "".join(
            f"{number}\t{row[0]}\t{row[0].lower()}" + 6 * "\t_" + f"\tNER={row[-1]}\n"
            for number, row in enumerate(sentence.rows, start=1)
        )
        for sentence in file.sentences
    ]
    (folder / f"{split}.conllu").write_text("\n".join(f"# sent_id = {n}\n{block}" for n, block in enumerate(blocks)))


def write_headed(folder: Path, split: str, file: ColumnFile) -> None:
    """Columns named in the first line, the tag in the middle."""
    blocks = ["".join(f"{row[0]}\t{row[-1]}\tX\n" for row in sentence.rows) for sentence in file.sentences]
    (folder / f"{split}.tsv").write_text("word\tNER\tpos\n" + "\n".join(blocks))


@pytest.mark.slow
def test_the_command_takes_formats_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A format of its own for each split. The tests of the readers have each format of each task."""
    data, flag = tmp_path / "data", ["--tag-column", "NER"]
    data.mkdir()
    for split, write in zip(SPLITS, (write_conllu, write_headed, write_saved), strict=True):
        write(data, split, examples(split))
        found = ner.TASK.read(split_file(data, split), tag_column="NER")
        assert [(each.words, each.spans) for each in found.sentences] == [
            (each.words, each.spans) for each in examples(split).sentences
        ]
    write_run(tmp_path, **tables_of(tmp_path, epochs=1, tag_column="NER"))
    result = run_luigi("FineTune", "--task", "ner", "--data", data, "--workdir", ".", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    [model] = tmp_path.glob("finetune-*")
    metrics = json.loads((model / "metrics.json").read_text())
    for split in ("dev", "test"):
        gold, [predictions] = split_file(data, split), model.glob(f"predictions-{split}.*")
        score(["ner", str(gold), str(predictions), *flag])
        assert json.loads(capsys.readouterr().out)["f1"] == metrics[split]["f1"]
    dev = str(data / "dev.tsv")
    score(["ner", dev, dev, *flag, "--predicted-column", "NER"])
    assert json.loads(capsys.readouterr().out)["f1"] == 1.0


def test_the_tag_column_and_the_files_of_splits_are_in_the_identity(tmp_path: Path) -> None:
    """A data set of `save_to_disk` has all its rows in folders inside."""
    data = tmp_path / "data"
    data.mkdir()
    for split in SPLITS:
        write_saved(data, split, examples(split))
    first, plain = (
        FineTune(settings=run_of(tmp_path, **tables_of(tmp_path, data={"ner": str(data)}, tag_column=column)))
        for column in ("NER", "")
    )
    assert first.bytes_parameters()["tag_column"] == "NER"
    names = {f"{split}/data-{number:05}-of-00002.arrow" for split in SPLITS for number in range(2)}
    assert names <= first.bytes_parameters()["data"].keys()
    assert plain.hash8 != first.hash8
    before = data_identity(str(data))
    write_saved(data, "dev", examples("test"))
    changed = {name for name, digest in data_identity(str(data)).items() if before[name] != digest}
    assert changed == {f"dev/data-{number:05}-of-00002.arrow" for number in range(2)}


def test_classes_may_be_numbers_with_a_label_file(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("person\nplace\n")
    path = tmp_path / "train.jsonl"
    path.write_text('{"sent": "Ada met Bob.", "start": 0, "end": 3, "labels": [0, 1]}\n')
    assert TASKS["entity_typing"].read(path).examples[0].types == ("person", "place")
    path.write_text('{"tokens": ["Ada", "Pell", "met"], "ner_tags": [1, 2, 0]}\n')
    (tmp_path / "labels.txt").write_text("O\nB-PER\nI-PER\n")
    file = ner.TASK.read(path)
    assert file.sentences[0].spans == ((0, 2, "PER"),)
    assert ner.TASK.label_names({"train": file}, ("O", "B-PER", "I-PER")) == ("O", "PER")
    (tmp_path / "train").mkdir()
    table_of([{"tokens": ["Ada", "met"], "ner_tags": [1, 0]}]).save_to_disk(str(tmp_path / "train"))
    [table] = tmp_path.glob("train/data-*.arrow")
    assert ner.TASK.read(table).sentences[0].spans == ((0, 1, "PER"),)
