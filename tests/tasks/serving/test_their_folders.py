"""Folders that transformers wrote: special entities and classes stand where their files say, and answers are theirs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.hf.fine_tuned import ARCHITECTURES
from model.hf.load import entity_vocabulary, fingerprint_model
from model.hf.tokenizers import write_tokenizer
from model.luke.encoder import LukeModel
from tasks.finetuning.entities import keep_entities
from tasks.finetuning.inference import collate
from tasks.finetuning.registry import TASKS
from tasks.ner import task as ner
from tasks.ner.columns import Sentence
from tasks.ner.context import has_leading_space
from tasks.ner.spans import Span, enumerate_spans, select_spans
from tasks.serving.predict import load
from tests.support.fine_tuned import EXAMPLES, bare, prepared
from tests.support.models import TINY, luke_of_transformers

LABELS = {
    "entity_typing": ("person", "place", "time"),
    "relation_classification": tuple(
        f"relation {number}" for number in range(40)
    ),  # so that random weights find several
    "ner": ("LOC", "O", "PER", "ORG"),
}
OURS = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
THEIRS = {"[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "[MASK2]": 3}  # as in the "lite" models
TABLE = "entity_embeddings.entity_embeddings.weight"
MARKED = ["entity_typing", "relation_classification"]


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Path:
    return folder / "tokenizer"


def luke(kind: str, tokenizer: Path, **changes: Any) -> torch.nn.Module:
    """A random LUKE of transformers with the tokenizer's words, two more for <ent> and <ent2>, and four entities."""
    words = len(json.loads((tokenizer / "vocab.json").read_text()))
    sizes: dict[str, Any] = {"vocab_size": words + 2, "max_position_embeddings": 98, "entity_vocab_size": len(OURS)}
    return luke_of_transformers(kind, **(sizes | changes))


def reordered(module: torch.nn.Module, vocabulary: dict[str, int]) -> torch.nn.Module:
    """The same model, whose entities stand at other rows."""
    table = next(tensor for key, tensor in module.state_dict().items() if key.endswith(TABLE))
    rows = table.clone()
    for name, row in vocabulary.items():
        table[row] = rows[OURS[name]]
    return module


def write_entities(folder: Path, vocabulary: dict[str, int], file: str = "entity_vocab.json") -> None:
    content = vocabulary if file == "entity_vocab.json" else {"entity_vocab": vocabulary}
    (folder / file).write_text(json.dumps(content))


def fine_tuned(task: str, tokenizer: Path, folder: Path, entities: dict[str, int], labels: Sequence[str]) -> Any:
    """A random model with its tokenizer, both written by transformers: the model as they read it from the folder.

    With THEIRS its attention is the original one, but in entity recognition, where it finds one class alone.
    """
    import transformers

    kind = getattr(transformers, TASKS[task].ARCHITECTURE)
    changes = {
        "use_entity_aware_attention": entities is OURS or task == "ner",
        "id2label": dict(enumerate(labels)),
        "label2id": {name: row for row, name in enumerate(labels)},
    }
    reordered(luke(kind.__name__, tokenizer, **changes), entities).save_pretrained(folder)
    words = json.loads((tokenizer / "vocab.json").read_text())
    added = {name: len(words) + number for number, name in enumerate(("<ent>", "<ent2>"))}
    files = folder.with_name("tokenizer")
    files.mkdir()
    name = ARCHITECTURES[kind.__name__].task
    write_tokenizer(files, words | added, entities, tokenizer, 96, task=name)
    transformers.LukeTokenizer.from_pretrained(files).save_pretrained(folder)
    return kind.from_pretrained(folder).eval()


