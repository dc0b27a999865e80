"""Exported folders in transformers on raw text: the same inputs as ours, and the same logits.

Texts are real: SemEval-2010 task 8, wikigold and SQuAD.
"""

import ast
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from model.files import save_model
from model.luke.heads import LukeForPretraining
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning import finetune as finetuning
from tasks.finetuning.prepare import FineTuningSettings
from tasks.finetuning.registry import TASKS
from tasks.io.records import Record
from tasks.ner.columns import read_columns
from tasks.ner.words import word_pattern
from tasks.serving import predict as serving
from tasks.serving.export import export
from tasks.serving.predict import Predictor, load
from tests.model.hf.test_card import TEXT, answer
from tests.support.fine_tuned import CONFIG, EXAMPLES, QUICK, bare, bert
from tests.support.padded import padded

COUNT = 60
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
        settings = FineTuningSettings(
            *start, variant=variant, preset="quick", seed=1, device="cpu", allow_no_predictions=True
        )
        for name in NAMES:
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(TASKS[name].PRESETS, "quick", QUICK)
                finetuning.finetune(name, EXAMPLES / name, folder / kind / name, settings)
            output = folder / "exported" / kind / name
            export(folder / kind / name, output, entity_vocab=vocabulary if words == "roberta" else None)
    return folder


def transformers_of(folder: Path) -> tuple[Any, Any]:
    """Tokenizer and model of an exported folder, which loads without a word."""
    import transformers

    [name] = json.loads((folder / "config.json").read_text())["architectures"]
    model, info = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    return transformers.AutoTokenizer.from_pretrained(folder), model.eval()


