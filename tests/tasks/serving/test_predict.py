"""Answers of fine-tuned models: the same as in training, from Python and from the command line."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tasks.finetuning.registry import TASKS
from tasks.io.data_folder import split_file
from tasks.ner import task as ner
from tasks.ner.context import has_leading_space
from tasks.ner.words import split_words
from tasks.predict import main
from tasks.questions.answers import read_predictions
from tasks.serving.predict import load
from tasks.typing.entity_typing import GENERAL_TYPES
from tests.support.asked import Command, lines, objects
from tests.support.fine_tuned import EXAMPLES, bare, reconfigured, written_answers


def running_text(words: Sequence[str]) -> str:
    """Words with the blanks that training puts before them."""
    return "".join(" " * has_leading_space(word) + word for word in words).removeprefix(" ")


def test_entity_recognition_answers_as_in_training(folder: Path) -> None:
    predictor = load(folder / "ner-luke", device="cpu")
    gold = ner.TASK.read(EXAMPLES / "ner" / "dev.txt")
    written = ner.read_columns(folder / "ner-luke" / "predictions-dev.txt", strict=False)
    # A text without context: the training set's documents are given as one text of several lines.
    texts = ["\n".join(running_text(each.words) for each in document.sentences) for document in gold.documents]
    answers = predictor.predict([{"text": text} for text in texts])
    compared = 0
    for document, text, answer in zip(written.documents, texts, answers, strict=True):
        wanted, end = [], 0
        for sentence in document.sentences:
            places = []
            for word in sentence.words:
                start = text.index(word, end)
                end = start + len(word)
                places.append((start, end))
            wanted += [
                {"start": places[span.start][0], "end": places[span.end - 1][1], "label": span.label}
                for span in sentence.spans
            ]
        words = [word for sentence in document.sentences for word in sentence.words]
        if [word for line in split_words(text) for word, _, _ in line] == words:
            compared += len(wanted)
            assert bare(answer) == {"entities": wanted}
    assert compared > 5


@pytest.mark.parametrize(("task", "field"), [("entity_typing", "labels"), ("relation_classification", "relation")])
def test_marked_mentions_answer_as_in_training(folder: Path, task: str, field: str) -> None:
    predictor = load(folder / f"{task}-luke", device="cpu")
    questions, wanted = written_answers(folder / f"{task}-luke", field)
    assert bare(predictor.predict(questions)) == wanted


@pytest.mark.parametrize("task", ["cloze_qa", "extractive_qa"])
def test_questions_are_answered_as_in_training(folder: Path, task: str) -> None:
    predictor = load(folder / f"{task}-luke", device="cpu")
    path = split_file(EXAMPLES / task, "test")
    questions = [
        {"question": each.question, "text": each.passage}
        | ({"entities": [list(span) for span in each.entities]} if task == "cloze_qa" else {})
        for each in predictor.task.read(path).examples
    ]
    written = read_predictions(folder / f"{task}-luke" / "predictions-test.json")
    answers = predictor.predict(questions)
    assert [answer["answer"] for answer in answers] == list(written.values())
    for question, answer in zip(questions, answers, strict=True):
        assert question["text"][answer["start"] : answer["end"]] == answer["answer"]
        assert answer["n_best"][0]["score"] == answer["score"] >= answer["n_best"][-1]["score"]
    assert len({answer["answer"] for answer in answers}) > 3
    assert predictor.predict([]) == []


QUESTIONS: dict[str, dict[str, Any]] = {
    "entity_typing": {"text": "Ada met Bob.", "start": 0, "end": 3},
    "relation_classification": {"text": "Ada met Bob.", "head": [0, 3], "tail": [8, 11]},
    "ner": {"text": "Abraham Lincoln was born in Kentucky ."},
    "cloze_qa": {
        "question": "@placeholder met Bob",
        "text": "Ada met Bob. Ada left.",
        "entities": [[0, 3], [8, 11], [13, 16]],
    },
    "extractive_qa": {"question": "Who met Bob?", "text": "Ada met Bob."},
}


def choices_of(answer: dict[str, Any]) -> list[list[tuple[Any, float]]]:
    """The alternatives of an answer with their probabilities: of each entity where there are any."""
    if "n_best" in answer:
        return [[(each["answer"], each["probability"]) for each in answer["n_best"]]]
    return [[*each["probabilities"].items()] for each in answer.get("entities", [answer])]


FAR = " said nothing to anyone that day and walked on along the river with" * 60  # far more than 96 words
LONG: list[tuple[str, dict[str, Any], list[str]]] = [
    ("entity_typing", {"text": f"Ada met Bob.{FAR}", "start": 0, "end": 3}, ["context"]),
    ("entity_typing", {"text": f"Ada{FAR} Bob.", "start": 0, "end": 3 + len(FAR)}, ["mentions", "context"]),
    ("relation_classification", {"text": f"Ada met Bob.{FAR}", "head": [0, 3], "tail": [8, 11]}, ["context"]),
    (
        "relation_classification",
        {"text": f"Ada{FAR} Боб", "head": [0, 3], "tail": [4 + len(FAR), 7 + len(FAR)]},
        ["mentions"],
    ),
    ("ner", {"text": f"Ada{FAR} Bob."}, ["sentences"]),
    ("ner", {"words": ["Ada", "met", "В" * 400]}, ["words", "sentences"]),
    ("cloze_qa", QUESTIONS["cloze_qa"] | {"question": f"@placeholder{FAR} Bob"}, ["question"]),
    (
        "cloze_qa",
        {"question": "@placeholder met Bob", "text": f"Ada{FAR} Eva", "entities": [[0, 3], [0, 3 + len(FAR)]]},
        ["entities"],
    ),
    ("extractive_qa", {"question": f"{FAR.strip()} Bob?", "text": "Ada met Bob."}, ["question"]),
    ("extractive_qa", {"question": "谁" * 200, "text": "Ada met Bob."}, ["question"]),
]


@pytest.mark.parametrize("task", TASKS)
def test_an_answer_says_what_of_a_long_input_was_not_seen(
    folder: Path, task: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each answer its own; stderr tells how many, also where a bad line makes each be asked alone."""
    cases = [(question, cut) for name, question, cut in LONG if name == task]
    short = [QUESTIONS[task]] if task != "extractive_qa" else [QUESTIONS[task], {"question": "Who?", "text": FAR}]
    asked = [*short, *(question for question, _ in cases), *short]
    wanted = [*([[]] * len(short)), *(cut for _, cut in cases), *([[]] * len(short))]
    ask = Command(monkeypatch, capsys, load(folder / f"{task}-luke", device="cpu"), folder / f"{task}-luke")
    out, told = ask(lines(*asked))
    assert [each.get("cut", []) for each in objects(out)] == wanted
    kinds = {", ".join(cut): sum(cut == other for _, other in cases) for _, cut in cases}
    assert sorted(told.splitlines()) == sorted(
        f"too long for the model, and cut ({what}): {count} inputs" for what, count in kinds.items()
    )
    bad = "{}" if task == "ner" else lines({"text": 1}).strip()
    assert ask(f"{lines(*asked)}{bad}\n", status=1)[1] == told


