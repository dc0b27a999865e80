"""Formats of users: each is fine-tuned on, equals the format that it was made from, or is refused with a remedy."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.finetuning.registry import TASKS
from tasks.io.data_folder import SPLITS, split_file
from tasks.ner import task as ner
from tasks.questions import extractive
from tests.support.fine_tuned import EXAMPLES, QUICK, finetune, pretrained

TAGS = ["O", "B-PER", "I-PER"]


def tag_rows() -> dict[str, list[dict[str, list[str]]]]:
    """The example sentences of each split as `tokens` and `ner_tags`."""
    files = {split: ner.read(split_file(EXAMPLES / "ner", split)) for split in SPLITS}
    return {
        split: [{"tokens": list(s.words), "ner_tags": [row[-1] for row in s.rows]} for s in file.sentences]
        for split, file in files.items()
    }


def question_rows() -> dict[str, list[dict[str, Any]]]:
    """The example questions of each split as Hugging Face's rows."""
    files = {split: extractive.read(EXAMPLES / "extractive_qa" / f"{split}.json") for split in SPLITS}
    return {
        split: [
            {
                "id": each.id, "title": each.page or "", "context": each.passage, "question": each.question,
                "answers": {"text": [t for _, t in each.answers], "answer_start": [n for n, _ in each.answers]},
            }
            for each in file.examples
        ]
        for split, file in files.items()
    }  # fmt: skip


def write(folder: Path, rows: dict[str, list[dict[str, Any]]], layout: str) -> Path:
    """Writes splits as JSON lines or, with `datasets`, as its folder or the hub's Parquet files."""
    import datasets

    folder.mkdir()
    if layout == "lines":
        for split, each in rows.items():
            (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))
        return folder
    data = datasets.DatasetDict(
        {
            {"dev": "validation"}.get(split, split): datasets.Dataset.from_list(each)
            for split, each in rows.items()
        }
    )
    if "ner_tags" in rows["train"][0]:
        names = sorted({tag for each in rows.values() for row in each for tag in row["ner_tags"]})
        feature = datasets.Sequence(datasets.ClassLabel(names=names))
        data = data.cast_column("ner_tags", feature)
    if layout == "folder":
        data.save_to_disk(str(folder))
    else:
        for split, each in data.items():
            each.to_parquet(str(folder / f"{split}-00000-of-00001.parquet"))
    return folder


@pytest.mark.parametrize("layout", ["lines", "folder", "parquet"])
@pytest.mark.parametrize("task", ["ner", "extractive_qa"])
def test_a_layout_is_fine_tuned_on_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str, layout: str
) -> None:
    data = write(tmp_path / "data", tag_rows() if task == "ner" else question_rows(), layout)
    for split in SPLITS:
        wanted = TASKS[task].read(split_file(EXAMPLES / task, split))
        found = TASKS[task].read(split_file(data, split))
        if task == "ner":
            content = [[(s.words, s.spans) for s in file.sentences] for file in (found, wanted)]
        else:
            content = [
                [(e.id, e.question, e.passage, e.page, e.answers) for e in file.examples]
                for file in (found, wanted)
            ]
        assert content[0] == content[1]
    pretrained(tmp_path)
    monkeypatch.setitem(TASKS[task].PRESETS, "quick", QUICK)
    assert finetune(tmp_path, tmp_path / "out", task=task, data=data, preset="quick")


@pytest.mark.parametrize("letters", ["BIESO", "BILUO", "BMESO"])
def test_bilou_and_bmes_say_the_same(tmp_path: Path, letters: str) -> None:
    begin, inside, last, single, _ = letters
    tags = [f"{begin}-PER", f"{inside}-PER", f"{last}-PER", "O", f"{single}-LOC"]
    path = tmp_path / "train.txt"
    path.write_text("".join(f"w{n} x y {tag}\n" for n, tag in enumerate(tags)))
    assert ner.read(path).sentences[0].spans == ((0, 3, "PER"), (4, 5, "LOC"))


