"""Fine-tuning on the example data: what is written, what is repeated to the byte, and what is refused."""

import json
import logging
import re
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from model.files import save_model
from model.luke.heads import LukeForPretraining
from model.training.checkpoints import hold
from pipeline.sequences.tokenizer_files import BERT_SPECIAL_TOKENS
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.finetuning import epochs as loop
from tasks.finetuning import finetune as finetuning
from tasks.finetuning.finetune import report
from tasks.finetuning.prepare import Prepared
from tasks.finetuning.registry import TASKS
from tasks.finetuning.variants import VARIANTS
from tasks.io.annotations import EntityMention
from tasks.io.data_folder import split_file
from tasks.ner import task as ner
from tasks.ner.spans import Span
from tasks.task import PROFILES, Hyperparameters, Outputs
from tests.support import ROOT
from tests.support.fine_tuned import CONFIG as WITH_LARGE_WEIGHTS
from tests.support.fine_tuned import bert, contents, finetune, prepared

EXAMPLES = ROOT / "examples" / "ner"
CONFIG = replace(WITH_LARGE_WEIGHTS, initializer_range=0.02)
QUICK = Hyperparameters(learning_rate=2e-3, head_learning_rate=5e-3, batch_size=8, epochs=2)
FILES = ["config.json", "metrics.json", "model.safetensors"]
FILES += ["predictions-dev.txt", "predictions-test.txt"]
FILES += ["tokenizer/merges.txt", "tokenizer/vocab.json", "training.jsonl"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny random weights (`weights`) and a tokenizer of the example data (`tokenizer`)."""
    folder = tmp_path_factory.mktemp("pretrained")
    train_tokenizer((EXAMPLES / "train.txt").read_text().splitlines(), folder / "tokenizer", CONFIG.vocab_size)
    torch.manual_seed(0)
    save_model(folder / "weights", LukeForPretraining(CONFIG))
    return folder


run = partial(finetune, hyperparameters=QUICK)


def test_same_seed_same_bytes_other_seed_other_bytes(folder: Path, tmp_path: Path) -> None:
    metrics = run(folder, tmp_path / "one")
    torch.rand(3)
    run(folder, tmp_path / "elsewhere" / "two")
    run(folder, tmp_path / "three", seed=2)
    first, second, third = (contents(tmp_path / name) for name in ("one", "elsewhere/two", "three"))
    assert sorted(first) == FILES
    assert first == second
    assert all(first[name] != third[name] for name in ("model.safetensors", "training.jsonl"))
    assert json.loads(first["metrics.json"]) == json.loads(json.dumps(metrics))
    assert str(tmp_path).encode() not in b"".join(first.values())


def test_two_runs_in_one_folder_are_refused(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with hold(output / "checkpoints"), pytest.raises(ValueError, match=f"{output}: another run trains there"):
        run(folder, output)
    run(folder, output)
    assert sorted(contents(output)) == FILES
    (output / "checkpoints").mkdir()  # as of a run that was killed when it was done
    run(folder, output)
    assert not (output / "checkpoints").exists()


def test_an_earlier_result_stays_whole_until_the_next_is_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also its tokenizer, of another format than the next one's, of which nothing is left then."""
    bert(tmp_path / "bert")
    for name in ("weights", "tokenizer"):
        (tmp_path / name).symlink_to(tmp_path / "bert")
    output = tmp_path / "out"
    run(folder, output)
    first = contents(output)

    def stop(run: Prepared, split: str) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(finetuning, "outputs_of", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path, output, variant="roberta")
    found = contents(output)
    assert any(name.startswith("checkpoints/") for name in found)
    assert {name: data for name, data in found.items() if not name.startswith("checkpoints/")} == first
    run(tmp_path, output, variant="roberta")
    run(tmp_path, tmp_path / "alone", variant="roberta")
    assert contents(output) == contents(tmp_path / "alone") != first
    assert {"tokenizer/vocab.txt", "tokenizer/tokenizer_config.json"} == {
        name for name in contents(output) if name.startswith("tokenizer/")
    }


def test_a_tokenizer_that_cannot_be_kept_is_refused_before_the_work(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vocab = {token: number for number, token in enumerate([*BERT_SPECIAL_TOKENS, "a\nb"])}
    (tmp_path / "tokenizer").mkdir()
    path = tmp_path / "tokenizer" / "tokenizer.json"
    path.write_text(json.dumps({"model": {"type": "WordPiece", "vocab": vocab}}))
    (tmp_path / "weights").symlink_to(folder / "weights")
    run(folder, tmp_path / "out")
    first = contents(tmp_path / "out")
    monkeypatch.setattr(finetuning, "prepare", None)
    with pytest.raises(ValueError, match=r"tokenizer\.json: found the token 'a\\nb'; wanted tokens without"):
        run(tmp_path, tmp_path / "out")
    assert contents(tmp_path / "out") == first


INPUTS = {
    "ner": 3, "entity_typing": 1, "relation_classification": 2, "cloze_qa": 2, "extractive_qa": 1,
}  # of a class  # fmt: skip


@pytest.mark.parametrize("variant", ["luke", "roberta"])
@pytest.mark.parametrize("name", TASKS)
def test_what_is_written_fits_together(folder: Path, tmp_path: Path, mentions: Path, name: str, variant: str) -> None:
    """Scores are those of the files, and weights have the shapes of the task with entities or without."""
    task, row, data = TASKS[name], VARIANTS[variant], EXAMPLES.parent / name
    takes = {"mentions": mentions} if name == "extractive_qa" else {}
    metrics = run(folder, tmp_path, task=name, variant=variant, **takes)
    for split in ("dev", "test"):
        written = tmp_path / f"predictions-{split}{task.PREDICTIONS_SUFFIX}"
        scored = TASKS[name].score_files(split_file(data, split), written)
        told = [scored.pop(each, None) for each in ("negative_label", "unknown", "labels_left_out")]
        assert not told[1]
        assert told[2] in (None, {"gold": 0, "predicted": 0})
        assert scored == metrics[split]
    weights, config = (load_file(tmp_path / "model.safetensors"), json.loads((tmp_path / "config.json").read_text()))
    assert (config["entities"], metrics["variant"]) == (row.entities, variant)
    inputs = INPUTS[name] - (name == "ner" and not row.entities)
    assert weights["classifier.weight"].shape == (len(config["labels"]), inputs * CONFIG.hidden_size)
    assert len(weights["luke.word_embeddings.token.weight"]) == CONFIG.vocab_size + len(task.WORD_MARKERS)
    found = weights["luke.entity_embeddings.token.weight"]
    if name == "extractive_qa" and row.entities:
        given = load_file(folder / "weights" / "model.safetensors")
        assert torch.equal(found, given["luke.entity_embeddings.token.weight"]), "the whole table, as it was"
        assert metrics["data"]["train"]["entities"] > 5
    else:
        assert len(found) == len(task.ENTITY_ROWS or (0,))
        assert "entities_outside_vocabulary" not in metrics["data"]["train"]


@pytest.mark.parametrize("task", TASKS)
def test_a_small_set_is_learnt_by_heart(folder: Path, tmp_path: Path, mentions: Path, task: str) -> None:
    """Two documents, an article, or a few examples."""
    rate, size = (5e-3, 2) if task == "ner" else (3e-3, 4)
    thorough = Hyperparameters(rate, 6e-3, batch_size=size, epochs=40, patience=10)
    path = split_file(EXAMPLES.parent / task, "train" if task in ("ner", "extractive_qa", "cloze_qa") else "dev")
    text = path.read_text()
    if task == "ner":
        text = "-DOCSTART-\n".join(text.split("-DOCSTART- -X- O O\n")[:3])
    else:
        data, count = json.loads(text), {"cloze_qa": 4, "extractive_qa": 1}.get(task, 8)
        text = json.dumps({"data": data["data"][:count]} if isinstance(data, dict) else data[:count])
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}{path.suffix}").write_text(text)
    takes = {"mentions": mentions} if task == "extractive_qa" else {}
    metrics = run(folder, tmp_path / "out", hyperparameters=thorough, data=tmp_path, task=task, **takes)
    assert metrics["dev"]["f1"] > 0.9
    assert metrics["splits_without_predictions"] == []


def annotate(text: str, page: str | None) -> list[EntityMention]:
    """Every second word, some of them outside the vocabulary."""
    words = [(match.start(), match.end()) for match in re.finditer(r"\w+", text)]
    return [EntityMention(start, end, 1 + 2 * (start % 3)) for start, end in words[::2]]


@pytest.fixture
def mentions(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for a mention table by which `annotate` finds what it does."""
    made = tmp_path_factory.mktemp("mentions")
    (made / "manifest.json").write_text("{}")
    monkeypatch.setattr("tasks.finetuning.prepare.open_annotator", lambda table, weights: annotate)
    monkeypatch.setattr(finetuning, "read_manifest", lambda table: None)
    monkeypatch.setattr(finetuning, "entities_sha256", lambda table: "0" * 64)
    return made


def test_an_annotator_is_for_extractive_questions_alone(folder: Path, tmp_path: Path, mentions: Path) -> None:
    with pytest.raises(ValueError, match=r"finds Wikipedia's entities, which only extractive_qa"):
        run(folder, tmp_path, mentions=mentions)


def test_label_files_and_negative_labels_are_used(folder: Path, tmp_path: Path) -> None:
    name = "relation_classification"
    shutil.copytree(EXAMPLES.parent / name, tmp_path / "data")
    labels = ["no_relation", "per:title", "per:city_of_birth", "org:founded_by"]
    labels += ["org:city_of_headquarters", "per:employee_of", "per:spouse"]
    (tmp_path / "data" / "labels.txt").write_text("\n".join(labels))
    metrics = run(folder, tmp_path / "out", data=tmp_path / "data", task=name, negative_label="per:title")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["labels"], config["negative_label"]) == (labels, "per:title")
    assert metrics["dev"]["gold"] == 17


@pytest.mark.parametrize(
    ("profile", "dev", "kept"),
    [
        ("fixed", [0.2, 0.6, 0.6], 2),
        ("paper", [0.2, 0.6, 0.1], 3),
        ("fixed", [0.0, 0.0, 0.0], 3),
        ("fixed", [0.0, 0.1, 0.0], 2),
    ],
)
def test_the_kept_epoch(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, dev: list[float], kept: int
) -> None:
    """The weights of an epoch are told apart by what the classifier holds when dev is scored."""
    three = Hyperparameters(1e-3, 1e-3, batch_size=60, epochs=3)
    seen: list[torch.Tensor] = []
    outputs_of = loop.outputs_of

    def remember(run: Prepared, split: str) -> Any:
        seen.append(run.module.state_dict()["classifier.weight"].clone())
        return outputs_of(run, split)

    monkeypatch.setattr(loop, "outputs_of", remember)
    found = iter(dev)
    score = ner.TASK.score
    monkeypatch.setattr(ner.TASK, "score", lambda *sides: {**score(*sides), "f1": next(found, 0.0)})
    metrics = run(folder, tmp_path, hyperparameters=three, profile=profile)
    assert [epoch["dev_f1"] for epoch in metrics["epochs"]] == dev
    assert metrics["kept_epoch"] == kept
    written = load_file(tmp_path / "model.safetensors")["classifier.weight"]
    assert torch.equal(written, seen[kept - 1])
    assert not torch.equal(seen[0], seen[1])


def test_optimiser_follows_profile_and_hyperparameters(folder: Path) -> None:
    hyperparameters = replace(QUICK, head_learning_rate=0.25)
    optimizers = {
        profile: loop.optimizer_of(prepared(folder, hyperparameters, profile=profile)) for profile in PROFILES
    }
    assert [isinstance(optimizers[each], torch.optim.AdamW) for each in ("fixed", "paper")] == [True, False]
    for optimizer in optimizers.values():
        groups = optimizer.param_groups
        found = [(group["lr"], group["weight_decay"]) for group in groups]
        assert found == [(rate, decay) for rate in (QUICK.learning_rate, 0.25) for decay in (0.01, 0.0)]
        assert [len(group["params"]) for group in groups[2:]] == [1, 1]
        assert {(group["betas"], group["eps"]) for group in groups} == {((0.9, 0.98), 1e-6)}


DULL = {"hyperparameters": Hyperparameters(1e-9, 2e-9, batch_size=30, epochs=1)}


@pytest.mark.parametrize("splits", [("dev", "test"), ("test",)])
def test_a_model_that_predicts_nothing_is_told_or_an_error(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    splits: tuple[str, ...],
) -> None:
    """An error where it finds nothing in both splits, unless it is allowed, or there is nothing to be found."""

    def decode(outputs: Outputs[Any, Any]) -> list[list[Span]]:
        found = [] if outputs.dataset.path.stem in splits else [Span(0, 1, "PER")]
        return [found for _ in outputs.dataset.sentences]

    monkeypatch.setattr(ner.TASK, "decode", decode)
    if len(splits) == 2:
        with pytest.raises(ValueError, match=r"ner, variant luke: NOTHING .* on dev and test: .* 1e-09 and"):
            run(folder, tmp_path / "out", allow_no_predictions=False, **DULL)
        assert sorted(contents(tmp_path / "out")) == FILES, "what was computed is there to be looked at"
        shutil.copytree(EXAMPLES, tmp_path / "data")
        for split in splits:
            lines = (EXAMPLES / f"{split}.txt").read_text().splitlines()
            plain = "".join(f"{line.rsplit(' ', 1)[0]} O\n" if line else "\n" for line in lines)
            (tmp_path / "data" / f"{split}.txt").write_text(plain)
        caplog.clear()
        metrics = run(folder, tmp_path / "none", data=tmp_path / "data", **DULL, allow_no_predictions=False)
        assert not any("NOTHING" in message for message in caplog.messages)
        nothing = [message for message in caplog.messages if "nothing to be found" in message]
        assert [message.split(" has ")[0] for message in nothing] == [f"ner, variant luke: {split}" for split in splits]
        assert "the last one is kept" in nothing[0]
        assert "the last one is kept" not in nothing[1]
        counts = ("gold", "predicted", "correct", "f1")
        assert [metrics[split][name] for split in splits for name in counts] == [0, 0, 0, 0.0] * 2
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        metrics = run(folder, tmp_path / "allowed", allow_no_predictions=len(splits) == 2, **DULL)
    assert metrics["splits_without_predictions"] == [*splits]
    told = [message for message in caplog.messages if "NOTHING" in message]
    assert [each.split(";")[0] for each in told] == [
        f"ner, variant luke: NOTHING is predicted on {split}: the model has not learnt the task" for split in splits
    ]


def test_silence_on_questions_is_an_error_too() -> None:
    questions = {"questions": 3, "predicted": 0}
    with pytest.raises(ValueError, match="cloze_qa: NOTHING is predicted on dev and test"):
        report("cloze_qa", {"dev": questions, "test": questions}, QUICK, allowed=False)


def test_a_log_without_a_bar_is_told_how_far_it_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "_TELL_SECONDS", 0)
    with caplog.at_level(logging.INFO):
        run(folder, tmp_path)
    told = [record.message for record in caplog.records if record.message.startswith("fine-tuning: step")]
    steps = (tmp_path / "training.jsonl").read_text().count('"step"')
    assert len(told) == steps > 1
    assert re.fullmatch(rf"fine-tuning: step 1 of {steps}, loss \d\.\d{{3}}, \d+ minutes left", told[0])
    assert re.fullmatch(rf"fine-tuning: step {steps} of {steps}, loss \S+, dev_F1 0\.\d{{3}}, 0 minutes left", told[-1])


@pytest.mark.parametrize("what", ["task", "variant", "preset", "profile", "device"])
def test_unknown_names_are_refused(folder: Path, tmp_path: Path, what: str) -> None:
    wanted = "use auto, cpu, cuda or cuda:N" if what == "device" else "expected one of (entity|luke|tiny|fixed)"
    with pytest.raises(ValueError, match=f"{what} 'ernie' is unknown; {wanted}"):
        run(folder, tmp_path, **{what: "ernie"})


def test_a_tokenizer_of_other_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "tokenizer", tmp_path / "tokenizer")
    save_model(tmp_path / "weights", LukeForPretraining(replace(CONFIG, vocab_size=300)))
    with pytest.raises(ValueError, match=r"has 300 word embeddings; give the tokenizer that the weights"):
        run(tmp_path, tmp_path / "out")


def test_a_model_that_is_hardly_better_than_none_is_told_with_its_figures(caplog: pytest.LogCaptureFixture) -> None:
    little = {"f1": 22 / 121, "predicted": 11, "correct": 11, "gold": 110}  # all of it is right
    enough, silent = {**little, "f1": 0.2}, {**little, "f1": 0.0, "predicted": 0}
    for dev, test, told in ((little, enough, "dev"), (enough, little, "test"), (enough, silent, "")):
        caplog.clear()
        report("ner, variant luke", {"dev": dev, "test": test}, TASKS["ner"].PRESETS["tiny"], allowed=True)
        found = [each for each in caplog.messages if "hardly better" in each]
        assert [f"on {told} the model" in each for each in found] == [True] * bool(told)
        assert all("F1 18.2 %, 11 predicted, 11 of them right, of 110 that" in each for each in found)
