"""Cloze-style question answering: both layouts of ReCoRD, marked entities in windows, the best entity."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.records import Record
from tasks.questions import cloze, cloze_format
from tasks.questions.answers import Answer
from tasks.task import InputSettings, Outputs
from tests.support import ROOT
from tests.support.fine_tuned import written
from tests.support.models import TINY

EXAMPLES = ROOT / "examples" / "cloze_qa"
MARKERS = {"[HIGHLIGHT]": 900, "[PLACEHOLDER]": 901, "[ENTITY]": 902}
TEXT = "Ada met Bob in Pell.\n@highlight\nBob leaves Pell"
#       0   4   8     14 15             32          43
ENTITIES = [(0, 3), (8, 11), (15, 19), (32, 35), (43, 47)]
QUERY = {
    "id": "q1",
    "query": "The town of @placeholder is cold.",
    "answers": [{"start": 15, "end": 18, "text": "Pell"}, {"start": 43, "end": 46, "text": "Pell"}],
}


def passage(*queries: dict[str, Any], **changes: Any) -> dict[str, Any]:
    entities = [{"start": start, "end": end - 1} for start, end in ENTITIES]
    return {"passage": {"text": TEXT, "entities": entities, **changes}, "qas": list(queries or (QUERY,))}


def original(tmp_path: Path, *passages: Any, **changes: Any) -> Path:
    return written(tmp_path, {"version": "1.0", "data": list(passages), **changes})


def featurize(dataset: cloze.Dataset, tokenizer: WordTokenizer, **changes: Any) -> Any:
    arguments = {"max_words": 96, "profile": "fixed", **changes}
    return cloze.TASK.featurize(dataset, InputSettings(tokenizer, ("answer",), MARKERS, **arguments))


def numbered(query: dict[str, Any], number: int) -> dict[str, Any]:
    return {"idx": number} | {name: value for name, value in query.items() if name != "id"}


def test_both_layouts_are_the_same(tmp_path: Path) -> None:
    first = cloze.TASK.read(original(tmp_path, passage()))
    second = cloze.TASK.read(written(tmp_path, passage(numbered(QUERY, 7)), passage(numbered(QUERY, 8))))
    assert [example.id for example in (*first.examples, *second.examples)] == ["q1", "7", "8"]
    assert (first.is_superglue, second.is_superglue) == (False, True)
    for example in (*first.examples, *second.examples):
        assert example.entities == tuple(ENTITIES)
        assert example.texts() == ["Ada", "Bob", "Pell", "Bob", "Pell"]
        assert example.answers == (((15, 19), "Pell"), ((43, 47), "Pell"))
    assert cloze.TASK.describe(first) == {
        "questions": 1, "passages": 1, "entities": 5, "answers": 2, "answers_not_at_offset": 0,
    }  # fmt: skip
    [alone] = cloze.TASK.read(written(tmp_path, passage(numbered(QUERY, 7)))).examples
    assert alone.id == "7"


def row(example: cloze_format.Example, number: int) -> dict[str, Any]:
    """A question as Hugging Face's super_glue has it: entities and answers as texts, spans half open."""
    spans = [{"text": example.passage[a:b], "start": a, "end": b} for a, b in example.entities]
    return {
        "passage": example.passage,
        "query": example.question,
        "entities": sorted({span["text"] for span in spans}),
        "entity_spans": spans,
        "answers": sorted({text for _, text in example.answers}),
        "idx": {"passage": 3, "query": number},
    }


@pytest.mark.parametrize("layout", ["lines", "parquet", "lists"])
@pytest.mark.parametrize("name", ["train.json", "dev.json", "test.jsonl"])
def test_rows_of_questions_say_the_same(tmp_path: Path, name: str, layout: str) -> None:
    datasets = pytest.importorskip("datasets")

    wanted = cloze.TASK.read(EXAMPLES / name).examples
    rows = [row(example, number) for number, example in enumerate(wanted, start=70)]
    path = tmp_path / "data.x"
    if layout == "lines":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif layout == "lists":  # as older versions of datasets write a list of objects
        for each in rows:
            spans = each["entity_spans"]
            each["entity_spans"] = {key: [span[key] for span in spans] for key in ("text", "start", "end")}
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        datasets.Dataset.from_list(rows).to_parquet(str(path))
    found = cloze.TASK.read(path)
    assert [example.id for example in found.examples] == [str(70 + n) for n in range(len(wanted))]
    for one, other in zip(found.examples, wanted, strict=True):
        assert (one.passage, one.question, one.entities) == (other.passage, other.question, other.entities)
        assert set(one.answers) == set(other.answers)
    assert cloze.TASK.describe(found)["answers_not_at_offset"] == 0
    best = [[Answer(each.answers[0][1], 0, 1, 0.0)] for each in found.examples]
    (tmp_path / "predictions").write_text("\n".join(cloze.TASK.prediction_lines(found, best)))
    scores = cloze.TASK.score_files(path, tmp_path / "predictions")
    assert (scores["exact_match"], scores["missing"], scores["questions"]) == (1.0, 0, len(wanted))


