"""Files that are wrong: what FineTune and `python -m tasks.score` must say of each; and what scores count of odd ones.

`tests/tasks/serving/test_streams.py` has the same for lines of `tasks.predict`.
"""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.finetuning.registry import TASKS
from tasks.io.data_folder import SPLITS, split_file
from tasks.score import main
from tests.support import ROOT
from tests.support.fine_tuned import EXAMPLES, finetune

Content = bytes | str | list[Any] | dict[str, Any] | None
"""Bytes, a text, JSON lines, a JSON object, or a folder."""


def table(rows: list[dict[str, Any]]) -> bytes:
    """Parquet."""
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), stream)
    return stream.getvalue()


def write(path: Path, content: Content) -> None:
    if content is None:
        path.mkdir()
    elif isinstance(content, list):
        path.write_text("".join(json.dumps(row) + "\n" for row in content))
    else:
        text = json.dumps(content) if isinstance(content, dict) else content
        path.write_bytes(text.encode() if isinstance(text, str) else text)


NER, TYPING, RELATIONS = "ner", "entity_typing", "relation_classification"
CLOZE, QUESTIONS = "cloze_qa", "extractive_qa"

DEEP = "[" * 100_000
TOKENS: dict[str, Any] = {"tokens": ["Ada", "met"], "ner_tags": ["B-PER", "O"]}
DOCUMENT = [{"tokens": ["-DOCSTART-", "Ada"], "ner_tags": ["O", "B-X"]}, TOKENS]
TYPED: dict[str, Any] = {"sent": "Ada met Bob.", "start": 0, "end": 3, "labels": ["person"]}
ULTRA_FINE = {"left_context_token": ["The", "cat"], "mention_span": "Tom", "right_context_token": ["."], "y_str": ["x"]}
RELATED: dict[str, Any] = {"token": ["Ada", "met", "Bob"], "h": {"pos": [0, 1]}, "t": {"pos": [2, 3]}, "relation": "x"}
TACRED = {
    "token": ["Ada", "met", "Bob"], "subj_start": 0, "subj_end": 0, "obj_start": 2, "obj_end": 2,
    "relation": "x",
}  # fmt: skip
ASKED: dict[str, Any] = {
    "id": "1", "context": "Ada met Bob.", "question": "Who?", "answers": {"text": ["Ada"], "answer_start": [0]},
}  # fmt: skip
SPANS = {"text": ["Ada", "Bob"], "start": [0, 8], "end": [3, 11]}
EVE = {"text": "Eve", "start": 0, "end": 3}
ROW: dict[str, Any] = {
    "passage": "Ada met Bob.", "query": "@placeholder met Bob.", "answers": ["Ada"], "idx": {"passage": 0, "query": 0},
    "entity_spans": SPANS,
}  # fmt: skip
WORD = "%s\tAda" + 7 * "\t_" + "\t%s\n"
MARKED = "<e1>Ada</e1> met <e2>Bob</e2>"
SEMEVAL = '1\t"%s"\nOther\nComment:\n'


def record(**changes: Any) -> dict[str, Any]:
    """ReCoRD's own object with one question."""
    query = {"id": "1", "query": "@placeholder met.", "answers": [{"start": 0, "end": 2, "text": "Ada"}], **changes}
    entities = [{"start": 0, "end": 2}, {"start": 8, "end": 10}]
    return {"data": [{"passage": {"text": "Ada met Bob.", "entities": entities}, "qas": [query]}]}


def of_passage(**changes: Any) -> dict[str, Any]:
    """The same with another passage."""
    found = record()
    found["data"][0]["passage"] |= changes
    return found


def squad(**changes: Any) -> dict[str, Any]:
    """SQuAD's own object with one question."""
    query = {"id": "1", "question": "Who?", "answers": [{"answer_start": 0, "text": "Ada"}], **changes}
    return {"data": [{"title": "Ada", "paragraphs": [{"context": "Ada met Bob.", "qas": [query]}]}]}


ONE_ENTITY = {"start": 0, "end": 898, "text": "ab " * 299 + "ab"}
LONG = record(answers=[ONE_ENTITY])
LONG["data"][0]["passage"] = {"text": "ab " * 300, "entities": [ONE_ENTITY]}

