"""Exported folders in transformers, given raw text and nothing else: the same answers as ours, on real inputs."""

import json
import shutil
from collections.abc import Iterator
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
from tasks.finetuning.registry import TASKS
from tasks.ner.columns import read_columns
from tasks.ner.spans import enumerate_spans
from tasks.ner.words import split_words
from tasks.serving.export import export
from tasks.serving.predict import Predictor, load
from tests.support.fine_tuned import CONFIG, EXAMPLES, QUICK

COUNT = 300


@pytest.fixture(scope="module")
def models(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each task's fine-tuned model and, under `exported`, what transformers reads; the words are RoBERTa's."""
    folder, tokenizer = tmp_path_factory.mktemp("raw"), shared / "data" / "roberta-tokenizer"
    torch.manual_seed(0)
    config = replace(
        CONFIG,
        vocab_size=WordTokenizer.load(tokenizer).vocab_size,
        max_position_embeddings=514,
        entity_vocab_size=4,
    )
    save_model(folder / "weights", LukeForPretraining(config))
    titles = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "Ada": 3}
    (folder / "entities.json").write_text(json.dumps(titles))
    for name in ("entity_typing", "relation_classification", "ner", "extractive_qa"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(TASKS[name].PRESETS, "quick", QUICK)
            finetuning.finetune(
                name, EXAMPLES / name, folder / "weights", tokenizer, folder / name, variant="luke", seed=1,
                preset="quick", device="cpu", progress=False, allow_no_predictions=True,
            )  # fmt: skip
        vocabulary = folder / "entities.json" if name == "extractive_qa" else None
        export(folder / name, folder / "exported" / name, entity_vocab=vocabulary)
    return folder


def theirs(folder: Path, name: str) -> tuple[Any, Any]:
    """Tokenizer and model of an exported folder, as transformers loads them."""
    import transformers

    exported = folder / "exported" / name
    kind = getattr(transformers, TASKS[name].ARCHITECTURE)
    return transformers.LukeTokenizer.from_pretrained(exported), kind.from_pretrained(exported).eval()


def our_logits(predictor: Predictor, given: dict[str, Any]) -> tuple[Any, list[np.ndarray]]:
    """The features of one input of `tasks.predict`, and their logits."""
    from tasks.io.records import Record

    dataset = predictor.task.from_records([Record("x", given)])
    items = predictor.task.featurize(dataset, predictor.inputs).items
    batch = predictor.task.collate(items, entities=True, pad_id=predictor.inputs.tokenizer.pad_id)
    with torch.inference_mode():
        return items, predictor.task.logits(predictor.module, batch)


def semeval(shared: Path) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Texts with the characters of head and tail."""
    path = shared / "data/relation/semeval2010-task8/test.txt"
    for each in TASKS["relation_classification"].read(path).examples:
        yield each.text, each.head, each.tail


def sigmoid(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logits))


def softmax(logits: np.ndarray) -> np.ndarray:
    return np.exp(logits - logits.max(-1, keepdims=True)) / np.exp(
        logits - logits.max(-1, keepdims=True)
    ).sum(-1, keepdims=True)


@torch.inference_mode()
def test_types_of_mentions(models: Path, shared: Path) -> None:
    ours, (tokenizer, model) = load(models / "entity_typing", device="cpu"), theirs(models, "entity_typing")
    found: set[str] = set()
    for text, head, _ in islice(semeval(shared), COUNT):
        [answer] = ours.predict([{"text": text, "start": head[0], "end": head[1]}])
        inputs = tokenizer(text, entity_spans=[head], return_tensors="pt")
        logits = model(**inputs).logits[0].numpy()
        [item], [mine] = our_logits(ours, {"text": text, "start": head[0], "end": head[1]})
        assert inputs["input_ids"][0].tolist() == item.word_ids.tolist()
        assert np.abs(sigmoid(logits) - sigmoid(mine)).max() < 1e-5
        assert answer["labels"] == [
            model.config.id2label[number] for number in np.flatnonzero(logits > 0).tolist()
        ]
        found.update(answer["labels"])
    assert len(found) > 1


@torch.inference_mode()
def test_relations(models: Path, shared: Path) -> None:
    name = "relation_classification"
    ours, (tokenizer, model) = load(models / name, device="cpu"), theirs(models, name)
    found: set[str] = set()
    for text, head, tail in islice(semeval(shared), COUNT):
        given = {"text": text, "head": [*head], "tail": [*tail]}
        [answer] = ours.predict([given])
        logits = model(**tokenizer(text, entity_spans=[head, tail], return_tensors="pt")).logits[0].numpy()
        _, [mine] = our_logits(ours, given)
        assert np.abs(softmax(logits) - softmax(mine)).max() < 1e-5
        assert answer["relation"] == model.config.id2label[int(logits.argmax())]
        found.add(answer["relation"])
    assert len(found) > 1