def test_answers_of_rows_that_are_no_entity(tmp_path: Path) -> None:
    [example] = cloze.TASK.read(original(tmp_path, passage())).examples
    path = tmp_path / "row.jsonl"
    path.write_text(json.dumps({**row(example, 0), "answers": ["met", "Pell", "Nobody"]}))
    found = cloze.TASK.read(path)
    assert found.examples[0].answers == (((4, 7), "met"), ((15, 19), "Pell"), ((43, 47), "Pell"), ((0, 0), "Nobody"))
    assert cloze.TASK.describe(found)["answers_not_at_offset"] == 1
    path.write_text(json.dumps({**row(example, 0), "entity_spans": [{"text": "Pell", "start": 15, "end": 18}]}))
    assert cloze.TASK.read(path).examples[0].entities == ((15, 19),), "the last character, as in the release"


WRONG = {**QUERY, "answers": [{"start": 14, "end": 17, "text": "Pell"}]}


def test_answers_elsewhere_are_counted_and_still_answers(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    dataset = cloze.TASK.read(original(tmp_path, passage(QUERY, {**WRONG, "id": "q2"})))
    assert cloze.TASK.describe(dataset)["answers_not_at_offset"] == 1
    first, second = featurize(dataset, tokenizer).items
    assert first.label.tolist() == second.label.tolist() == [0, 0, 1, 0, 1]


def shown(feature: cloze.ClozeFeature, tokenizer: WordTokenizer, start: int = 0, end: int | None = None) -> str:
    """The input as text, markers by name."""
    names = {number: name for name, number in MARKERS.items()}
    words = feature.word_ids[start:end].tolist()
    return "".join(names.get(word) or tokenizer.decode([word]) for word in words)


def test_the_input_has_all_markers(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    [feature] = featurize(cloze.TASK.read(original(tmp_path, passage())), tokenizer).items
    assert shown(feature, tokenizer) == (
        "<s> The town of[PLACEHOLDER] is cold.</s></s>"
        "[ENTITY] Ada[ENTITY] met[ENTITY] Bob[ENTITY] in[ENTITY] Pell[ENTITY] .[HIGHLIGHT]"
        "[ENTITY] Bob[ENTITY] leaves[ENTITY] Pell[ENTITY]</s>"
    )
    spans = [shown(feature, tokenizer, start, end) for start, end in feature.ends.tolist()]
    assert spans == ["[PLACEHOLDER]", *(f"[ENTITY] {name}[ENTITY]" for name in ("Ada", "Bob", "Pell", "Bob", "Pell"))]
    assert feature.label.tolist() == [0, 0, 1, 0, 1]


def test_nested_entities(tokenizer: WordTokenizer) -> None:
    record = {"question": "@placeholder?", "text": "in New Pell Bay", "entities": [[3, 11], [7, 11], [7, 15], [3, 11]]}
    [feature] = featurize(cloze.TASK.from_records([Record("x", record)]), tokenizer).items
    spans = [
        shown(feature, tokenizer, start, end).replace("[ENTITY]", "").split()
        for start, end in feature.ends[1:].tolist()
    ]
    assert spans == [["New", "Pell"], ["Pell"], ["Pell", "Bay"]]
    assert feature.word_ids[feature.ends[1:] - [0, 1]].tolist() == [[902, 902]] * 3


def test_long_questions_keep_the_placeholder(tokenizer: WordTokenizer) -> None:
    record = {"question": "a " * 90 + "@placeholder" + " b" * 90, "text": "Ada sat.", "entities": [[0, 3]]}
    features = featurize(cloze.TASK.from_records([Record("x", record)]), tokenizer, max_words=512)
    [feature] = features.items
    assert features.counts["questions_cut"] == 1
    place = int(feature.ends[0, 0])
    assert feature.word_ids[place] == MARKERS["[PLACEHOLDER]"]
    assert feature.word_ids[91] == feature.word_ids[92] == tokenizer.sep_id
    assert abs(place - 1 - 45) <= 1


def test_entities_of_each_window(tokenizer: WordTokenizer) -> None:
    text = " ".join(["Pell lies far"] * 60) + " " + "x" * 200
    spans = [(start, start + 4) for start in range(0, 14 * 60, 14)] + [(14 * 60, 14 * 60 + 200)]
    record = {"question": "@placeholder", "text": text, "entities": [list(span) for span in spans]}
    features = featurize(cloze.TASK.from_records([Record("x", record)]), tokenizer, max_words=64)
    assert len(features.items) > 5
    assert features.counts["windows"] == len(features.items)
    assert features.counts["entities_out_of_reach"] == 1, "200 letters fit in no window"
    assert {entity for item in features.items for entity in item.entities.tolist()} == set(range(60))
    for feature in features.items:
        assert len(feature.word_ids) <= 64
        for start, end in feature.ends[1:].tolist():
            assert shown(feature, tokenizer, start, end) == "[ENTITY] Pell[ENTITY]"


def test_questions_that_no_entity_answers_are_counted(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    other = {**QUERY, "answers": [{"start": 0, "end": 1, "text": "Ad"}]}
    without = {"question": "@placeholder", "text": "none", "entities": []}
    assert (
        featurize(cloze.TASK.read(original(tmp_path, passage(other))), tokenizer).counts["questions_out_of_reach"] == 1
    )
    dataset = cloze.TASK.from_records([Record("x", without)])
    features = featurize(dataset, tokenizer)
    assert len(features.items) == 0
    assert cloze.TASK.decode(Outputs(dataset, [], [])) == [()]


def test_the_best_score_in_any_window_wins(tokenizer: WordTokenizer) -> None:
    text = " ".join(f"Pell{number} lies far" for number in range(40))
    spans = [
        [text.index(f"Pell{number} "), text.index(f"Pell{number} ") + 4 + len(str(number))] for number in range(40)
    ]
    dataset = cloze.TASK.from_records([Record("x", {"question": "@placeholder", "text": text, "entities": spans})])
    items = featurize(dataset, tokenizer, max_words=64).items
    generator = np.random.default_rng(5)
    logits = [generator.integers(-4, 4, size=len(item.entities)).astype(np.float32) for item in items]
    best: dict[int, float] = {}
    for item, scores in zip(items, logits, strict=True):
        for entity, score in zip(item.entities.tolist(), scores.tolist(), strict=True):
            best[entity] = max(score, best.get(entity, -99.0))
    order = sorted(best, key=lambda entity: (-best[entity], entity))[:20]
    [found] = cloze.TASK.decode(Outputs(dataset, items, logits))
    assert list(found) == [Answer(f"Pell{n}", *spans[n], best[n]) for n in order]


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_probabilities_are_shares_of_the_texts_of_entities(
    tmp_path: Path, tokenizer: WordTokenizer, temperature: float
) -> None:
    """Bob and Pell are there twice: each counts once, with its better score."""
    unreachable = {**QUERY, "id": "q2", "answers": [{"start": 0, "end": 1, "text": "Ad"}]}
    dataset = cloze.TASK.read(original(tmp_path, passage(QUERY, unreachable)))
    items = featurize(dataset, tokenizer).items
    scores = np.array([1.0, -2.0, 0.5, 0.0, 2.0], np.float32)  # Ada, Bob, Pell, Bob, Pell
    logits = [scores[item.entities] for item in items]
    [found, _] = cloze.TASK.answers(Outputs(dataset, items, logits), temperature=temperature)
    best = {"Pell": (43, 47, 2.0), "Ada": (0, 3, 1.0), "Bob": (32, 35, 0.0)}
    total = sum(math.exp(score / temperature) for *_, score in best.values())
    for each, (text, (start, end, score)) in zip(found["n_best"], best.items(), strict=True):
        assert (each["answer"], each["start"], each["end"], each["score"]) == (text, start, end, score)
        assert each["probability"] == pytest.approx(math.exp(score / temperature) / total, abs=1e-6)
    assert {**found["n_best"][0], "n_best": found["n_best"]} == found
    [first, _] = cloze.TASK.answers(Outputs(dataset, items, logits), temperature=temperature, top=2)
    assert first["n_best"] == found["n_best"][:2]
    [(chosen, is_right)] = cloze.TASK.choices(Outputs(dataset, items, logits))
    assert chosen.tolist() == [[1.0, 0.0, 2.0]], "in the order of the text"
    assert is_right.tolist() == [[False, False, True]]


TINY_WORDS = replace(TINY, vocab_size=910, max_position_embeddings=140)


@pytest.mark.parametrize("entities", [True, False])
def test_scores_are_of_the_placeholder_and_the_entity(tmp_path: Path, tokenizer: WordTokenizer, entities: bool) -> None:
    """Against the states of a batch of one, by hand; the loss is the mean over the entities of the batch."""
    less = passage({**QUERY, "id": "q2"}, entities=[{"start": 8, "end": 10}, {"start": 43, "end": 46}])
    dataset = cloze.TASK.read(original(tmp_path, passage(), less))
    items = featurize(dataset, tokenizer).items
    torch.manual_seed(3)
    luke = LukeModel(TINY_WORDS)
    luke.keep_entities(cloze.TASK.ENTITY_ROWS)
    module = cloze.TASK.head(luke, 1, entities=entities).eval()
    batch = cloze.TASK.collate(items, entities=entities)
    with torch.inference_mode():
        found, losses = cloze.TASK.logits(module, batch), []
        for item, row in zip(items, found, strict=True):
            states = luke(cloze.TASK.collate([item], entities=entities).inputs)
            states = states[len(item.word_ids) :] if entities else states[item.ends[:, 0]]
            pairs = torch.stack([torch.cat([states[0], state]) for state in states[1:]])
            wanted = module.classifier(pairs)[:, 0].numpy()
            assert np.abs(wanted - row).max() < 1e-5
            probabilities = 1 / (1 + np.exp(-wanted))
            losses += (-np.log(np.where(item.label == 1, probabilities, 1 - probabilities))).tolist()
        assert [len(row) for row in found] == [5, 2]
        assert float(cloze.TASK.loss(module, batch)["loss"]) == pytest.approx(np.mean(losses), rel=1e-5)
    assert batch.inputs.entity_ids.tolist() == ([1] * 9 if entities else [])
