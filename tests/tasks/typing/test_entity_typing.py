"""Entity typing: both formats of Open Entity, brackets, label sets and loose micro scores."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks import entity_typing as command
from tasks.task import InputSettings
from tasks.typing import entity_typing
from tests.support import ROOT
from tests.support.models import TINY
from tests.support.properties import given, settings, st

EXAMPLES = ROOT / "examples" / "entity_typing"
ERNIE = {"sent": "A cat ( Tom ) sat .", "labels": ["entity", "object"], "start": 8, "end": 11}
ULTRA_FINE = {
    "annot_id": "x/1",
    "left_context_token": ["A", "cat", "-LRB-"],
    "mention_span": "Tom",
    "right_context_token": ["-RRB-", "sat", "."],
    "y_str": ["person", "cat", "pet"],
}


def written(tmp_path: Path, *records: dict[str, Any], name: str = "data.json") -> Path:
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, records)))
    return path


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> WordTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    train_tokenizer((EXAMPLES / "train.json").read_text().splitlines(), folder, 400)
    return WordTokenizer.load(folder)


def featurize(
    dataset: entity_typing.Dataset, tokenizer: WordTokenizer, **changes: Any
) -> entity_typing.Features:
    arguments = {"max_words": 64, "profile": "fixed", **changes}
    return entity_typing.featurize(
        dataset, InputSettings(tokenizer, entity_typing.GENERAL_TYPES, {"[ENTITY]": 999}, **arguments)
    )


def test_both_formats(tmp_path: Path) -> None:
    examples = entity_typing.read(written(tmp_path, ERNIE, ULTRA_FINE)).examples
    assert [example.text[slice(*example.span)] for example in examples] == ["Tom", "Tom"]
    assert examples[1].text == "A cat -LRB- Tom -RRB- sat ."
    assert examples[1].types == ("person", "cat", "pet")
    alone = {**ULTRA_FINE, "left_context_token": [], "right_context_token": []}
    [example] = entity_typing.read(written(tmp_path, alone)).examples
    assert example.text[slice(*example.span)] == "Tom"


def test_examples_are_what_their_description_says() -> None:
    datasets = {split: entity_typing.read(EXAMPLES / f"{split}.json") for split in ("train", "dev", "test")}
    assert [len(dataset.examples) for dataset in datasets.values()] == [44, 20, 20]
    used = {label for dataset in datasets.values() for each in dataset.examples for label in each.types}
    assert used == set(entity_typing.label_names(datasets, ()))


def test_brackets_come_back(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    text = "-LRB- a -RRB- -lsb- b -rsb- -LCB- c -RCB- -ABC- LRB"
    assert entity_typing.restore_brackets(text, profile="fixed") == "( a ) [ b ] { c } -ABC- LRB"
    assert entity_typing.restore_brackets(text, profile="paper") == "( a ) ( b ) ( c ) -ABC- LRB"
    dataset = entity_typing.read(written(tmp_path, ERNIE, ULTRA_FINE))
    features = featurize(dataset, tokenizer)
    assert features.items[0].word_ids.tolist() == features.items[1].word_ids.tolist()


def test_features_mark_the_mention(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    features = featurize(entity_typing.read(written(tmp_path, ERNIE, ULTRA_FINE)), tokenizer)
    assert features.counts == {"mentions_cut": 0, "contexts_cut": 0, "labels_left_out": 2}
    for feature, wanted in zip(features.items, [{"entity", "object"}, {"person"}], strict=True):
        first, last = feature.ends[0]
        assert feature.word_ids[[first, last]].tolist() == [999, 999]
        assert tokenizer.decode(feature.word_ids[first + 1 : last].tolist()) == " Tom"
        named = {
            name for name, value in zip(entity_typing.GENERAL_TYPES, feature.label, strict=True) if value
        }
        assert named == wanted
        assert feature.label.dtype == np.float32


def test_long_texts_keep_the_mention(tmp_path: Path, tokenizer: WordTokenizer) -> None:
    left, right = "x " * 90, " y" * 90
    record = {"sent": f"{left}Tom{right}", "labels": ["person"], "start": 180, "end": 183}
    features = featurize(entity_typing.read(written(tmp_path, record)), tokenizer)
    [feature] = features.items
    assert len(feature.word_ids) == 64
    assert features.counts["contexts_cut"] == 1
    first, last = feature.ends[0]
    assert tokenizer.decode(feature.word_ids[first + 1 : last].tolist()) == " Tom"
    assert abs(first - (64 - 1 - last)) <= 1


def test_label_sets(tmp_path: Path) -> None:
    train = entity_typing.read(written(tmp_path, ULTRA_FINE))
    assert entity_typing.label_names({"train": train}, ()) == entity_typing.GENERAL_TYPES
    assert len(entity_typing.GENERAL_TYPES) == 9
    assert entity_typing.label_names({"train": train}, ("pet", "dog")) == ("pet", "dog")
    with pytest.raises(ValueError, match=r"data.json: no example has one of the types dog; list those of"):
        entity_typing.label_names({"train": train}, ("dog",))
    with pytest.raises(ValueError, match="negative label 'pet': entity typing has none"):
        entity_typing.negative_label(("pet",), "pet")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"end": 90},
            r":2: start, end spans 8 to 90; wanted a start below the end, within 0 to 19 characters",
        ),
        ({"end": 8}, r":2: start, end spans 8 to 8"),
        ({"start": -1}, r":2: start, end spans -1 to 11"),
        ({"start": "8"}, r":2: start is \"8\"; wanted a character's number"),
        ({"start": True}, r":2: start is true; wanted a character's number"),
        ({"labels": "person"}, r":2: labels is \"person\"; wanted a list of types"),
        ({"sent": None}, r":2: sent is null; wanted a text"),
    ],
)
def test_wrong_fields_name_file_and_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"data.json" + message):
        entity_typing.read(written(tmp_path, ERNIE, {**ERNIE, **change}))


@pytest.mark.parametrize("field", [*ERNIE, *(name for name in ULTRA_FINE if name != "annot_id")])
def test_missing_fields_name_file_and_line(tmp_path: Path, field: str) -> None:
    record = ERNIE if field in ERNIE else ULTRA_FINE
    with pytest.raises(ValueError, match=r"data.json:2: no field"):
        entity_typing.read(
            written(tmp_path, record, {name: value for name, value in record.items() if name != field})
        )


def test_an_empty_mention_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"data.json:1: mention_span spans 12 to 12"):
        entity_typing.read(written(tmp_path, {**ULTRA_FINE, "mention_span": ""}))


def test_every_logit_above_zero_is_a_type() -> None:
    rows = [np.array([0.1, -0.1, 0.0]), np.array([-1.0, -2.0, -3.0]), np.array([1.0, 2.0, 3.0])]
    assert entity_typing.decode(None, [], rows, ["a", "b", "c"]) == [("a",), (), ("a", "b", "c")]


subsets = st.sets(st.sampled_from(entity_typing.GENERAL_TYPES[:4]))


@settings(max_examples=60)
@given(st.lists(st.tuples(subsets, subsets), min_size=1, max_size=20))
def test_scores_equal_scikit_learn(pairs: list[tuple[set[str], set[str]]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    columns = entity_typing.GENERAL_TYPES[:4]
    gold, predicted = (
        np.array([[name in row for name in columns] for row in side]) for side in zip(*pairs, strict=True)
    )
    scores = entity_typing.type_scores(
        *([sorted(row) for row in side] for side in zip(*pairs, strict=True)), columns
    )
    expected = metrics.precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0)
    assert [scores[name] for name in ("precision", "recall", "f1")] == pytest.approx(expected[:3])
    each = metrics.precision_recall_fscore_support(gold, predicted, zero_division=0)
    for number, name in enumerate(columns):
        if name in scores["types"]:
            assert scores["types"][name]["f1"] == pytest.approx(each[2][number])
        else:
            assert not gold[:, number].any()
            assert not predicted[:, number].any()


def test_scores_by_hand() -> None:
    gold = [("person", "pet"), (), ("time",), ("place",)]
    predicted = [("person", "place"), ("time",), (), ("place",)]
    scores = entity_typing.type_scores(gold, predicted, entity_typing.GENERAL_TYPES)
    assert (scores["gold"], scores["predicted"], scores["correct"]) == (3, 4, 2)
    assert (scores["precision"], scores["recall"], scores["f1"]) == (
        0.5,
        pytest.approx(2 / 3),
        pytest.approx(4 / 7),
    )
    empty = entity_typing.type_scores([("person",)], [()], entity_typing.GENERAL_TYPES)
    assert (empty["precision"], empty["recall"], empty["f1"]) == (0, 0, 0)
    assert entity_typing.type_scores([()], [()], entity_typing.GENERAL_TYPES)["f1"] == 0


def test_loss_is_the_mean_over_examples_and_types() -> None:
    torch.manual_seed(5)
    module = entity_typing.head(LukeModel(TINY), 3, entities=False).eval()
    label = np.array([1, 0, 1], dtype=np.float32)
    feature = entity_typing.MarkedFeature(np.arange(5, 15), np.array([[2, 4]]), label)
    batch = entity_typing.collate([feature], entities=False, pad_id=1)
    with torch.inference_mode():
        [row] = entity_typing.logits(module, batch)
        found = float(entity_typing.loss(module, batch)["loss"])
    probabilities = 1 / (1 + np.exp(-row))
    assert found == pytest.approx(
        -np.mean(np.log(np.where(label == 1, probabilities, 1 - probabilities))), rel=1e-5
    )
    assert module.classifier.bias is not None


def test_score_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = entity_typing.read(EXAMPLES / "test.json")
    predictions = [example.types[:1] for example in gold.examples]
    path = tmp_path / "predictions.jsonl"
    path.write_text("\n".join(entity_typing.prediction_lines(gold, predictions)))
    command.main(["score", str(EXAMPLES / "test.json"), str(path)])
    printed = json.loads(capsys.readouterr().out)
    none = {"labels_left_out": {"gold": 0, "predicted": 0}}
    assert printed == none | entity_typing.score(gold, predictions, entity_typing.GENERAL_TYPES, None)
    assert (printed["precision"], printed["predicted"]) == (1.0, 20)
    (tmp_path / "labels.txt").write_text("person\n")
    command.main(["score", str(EXAMPLES / "test.json"), str(path), "--labels", str(tmp_path / "labels.txt")])
    assert list(json.loads(capsys.readouterr().out)["types"]) == ["person"]
    command.main(["score", str(EXAMPLES / "test.json"), str(EXAMPLES / "test.json")])
    assert json.loads(capsys.readouterr().out)["f1"] == 1
    with pytest.raises(
        SystemExit,
        match=r"^error: .*absent: no such file; expected a JSON array of objects or a JSON object a line$",
    ):
        command.main(["score", str(EXAMPLES / "test.json"), str(tmp_path / "absent")])


def test_types_that_are_not_scored_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / name for name in ("gold.jsonl", "predictions.jsonl")]
    for path, first in zip(paths, (["dog", "cat", "person"], ["dog", "person"]), strict=True):
        path.write_text(
            "".join(
                json.dumps({"sent": "Ada", "start": 0, "end": 3, "labels": types}) + "\n"
                for types in (first, ["dog"])
            )
        )
    files = [str(path) for path in paths]
    command.main(["score", *files])
    printed = json.loads(capsys.readouterr().out)
    assert printed["labels_left_out"] == {"gold": 3, "predicted": 2}
    assert (printed["gold"], printed["predicted"], printed["f1"]) == (1, 1, 1)
    (tmp_path / "labels.txt").write_text("bird\n")
    message = (
        r"gold.jsonl: no example has one of the types bird; list those of your data .* pass it as --labels$"
    )
    with pytest.raises(SystemExit, match=message):
        command.main(["score", *files, "--labels", str(tmp_path / "labels.txt")])
    assert not capsys.readouterr().out


@pytest.mark.parametrize("preset", ["base", "large"])
def test_paper_values_are_the_defaults(preset: str) -> None:
    values = entity_typing.PRESETS[preset]
    assert (values.learning_rate, values.batch_size, values.epochs, values.max_words) == (1e-5, 4, 3, 512)
    assert values.head_learning_rate == values.learning_rate
    assert (values.warmup_ratio, values.betas, values.epsilon) == (0.06, (0.9, 0.98), 1e-6)
    assert entity_typing.WORD_MARKERS == {"[ENTITY]": "@"}
