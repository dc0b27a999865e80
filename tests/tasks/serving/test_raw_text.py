"""Exported folders in transformers, by the program of their cards, on raw text: the same answers as ours.

Inputs are real: SemEval-2010 task 8, wikigold and SQuAD. Both sides get the same plain text and places in it.
Probabilities are compared twice: those of both sides' logits as they are, and those of the answers, which both sides
divide by the temperature that the folders carry.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning import finetune as finetuning
from tasks.finetuning.inference import logits_of
from tasks.finetuning.registry import TASKS
from tasks.io.records import Record
from tasks.ner.columns import read_columns
from tasks.ner.spans import enumerate_spans
from tasks.ner.words import split_words
from tasks.serving.export import export
from tasks.serving.predict import BATCH_SIZE, TOKENS_PER_BATCH, Predictor, load
from tests.support.fine_tuned import CONFIG, EXAMPLES, QUICK, bert

COUNT = 300
NAMES = ("entity_typing", "relation_classification", "ner", "extractive_qa")
CLASSES = {
    "roberta-luke": [TASKS[name].ARCHITECTURE for name in NAMES],
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
    titles = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "Ada": 3}
    (folder / "entities.json").write_text(json.dumps(titles))
    for kind in CLASSES:
        words, variant = kind.split("-")
        start = (folder / "luke", roberta) if words == "roberta" else (folder / "bert", folder / "bert")
        for name in NAMES:
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(TASKS[name].PRESETS, "quick", QUICK)
                finetuning.finetune(
                    name, EXAMPLES / name, *start, folder / kind / name, variant=variant, seed=1,
                    preset="quick", device="cpu", progress=False, allow_no_predictions=True,
                )  # fmt: skip
            output = folder / "exported" / kind / name
            export(folder / kind / name, output, entity_vocab=folder / "entities.json")
    return folder


def program(folder: Path) -> dict[str, Any]:
    """What the program of a card defines."""
    code = (folder / "README.md").read_text().split("```python\n")[1].split("```")[0]
    space: dict[str, Any] = {}
    exec(compile(code.replace("this folder", str(folder)), str(folder / "README.md"), "exec"), space)
    return space


def both(models: Path, kind: str, name: str) -> tuple[Predictor, dict[str, Any]]:
    """Our model, and what the card of its export defines."""
    return load(models / kind / name, device="cpu"), program(models / "exported" / kind / name)


def our_features(predictor: Predictor, given: Sequence[dict[str, Any]]) -> Sequence[Any]:
    """The features of inputs of `tasks.predict`, one of each."""
    dataset = predictor.task.from_records([Record("x", each) for each in given])
    items = predictor.task.featurize(dataset, predictor.inputs).items
    assert len(items) == len(given)
    return items


def ours_of(
    predictor: Predictor, given: Sequence[dict[str, Any]]
) -> Iterator[tuple[Any, np.ndarray, dict[str, Any]]]:
    """Of each input the feature, its logits, and the answer."""
    items = our_features(predictor, given)
    logits = logits_of(
        predictor.task, predictor.module, items, entities=predictor.entities, device="cpu",
        pad_id=predictor.inputs.tokenizer.pad_id, batch_size=BATCH_SIZE, tokens_per_batch=TOKENS_PER_BATCH,
    )  # fmt: skip
    return zip(items, logits, predictor.predict(given), strict=True)


def semeval(shared: Path) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Texts with the characters of head and tail."""
    path = shared / "data/relation/semeval2010-task8/test.txt"
    for each in TASKS["relation_classification"].read(path).examples:
        yield each.text, each.head, each.tail


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
    ours, theirs = both(models, kind, "entity_typing")
    found: set[str] = set()
    asked = [(text, mention) for text, mention, _ in islice(semeval(shared), COUNT)]
    given = [{"text": text, "start": start, "end": end} for text, (start, end) in asked]
    for (text, mention), (_, mine, answer) in zip(asked, ours_of(ours, given), strict=True):
        assert far(theirs["logits"](text, [mention]), mine, independent=True) < 1e-5
        wanted = theirs["answer"](text, mention)
        assert answer["labels"] == [*wanted]
        assert {name: answer["probabilities"][name] for name in wanted} == pytest.approx(wanted, abs=1e-5)
        found.update(answer["labels"])
    assert len(found) > 1


