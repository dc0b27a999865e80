"""The shift of "no entity", against F1 that is counted sample by sample; and that a fine-tuned model has it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning.inference import logits_of
from tasks.io.data_folder import split_file
from tasks.io.metrics import micro_scores
from tasks.ner import task as ner
from tasks.ner.classifier import SpanFeature
from tasks.ner.columns import ColumnFile
from tasks.ner.spans import Span
from tasks.ner.threshold import LEAST_ENTITIES, SAMPLES, SHIFTS, best_shift
from tasks.serving.predict import load
from tasks.task import InputSettings, Outputs
from tests.support.fine_tuned import EXAMPLES, finetune

Predict = Callable[[float], list[list[Span]]]


def drawn(seed: int, sentences: int, bias: float) -> tuple[list[list[Span]], Predict]:
    """Sentences of six words, each an entity or none, and a model that finds what is above `bias` less the shift."""
    generator = np.random.default_rng(seed)
    right = generator.random((sentences, 6)) < 0.3
    scores = generator.normal(size=right.shape) + 2 * right
    words = [[Span(at, at + 1, "X") for at in range(6)] for _ in range(sentences)]

    def where(chosen: np.ndarray) -> list[list[Span]]:
        return [[words[row][at] for at in np.flatnonzero(each)] for row, each in enumerate(chosen)]

    return where(right), lambda shift: where(scores > bias - shift)


def slowly(gold: Sequence[Sequence[Span]], predict: Predict) -> float:
    """The least shift within a standard error of the best, by the scores of each sample."""

    def f1(rows: Sequence[int]) -> list[float]:
        golds = [gold[row] for row in rows]
        return [micro_scores(golds, [found[row] for row in rows], lambda span: span.label)["f1"] for found in predicted]

    predicted = [predict(shift) for shift in SHIFTS]
    generator = np.random.default_rng(0)
    samples = [f1(rows) for rows in generator.integers(len(gold), size=(SAMPLES, len(gold))).tolist()]
    scores = f1(range(len(gold)))
    best = scores.index(max(scores))
    near = [
        shift
        for place, shift in enumerate(SHIFTS)
        if scores[best] - scores[place] <= np.std([sample[best] - sample[place] for sample in samples])
    ]
    return min(near, key=abs)


@pytest.mark.parametrize(("seed", "sentences", "bias"), [(1, 40, 3.0), (2, 40, 1.0), (1, 40, -3.0), (2, 60, 2.0)])
def test_the_shift_is_that_of_the_slow_way(seed: int, sentences: int, bias: float) -> None:
    gold, predict = drawn(seed, sentences, bias)
    assert best_shift(gold, predict) == slowly(gold, predict)


@pytest.mark.parametrize("seed", range(5))
def test_few_entities_do_not_tell(seed: int) -> None:
    for sentences in (1, 2, 10):
        gold, predict = drawn(seed, sentences, 3.0)
        assert best_shift(gold, predict) == 0
    one = [gold[0] * 0 for _ in range(1000)]
    one[7] = [Span(at, at + 1, "X") for at in range(LEAST_ENTITIES - 1)]
    assert best_shift(one, lambda shift: [spans[: 20 + int(shift)] for spans in one]) == 0


def test_logits_below_those_of_no_entity_are_reached(folder: Path) -> None:
    """Half of the entities are found, the others miss by 1.4, and all else lies far below."""
    dataset = ner.TASK.read(split_file(EXAMPLES / "ner", "train"))
    labels = ner.TASK.label_names({"train": dataset})
    settings = InputSettings(WordTokenizer.load(folder / "tokenizer"), labels, {}, 96, "fixed")
    features = ner.TASK.featurize(dataset, settings).items
    logits = [np.full((len(each.spans), len(labels)), -9.0, np.float32) for each in features]
    for scores, each in zip(logits, features, strict=True):
        scores[:, 0] = 0
        for row in np.flatnonzero(each.labels):
            scores[row, each.labels[row]] = 1 if each.sentence % 2 else -1.4

    def outputs(bias: np.ndarray) -> Outputs[ColumnFile, SpanFeature]:
        return Outputs(dataset, features, [each + bias for each in logits], labels)

    scores_of = {
        shift: ner.TASK.score(dataset, ner.TASK.decode(outputs(np.eye(len(labels))[0] * -shift)))["f1"]
        for shift in (0, 1.25, 1.5)
    }
    assert scores_of[0] == scores_of[1.25] < 0.8
    assert scores_of[1.5] == 1
    found = ner.TASK.bias_shift(outputs(np.zeros(len(labels), np.float32)))
    assert found is not None
    assert found.tolist() == [-1.5] + [0] * (len(labels) - 1)
    assert ner.TASK.bias_shift(outputs(found)) is None


def test_without_an_answer_there_is_no_shift() -> None:
    gold, predict = drawn(5, 50, 3.0)
    assert best_shift(gold, lambda shift: predict(shift) if shift else [[] for _ in gold]) == 0
    assert best_shift([[] for _ in gold], lambda shift: [[] for _ in gold]) == 0
    assert best_shift([[] for _ in gold], predict) == 0
    assert best_shift([], lambda shift: []) == 0


@pytest.mark.parametrize(("profile", "variant"), [("fixed", "luke"), ("fixed", "roberta"), ("paper", "luke")])
def test_a_fine_tuned_model_has_it_in_its_bias(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, variant: str
) -> None:
    made: dict[float, dict[str, Any]] = {}
    for shift in (0.0, 6.0):
        monkeypatch.setattr(ner, "best_shift", lambda gold, predict, shift=shift: shift)
        made[shift] = finetune(folder, tmp_path / str(shift), variant=variant, profile=profile)
    before, after = (load_file(tmp_path / str(shift) / "model.safetensors") for shift in made)
    changed = {name for name, tensor in before.items() if not tensor.equal(after[name])}
    metrics = made[6.0]
    assert made[0.0]["bias_shift"] == {}
    if profile == "paper":
        assert not changed
        assert metrics["bias_shift"] == {}
        return
    assert changed == {"classifier.bias"}
    difference = (after["classifier.bias"] - before["classifier.bias"]).tolist()
    assert difference == pytest.approx([-6.0] + [0] * (len(difference) - 1), abs=1e-6)
    assert metrics["bias_shift"] == {"O": -6.0}
    assert metrics["dev"]["predicted"] > made[0.0]["dev"]["predicted"]
    predictor = load(tmp_path / "6.0", device="cpu")
    dataset = ner.TASK.read(split_file(EXAMPLES / "ner", "dev"))
    features = ner.TASK.featurize(dataset, predictor.inputs).items
    logits = logits_of(
        ner.TASK, predictor.module, features, entities=predictor.entities,
        device="cpu", batch_size=16,
    )  # fmt: skip
    scores = ner.TASK.score(dataset, ner.TASK.decode(Outputs(dataset, features, logits, predictor.inputs.labels)))
    assert scores == metrics["dev"], "what is told of dev is what the folder answers"