def features_of(predictor: Predictor, questions: Sequence[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """The features of questions that are asked together, and the logits of each."""
    seen: list[Any] = []
    original = serving.logits_of

    def logits_of(task: Any, module: Any, items: Any, **settings: Any) -> Any:
        seen.extend((items, original(task, module, items, **settings)))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(serving, "logits_of", logits_of)
        predictor.predict(questions)
    items, logits = seen
    return list(items), list(logits)


def their_logits(predictor: Predictor, folder: Path, model: Any, item: Any) -> np.ndarray:
    """The logits of transformers' model for a feature of ours."""
    batch = predictor.task.collate([item], entities=predictor.entities)
    given = padded(batch.inputs, predictor.inputs.tokenizer.pad_id)
    inputs = {"input_ids": given.word_ids}
    if given.entity_ids is not None:
        ids = given.entity_ids if predictor.task.ENTITY_ROWS is None else given.entity_ids + 1
        inputs |= {"entity_ids": ids, "entity_position_ids": given.entity_positions}  # [UNK] is before [MASK]
        if hasattr(item, "spans"):
            ends = torch.from_numpy(item.ends - (0, 1))[None]
            inputs["entity_start_positions"], inputs["entity_end_positions"] = ends.unbind(-1)
    with torch.inference_mode():
        output = model(**inputs)
        if hasattr(output, "start_logits"):
            return torch.stack([output.start_logits[0], output.end_logits[0]], dim=-1).numpy()
        if hasattr(output, "logits"):
            return output.logits[0].numpy()
        head = load_file(folder / "head.safetensors")
        places = batch.places if hasattr(item, "spans") else batch.places[0]
        states = output.last_hidden_state[0][places].flatten(-2)
        return torch.nn.functional.linear(states, head["weight"], head.get("bias")).numpy()


@cache
def questions(shared: Path, name: str) -> list[dict[str, Any]]:
    """Inputs of a task on raw text."""
    if name == "ner":
        sentences = read_columns(shared / "data/ner/wikigold.conll.txt").sentences
        return [{"text": " ".join(sentence.words)} for sentence in sentences[:COUNT]]
    if name == "extractive_qa":
        articles = json.loads((shared / "data/squad/squad1.1-mixed20-dev.json").read_text())["data"]
        parts = (part for article in articles for part in article["paragraphs"] if len(part["context"]) < 700)
        pairs = ({"question": part["qas"][0]["question"], "text": part["context"]} for part in parts)
        return [*islice(pairs, 0, 4 * COUNT, 4)]
    path = shared / "data/relation/semeval2010-task8/test.txt"
    examples = TASKS["relation_classification"].read(path).examples[:COUNT]
    if name == "entity_typing":
        return [{"text": each.text, "start": each.head[0], "end": each.head[1]} for each in examples]
    return [{"text": each.text, "head": [*each.head], "tail": [*each.tail]} for each in examples]


def spans_of(question: dict[str, Any]) -> list[tuple[int, int]]:
    """The mentions of a question in characters."""
    if "start" in question:
        return [(question["start"], question["end"])]
    return [tuple(question[name]) for name in ("head", "tail")]


def marked(question: dict[str, Any]) -> str:
    """The text with a marker on both sides of each mention; a blank belongs to what follows it."""
    text: str = question["text"]
    marks = zip(spans_of(question), ("<ent>", "<ent2>"), strict=False)
    for place, marker in sorted(((place, marker) for span, marker in marks for place in span), reverse=True):
        cut = place - text[:place].endswith(" ")
        text = text[:cut] + marker + text[cut:]
    return text


@pytest.mark.parametrize("name", NAMES)
@KINDS
def test_logits_and_inputs_are_the_same(models: Path, shared: Path, kind: str, name: str) -> None:
    ours, exported = load(models / kind / name, device="cpu"), models / "exported" / kind / name
    tokenizer, model = transformers_of(exported)
    assert type(model).__name__ == CLASSES[kind][NAMES.index(name)]
    assert model.config.calibration_temperature == ours.temperature
    assert abs(ours.temperature - 1) > 0.05
    asked = questions(shared, name)
    items, logits = features_of(ours, asked)
    assert len(items) >= COUNT - 5
    for item, mine in zip(items, logits, strict=True):
        theirs = their_logits(ours, exported, model, item)
        assert np.abs(theirs[: len(mine)] - mine).max() < 1e-4
    assert np.std(np.concatenate([each.ravel() for each in logits])) > 0.1
    if name == "ner":
        return
    assert len(items) == len(asked)
    for question, item in zip(asked, items, strict=True):
        if name == "extractive_qa":
            found = tokenizer(question["question"], question["text"])
        elif kind == "roberta-luke":
            found = tokenizer(question["text"], entity_spans=spans_of(question))
        else:
            found = tokenizer(marked(question))
        assert found["input_ids"] == item.word_ids.tolist()


def test_luketokenizer_reads_sentences_as_we_do(models: Path, shared: Path) -> None:
    ours = load(models / "roberta-luke" / "ner", device="cpu")
    tokenizer, _ = transformers_of(models / "exported" / "roberta-luke" / "ner")
    for question in questions(shared, "ner")[:20]:
        words = [match.span() for match in word_pattern().finditer(question["text"])]
        for item in features_of(ours, [question])[0]:
            spans = [(words[first][0], words[last - 1][1]) for first, last in item.spans.tolist()]
            found = tokenizer(question["text"], entity_spans=spans)
            assert found["input_ids"] == item.word_ids.tolist()
            ends = zip(found["entity_start_positions"], found["entity_end_positions"], strict=True)
            assert [[*each] for each in ends] == (item.ends - (0, 1)).tolist()


# Behind the text of the programs: special words of both kinds of tokenizers, and what BERT's drops.
MORE = (
    "",
    " He wrote [SEP] and [MASK], [PAD] or [UNK].",
    " <mask> </s><s> <ent>x<ent2> <pad>, dit-elle.",
    " \u200b \x07 \ufffd",
    " 東京で生まれた。",
)

SHORT = ("", " He saw [SEP].", " <mask> <s>", " Zoë and Бо.")


@pytest.mark.parametrize("name", NAMES)
@KINDS
def test_the_program_of_the_card_answers_as_predict_does(models: Path, kind: str, name: str) -> None:
    """Of a task that has one; in entity recognition on texts of at most 128 spans."""
    if kind != "roberta-luke" and name != "extractive_qa":
        return
    ours, folder = load(models / kind / name, device="cpu"), models / "exported" / kind / name
    for more in SHORT if name == "ner" else MORE:
        text = TEXT + more
        found = answer(folder, text)
        if name == "extractive_qa":
            [said] = ours.predict([{"question": "Where was Ada born?", "text": text}])
            assert found == said["answer"].strip()
        elif name == "ner":
            [said] = ours.predict([{"text": text}])
            assert ast.literal_eval(found) == bare(said["entities"])
        else:
            spans = {"start": 0, "end": 12} if name == "entity_typing" else {"head": [0, 12], "tail": [25, 31]}
            [said] = ours.predict([{"text": text, **spans}])
            assert found == str(said["labels" if name == "entity_typing" else "relation"])


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
    ours, (tokenizer, _) = load(folder, device="cpu"), transformers_of(tmp_path / "exported")
    as_written, _ = transformers_of(models / "exported" / "roberta-luke" / name)
    asked = questions(shared, name)
    given = [Record("x", question) for question in asked]
    items = ours.task.featurize(ours.task.from_records(given), ours.inputs).items
    for question, item in zip(asked, items, strict=True):
        text, spans = question["text"], spans_of(question)
        assert tokenizer(text, entity_spans=spans)["input_ids"] == item.word_ids.tolist()
        assert as_written(text, entity_spans=spans)["input_ids"] != item.word_ids.tolist()