@KINDS
def test_relations(models: Path, shared: Path, kind: str) -> None:
    ours, theirs = both(models, kind, "relation_classification")
    found: set[str] = set()
    asked = [*islice(semeval(shared), COUNT)]
    given = [{"text": text, "head": [*head], "tail": [*tail]} for text, head, tail in asked]
    for (text, head, tail), (_, mine, answer) in zip(asked, ours_of(ours, given), strict=True):
        assert far(theirs["logits"](text, [head, tail]), mine) < 1e-5
        relation, probability = theirs["answer"](text, head, tail)
        assert answer == {"relation": relation, "probability": pytest.approx(probability, abs=1e-5)}
        found.add(answer["relation"])
    assert len(found) > 1


def short_sentences(shared: Path) -> Iterator[str]:
    """Sentences of wikigold as plain text, whose spans a LUKE is given in one pass."""
    for sentence in read_columns(shared / "data/ner/wikigold.conll.txt").sentences:
        text = " ".join(sentence.words)
        if len(enumerate_spans(len(split_words(text)[0]), 16)) <= 128:
            yield text


@KINDS
def test_entities(models: Path, shared: Path, kind: str) -> None:
    ours, theirs = both(models, kind, "ner")
    texts = [*islice(short_sentences(shared), COUNT)]
    assert len(texts) == COUNT
    found: set[str] = set()
    given = [{"text": text} for text in texts]
    for text, (item, mine, answer) in zip(texts, ours_of(ours, given), strict=True):
        words = [(start, end) for _, start, end in split_words(text)[0]]
        characters = [(words[first][0], words[last - 1][1]) for first, last in item.spans.tolist()]
        assert far(theirs["logits"](text, characters), mine) < 1e-5
        wanted = [
            {"start": start, "end": end, "label": label, "probability": pytest.approx(probability, abs=1e-5)}
            for start, end, label, probability in theirs["answer"](text, words)
        ]
        assert answer["entities"] == wanted
        found.update(each["label"] for each in answer["entities"])
    assert found


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
@torch.inference_mode()
def test_answers_to_questions(models: Path, shared: Path, kind: str) -> None:
    ours, theirs = both(models, kind, "extractive_qa")
    room, tokenizer, model = ours.inputs.max_words, theirs["tokenizer"], theirs["model"]
    fitting = (pair for pair in questions(shared) if len(tokenizer(*pair)["input_ids"]) <= room)
    asked = [*islice(fitting, COUNT)]
    assert len(asked) == COUNT
    given = [{"question": question, "text": text} for question, text in asked]
    for (question, text), (item, mine, answer) in zip(asked, ours_of(ours, given), strict=True):
        inputs = tokenizer(question, text, return_tensors="pt")
        output = model(**inputs)
        assert inputs["input_ids"][0].tolist() == item.word_ids.tolist()
        passage = slice(item.first, item.first + len(item.characters))
        logits = torch.stack([output.start_logits[0], output.end_logits[0]])
        assert far(logits[:, passage], mine[passage].T) < 1e-5
        found, probability = theirs["answer"](question, text)
        assert (answer["answer"], answer["probability"]) == (found, pytest.approx(probability, abs=1e-5))


def test_the_folders_carry_a_temperature(models: Path) -> None:
    """Another one than 1, without which the probabilities of answers would say nothing of it."""
    for kind in CLASSES:
        for name in NAMES:
            ours, theirs = both(models, kind, name)
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
    asked = [*islice(semeval(shared), COUNT)]
    given = [{"text": text, "head": [*head], "tail": [*tail]} for text, head, tail in asked]
    for (text, head, tail), item in zip(asked, our_features(ours, given), strict=True):
        assert tokenizer(text, entity_spans=[head, tail])["input_ids"] == item.word_ids.tolist()
        assert as_written(text, entity_spans=[head, tail])["input_ids"] != item.word_ids.tolist()
