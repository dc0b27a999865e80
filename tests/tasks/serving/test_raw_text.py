"""Exported folders in transformers, by the program of their cards, on raw text: the same answers as ours.

Inputs are real: SemEval-2010 task 8, wikigold and SQuAD. Both sides get the same plain text and places in it.
Probabilities are compared twice: those of both sides' logits as they are, and those of the answers, which both sides
divide by the temperature that the folders carry.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning import inference
from tasks.finetuning.registry import TASKS
from tasks.io.records import Record
from tasks.ner.columns import read_columns
from tasks.serving import predict as serving
from tasks.serving.export import export
from tasks.serving.predict import Predictor, load
from tests.support.asked import Command, objects
from tests.support.fine_tuned import CONFIG, QUICK, bert, finetune

COUNT = 120
NAMES = ("entity_typing", "relation_classification", "ner", "extractive_qa")
CLASSES = {
    "roberta-luke": [TASKS[name].ARCHITECTURE for name in NAMES],
    "bert-luke": [TASKS[name].ARCHITECTURE for name in NAMES],
    "roberta-roberta": [*["RobertaModel"] * 3, "RobertaForQuestionAnswering"],
    "bert-roberta": [*["BertModel"] * 3, "BertForQuestionAnswering"],
}
KINDS = pytest.mark.parametrize("kind", CLASSES)


@pytest.fixture(scope="module")
def models(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fine-tuned models, and under `exported` the same for transformers, by words and variant, then task.

    Weights are random; RoBERTa's words are the real ones.
    """
    folder = tmp_path_factory.mktemp("raw")
    roberta = shared / "data" / "roberta-tokenizer"
    torch.manual_seed(0)
    size = WordTokenizer.load(roberta).vocab_size
    config = replace(CONFIG, vocab_size=size, max_position_embeddings=514, entity_vocab_size=4)
    save_model(folder / "luke", LukeForPretraining(config))
    bert(folder / "bert", positions=512)
    vocabulary = folder / "entities.json"
    vocabulary.write_text(json.dumps({"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "Ada": 3}))
    for kind in CLASSES:
        words, variant = kind.split("-")
        start = (folder / "luke", roberta) if words == "roberta" else (folder / "bert", folder / "bert")
        for name in NAMES:
            given = {"task": name, "variant": variant, "weights": start[0], "tokenizer": start[1]}
            finetune(folder, folder / kind / name, QUICK, **given)
            output = folder / "exported" / kind / name
            export(folder / kind / name, output, entity_vocab=vocabulary if words == "roberta" else None)
    return folder


def program(folder: Path) -> dict[str, Any]:
    """What the program of a card defines."""
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    space: dict[str, Any] = {}
    exec(compile(code.replace("this folder", str(folder)), str(folder / "README.md"), "exec"), space)
    return space


@cache
def both(models: Path, kind: str, name: str) -> tuple[Predictor, dict[str, Any], dict[str, Any]]:
    """Our model, what the card of its export defines, and what that has last computed while it answered.

    Of texts these are the `spans` and their `logits`, of questions the `inputs` and the `output` of the model.
    """
    ours, theirs = load(models / kind / name, device="cpu"), program(models / "exported" / kind / name)
    seen: dict[str, Any] = {}
    if known := theirs.get("logits"):

        def logits(text: str, spans: Any) -> Any:
            seen.update(spans=spans, logits=known(text, spans))
            return seen["logits"]

        theirs["logits"] = logits
    else:
        theirs["model"].register_forward_hook(
            lambda module, _, inputs, output: seen.update(inputs=inputs, output=output), with_kwargs=True
        )
    return ours, theirs, seen


def our_answers(
    predictor: Predictor, given: Sequence[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], Any, np.ndarray]]:
    """Answers to inputs that are asked about together, each with its one feature and the logits it was made of."""
    return zip(*our_work(predictor, given), strict=True)


def our_work(predictor: Predictor, given: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], Any, Any]:
    """Answers to inputs that are asked about together, the features of all, and the logits these were given."""
    seen: list[Any] = []

    def logits_of(task: Any, module: Any, items: Any, **settings: Any) -> Any:
        seen.extend((items, inference.logits_of(task, module, items, **settings)))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "logits_of", logits_of)
        answers = predictor.predict(given)
    assert len(answers) == len(given)
    items, logits = seen
    return answers, items, logits


