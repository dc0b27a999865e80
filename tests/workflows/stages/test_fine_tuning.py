"""The stage FineTune: its identity and preset, weights from elsewhere, and a silent model, which is a failure."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import luigi
import pytest

from model.luke.config import LukeConfig
from tasks.finetuning import epochs as training
from tasks.finetuning.prepare import Prepared
from tasks.ner import task as ner
from tasks.presets import of_task
from tasks.task import Hyperparameters
from tests.support.fine_tuned import EXAMPLES, bert
from tests.support.stages import changed, run_of
from workflows import FineTune
from workflows.run.file import Run


def run_with(workdir: Path, weights: Path, tokenizer: str = "", **tuning: Any) -> Run:
    """The run of a fine-tuning of weights that are given."""
    given = {"data": {"ner": str(EXAMPLES / "ner")}, "weights": {"luke": str(weights)}, **tuning}
    sequences, machine = {"tokenizer": tokenizer}, {"device": "cpu"}
    return run_of(workdir, sequences=sequences, fine_tuning=given, machine=machine)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A FineTune of a tiny BERT that learns next to nothing."""
    bert(tmp_path / "bert")
    dull = Hyperparameters(1e-9, 1e-9, batch_size=30, epochs=1)
    monkeypatch.setattr(ner.TASK, "PRESETS", dict.fromkeys(("small-encoder", "tiny"), dull))
    monkeypatch.setattr(ner.TASK, "decode", lambda outputs: [[] for _ in outputs.dataset.sentences])

    def build(weights: Path = tmp_path / "bert", **tuning: Any) -> tuple[FineTune, bool]:
        made = FineTune(settings=run_with(tmp_path / "work", weights, **tuning))
        made._is_complete = False
        return made, luigi.build([made], local_scheduler=True, log_level="CRITICAL")

    return build


def test_weights_from_elsewhere_need_no_other_stage(stage: Any) -> None:
    made, done = stage(preset="small-encoder", allow_no_predictions=True)
    assert done
    assert made.requires() == {}
    assert sorted(made.bytes_parameters()["tokenizer"]) == ["vocab.txt"]
    config = json.loads((Path(made.folder) / "config.json").read_text())
    assert (config["preset"], config["model"]["word_encoder"]) == ("small-encoder", "bert")
    files = {entry.path for entry in made.manifest().files}
    assert {"tokenizer/vocab.txt", "tokenizer/tokenizer_config.json", "model.safetensors"} <= files


def test_a_fine_tuned_model_is_a_start_and_brings_its_tokenizer(stage: Any) -> None:
    first, done = stage(preset="small-encoder", allow_no_predictions=True)
    assert done
    second, done = stage(Path(first.folder), allow_no_predictions=True)
    assert done
    assert second.requires() == {}
    assert second.tokenizer_folder() == str(Path(first.folder) / "tokenizer")
    before, after = (json.loads((Path(each.folder) / "config.json").read_text()) for each in (first, second))
    assert before["preset"] == after["preset"] == "small-encoder"  # by the width
    assert before["model"] == after["model"]
    assert second.hash8 != first.hash8


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("precision", "bf16"),
        ("gradient_checkpointing", True),
        ("tokens_per_batch", 300),
        ("head_learning_rate", 5e-3),
        ("dropout", 0.0),
        ("dropout", 0.25),
    ],
)
def test_how_it_is_computed_is_in_the_identity_and_reaches_the_run(
    stage: Any, monkeypatch: pytest.MonkeyPatch, flag: str, value: Any
) -> None:
    runs: list[Prepared] = []
    original = training.optimizer_of
    monkeypatch.setattr(training, "optimizer_of", lambda run: runs.append(run) or original(run))
    common = {"preset": "small-encoder", "allow_no_predictions": True}
    plain, done = stage(**common)
    assert done
    made, done = stage(**common, **{flag: value})
    assert done
    assert made.hash8 != plain.hash8
    assert made.bytes_parameters() == plain.bytes_parameters() | {flag: value}
    before, after = (getattr(run.hyperparameters, flag) for run in runs)
    assert before != after == value
    assert runs[1].module.luke.gradient_checkpointing == (flag == "gradient_checkpointing")
    config = json.loads((Path(made.folder) / "config.json").read_text())
    assert config["hyperparameters"][flag] == value
    of_preset = {"precision": "float32", **of_task("ner")["small-encoder"]}
    for name in ("precision", "learning_rate", "head_learning_rate", "batch_size", "epochs"):
        said = FineTune(settings=changed(plain.settings, fine_tuning={name: of_preset[name]}))
        assert said.hash8 == plain.hash8, f"{name} is so in any case"
    rates = {"learning_rate": 1e-3, "head_learning_rate": of_preset["head_learning_rate"]}
    said = FineTune(settings=changed(plain.settings, fine_tuning=rates))
    assert said.setting() == rates, "beside another rate the classifier's would change in proportion"


@pytest.mark.parametrize(("width", "preset"), [(384, "small-encoder"), (768, "base"), (1023, "base"), (1024, "large")])
@pytest.mark.parametrize("kind", [{}, {"model_type": "luke"}], ids=["ours", "transformers"])
def test_the_width_of_given_weights_decides_the_preset(
    tmp_path: Path, kind: dict[str, str], width: int, preset: str
) -> None:
    config = asdict(replace(LukeConfig(), hidden_size=width, num_attention_heads=1))
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "model.safetensors").touch()  # which nobody reads
    (tmp_path / "weights" / "config.json").write_text(json.dumps({**config, **kind}))
    given = {"weights": {"luke": str(tmp_path / "weights")}}
    for size in ("tiny", "demo", "small", "base", "large"):
        for tuning, wanted in ((given, preset), ({**given, "preset": "tiny"}, "tiny")):
            run = run_of(tmp_path, preset=size, fine_tuning=tuning)
            assert FineTune(settings=run).preset_name() == wanted


def test_the_preset_of_our_own_weights_is_that_of_their_pretraining(tmp_path: Path) -> None:
    for size, preset in (
        ("tiny", "tiny"),
        ("demo", "demo"),
        ("small", "small-encoder"),
        ("base", "base"),
        ("large", "large"),
    ):
        assert FineTune(settings=run_of(tmp_path, preset=size)).preset_name() == preset


def test_a_silent_model_fails_unless_it_is_a_demo_or_allowed(stage: Any) -> None:
    made, done = stage(preset="small-encoder")
    assert not done
    assert not made.complete()
    made, done = stage(allow_no_predictions=True)  # of the same preset
    assert done
    assert made.preset_name() == "small-encoder"
    made, done = stage(preset="tiny")
    assert done
    assert made.preset_name() == "tiny"


def test_a_mention_table_that_cannot_be_used_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    run = run_of(tmp_path, fine_tuning={"mentions": str(tmp_path / "other")}, machine={"device": "cpu"})
    made = FineTune(settings=run, task="extractive_qa")
    with pytest.raises(ValueError, match=r"manifest\.json: not there"):
        made.check_needs()


def test_what_a_kill_left_is_no_part_of_the_result(tmp_path: Path) -> None:
    made = FineTune(settings=run_of(tmp_path))
    for name in ("metrics.json", "tokenizer/.vocab.json." + 32 * "0" + ".tmp"):
        path = Path(made.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert [entry.path for entry in made.described()] == ["metrics.json"]
