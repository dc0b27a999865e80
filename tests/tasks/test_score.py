"""`python -m tasks.score`: the scores of each task's files, what it says of wrong ones, and what it counts of odd ones.

The contents of files are those of `tests/tasks/test_hostile_files.py`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tasks.finetuning.registry import TASKS
from tasks.io.data_folder import split_file
from tasks.score import main
from tests.support import ROOT
from tests.support.fine_tuned import EXAMPLES
from tests.tasks.test_hostile_files import (
    ASKED,
    CLOZE,
    DEEP,
    DOCUMENT,
    FEWREL,
    MARKED,
    NER,
    QUESTIONS,
    RELATED,
    RELATIONS,
    ROW,
    SEMEVAL,
    TACRED,
    TOKENS,
    TYPED,
    TYPING,
    Content,
    record,
    squad,
    table,
    write,
)  # fmt: skip


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
    (NER, None, "a O\n", "gold.x: a folder; expected a CoNLL column file"),
    (NER, "a O\n", "b O\n", "predictions.x:1: not the words of "),
    (NER, "a O\nb O\n", "a O\n\nb O\n", "predictions.x:1: not the words of "),
    (NER, "a O\n\nb O\n", "a O\n", "predictions.x:end: not the words of "),
    (NER, "a O\n", "a O\n\nb O\n", "gold.x:end; both files need the same sentences"),
    (NER, "a O\n", "a\n", "predictions.x:1: 1 columns; expected 2 or more"),
    (NER, "a O\n", "a PER\n", "predictions.x:1: tag 'PER' is neither O nor"),
    (NER, "a B-X\nb O\nc I-X\n", "a O\n", "gold.x:3: tag 'I-X' does not follow IOB2"),
    (NER, "a O\n", b"a O\n\xfe O\n", "predictions.x: byte 4 is not UTF-8"),
    (NER, "a O\n", b"", "predictions.x: no sentences"),
    (NER, [TOKENS], [{**TOKENS, "tokens": ["Ada", "saw"]}], "predictions.x:1: not the words of "),
    (NER, [TOKENS], [{**TOKENS, "ner_tags": [0, 1]}], "ner_tags[0] is 0, a number without a name"),
    (TYPING, AGAIN, "", "predictions.x: no examples"),
    (TYPING, [TYPED], [TYPED, TYPED], "predictions.x:2: 2 predictions for 1 examples"),
    (TYPING, [TYPED], [{**TYPED, "sent": "Eve met Bob."}], "predictions.x:1: sent is not that of "),
    (TYPING, [TYPED], [{**TYPED, "prediction": "person"}], 'prediction is "person"; wanted a list of types'),
    (TYPING, [TYPED], [{"sent": TYPED["sent"]}], "predictions.x:1: no field 'labels'; wanted a list of types"),
    (TYPING, [{**TYPED, "labels": ["human"]}], [TYPED], "list those of your data in a file, one a line, and pass it"),
    (RELATIONS, [TACRED], [{**TACRED, "obj_end": 1}], "predictions.x:1: obj_end is not that of "),
    (RELATIONS, [RELATED], [{**RELATED, "token": ["Eve"]}], "predictions.x:1: token is not that of "),
    (RELATIONS, [RELATED, RELATED], [RELATED], "predictions.x:1: 1 predictions for 2 examples"),
    (RELATIONS, [RELATED], [{"token": RELATED["token"]}], "predictions.x:1: no field 'relation'; wanted the name"),
    (RELATIONS, [RELATED], [{**RELATED, "prediction": None}], "prediction is null; wanted the name of a class"),
    (RELATIONS, [RELATED], [{**RELATED, "prediction": ["x"]}], 'prediction is ["x"]; wanted the name of a class'),
    (RELATIONS, SEMEVAL % MARKED, SEMEVAL % f"{MARKED}!", "predictions.x:1: sentence is not that of "),
    (CLOZE, record(), "", "predictions.x: no examples"),
    (CLOZE, record(), "[1]", "predictions.x:1: example 1: found 1; wanted a JSON object"),
    (CLOZE, record(), {"1": 3}, "predictions.x: 1 is 3; wanted a text"),
    (CLOZE, record(), '{"1": "a", "1": "b"}', "predictions.x: '1' stands there twice; wanted one text a question"),
    (CLOZE, [ROW], [{"idx": 0, "label": "a"}] * 2, "predictions.x:2: id '0' is that of "),
    (CLOZE, [ROW], [{"idx": "0", "label": "a"}, {}], 'predictions.x:1: idx is "0"; wanted a question\'s number'),
    (CLOZE, [ROW], [{"idx": 0, "label": 1}, {"idx": 1, "label": "a"}], "predictions.x:1: label is 1; wanted a text"),
    (QUESTIONS, squad(), {"2": "Ada"}, "predictions.x: none of the 1 questions is answered (found '2', wanted ids"),
    (QUESTIONS, squad(), {}, "predictions.x: none of the 1 questions is answered (found 'nothing'"),
    (QUESTIONS, squad(), '{"1": NaN}', "predictions.x: NaN or a number above 1e308, which JSON has not"),
    (QUESTIONS, squad(), '{"1": ' + DEEP, "predictions.x: nested too deep"),
    (QUESTIONS, squad(), '{"1": ' + "9" * 5000 + "}", "predictions.x: not JSON (Exceeds the limit"),
    (QUESTIONS, squad(), b'{"1": "\\ud800"}', "predictions.x: \\ud800 is half of a surrogate pair"),
    (QUESTIONS, squad(), {"1": ["Ada"]}, 'predictions.x: 1 is ["Ada"]; wanted a text'),
    (QUESTIONS, squad(id=3.5), {"1": "Ada"}, "gold.x: data[0]: paragraphs[0]: qas[0]: id is 3.5; wanted a text"),
    (QUESTIONS, {"x": 1}, {"1": "Ada"}, "gold.x: found no JSON object with a list 'data'"),
    (QUESTIONS, b"\xff\xff\xff\xff", {"1": "Ada"}, "gold.x: a broken table ("),
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
    (NER, "a\tB-X\nb\tO\n", "a B-X\n  b  O\n", {"f1": 1.0}),
    (NER, "a S-X\nb O\n", "a I-X\nb B-Y\n", {"correct": 1, "predicted": 2}),
    (NER, "a B-X\nb O\nc O\n", "a I-X\nb I-Y\nc E-Z\n", {"correct": 1, "predicted": 3}),
    (NER, [TOKENS], "Ada B-PER\nmet O\n", {"f1": 1.0}),
    (NER, table([TOKENS]), [{"tokens": [], "ner_tags": []}, TOKENS], {"f1": 1.0}),
    (NER, DOCUMENT, DOCUMENT, {"f1": 1.0, "gold": 2}),
    (TYPING, [{**TYPED, "labels": ["person", "x"]}], [TYPED], {"labels_left_out": {"gold": 1, "predicted": 0}}),
    (TYPING, [TYPED], [{**TYPED, "labels": []}], {"predicted": 0, "recall": 0.0}),
    (RELATIONS, [RELATED], [{**RELATED, "prediction": "never seen"}], {"correct": 0, "predicted": 1}),
    (RELATIONS, {"x": [FEWREL]}, [{**FEWREL, "relation": "x"}], {"f1": 1.0}),
    (CLOZE, [ROW, {**ROW, "idx": {"query": 5}}], [{"idx": 5, "label": "Ada"}], {"missing": 1, "f1": 0.5}),
    (CLOZE, record(), {"1": "Ada", "2": "Bob"}, {"unknown": 1, "f1": 1.0}),
    (CLOZE, record(id=7), {"7": "Ada"}, {"unknown": 0, "f1": 1.0}),
    (QUESTIONS, squad(id=7, is_impossible=False, plausible_answers=[]), {"7": "Ada"}, {"missing": 0, "f1": 1.0}),
    (QUESTIONS, [{**ASKED, "id": 7}], {"7": "Ada"}, {"missing": 0, "exact_match": 1.0}),
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