@cache
def semeval(shared: Path) -> list[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Texts with the characters of head and tail."""
    path = shared / "data/relation/semeval2010-task8/test.txt"
    examples = TASKS["relation_classification"].read(path).examples[:COUNT]
    assert len(examples) == COUNT
    return [(each.text, each.head, each.tail) for each in examples]


def far(theirs: Any, ours: np.ndarray, *, independent: bool = False) -> float:
    """The largest difference of two models' probabilities, from logits (..., classes)."""
    logits = [torch.as_tensor(each).double() for each in (theirs, ours)]
    first, second = (each.sigmoid() if independent else each.softmax(-1) for each in logits)
    return float((first - second).abs().max())


@pytest.mark.parametrize(("kind", "classes"), CLASSES.items())
def test_the_folder_loads_with_a_class_of_transformers(models: Path, kind: str, classes: list[str]) -> None:
    import transformers

    for name, wanted in zip(NAMES, classes, strict=True):
        exported = models / "exported" / kind / name
        assert json.loads((exported / "config.json").read_text())["architectures"] == [wanted]
        _, told = getattr(transformers, wanted).from_pretrained(exported, output_loading_info=True)
        assert not any(told.values()), told


@KINDS
def test_types_of_mentions(models: Path, shared: Path, kind: str) -> None:
    ours, theirs, seen = both(models, kind, "entity_typing")
    asked = [(text, mention) for text, mention, _ in semeval(shared)]
    given = [{"text": text, "start": mention[0], "end": mention[1]} for text, mention in asked]
    found: set[str] = set()
    for each, (answer, _, mine) in zip(asked, our_answers(ours, given), strict=True):
        wanted = theirs["answer"](*each)
        assert far(seen["logits"], mine, independent=True) < 1e-5
        assert answer["labels"] == [*wanted]
        assert {name: answer["probabilities"][name] for name in wanted} == pytest.approx(wanted, abs=1e-5)
        found.update(answer["labels"])
    assert len(found) > 1


@KINDS
def test_relations(models: Path, shared: Path, kind: str) -> None:
    ours, theirs, seen = both(models, kind, "relation_classification")
    asked = semeval(shared)
    given = [{"text": text, "head": [*head], "tail": [*tail]} for text, head, tail in asked]
    found: set[str] = set()
    for each, (answer, _, mine) in zip(asked, our_answers(ours, given), strict=True):
        relation, probability = theirs["answer"](*each)
        assert far(seen["logits"], mine) < 1e-5
        assert answer == {"relation": relation, "probability": pytest.approx(probability, abs=1e-5)}
        found.add(answer["relation"])
    assert len(found) > 1


@pytest.mark.parametrize("kind", sorted(CLASSES.keys() - {"roberta-luke"}))
def test_relations_of_mentions_that_share_words(models: Path, shared: Path, kind: str) -> None:
    """Without LukeTokenizer, which marks these in another way; its card says so."""
    ours, theirs, seen = both(models, kind, "relation_classification")
    text = "The mayor of London, Ada Lovelace of Ockham, met Bob."
    spans = [(4, 19), (13, 19), (4, 9), (21, 33), (13, 33), (49, 52)]
    asked = [(text, head, tail) for head in spans for tail in spans]
    given = [{"text": text, "head": [*head], "tail": [*tail]} for _, head, tail in asked]
    for each, (_, _, mine) in zip(asked, our_answers(ours, given), strict=True):
        theirs["answer"](*each)
        assert far(seen["logits"], mine) < 1e-5, each


@cache
def wikigold(shared: Path) -> list[str]:
    """Its first sentences as plain text."""
    sentences = read_columns(shared / "data/ner/wikigold.conll.txt").sentences
    return [" ".join(sentence.words) for sentence in sentences[:COUNT]]


@KINDS
def test_entities(
    models: Path, shared: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both sides get the text and nothing else."""
    ours, theirs, seen = both(models, kind, "ner")
    texts = wikigold(shared)
    found: set[str] = set()
    answers, items, logits = our_work(ours, [{"text": text} for text in texts])
    assert len(items) > 1.5 * COUNT  # many sentences have several passes
    for number, (text, answer) in enumerate(zip(texts, answers, strict=True)):
        words = [match.span() for match in theirs["WORD"].finditer(text)]
        own = [place for place, item in enumerate(items) if item.sentence == number]
        spans, mine = (
            np.concatenate([each[place] for place in own])
            for each in ([item.spans for item in items], logits)
        )
        wanted = [
            {"start": start, "end": end, "label": label, "probability": pytest.approx(probability, abs=1e-5)}
            for start, end, label, probability in theirs["answer"](text)
        ]
        assert seen["spans"] == [(words[first][0], words[last - 1][1]) for first, last in spans.tolist()]
        assert far(seen["logits"], mine) < 1e-5
        assert answer["entities"] == wanted
        found.update(each["label"] for each in answer["entities"])
    assert found
    assert theirs["answer"]("") == []
    capsys.readouterr()  # what the card's example says
    ask = Command(monkeypatch, capsys, ours, models / kind / "ner")
    out, _ = ask("\n".join(texts), "--text", "--language", "none")
    assert objects(out) == [{"text": text, **answer} for text, answer in zip(texts, answers, strict=True)]


def test_entities_of_lines_that_are_sentences(
    models: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command as it is, which finds the sentences of a line."""
    pytest.importorskip("sentencex", reason="plain text is split into sentences by sentencex")
    ours, theirs, _ = both(models, "roberta-luke", "ner")
    capsys.readouterr()  # what the card's example says
    texts = wikigold(shared)[:60]
    out, _ = Command(monkeypatch, capsys, ours, models / "roberta-luke" / "ner")("\n".join(texts), "--text")
    compared = 0
    for text, answer in zip(texts, objects(out), strict=True):
        assert answer["text"] == text
        if answer["sentences"] == [[0, len(text)]]:
            compared += 1
            found = [(each["start"], each["end"], each["label"]) for each in answer["entities"]]
            assert found == [(start, end, label) for start, end, label, _ in theirs["answer"](text)]
    assert compared > 55


def questions(shared: Path) -> Iterator[tuple[str, str]]:
    """Questions with passages, of different articles in turn."""
    articles = json.loads((shared / "data/squad/squad1.1-mixed20-dev.json").read_text())["data"]
    pairs = [
        [(asked["question"], part["context"]) for part in article["paragraphs"] for asked in part["qas"]]
        for article in articles
    ]
    for group in zip(*pairs, strict=False):
        yield from group


@KINDS
def test_answers_to_questions(models: Path, shared: Path, kind: str) -> None:
    ours, theirs, seen = both(models, kind, "extractive_qa")
    room, tokenizer = ours.inputs.max_words, theirs["tokenizer"]
    fitting = (pair for pair in questions(shared) if len(tokenizer(*pair)["input_ids"]) <= room)
    asked = [*islice(fitting, COUNT)]
    assert len(asked) == COUNT
    given = [{"question": question, "text": text} for question, text in asked]
    for each, (answer, item, mine) in zip(asked, our_answers(ours, given), strict=True):
        found, probability = theirs["answer"](*each)
        assert seen["inputs"]["input_ids"][0].tolist() == item.word_ids.tolist()
        passage = slice(item.first, item.first + len(item.characters))
        logits = torch.stack([seen["output"].start_logits[0], seen["output"].end_logits[0]])
        assert far(logits[:, passage], mine[passage].T) < 1e-5
        assert (answer["answer"], answer["probability"]) == (found, pytest.approx(probability, abs=1e-5))


def test_the_folders_carry_a_temperature(models: Path) -> None:
    """Another one than 1, without which the probabilities of answers would say nothing of it."""
    for kind in CLASSES:
        for name in NAMES:
            ours, theirs, _ = both(models, kind, name)
            assert theirs["model"].config.calibration_temperature == ours.temperature
            assert abs(ours.temperature - 1) > 0.05, (kind, name)


def test_marks_are_apart_in_the_exported_tokenizer(models: Path, shared: Path) -> None:
    tokenizer = program(models / "exported" / "roberta-luke" / "extractive_qa")["tokenizer"]
    assert tokenizer.tokenize('(He said "no").') == ["(", "He", "Ġsaid", 'Ġ"', "no", '"', ")", "."]
    roberta = WordTokenizer.load(shared / "data" / "roberta-tokenizer")
    assert len(roberta.encode_as_written(['"no").'])[0]) == 3


def test_the_profile_paper_puts_a_blank_before_what_is_between_mentions(
    models: Path, shared: Path, tmp_path: Path
) -> None:
    """The tokenizer that is exported does, too."""
    name = "relation_classification"
    folder = tmp_path / "paper"
    shutil.copytree(models / "roberta-luke" / name, folder)
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, "profile": "paper"}))
    export(folder, tmp_path / "exported")
    ours, tokenizer = load(folder, device="cpu"), program(tmp_path / "exported")["tokenizer"]
    as_written = program(models / "exported" / "roberta-luke" / name)["tokenizer"]
    asked = semeval(shared)
    given = [Record("x", {"text": text, "head": [*head], "tail": [*tail]}) for text, head, tail in asked]
    items = ours.task.featurize(ours.task.from_records(given), ours.inputs).items
    for (text, head, tail), item in zip(asked, items, strict=True):
        assert tokenizer(text, entity_spans=[head, tail])["input_ids"] == item.word_ids.tolist()
        assert as_written(text, entity_spans=[head, tail])["input_ids"] != item.word_ids.tolist()