# A task, files in place of those of the example, and what must be said.
FINE_TUNING: list[tuple[str, dict[str, Content], str]] = [
    # folders
    (NER, {"dev": b""}, "no file for the split 'dev'; give one dev.* or val.* or validation.* (found test.txt"),
    (NER, {"dev.x": None, "dev.x/dev.txt": "a O\n"}, "no file for the split 'dev'; give one dev.* or"),
    (NER, {"dev.x": None, **{f"dev.x/{name}-0.parquet": b"" for name in SPLITS}}, "dev.x, which has all three (found"),
    (NER, {"dev.txt": "a O\n", "validation.jsonl": [TOKENS]}, "found dev.txt, validation.jsonl for the split 'dev'"),
    (NER, {"test-00000-of-00002.parquet": table([TOKENS])}, "test-00001-of-00002.parquet is not beside it"),
    # bytes
    (NER, {"train.x": b"Ada B-PER\n\xff O\n"}, "train.x: byte 10 is not UTF-8; convert the file"),
    (NER, {"train.x": "Ada B-PER\n".encode("utf-16-le")}, "train.x: byte 1 is 0, as in UTF-16; convert the file"),
    (QUESTIONS, {"dev.x": gzip.compress(b"{}")}, "dev.x: packed (gzip); unpack it"),
    (NER, {"dev.x": "-DOCSTART- -X- O\n"}, "dev.x: no sentences"),
    (TYPING, {"dev.x": b""}, "dev.x: no examples; wanted a JSON array of objects or a JSON object a line"),
    (CLOZE, {"dev.x": {"data": []}}, "dev.x: no questions; wanted at least one in qas"),
    # tables
    (NER, {"train.x": table([TOKENS])[:-20]}, "train.x: a broken table ("),
    (NER, {"train.x": b"\xff\xff\xff\xff\x10\x00\x00\x00"}, "train.x: a broken table ("),
    (RELATIONS, {"train.x": b"ARROW1\x00\x00"}, "train.x: a broken table ("),
    (NER, {"train.x": table([{"words": ["Ada"]}])}, "train.x: row 1: no field 'tokens'; wanted a list of texts"),
    (QUESTIONS, {"train.x": table([{**ASKED, "context": b"\xff"}])}, "train.x: row 1: context is null; wanted a text"),
    # JSON
    (TYPING, {"train.x": '{"sent": "Ada"'}, "train.x:1: not JSON (Expecting ',' delimiter, column 15)"),
    (TYPING, {"train.x": "[1, 2]"}, "train.x: example 1: found 1; wanted a JSON object"),
    (TYPING, {"train.x": '[{"a": 1}\n{"a": 2}]'}, "train.x:2: not JSON (Expecting ',' delimiter, column 1)"),
    (TYPING, {"train.x": '[{"start": NaN}]'}, "train.x: not JSON (NaN is no value of JSON)"),
    (TYPING, {"train.x": '{"a": ' + DEEP}, "train.x:1: nested too deep; wanted a JSON object of texts"),
    (CLOZE, {"train.x": '{"data": ' + DEEP + "\n"}, "train.x: nested too deep"),
    (QUESTIONS, {"train.x": squad(question="\udcff?")}, "train.x: \\udcff is half of a surrogate pair"),
    (QUESTIONS, {"train.x": {"data": 3}}, "train.x: data is 3; wanted a list of objects"),
    # columns
    (NER, {"train.x": "Ada B-PER\nmet\n"}, "train.x:2: 1 columns; expected 2 or more, the tag last"),
    (NER, {"train.x": "New York\tB-LOC\nmet O\n"}, "train.x:2: 2 columns; the lines above have 3"),
    (NER, {"train.x": "Ada B-PER NNP\n"}, "; --tag-column (of predictions --predicted-column) names another"),
    (NER, {"train.x": "# id 1\nAda B-X\n"}, "train.x:2: 2 columns; the lines above have 3; if "),
    (NER, {"train.x": "Ada B-X\nBob B-O\n"}, "train.x:2: an entity of type 'O', which means none; rename the type"),
    (NER, {"train.x": "Ada PER\n"}, "; where tags are bare types, write I- before each; --tag-column"),
    (NER, {"train.x": "# id 1\nAda _ B-X\n"}, "; remove the line if it is a comment"),
    (NER, {"train.x": "1 Ada B-X O\n2 met O B-X\n"}, "train.x:1: columns 3 and 4 both have tags; say which"),
    (NER, {"train.x": "Ada B-\n"}, "train.x:1: tag 'B-' is neither O nor"),
    (NER, {"train.x": "a O\nb E-X\n"}, "train.x:2: tag 'E-X' does not follow IOB1 or IOB2 or IOBES; use one scheme"),
    (NER, {"train.x": "a B-X\n\nb O\nc I-X\n"}, "train.x:4: tag 'I-X' does not follow IOB2, as "),
    (NER, {"train.x": "a S-X\n\nb L-X\n"}, "train.x:3: tag 'L-X' does not follow IOBES"),
    (NER, {"train.x": "Ada O\n"}, "train.x: no entity in any sentence"),
    (NER, {"train.x": "a O\nAda B-X\n", "labels.txt": "PER\n"}, "train.x:2: type 'X' is not in the label file"),
    # records of entities
    (NER, {"train.x": [{**TOKENS, "ner_tags": [1, 0]}]}, "train.x:1: ner_tags[0] is 1, a number without a name; list"),
    (NER, {"train.x": [{**TOKENS, "ner_tags": [2, 0]}], "labels.txt": "O\nB-X"}, "ner_tags[0] is 2, but "),
    (NER, {"train.x": [{**TOKENS, "ner_tags": [1, 0]}], "labels.txt": "O\n\nB-X"}, "has names for 0, 2; correct"),
    (NER, {"train.x": [{**TOKENS, "ner_tags": [True, 0]}]}, "ner_tags[0] is true; wanted a class's name"),
    (NER, {"train.x": [TOKENS, {**TOKENS, "ner_tags": ["O"]}]}, "train.x:2: 2 tokens and 1 ner_tags; give one tag"),
    (NER, {"train.x": [{**TOKENS, "ner_tags": "O"}]}, 'train.x:1: ner_tags is "O"; wanted a list with a tag'),
    (NER, {"train.x": [{**TOKENS, "tokens": ["New York", ""]}]}, "tokens[0] is 'New York'; wanted a word without"),
    (NER, {"train.x": [{**TOKENS, "tokens": ["Ada\r", "met"]}]}, "tokens[0] is 'Ada\\r'; wanted a word without blanks"),
    (NER, {"train.x": [{**TOKENS, "ner_tags": ["B-New York", "O"]}]}, "ner_tags[0] is 'B-New York'; predictions are"),
    # CoNLL-U
    (NER, {"train.x": WORD % (1, "NER=B-X") + WORD % (3, "_")}, "train.x:2: word 3 follows 1; number the words"),
    (NER, {"train.x": WORD % (1, "Case=Nom")}, "train.x: no tags: NER or NE or Entity is no key in MISC (there: Case)"),
    (NER, {"train.x": WORD % (1, "Entity=(1-person")}, "; nested entities in brackets are not read; give B- and I-"),
    (NER, {"train.x": WORD % (1, "NER=O") + "2\tAda\tO\n"}, "train.x:2: 3 columns; the lines above have 10"),
    (NER, {"train.x": "# global.columns = ID FORM\n1\tAda\tO\n"}, "train.x:2: 3 columns; wanted those of global"),
    (NER, {"train.x": "1\t \tO\n2\tx\tO\n"}, "train.x:1: no word in column 2; write it there"),
    # types
    (TYPING, {"train.x": [{**TYPED, "labels": ["human"]}]}, "train.x: no example has one of the types entity, event"),
    (TYPING, {"train.x": [{**TYPED, "labels": "person"}]}, 'train.x:1: labels is "person"; wanted a list of types'),
    (TYPING, {"train.x": [{**TYPED, "end": 99}]}, "train.x:1: start, end spans 0 to 99; wanted a start below the end"),
    (TYPING, {"train.x": [TYPED, {**TYPED, "start": 3, "end": 4}]}, "train.x:2: start, end spans blanks alone"),
    (TYPING, {"train.x": [{**ULTRA_FINE, "mention_span": ""}]}, "train.x:1: mention_span spans 8 to 8"),
    # relations
    (RELATIONS, {"dev.x": [{**RELATED, "h": {"pos": [1, 0]}}]}, "dev.x:1: h.pos spans 1 to 0; wanted a start below"),
    (RELATIONS, {"train.x": [RELATED, RELATED]}, "train.x: all examples have the relation 'x', so that there is"),
    (RELATIONS, {"dev.x": [{"text": "Ada met Bob.", "h": {"id": 1}}]}, "dev.x:1: no field 'head'; found text, h"),
    (RELATIONS, {"dev.x": [{**RELATED, "h": 3}]}, "dev.x:1: h is 3; wanted an object with pos, or subj"),
    (RELATIONS, {"dev.x": [{**RELATED, "h": {}}]}, "dev.x:1: h.pos is null; wanted two whole numbers"),
    (RELATIONS, {"dev.x": [{**RELATED, "token": ["a", 3]}]}, "dev.x:1: token holds 3"),
    (RELATIONS, {"dev.x": [{**TACRED, "obj_start": None}]}, "dev.x:1: obj_start is null; wanted a word's number"),
    (RELATIONS, {"dev.x": [{**RELATED, "relation": ""}]}, "dev.x:1: relation is empty; wanted the name"),
    (RELATIONS, {"dev.x": [{**RELATED, "relation": 2}]}, "dev.x:1: relation is 2, a number without a name"),
    (RELATIONS, {"labels.txt": "a\nb\n"}, "train.json: example 1: relation 'per:title' is not in the label file"),
    (RELATIONS, {"dev.x": [RELATED, {**RELATED, "relation": "Other"}]}, "both no_relation and Other are labels; name"),
    (RELATIONS, {"dev.x": SEMEVAL % "Ada met Bob."}, "dev.x:1: sentence has no marks; wanted <e1>head</e1> and <e2>"),
    (RELATIONS, {"dev.x": SEMEVAL % "<e1>a</e1> <e1>b</e1>"}, "dev.x:1: sentence has <e1> </e1> <e1> </e1>; wanted"),
    (RELATIONS, {"dev.x": SEMEVAL % "</e1>a<e1> <e2>b</e2>"}, "dev.x:1: <e1> spans 1 to 0; wanted a start below"),
    (RELATIONS, {"dev.x": SEMEVAL % "<e1> </e1> <e2>b</e2>"}, "dev.x:1: head spans blanks alone"),
    (NER, {"dev.x": "1\tAda\tO\n2 -3\tde la\tO\n"}, "dev.x:2: '2 -3' is no number of a word; wanted 1, 2, ... or 2-3"),
    (RELATIONS, {"dev.x": '1\t"<e1>a</e1> <e2>b</e2>"\n\n'}, "dev.x:1: no relation in the line after sentence 1; give"),
    # questions
    (CLOZE, {"dev.x": record(query="Who?")}, "qas[0]: query is 'Who?'; wanted a question with @placeholder in it"),
    (CLOZE, {"dev.x": record(answers=[])}, "qas[0]: answers is empty; wanted at least one; remove the question"),
    (CLOZE, {"dev.x": record(id=None)}, "qas[0]: id is null; wanted a t"),
    (CLOZE, {"dev.x": record(answers=[{"start": 1, "end": 99, "text": "x"}])}, "answers[0]: start, end spans 1"),
    (CLOZE, {"dev.x": {"data": [{"qas": []}]}}, "data[0]: no field 'passage'; wanted an object"),
    (CLOZE, {"dev.x": of_passage(entities=[{"start": 0}])}, "entities[0]: no field 'end'; wanted a character's"),
    (CLOZE, {"dev.x": [ROW, ROW]}, "dev.x:2: id '0' is that of "),
    (CLOZE, {"dev.x": [{**ROW, "answers": []}]}, "dev.x:1: answers is empty, or has an empty text; wanted at least"),
    (CLOZE, {"dev.x": [{**ROW, "idx": 3}]}, "dev.x:1: idx is 3; wanted the numbers of passage and query"),
    (CLOZE, {"dev.x": [{**ROW, "entity_spans": [EVE]}]}, "entity_spans[0]: text is 'Eve', not the passage's from 0"),
    (CLOZE, {"dev.x": [{**ROW, "entity_spans": {**SPANS, "end": [3]}}]}, "2 in text and 2 in start and 1 in end"),
    (CLOZE, {"train.x": record(answers=[{"start": 4, "end": 6, "text": "met"}])}, "train.x: no question has an answer"),
    (CLOZE, {"train.x": LONG}, "train.x: no example fits into the model; give shorter ones"),
    (QUESTIONS, {"dev.x": squad(is_impossible=True)}, "question '1' is impossible (is_impossible)"),
    (QUESTIONS, {"dev.x": squad(answers=[])}, "answers of question '1' is empty; wanted at least one; remove"),
    (QUESTIONS, {"dev.x": squad(answers=[{"text": "Ada", "answer_start": "0"}])}, 'answer_start is "0"; wanted a'),
    (QUESTIONS, {"dev.x": [{**ASKED, "answers": {"text": ["Ada"]}}]}, "dev.x:1: answers: no field 'answer_start'"),
    (QUESTIONS, {"dev.x": squad(question=" ")}, "qas[0]: question is empty; wanted a text"),
    (QUESTIONS, {"dev.x": {"data": []}}, "dev.x: no questions; wanted at least one"),
    (QUESTIONS, {"train.x": squad(answers=[{"text": "Ada", "answer_start": 5}])}, "train.x: no question has an answer"),
    (QUESTIONS, {"labels.txt": "a\nb\n"}, "label file with a, b: question answering has no classes; remove it"),
    # label files
    (NER, {"labels.txt": "PER\nLOC\nPER\n"}, "labels.txt: label 'PER' stands there twice"),
    (NER, {"labels.txt": "\n \n"}, "labels.txt: wanted names of labels, at least one"),
    (NER, {"labels.json": '["PER", 3]'}, "labels.json: wanted names of labels"),
    (NER, {"labels.json": '["PER"'}, "labels.json:1: not JSON"),
    (RELATIONS, {"rel2id.json": {"a": 0, "b": 0}}, "rel2id.json: 'a' and 'b' are both 0; give each its own"),
    (RELATIONS, {"rel2id.json": {"a": "0"}}, "rel2id.json: wanted whole numbers as the values of all labels"),
    (RELATIONS, {"rel2id.json": {"a": 0}, "labels.txt": "a"}, "found labels.txt and rel2id.json; give one label file"),
    # fields
    *((task, {"train.x": [whole, {each: whole[each] for each in whole if each != name}]}, "train.x:2: ")
      for task, whole in ((TYPING, TYPED), (TYPING, ULTRA_FINE), (RELATIONS, RELATED), (RELATIONS, TACRED))
      for name in whole),
]  # fmt: skip
# The same with options.
FINE_TUNING_WITH: list[tuple[str, dict[str, Content], dict[str, str], str]] = [
    (NER, {"train.x": "Ada B-PER NNP\n"}, {"tag_column": "--2"}, "train.x:1: no column '--2'; this line has Ada"),
    (NER, {"train.x": "1\tAda\tB-X\n"}, {"tag_column": "Ada"}, "train.x:1: no line names the columns; give"),
    (NER, {"train.x": "Ada B-PER NNP\n"}, {"tag_column": "4"}, "train.x:1: no column 4 among 3; wanted --tag-column 2"),
    (NER, {"train.x": "Ada B-PER NNP\n"}, {"tag_column": "1"}, "train.x:1: column 1 has the words"),
    (NER, {"train.x": [TOKENS]}, {"tag_column": "2"}, "train.x: --tag-column 2: its fields have names; give that of"),
    (NER, {"train.x": WORD % (1, "NER=B-X")}, {"tag_column": "Gold"}, "no tags: Gold is no key in MISC (there: NER)"),
    (RELATIONS, {}, {"negative_label": "none"}, "negative label 'none' is no label; the data have"),
    (QUESTIONS, {}, {"tag_column": "2"}, "fine_tuning.tag_column 2: files of ner alone have tags; leave it out"),
    (QUESTIONS, {}, {"negative_label": "x"}, "negative label 'x': the task has none"),
]  # fmt: skip


