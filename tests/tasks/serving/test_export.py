"""Fine-tuned models in transformers: the same logits and the same answers, both ways."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tasks.export import main
from tasks.io.records import Record
from tasks.ner import task as ner
from tasks.questions import extractive
from tasks.relations import relation_classification
from tasks.serving import export as exporting
from tasks.serving.export import export
from tasks.serving.predict import load
from tasks.task import InputSettings, Task
from tasks.typing import entity_typing
from tests.support.fine_tuned import EXAMPLES, QUICK, finetune, name_of
from tests.support.models import transformers_inputs
from tests.support.padded import padded

OF_ENTITIES = [entity_typing.TASK, relation_classification.TASK, ner.TASK]


@pytest.fixture(scope="module")
def exported(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fine-tuned models for transformers, and titles of their entities (`entities.json`)."""
    exported = tmp_path_factory.mktemp("exported")
    titles = ["[PAD]", "[UNK]", "[MASK]", "Ada", "Pell", "Teal"]
    entities = exported / "entities.json"
    entities.write_text(json.dumps({title: number for number, title in enumerate(titles)}))
    for task in map(name_of, OF_ENTITIES):
        export(folder / f"{task}-luke", exported / task)
    export(folder / "extractive_qa-luke", exported / "extractive_qa", entity_vocab=entities)
    return exported


@pytest.mark.parametrize("task", OF_ENTITIES)
def test_the_exported_folder_answers_alike(folder: Path, exported: Path, task: Task[Any, Any]) -> None:
    ours, theirs = (load(each, device="cpu") for each in (folder / f"{name_of(task)}-luke", exported / name_of(task)))
    assert (theirs.task, theirs.inputs.labels) == (ours.task, ours.inputs.labels)
    if task is ner.TASK:
        sentences = ner.TASK.read(EXAMPLES / "ner" / "dev.txt").sentences
        questions = [{"words": list(sentence.words)} for sentence in sentences]
    else:
        examples = task.read(EXAMPLES / name_of(task) / "dev.json").examples
        questions = [dict(example.record.values) for example in examples]
    answers = ours.predict(questions)
    assert theirs.predict(questions) == answers
    assert len({json.dumps(answer) for answer in answers}) > 2


QUESTION = {
    "question": "Where did Ada go?",
    "question_entities": [{"start": 10, "end": 13, "entity_id": 3}],
    "text": "Ada walked along the Teal, on the side where it is shallow, all the way to Pell (in the north).",
    "entities": [
        {"start": 0, "end": 3, "entity_id": 3},
        {"start": 21, "end": 25, "entity_id": 5},
        {"start": 75, "end": 79, "entity_id": 4},
    ],
}


