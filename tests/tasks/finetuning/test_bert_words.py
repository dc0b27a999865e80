"""Fine-tuning around a BERT's words: what is learnt, written, asked and exported is the same as around RoBERTa's."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.io.annotations import open_annotator
from tasks.serving.export import export
from tasks.serving.predict import load
from tests.support.fine_tuned import CONFIG, QUICK, bare, bert, finetune, written_answers
from tests.support.mentions import small_pages, write_mentions


def around_bert(folder: Path, output: Path, **given: Any) -> dict[str, Any]:
    return finetune(folder, output, QUICK, **{"weights": "bert", "tokenizer": "bert", **given})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT with a WordPiece tokenizer of the example data (`bert`), and three tasks fine-tuned from it."""
    folder = tmp_path_factory.mktemp("bert")
    bert(folder / "bert")
    for task in ("entity_typing", "relation_classification", "ner"):
        around_bert(folder, folder / f"{task}-luke", task=task)
    return folder


@pytest.mark.parametrize(("task", "field"), [("entity_typing", "labels"), ("relation_classification", "relation")])
def test_a_folder_has_all_that_asking_needs(folder: Path, task: str, field: str) -> None:
    output = folder / f"{task}-luke"
    config = json.loads((output / "config.json").read_text())["model"]
    assert (config["word_encoder"], config["entity_emb_size"]) == ("bert", CONFIG.hidden_size)
    questions, wanted = written_answers(output, field)
    assert bare(load(output, device="cpu").predict(questions)) == wanted


def test_the_case_of_letters_makes_no_difference(folder: Path) -> None:
    predictor = load(folder / "ner-luke", device="cpu")
    words = ["Abraham", "Lincoln", "was", "born", "in", "Kentucky", ".", "Élan", "\u00ad"]
    [upper, lower] = predictor.predict([{"words": [word.upper() for word in words]}, {"words": words}])
    assert upper == lower
    assert upper["entities"]


def test_cased_words_are_told_apart(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes((folder / "bert" / "vocab.txt").read_bytes())
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    given = {"learning_rate": 1e-9, "head_learning_rate": 1e-9}
    around_bert(folder, tmp_path / "out", task="relation_classification", tokenizer=tmp_path, changes=given)
    tokenizer = load(tmp_path / "out", device="cpu").inputs.tokenizer
    upper, lower = tokenizer.encode(["LINCOLN", "lincoln"], [True, True])
    assert upper != lower


def test_questions_are_asked_and_exported_with_the_entities_that_the_weights_lack(folder: Path, tmp_path: Path) -> None:
    """A mention table brings them; whoever asks the model takes the same table, and its export their titles."""
    titles = ("Lake Ostra", "Varland")
    text = "Lake Ostra is in Varland"
    pages = small_pages([(text, [(0, 10, titles[0]), (17, 7, titles[1])]), ("", [])], titles)
    mentions, vocabulary = tmp_path / "mentions", tmp_path / "vocabulary"
    write_mentions(mentions, pages).vocab.write(str(vocabulary))
    around_bert(folder, tmp_path / "model", task="extractive_qa", mentions=mentions)
    metrics = json.loads((tmp_path / "model/metrics.json").read_text())
    assert metrics["data"]["train"]["entities"] > 1
    annotate = open_annotator(mentions, tmp_path / "model")
    with_table, without = (load(tmp_path / "model", device="cpu", annotate=each) for each in (annotate, None))
    assert with_table.module.luke.config.entity_vocab_size == 5
    asked = {"question": "Where is Lake Ostra?", "context": f"{text}, and is deep."}
    given = [{"start": 0, "end": 10, "entity_id": 3}, {"start": 17, "end": 24, "entity_id": 4}]
    brought = {"question_entities": [{"start": 9, "end": 19, "entity_id": 3}], "entities": given}
    assert with_table.predict([asked]) == without.predict([asked | brought]) != without.predict([asked])
    with pytest.raises(ValueError, match=r"--entity-vocab\), the entity_vocab.json of BuildEntityVocab, by"):
        export(tmp_path / "model", tmp_path / "none")
    export(tmp_path / "model", tmp_path / "out", entity_vocab=vocabulary / "entity_vocab.json")
    assert json.loads((tmp_path / "out/entity_vocab.json").read_text()).keys() >= {*titles}