def data_folder(folder: Path, task: str, files: Mapping[str, Content]) -> Path:
    """A copy of the example's folder, with these files in place of those of the same split."""
    data = folder / "data"
    shutil.copytree(EXAMPLES / task, data)
    (data / "README.md").unlink()
    for name in files:
        split = "dev" if name.startswith("val") else name.partition(".")[0].partition("-")[0]
        for old in data.glob(f"{split}.*"):
            old.unlink()
    for name, content in files.items():
        if "." in name:  # the others are left out
            write(data / name, content)
    return data


@pytest.mark.parametrize(
    ("task", "files", "options", "message"),
    [*((task, files, {}, message) for task, files, message in FINE_TUNING), *FINE_TUNING_WITH],
)
def test_fine_tuning_says_what_is_wrong(
    tmp_path: Path, folder: Path, task: str, files: dict[str, Content], options: dict[str, Any], message: str
) -> None:
    data = data_folder(tmp_path, task, files)
    with pytest.raises(ValueError) as raised:  # noqa: PT011 the table has the messages
        finetune(folder, tmp_path / "out", task=task, data=data, **options)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_none(tmp_path: Path, folder: Path) -> None:
    for data in (tmp_path / "absent", EXAMPLES / "ner" / "train.txt"):
        with pytest.raises(ValueError, match=r": no such folder; expected one with train\.\*, dev\.\* and"):
            finetune(folder, tmp_path / "out", data=data)