def their_logits(theirs: torch.nn.Module, folder: Path, text: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """The way of transformers' documentation: tokenizer, model, logits."""
    import transformers

    tokenizer = transformers.LukeTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        return theirs(**tokenizer(text, entity_spans=list(spans), return_tensors="pt")).logits[0].numpy()


def short_sentences() -> list[Sentence]:
    """Those whose spans fit into one pass, as transformers looks at them."""
    sentences = ner.TASK.read(EXAMPLES / "ner" / "dev.txt").sentences
    return [each for each in sentences if len(enumerate_spans(len(each.rows), 16)) <= ner.MAX_SPANS]


def text_of(sentence: Sentence) -> tuple[str, list[tuple[int, int]]]:
    """A text with the blanks that our tokenisation puts before words, and the characters of the words."""
    text, places = "", []
    for word in sentence.words:
        text += " " * (bool(text) and has_leading_space(word))
        places.append((len(text), len(text) + len(word)))
        text += word
    return text, places


@pytest.mark.parametrize("file", ["entity_vocab.json", "tokenizer_config.json"])
@pytest.mark.parametrize("task", [*MARKED, "ner", "cloze_qa"])
def test_fine_tuning_starts_from_special_entities_wherever_they_stand(
    tokenizer: Path, tmp_path: Path, task: str, file: str
) -> None:
    folders = {name: tmp_path / name for name in ("plain", "ours", "theirs")}
    for name, folder in folders.items():
        entities = THEIRS if name == "theirs" else OURS
        reordered(luke("LukeModel", tokenizer), entities).save_pretrained(folder)
        if name != "plain":
            write_entities(folder, entities, file)
    plain, *others = (prepared(folder, task=task, weights=folder, tokenizer=tokenizer) for folder in folders.values())
    losses = []
    for run in (plain, *others):
        for key, tensor in plain.module.state_dict().items():
            assert torch.equal(run.module.state_dict()[key], tensor), key
        batch = collate(run, run.features["train"].items[:4])
        losses.append([part.item() for part in run.task.loss(run.module.eval(), batch).values()])
    assert losses[0] == losses[1] == losses[2]


def test_a_table_that_is_kept_whole_must_begin_as_ours(tokenizer: Path, tmp_path: Path) -> None:
    luke("LukeModel", tokenizer).save_pretrained(tmp_path)
    given: dict[str, Any] = {"folder": tmp_path, "weights": tmp_path, "tokenizer": tokenizer}
    for entities in ({}, OURS):
        write_entities(tmp_path, entities)
        prepared(task="extractive_qa", **given)
    write_entities(tmp_path, THEIRS)
    message = r"has the special entities at \{'\[PAD\]': 2, .*; wanted \{'\[PAD\]': 0, .*takes the whole table"
    with pytest.raises(ValueError, match=message):
        prepared(task="extractive_qa", **given)
    write_entities(tmp_path, {"[UNK]": 1, "[PAD]": 2})
    with pytest.raises(ValueError, match=r"no entity \[MASK\] in entity_vocab.json or tokenizer_config.json"):
        prepared(task="ner", **given)


def test_only_lukes_of_transformers_have_a_vocabulary(tmp_path: Path) -> None:
    for values, wanted in (({"model_type": "luke"}, THEIRS), ({"model_type": "roberta"}, {}), ({}, {})):
        (tmp_path / "config.json").write_text(json.dumps(values))
        write_entities(tmp_path, THEIRS)
        assert entity_vocabulary(str(tmp_path)) == wanted


@pytest.mark.parametrize("file", ["entity_vocab.json", "tokenizer_config.json"])
def test_another_order_of_entities_is_another_model(tmp_path: Path, file: str) -> None:
    """A fine-tuning that is done already is told by it."""
    (tmp_path / "config.json").write_text('{"model_type": "luke"}')
    found = {fingerprint_model(str(tmp_path))}
    for vocabulary in (OURS, THEIRS):
        write_entities(tmp_path, vocabulary, file)
        found.add(fingerprint_model(str(tmp_path)))
    assert len(found) == 3


def test_an_entity_beyond_the_table_is_an_error_that_names_the_weights() -> None:
    with pytest.raises(ValueError, match=r"^some/luke: entity_ids has 99, but .* give the weights with"):
        keep_entities(LukeModel(TINY), {**OURS, "[MASK]": 99}, ["[PAD]", "[MASK]"], "some/luke")


@pytest.mark.parametrize("entities", [OURS, THEIRS])
@pytest.mark.parametrize("none", ["O", "nil"])
def test_entity_recognition_answers_as_transformers_does(
    tokenizer: Path, tmp_path: Path, entities: dict[str, int], none: str
) -> None:
    labels = [none if label == "O" else label for label in LABELS["ner"]]
    theirs = fine_tuned("ner", tokenizer, tmp_path / "luke", entities, labels)
    ours = load(tmp_path / "luke", device="cpu")
    assert ours.inputs.labels == (none, "LOC", "PER", "ORG")
    sentences = short_sentences()
    answers = ours.predict([{"words": list(sentence.words)} for sentence in sentences])
    for sentence, answer in zip(sentences, answers, strict=True):
        text, places = text_of(sentence)
        spans = enumerate_spans(len(places), 16)
        characters = [(places[start][0], places[end - 1][1]) for start, end in spans]
        logits = their_logits(theirs, tmp_path / "luke", text, characters)
        found = [
            (float(row.max()), Span(*span, labels[row.argmax()]))
            for span, row in zip(spans, logits, strict=True)
            if labels[row.argmax()] != none
        ]
        wanted = [{"start": each.start, "end": each.end, "label": each.label} for each in select_spans(found)]
        assert bare(answer) == {"entities": wanted}
    assert len({each["label"] for answer in answers for each in answer["entities"]}) > 1


@pytest.mark.parametrize("entities", [OURS, THEIRS])
@pytest.mark.parametrize("task", MARKED)
def test_marked_mentions_are_answered_as_transformers_does(
    tokenizer: Path, tmp_path: Path, task: str, entities: dict[str, int]
) -> None:
    labels = LABELS[task]
    theirs = fine_tuned(task, tokenizer, tmp_path / "luke", entities, labels)
    ours = load(tmp_path / "luke", device="cpu")
    assert ours.inputs.labels == labels
    found = []
    for example in ours.task.read(EXAMPLES / task / "dev.json").examples:
        spans = [example.span] if task == "entity_typing" else [example.head, example.tail]
        logits = their_logits(theirs, tmp_path / "luke", example.text, spans)
        classes = [label for label, logit in zip(labels, logits, strict=True) if logit > 0]
        wanted = {"labels": classes} if task == "entity_typing" else {"relation": labels[logits.argmax()]}
        names = ("start", "end") if task == "entity_typing" else ("head", "tail")
        given = example.span if task == "entity_typing" else (list(example.head), list(example.tail))
        found += ours.predict([{"text": example.text, **dict(zip(names, given, strict=True))}])
        assert bare(found[-1]) == wanted
    assert len({json.dumps(answer) for answer in found}) > 1


def test_a_class_0_of_another_name_is_taken_for_none(
    tokenizer: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fine_tuned("ner", tokenizer, tmp_path / "luke", OURS, ("nothing", "PER"))
    assert load(tmp_path / "luke", device="cpu").inputs.labels == ("nothing", "PER")
    assert "luke: no class of id2label is named o or nil; class 0, nothing, is taken for it" in caplog.text