def short_sentences(shared: Path) -> Iterator[str]:
    """Sentences of wikigold whose spans transformers is given in one pass, as plain text."""
    for sentence in read_columns(shared / "data/ner/wikigold.conll.txt").sentences:
        text = " ".join(sentence.words)
        if len(enumerate_spans(len(split_words(text)[0]), 16)) <= 128:
            yield text


@torch.inference_mode()
def test_entities(models: Path, shared: Path) -> None:
    ours, (tokenizer, model) = load(models / "ner", device="cpu"), theirs(models, "ner")
    texts = [*islice(short_sentences(shared), COUNT)]
    assert len(texts) == COUNT
    some = 0
    for text in texts:
        [words] = split_words(text)
        spans = enumerate_spans(len(words), 16)
        characters = [(words[start][1], words[end - 1][2]) for start, end in spans]
        logits = model(**tokenizer(text, entity_spans=characters, return_tensors="pt")).logits[0].numpy()
        [item], [mine] = our_logits(ours, {"text": text})
        assert item.spans.tolist() == [list(span) for span in spans]
        assert np.abs(softmax(logits) - softmax(mine)).max() < 1e-5
        best = logits.argmax(-1)
        taken = {
            (*characters[row], model.config.id2label[int(best[row])]) for row in np.flatnonzero(best).tolist()
        }
        [answer] = ours.predict([{"text": text}])
        answered = {(each["start"], each["end"], each["label"]) for each in answer["entities"]}
        assert answered <= taken
        assert bool(answered) == bool(taken)
        some += bool(answered)
    assert some


def questions(shared: Path) -> Iterator[tuple[str, str]]:
    """Questions with passages, of different articles in turn."""
    articles = json.loads((shared / "data/squad/squad1.1-mixed20-dev.json").read_text())["data"]
    pairs = [
        [(asked["question"], part["context"]) for part in article["paragraphs"] for asked in part["qas"]]
        for article in articles
    ]
    for group in zip(*pairs, strict=False):
        yield from group


@torch.inference_mode()
def test_answers_to_questions(models: Path, shared: Path) -> None:
    ours, (tokenizer, model) = load(models / "extractive_qa", device="cpu"), theirs(models, "extractive_qa")
    room = ours.inputs.max_words
    asked = ((question, text) for question, text in questions(shared))
    fitting = [*islice((pair for pair in asked if len(tokenizer(*pair)["input_ids"]) <= room), COUNT)]
    assert len(fitting) == COUNT
    for question, text in fitting:
        inputs = tokenizer(question, text, return_tensors="pt")
        output = model(**inputs)
        [item], [mine] = our_logits(ours, {"question": question, "text": text})
        assert inputs["input_ids"][0].tolist() == item.word_ids.tolist()
        logits = torch.stack([output.start_logits[0], output.end_logits[0]], dim=-1).numpy()
        found = softmax(logits[item.first : item.first + len(item.characters)].T)
        wanted = softmax(mine[item.first : item.first + len(item.characters)].T)
        assert np.abs(found - wanted).max() < 1e-5


def test_marks_are_apart_in_the_exported_tokenizer(models: Path, shared: Path) -> None:
    tokenizer, _ = theirs(models, "extractive_qa")
    assert tokenizer.tokenize('(He said "no").') == ["(", "He", "Ġsaid", 'Ġ"', "no", '"', ")", "."]
    roberta = WordTokenizer.load(shared / "data" / "roberta-tokenizer")
    assert len(roberta.encode_as_written(['"no").'])[0]) == 3


@torch.inference_mode()
def test_the_profile_paper_puts_a_blank_before_what_is_between_mentions(
    models: Path, shared: Path, tmp_path: Path
) -> None:
    """The tokenizer that is exported does, too."""
    name = "relation_classification"
    path = models / name / "config.json"
    values = json.loads(path.read_text())
    folder = tmp_path / "paper"
    shutil.copytree(models / name, folder)
    (folder / "config.json").write_text(json.dumps({**values, "profile": "paper"}))
    export(folder, tmp_path / "exported" / name)
    ours, (tokenizer, _) = load(folder, device="cpu"), theirs(tmp_path, name)
    as_written, _ = theirs(models, name)
    differ = 0
    for text, head, tail in islice(semeval(shared), COUNT):
        [item], _ = our_logits(ours, {"text": text, "head": [*head], "tail": [*tail]})
        assert tokenizer(text, entity_spans=[head, tail])["input_ids"] == item.word_ids.tolist()
        differ += as_written(text, entity_spans=[head, tail])["input_ids"] != item.word_ids.tolist()
    assert differ == COUNT