@pytest.mark.parametrize("task", TASKS)
def test_top_tells_the_likeliest(
    folder: Path, task: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask = Command(monkeypatch, capsys, load(folder / f"{task}-luke", device="cpu"), folder / f"{task}-luke")
    plain, two, all_of_them = (
        objects(ask(lines(QUESTIONS[task]), *top)[0])[0] for top in ((), ("--top", 2), ("--top", 1000))
    )
    groups = choices_of(all_of_them)
    assert groups
    for group in groups:
        texts, shares = zip(*group, strict=True)
        assert len(set(texts)) == len(texts) > 1
        assert list(shares) == sorted(shares, reverse=True)
        assert all(0 <= share <= 1 for share in shares)
        if task in ("ner", "relation_classification", "cloze_qa"):
            assert sum(shares) == pytest.approx(1, abs=1e-4)
    assert choices_of(two) == [group[:2] for group in groups]
    if task == "entity_typing":
        assert choices_of(plain) == groups
        assert plain["labels"] == [name for name in GENERAL_TYPES if plain["probabilities"][name] > 0.5]
    elif task == "ner":
        best = [{each["label"]: each["probability"]} for each in plain["entities"]]
        assert best == [dict(group[:1]) for group in groups]
        assert bare(plain) == bare(all_of_them)
    else:
        [[best, *_]] = groups
        assert (plain["answer" if "n_best" in plain else "relation"], plain["probability"]) == best


def likeliest(answer: dict[str, Any]) -> list[float]:
    """The largest probability of an answer, or of each of its entities."""
    return [
        max(each["probabilities"].values()) if "probabilities" in each else each["probability"]
        for each in answer.get("entities", [answer])
    ]


def test_the_temperature_changes_probabilities_alone(folder: Path, tmp_path: Path) -> None:
    for task, question in QUESTIONS.items():
        found = []
        for temperature in (None, 1, 0.5, 4.0):
            model = tmp_path / f"{task}-{temperature}"
            reconfigured(folder / f"{task}-luke", model, calibration_temperature=temperature)
            if temperature is None:
                config = json.loads((model / "config.json").read_text())
                del config["calibration_temperature"]
                (model / "config.json").write_text(json.dumps(config))
            found += load(model, device="cpu").predict([question])
        older, neutral, sharp, flat = found
        assert older == neutral
        assert bare(sharp) == bare(neutral) == bare(flat)
        assert sharp != neutral != flat
        for surer, less in zip(likeliest(sharp), likeliest(flat), strict=True):
            assert surer > less > 0


@pytest.mark.parametrize("value", [0, -1, "1", None, True, [1]])
def test_a_temperature_that_is_none_is_named(folder: Path, tmp_path: Path, value: Any) -> None:
    model = reconfigured(folder / "ner-luke", tmp_path / "model", calibration_temperature=value)
    with pytest.raises(ValueError, match=r"config.json: calibration_temperature is .*; wanted a number"):
        load(model, device="cpu")


def test_what_is_computed_at_once_and_how_precisely(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Logits of bf16 differ in the third digit, and tell the same tags of these all but random weights apart."""
    from tasks.serving import predict

    found: list[list[np.ndarray]] = []

    def logits_of(*arguments: Any, **settings: Any) -> list[np.ndarray]:
        found.append(original(*arguments, **settings))
        return found[-1]

    original = predict.logits_of
    monkeypatch.setattr(predict, "logits_of", logits_of)
    question = json.dumps({"text": "Ada met Bob in the old town of Bern .\nThey left for Paris ."})
    for options in ([], ["--tokens-per-batch", "60"], ["--tokens-per-batch", "0"], ["--precision", "bf16"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(question.encode())))
        main([str(folder / "ner-luke"), "--device", "cpu", *options])
    assert len(capsys.readouterr().out.splitlines()) == 4
    whole, *others, narrow = (np.concatenate(rows) for rows in found)
    assert all(np.abs(whole - other).max() < 1e-4 for other in others)
    assert 1e-4 < np.abs(whole - narrow).max() < 0.1 * np.abs(whole).max()
    with pytest.raises(SystemExit):
        main([str(folder / "ner-luke"), "--tokens-per-batch", "-1"])


def test_other_folders_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config.json: no such file; give the folder of a fine-tuned"):
        load(tmp_path, device="cpu")
    with pytest.raises(ValueError, match=r"config.json: task is None; wanted one of entity_typing"):
        load(folder / "weights", device="cpu")