# Scores


def test_scores_that_nobody_reads_are_no_error() -> None:
    """As behind `| head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    gold = EXAMPLES / "ner" / "test.txt"
    command = [sys.executable, "-m", "tasks.score", "ner", gold, gold]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


AGAIN, ABSENT = "the example's own file", "none"  # of dev
# A task, GOLD and PREDICTIONS, and what must be said.
SCORING: list[tuple[str, Content, Content, str]] = [
    *((task, AGAIN, ABSENT, "predictions.x: no such file; expected ") for task in TASKS),
    (NER, "a O\n", None, "predictions.x: a folder; expected a CoNLL column file"),
    (NER, "a O\n", "b O\n", "predictions.x:1: not the words of "),
    (NER, "a O\n\nb O\n", "a O\n", "predictions.x:end: not the words of "),
    (NER, "a B-X\nb O\nc I-X\n", "a O\n", "gold.x:3: tag 'I-X' does not follow IOB2"),
    (TYPING, [TYPED], [TYPED, TYPED], "predictions.x:2: 2 predictions for 1 examples"),
    (TYPING, [TYPED], [{**TYPED, "sent": "Eve met Bob."}], "predictions.x:1: sent is not that of "),
    (TYPING, [TYPED], [{**TYPED, "prediction": "person"}], 'prediction is "person"; wanted a list of types'),
    (TYPING, [{**TYPED, "labels": ["human"]}], [TYPED], "list those of your data in a file, one a line, and pass it"),
    (RELATIONS, [RELATED], [{"token": RELATED["token"]}], "predictions.x:1: no field 'relation'; wanted the name"),
    (RELATIONS, [RELATED], [{**RELATED, "prediction": None}], "prediction is null; wanted a class's name"),
    (RELATIONS, SEMEVAL % MARKED, SEMEVAL % f"{MARKED}!", "predictions.x:1: sentence is not that of "),
    (CLOZE, record(), '{"1": "a", "1": "b"}', "predictions.x: '1' stands there twice; wanted one text a question"),
    (CLOZE, [ROW], [{"idx": 0, "label": "a"}] * 2, "predictions.x:2: id '0' is that of "),
    (CLOZE, [ROW], [{"idx": "0", "label": "a"}, {}], 'predictions.x:1: idx is "0"; wanted a question\'s number'),
    (CLOZE, [ROW], [{"idx": 0, "label": 1}, {"idx": 1, "label": "a"}], "predictions.x:1: label is 1; wanted a text"),
    (QUESTIONS, squad(), {"2": "Ada"}, "predictions.x: none of the 1 questions is answered (found '2', wanted ids"),
    (QUESTIONS, squad(), '{"1": NaN}', "predictions.x: NaN or a number above 1e308, which JSON has not"),
    (QUESTIONS, squad(), '{"1": ' + "9" * 5000 + "}", "predictions.x: not JSON (Exceeds the limit"),
    (QUESTIONS, squad(), {"1": ["Ada"]}, 'predictions.x: 1 is ["Ada"]; wanted a text'),
    (QUESTIONS, squad(id=3.5), {"1": "Ada"}, "gold.x: data[0]: paragraphs[0]: qas[0]: id is 3.5; wanted a text"),
]  # fmt: skip
# The same with options.
SCORING_WITH: list[tuple[str, Content, Content, tuple[str, ...], str]] = [
    (NER, "a x O\n", "a O\n", ("--tag-column", "2"), "gold.x:1: tag 'x' is neither O nor"),
    (NER, "a O\n", "a O\n", ("--predicted-column", "tag"), "predictions.x:1: no column 'tag'; this line has a, O"),
    (TYPING, [TYPED], [TYPED], ("--labels", "/nowhere/labels.txt"), "labels.txt: no such file; expected names"),
    (RELATIONS, [RELATED], [RELATED], ("--negative-label", "none"), "negative label 'none' is no label"),
]  # fmt: skip


def score(folder: Path, task: str, gold: Content, predictions: Content, options: tuple[str, ...]) -> None:
    """Runs the score command on files of this content."""
    for name, content in (("gold.x", gold), ("predictions.x", predictions)):
        own = split_file(EXAMPLES / task, "dev").read_bytes()
        if content != ABSENT:
            write(folder / name, own if content == AGAIN else content)
    main([task, str(folder / "gold.x"), str(folder / "predictions.x"), *options])


@pytest.mark.parametrize(
    ("task", "gold", "predictions", "options", "message"),
    [*((*files, (), message) for *files, message in SCORING), *SCORING_WITH],
)
def test_scoring_says_what_is_wrong(
    tmp_path: Path, task: str, gold: Content, predictions: Content, options: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit) as raised:
        score(tmp_path, task, gold, predictions, options)
    said = str(raised.value.code)
    assert said.startswith("error: ")
    assert message in said
    assert "\n" not in said


# A task, GOLD and PREDICTIONS, and scores that say what was found.
SCORED: list[tuple[str, Content, Content, dict[str, Any]]] = [
    (NER, "\ufeffa B-X\r\nb O\r\n", "a B-X\nb O\n", {"f1": 1.0, "gold": 1}),
    (NER, "a B-X\rb O\r\rc O\r", "a B-X\nb O\n\nc O", {"f1": 1.0, "gold": 1}),
    (NER, "a\tB-X\nb\tO\n", "a \t B-X\nb \t O\n\n\n", {"f1": 1.0}),
    (NER, "a S-X\nb O\n", "a I-X\nb B-Y\n", {"correct": 1, "predicted": 2}),
    (NER, [TOKENS], "Ada B-PER\nmet O\n", {"f1": 1.0}),
    (NER, table([TOKENS]), [{"tokens": [], "ner_tags": []}, TOKENS], {"f1": 1.0}),
    (NER, DOCUMENT, DOCUMENT, {"f1": 1.0, "gold": 2}),
    (TYPING, [{**TYPED, "labels": ["person", "x"]}], [TYPED], {"labels_left_out": {"gold": 1, "predicted": 0}}),
    (TYPING, [TYPED], [{**TYPED, "labels": []}], {"predicted": 0, "recall": 0.0}),
    (RELATIONS, [RELATED], [{**RELATED, "prediction": "never seen"}], {"correct": 0, "predicted": 1}),
    (CLOZE, [ROW, {**ROW, "idx": {"query": 5}}], [{"idx": 5, "label": "Ada"}], {"missing": 1, "f1": 0.5}),
    (CLOZE, record(), {"1": "Ada", "2": "Bob"}, {"unknown": 1, "f1": 1.0}),
    (QUESTIONS, squad(id=7, is_impossible=False, plausible_answers=[]), {"7": "Ada"}, {"missing": 0, "f1": 1.0}),
    (QUESTIONS, squad(), {"1": ""}, {"predicted": 0, "missing": 0, "exact_match": 0.0}),
    (QUESTIONS, squad(answers=[{"answer_start": 99, "text": "Ada"}]), {"1": "ada!"}, {"exact_match": 1.0}),
]  # fmt: skip


# The same with options.
SCORED_WITH: list[tuple[str, Content, Content, tuple[str, ...], dict[str, Any]]] = [
    (TYPING, [{**TYPED, "labels": ["x", "y"]}], [{**TYPED, "labels": ["x"]}], ("--labels", "x.txt"), {"recall": 1.0}),
    (RELATIONS, [RELATED, TACRED], [RELATED, TACRED], ("--negative-label", "x"), {"gold": 0, "negative_label": "x"}),
    (RELATIONS, AGAIN, AGAIN, (), {"negative_label": "no_relation", "f1": 1.0}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("task", "gold", "predictions", "options", "found"),
    [*((*files, (), found) for *files, found in SCORED), *SCORED_WITH],
)
def test_scoring_counts_what_is_odd(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    task: str,
    gold: Content,
    predictions: Content,
    options: tuple[str, ...],
    found: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.txt").write_text("x\n")
    score(tmp_path, task, gold, predictions, options)
    scores = json.loads(capsys.readouterr().out)
    assert {name: scores[name] for name in found} == found