def test_numbers_are_named_by_the_label_file(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("\n".join(TAGS))
    path = tmp_path / "train.jsonl"
    path.write_text('{"tokens": ["Ada", "Lovelace", "met"], "ner_tags": [1, 2, 0]}\n')
    file = ner.read(path)
    assert file.sentences[0].spans == ((0, 2, "PER"),)
    assert ner.label_names({"train": file}, TAGS) == ("O", "PER")


ONE = {"tokens": ["Ada"], "ner_tags": ["B-PER"]}
ROW = {
    "id": 7,
    "context": "Ada met Bob.",
    "question": "Who?",
    "answers": {"text": ["Ada"], "answer_start": [0]},
}
HOSTILE = [
    ("ner", {**ONE, "ner_tags": [1]}, "", r":1: ner_tags\[0\] is 1, a number without a name; list .* labels\.txt"),
    ("ner", {**ONE, "ner_tags": [3]}, "O\nB-PER", r"ner_tags\[0\] is 3; wanted a number from 0 to 1"),
    ("ner", {**ONE, "ner_tags": [-1]}, "O\nB-PER", r"ner_tags\[0\] is -1; wanted a number from 0 to 1"),
    ("ner", {**ONE, "ner_tags": []}, "", r":1: 1 tokens and 0 ner_tags; give one tag"),
    ("ner", {**ONE, "ner_tags": ["PER"]}, "", r":1: ner_tags\[0\]: tag 'PER' is neither O nor"),
    ("ner", {**ONE, "ner_tags": [None]}, "", r"ner_tags\[0\] is None; wanted the name"),
    ("ner", {**ONE, "ner_tags": [True]}, "O\nB-PER", r"ner_tags\[0\] is True; wanted the name"),
    ("ner", {**ONE, "ner_tags": "O"}, "", r'ner_tags is "O"; wanted a list'),
    ("ner", {**ONE, "tokens": [""]}, "", r"tokens\[0\] is ''; wanted a word without blanks"),
    ("ner", {**ONE, "tokens": ["A B"]}, "", r"tokens\[0\] is 'A B'; wanted a word without blanks"),
    ("ner", {**ONE, "tokens": [3]}, "", r"tokens holds 3; wanted texts alone"),
    ("ner", {"words": ["Ada"]}, "", r"no field 'tokens'; wanted a list of texts"),
    ("ner", {"tokens": ["Ada"]}, "", r"no field 'ner_tags'"),
    ("ner", {"tokens": ["a", "b"], "ner_tags": ["O", "M-PER"]}, "", r":1: tag 'M-PER' does not follow .* one scheme"),
    ("extractive_qa", {**ROW, "answers": {"text": [], "answer_start": []}}, "", r"question '7' is empty; .*remove"),
    ("extractive_qa", {**ROW, "answers": {"text": ["A"], "answer_start": []}}, "", r"1 in text and 0 in answer_start"),
    ("extractive_qa", {**ROW, "answers": {"text": ["A"]}}, "", r"answers: no field 'answer_start'"),
    ("extractive_qa", {**ROW, "answers": None}, "", r"answers is null; wanted a list"),
    ("extractive_qa", {**ROW, "is_impossible": True}, "", r"question '7' is impossible .*remove"),
    ("extractive_qa", {**ROW, "id": None}, "", r":1: id is null; wanted a text"),
    ("extractive_qa", {**ROW, "context": ""}, "", r":1: context is empty"),
    ("extractive_qa", b"PAR1 and no more", "", r"train\.x: a broken table \(.*\); write or download it again"),
    ("ner", b"\xff\xff\xff\xff\x10\x00\x00\x00", "", r"train\.x: a broken table"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "content", "labels", "message"), HOSTILE)
def test_hostile_files_are_refused(
    tmp_path: Path, task: str, content: Any, labels: str, message: str
) -> None:
    if labels:
        (tmp_path / "labels.txt").write_text(labels)
    path = tmp_path / "train.x"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(ValueError, match=message):
        TASKS[task].read(path)