@pytest.mark.parametrize("variant", ["luke", "luke_no_entities"])
def test_transformers_answers_questions_alike(folder: Path, tmp_path: Path, exported: Path, variant: str) -> None:
    """The same logits with Wikipedia's entities as input, and from words alone in variants without entities."""
    import transformers

    ours, there = folder / "extractive_qa-luke", exported / "extractive_qa"
    if variant != "luke":
        ours, there = tmp_path / "ours", tmp_path / "out"
        finetune(folder, ours, QUICK, task="extractive_qa", variant=variant)
        export(ours, there, entity_vocab=exported / "entities.json")
    has_entities = variant == "luke"
    kind = "LukeForQuestionAnswering" if has_entities else "RobertaForQuestionAnswering"
    theirs, info = getattr(transformers, kind).from_pretrained(there, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert list(theirs.config.id2label.values()) == ["start", "end"]
    predictor = load(ours, device="cpu")
    assert predictor.entities == has_entities
    dataset = extractive.TASK.from_records([Record("x", QUESTION), Record("y", {**QUESTION, "entities": []})])
    items = extractive.TASK.featurize(dataset, InputSettings(predictor.inputs.tokenizer, (), {}, 96, "fixed")).items
    batch = extractive.TASK.collate(items, entities=predictor.entities)
    inputs = padded(batch.inputs, predictor.inputs.tokenizer.pad_id)
    with torch.inference_mode():
        output = theirs.eval()(**transformers_inputs(inputs))
        found = extractive.TASK.logits(predictor.module, batch)
    expected = torch.stack([output.start_logits, output.end_logits], dim=-1).numpy()
    for row, (theirs_row, ours_row) in enumerate(zip(expected, found, strict=True)):
        assert np.abs(theirs_row[: len(ours_row)] - ours_row).max() < 1e-5, row
    assert np.std(np.concatenate(found)) > 0.1


def test_what_transformers_has_no_class_for_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cloze_qa-luke: transformers has no classifier for its task; its"):
        export(folder / "cloze_qa-luke", tmp_path / "out")
    with pytest.raises(SystemExit, match=r"^error: .*takes Wikipedia's entities; give their titles"):
        main([str(folder / "extractive_qa-luke"), str(tmp_path / "out")])
    (tmp_path / "few.json").write_text('{"[PAD]": 0, "[UNK]": 1, "[MASK]": 2}')
    few = ["--entity-vocab", str(tmp_path / "few.json")]
    with pytest.raises(SystemExit, match=r"^error: .*few.json: 3 entries, but the model has 6; give the"):
        main([str(folder / "extractive_qa-luke"), str(tmp_path / "out"), *few])
    assert not (tmp_path / "out").exists()


def test_other_folders_are_refused(tmp_path: Path, exported: Path) -> None:
    with pytest.raises(ValueError, match=r"transformers reads it as it is"):
        export(exported / "ner", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_export_that_fails_leaves_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(exporting, "write_card", fail)  # the last of all files
    with pytest.raises(SystemExit, match=r"^error: No space left on device$"):
        main([str(folder / "ner-luke"), str(tmp_path / "in" / "new")])
    assert not list((tmp_path / "in").iterdir())


def test_what_is_there_is_not_lost(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes, model = tmp_path / "notes", str(folder / "ner-luke")
    notes.mkdir()
    (notes / "README.md").write_text("mine")
    (notes / "config.json").write_text('{"mine": 1}')
    for output, message in (
        (notes, r"notes: holds README\.md, config\.json; give a new folder, or empty this one"),
        (Path(model), "ner-luke: holds config.json, metrics.json"),
        (notes / "README.md", r"README\.md: a file; give a folder to write"),
        (notes / "README.md" / "in it", r"README\.md: a file; give a folder to write"),
    ):
        with pytest.raises(SystemExit, match=f"^error: .*{message}"):
            main([model, str(output)])
    assert (notes / "README.md").read_text() == "mine"
    (tmp_path / "new").mkdir()
    main([model, str(tmp_path / "new")])
    assert "a model for transformers" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"new: holds README\.md, config\.json, "):
        main([model, str(tmp_path / "new")])


def answers_of(folder: Path) -> list[dict[str, str]]:
    examples = relation_classification.TASK.read(EXAMPLES / "relation_classification" / "dev.json").examples
    return load(folder, device="cpu").predict([example.record.values for example in examples])


def test_folders_of_all_versions_of_transformers_answer_alike(tmp_path: Path, exported: Path) -> None:
    import transformers

    exported /= "relation_classification"
    wanted = answers_of(exported)
    again = tmp_path / "again"
    transformers.LukeTokenizer.from_pretrained(exported).save_pretrained(again)
    transformers.LukeForEntityPairClassification.from_pretrained(exported).save_pretrained(again)
    assert answers_of(again) == wanted
    old = tmp_path / "old"
    shutil.copytree(exported, old)
    (old / "tokenizer_config.json").unlink()
    vocabulary = json.loads((old / "vocab.json").read_text())
    added = {name: vocabulary.pop(name) for name in ("<ent>", "<ent2>")}
    (old / "vocab.json").write_text(json.dumps(vocabulary))
    with pytest.raises(ValueError, match=r"old: the tokenizer has no word <ent>; give it beside the model"):
        answers_of(old)
    (old / "added_tokens.json").write_text(json.dumps(added))
    assert answers_of(old) == wanted
    (old / "entity_vocab.json").unlink()
    with pytest.raises(ValueError, match=r"old: no entity \[PAD\] in entity_vocab.json or tokenizer_config"):
        answers_of(old)
