"""Formats of relations: SemEval-2010's text holds what the JSON lines it was made from hold."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tasks.relations.relation_classification import TASK
from tasks.relations.relation_format import Example

TEXT = """\
1\t"The <e1>ore</e1> lay in a "wooden" <e2>box</e2>."
Content-Container(e1,e2)
Comment: a box, e.g. <e1>of wood</e1>

2\t"A <e2>smith</e2>'s <e1>hammer</e1>"
Other
Comment:
3\tNo quotes <e1>here</e1> <e2>either</e2>

Other
""".replace("either</e2>\n\n", "either</e2>\n")


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


def content(examples: Sequence[Example]) -> list[tuple[Any, ...]]:
    return [(each.text, each.head, each.tail, each.relation) for each in examples]


def raw(number: int, words: Sequence[str], head: Sequence[int], tail: Sequence[int], relation: str) -> str:
    """An example as the task's own release writes it."""
    marked = list(words)
    for name, (start, end) in (("e1", head), ("e2", tail)):
        marked[start] = f"<{name}>{marked[start]}"
        marked[end - 1] = f"{marked[end - 1]}</{name}>"
    return f'{number}\t"{" ".join(marked)}"\r\n{relation}\r\nComment:\r\n\r\n'


@pytest.mark.parametrize(("name", "count"), [("train", 6507), ("val", 1493), ("test", 2717)])
def test_semeval_raw_text_is_what_the_json_lines_say(shared: Path, tmp_path: Path, name: str, count: int) -> None:
    lines = shared / "data" / "relation" / "semeval2010-task8" / f"{name}.txt"
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    text = "".join(
        raw(number, row["token"], row["h"]["pos"], row["t"]["pos"], row["relation"])
        for number, row in enumerate(rows, start=8001)
    )
    found = TASK.read(write(tmp_path / "TEST_FILE_FULL.TXT", text)).examples
    assert len(found) == count
    assert content(found) == content(TASK.read(lines).examples)
    assert found[-1].record.values["id"] == 8000 + count


def test_semeval_text_with_quotes_comments_and_any_order(tmp_path: Path) -> None:
    found = TASK.read(write(tmp_path / "x", "\ufeff\n" + TEXT)).examples
    assert content(found) == [
        ('The ore lay in a "wooden" box.', (4, 7), (26, 29), "Content-Container(e1,e2)"),
        ("A smith's hammer", (10, 16), (2, 7), "Other"),
        ("No quotes here either", (10, 14), (15, 21), "Other"),
    ]
    assert [each.record.where for each in found] == [f"{tmp_path}/x:{line}" for line in (2, 6, 9)]


def test_words_go_before_a_sentence_of_other_use(tmp_path: Path) -> None:
    row = {
        "token": ["a", "b"], "sentence": "A B.", "subj_start": 0, "subj_end": 0, "obj_start": 1, "obj_end": 1,
    }  # fmt: skip
    [found] = TASK.read(write(tmp_path / "x", json.dumps({**row, "relation": "r", "head": [2, 0], "h": 3}))).examples
    assert content([found]) == [("a b", (0, 1), (2, 3), "r")]


def test_hugging_face_rows(tmp_path: Path) -> None:
    """Parquet as the hub has it of sem_eval_2010_task_8, whose relations are numbers."""
    datasets = pytest.importorskip("datasets")
    text = TASK.read(write(tmp_path / "raw.txt", TEXT)).examples
    relation = datasets.ClassLabel(names=["Content-Container(e1,e2)", "Other"])
    semeval = [{"sentence": each.record.values["sentence"], "relation": each.relation} for each in text]
    numbered = datasets.Dataset.from_list(semeval).cast_column("relation", relation)
    assert numbered[0]["relation"] == 0
    numbered.to_parquet(str(tmp_path / "semeval.parquet"))
    assert content(TASK.read(tmp_path / "semeval.parquet").examples) == content(text)


def test_numbers_of_relations_are_named_by_the_label_file(tmp_path: Path) -> None:
    write(tmp_path / "rel2id.json", '{"employer": 7, "no_relation": 3}')
    row = {"text": "Ada runs Pell", "head": [0, 3], "tail": [9, 13], "relation": 7}
    assert TASK.read(write(tmp_path / "train.json", json.dumps(row))).examples[0].relation == "employer"
