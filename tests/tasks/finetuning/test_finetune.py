"""Fine-tuning on the example data: what is written, what is repeated to the byte, and what is refused."""

import json
import logging
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from model.files import save_model
from model.luke.config import PRESETS as MODEL_PRESETS
from model.luke.heads import LukeForPretraining
from model.training.checkpoints import hold
from pipeline.sequences.tokenizer_files import BERT_SPECIAL_TOKENS
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.finetuning import epochs as loop
from tasks.finetuning import finetune as finetuning
from tasks.finetuning.finetune import finetune, report_little
from tasks.finetuning.prepare import Run
from tasks.finetuning.prepare import prepare as prepare_run
from tasks.finetuning.registry import TASKS
from tasks.finetuning.variants import VARIANTS
from tasks.io.data_folder import split_file
from tasks.ner import task as ner
from tasks.ner.spans import Span
from tasks.questions import cloze as cloze_qa
from tasks.questions import extractive
from tasks.questions.annotations import Mention
from tasks.relations import relation_classification
from tasks.task import PROFILES, Hyperparameters
from tasks.typing import entity_typing
from tests.support import ROOT
from tests.support.fine_tuned import name_of

EXAMPLES = ROOT / "examples" / "ner"
CONFIG = replace(
    MODEL_PRESETS["tiny"], vocab_size=600, entity_vocab_size=6, hidden_size=32, entity_emb_size=16,
    num_hidden_layers=1, intermediate_size=64, max_position_embeddings=98,
)  # fmt: skip
QUICK = Hyperparameters(learning_rate=2e-3, head_learning_rate=5e-3, batch_size=8, epochs=2)
FILES = ["config.json", "metrics.json", "model.safetensors"]
FILES += ["predictions-dev.txt", "predictions-test.txt"]
FILES += ["tokenizer/merges.txt", "tokenizer/vocab.json", "training.jsonl"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny random weights (`weights`) and a tokenizer of the example data (`tokenizer`)."""
    folder = tmp_path_factory.mktemp("pretrained")
    train_tokenizer(
        (EXAMPLES / "train.txt").read_text().splitlines(), folder / "tokenizer", CONFIG.vocab_size
    )
    torch.manual_seed(0)
    save_model(folder / "weights", LukeForPretraining(CONFIG))
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for task in TASKS.values():
        monkeypatch.setitem(task.PRESETS, "quick", QUICK)


def run(
    folder: Path, output: Path, data: Path = EXAMPLES, *, task: str = "ner", **changes: Any
) -> dict[str, Any]:
    arguments = {"variant": "luke", "preset": "quick", "seed": 1, "profile": "fixed"}
    arguments |= {"allow_no_predictions": True, **changes}
    weights, tokenizer = folder / "weights", folder / "tokenizer"
    return finetune(task, data, weights, tokenizer, output, device="cpu", progress=False, **arguments)


def contents(output: Path) -> dict[str, bytes]:
    files = sorted(path for path in output.rglob("*") if path.is_file())
    return {str(path.relative_to(output)): path.read_bytes() for path in files}


@pytest.mark.usefixtures("quick")
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


@pytest.mark.usefixtures("quick")
def test_two_runs_in_one_folder_are_refused(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with hold(output / "checkpoints"), pytest.raises(ValueError, match=f"{output}: another run trains there"):
        run(folder, output)
    run(folder, output)
    assert sorted(contents(output)) == FILES
    (output / "checkpoints").mkdir()  # as of a run that was killed when it was done
    run(folder, output)
    assert not (output / "checkpoints").exists()


@pytest.mark.usefixtures("quick")
def test_an_earlier_result_stays_whole_until_the_next_is_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also its tokenizer, of another format than the next one's, of which nothing is left then."""
    from tests.support.fine_tuned import bert

    bert(tmp_path / "bert")
    for name in ("weights", "tokenizer"):
        (tmp_path / name).symlink_to(tmp_path / "bert")
    output = tmp_path / "out"
    run(folder, output)
    first = contents(output)

    def stop(run: Run, split: str) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(finetuning, "predict", stop)
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


@pytest.mark.usefixtures("quick")
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
    with pytest.raises(
        ValueError, match=r"tokenizer\.json: found the token 'a\\nb'; wanted tokens without line"
    ):
        run(tmp_path, tmp_path / "out")
    assert contents(tmp_path / "out") == first


@pytest.mark.usefixtures("quick")
def test_what_is_written_fits_together(folder: Path, tmp_path: Path) -> None:
    metrics = run(folder, tmp_path)
    for split in ("dev", "test"):
        scored = ner.score_files(EXAMPLES / f"{split}.txt", tmp_path / f"predictions-{split}.txt")
        assert scored == metrics[split]
        lines = (tmp_path / f"predictions-{split}.txt").read_text().splitlines()
        gold = (EXAMPLES / f"{split}.txt").read_text().splitlines()
        assert [line.rsplit(" ", 1)[0] for line in lines if line] == [line for line in gold if line]
    history = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [record["step"] for record in history] == list(range(16))
    assert [record["learning_rate"] for record in history] == pytest.approx(
        [QUICK.learning_rate * (16 - n) / 16 for n in range(16)]
    )
    losses = [record["loss"] for record in history]
    assert sum(losses[8:]) < sum(losses[:8])  # of the two epochs, which have the same examples
    configuration = json.loads((tmp_path / "config.json").read_text())
    assert configuration["labels"] == ["O", "LOC", "MISC", "ORG", "PER"]
    assert configuration["hyperparameters"]["max_words"] == 96
    assert configuration["model"]["entity_vocab_size"] == 2
    weights = load_file(tmp_path / "model.safetensors")
    assert weights["classifier.weight"].shape == (5, 96)
    assert weights["luke.entity_embeddings.token.weight"].shape == (2, 16)


def test_a_small_training_set_is_learnt(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        ner.PRESETS, "thorough", replace(QUICK, learning_rate=5e-3, batch_size=2, epochs=35, patience=10)
    )
    documents = (EXAMPLES / "train.txt").read_text().split("-DOCSTART- -X- O O\n")
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.txt").write_text("-DOCSTART-\n".join(documents[:4]))
    metrics = run(folder, tmp_path / "out", tmp_path, preset="thorough")
    assert metrics["dev"]["f1"] > 0.9
    assert metrics["splits_without_predictions"] == []


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("variant", sorted(VARIANTS))
def test_each_variant_has_its_inputs_and_attention(folder: Path, tmp_path: Path, variant: str) -> None:
    metrics = run(folder, tmp_path, variant=variant)
    weights = load_file(tmp_path / "model.safetensors")
    row = VARIANTS[variant]
    assert weights["classifier.weight"].shape[1] == CONFIG.hidden_size * (3 if row.entities else 2)
    extra_queries = [name for name in weights if "query" in name and "weight" in name]
    assert (len(extra_queries) > 1) == row.entity_aware_attention
    assert json.loads((tmp_path / "config.json").read_text())["entities"] is row.entities
    assert metrics["variant"] == variant


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("variant", sorted(VARIANTS))
@pytest.mark.parametrize("task", [cloze_qa, extractive])
def test_question_answering_in_each_variant(
    folder: Path, tmp_path: Path, mentions: Path, task: ModuleType, variant: str
) -> None:
    name = name_of(task)
    data = EXAMPLES.parent / name
    takes = {"mentions": mentions} if task is extractive else {}
    metrics = run(folder, tmp_path, data, task=name, variant=variant, **takes)
    for split in ("dev", "test"):
        scored = task.score_files(split_file(data, split), tmp_path / f"predictions-{split}.json")
        assert scored.pop("unknown") == 0
        assert scored == metrics[split]
        assert scored["questions"] == len(task.read(split_file(data, split)).examples)
    weights, row = load_file(tmp_path / "model.safetensors"), VARIANTS[variant]
    inputs, rows = (2, 1) if task is cloze_qa else (1, 2)
    assert weights["classifier.weight"].shape == (rows, inputs * CONFIG.hidden_size)
    pretrained = load_file(folder / "weights" / "model.safetensors")["luke.entity_embeddings.token.weight"]
    found = weights["luke.entity_embeddings.token.weight"]
    if task is extractive and row.entities:
        assert torch.equal(found, pretrained), "the whole table, as it was"
        assert metrics["data"]["train"]["entities"] > 5
    else:
        assert len(found) == (1 if task is extractive else 2)
        assert "entities_outside_vocabulary" not in metrics["data"]["train"]


def annotate(text: str, page: str | None) -> list[Mention]:
    """Every second word, some of them outside the vocabulary."""
    words = [(match.start(), match.end()) for match in re.finditer(r"\w+", text)]
    return [Mention(start, end, 1 + 2 * (start % 3)) for start, end in words[::2]]


@pytest.fixture
def mentions(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for a mention table by which `annotate` finds what it does."""
    made = tmp_path_factory.mktemp("mentions")
    (made / "manifest.json").write_text("{}")
    monkeypatch.setattr("tasks.finetuning.prepare.open_annotator", lambda table, weights: annotate)
    monkeypatch.setattr(finetuning, "read_manifest", lambda table: None)
    monkeypatch.setattr(finetuning, "entities_sha256", lambda table: "0" * 64)
    return made


@pytest.mark.usefixtures("quick")
def test_an_annotator_is_for_extractive_questions_alone(folder: Path, tmp_path: Path, mentions: Path) -> None:
    with pytest.raises(
        ValueError, match=r"an annotator finds Wikipedia's entities, which extractive_qa alone"
    ):
        run(folder, tmp_path, mentions=mentions)


def test_extractive_questions_are_learnt_by_heart(
    folder: Path, tmp_path: Path, mentions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thorough = replace(QUICK, learning_rate=3e-3, batch_size=4, epochs=30, patience=10)
    monkeypatch.setitem(extractive.PRESETS, "thorough", thorough)
    data = json.loads((EXAMPLES.parent / "extractive_qa" / "train.json").read_text())
    data["data"] = data["data"][:3]
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.json").write_text(json.dumps(data))
    metrics = run(
        folder, tmp_path / "out", tmp_path, task="extractive_qa", preset="thorough", mentions=mentions
    )
    assert metrics["test"]["f1"] > 0.9


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("variant", sorted(VARIANTS))
@pytest.mark.parametrize("task", [entity_typing, relation_classification])
def test_marked_mentions_in_each_variant(
    folder: Path, tmp_path: Path, task: ModuleType, variant: str
) -> None:
    name = name_of(task)
    data = EXAMPLES.parent / name
    metrics = run(folder, tmp_path, data, task=name, variant=variant)
    for split in ("dev", "test"):
        scored = task.score_files(data / f"{split}.json", tmp_path / f"predictions-{split}.jsonl")
        scored.pop("negative_label", None)
        assert scored.pop("labels_left_out", None) in (None, {"gold": 0, "predicted": 0})
        assert scored == metrics[split]
    weights = load_file(tmp_path / "model.safetensors")
    mentions = len(task.ENTITIES)
    assert weights["classifier.weight"].shape == (
        len(json.loads((tmp_path / "config.json").read_text())["labels"]), CONFIG.hidden_size * mentions
    )  # fmt: skip
    markers = len(task.WORD_MARKERS)
    assert len(weights["luke.word_embeddings.token.weight"]) == CONFIG.vocab_size + markers
    assert len(weights["luke.entity_embeddings.token.weight"]) == 1 + mentions


@pytest.mark.usefixtures("quick")
def test_label_files_and_negative_labels_are_used(folder: Path, tmp_path: Path) -> None:
    name = "relation_classification"
    shutil.copytree(EXAMPLES.parent / name, tmp_path / "data")
    labels = ["no_relation", "per:title", "per:city_of_birth", "org:founded_by"]
    labels += ["org:city_of_headquarters", "per:employee_of", "per:spouse"]
    (tmp_path / "data" / "labels.txt").write_text("\n".join(labels))
    metrics = run(folder, tmp_path / "out", tmp_path / "data", task=name, negative_label="per:title")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["labels"], config["negative_label"]) == (labels, "per:title")
    assert metrics["dev"]["gold"] == 17
    (tmp_path / "data" / "rel2id.json").write_text('{"a": 0}')
    with pytest.raises(ValueError, match=r"found labels.txt and rel2id.json; give one label file"):
        run(folder, tmp_path / "out2", tmp_path / "data", task=name)


@pytest.mark.parametrize("task", [entity_typing, relation_classification])
def test_marked_mentions_are_learnt(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: ModuleType
) -> None:
    name = name_of(task)
    thorough = replace(
        QUICK, learning_rate=3e-3, head_learning_rate=6e-3, batch_size=4, epochs=60, patience=10
    )
    monkeypatch.setitem(task.PRESETS, "thorough", thorough)
    for split in ("train", "dev", "test"):
        shutil.copy(EXAMPLES.parent / name / "dev.json", tmp_path / f"{split}.json")
    metrics = run(folder, tmp_path / "out", tmp_path, task=name, preset="thorough")
    assert metrics["dev"]["f1"] > 0.9


@pytest.mark.usefixtures("quick")
def test_dev_may_be_called_val(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(EXAMPLES, data)
    (data / "dev.txt").rename(data / "val.txt")
    assert prepare_run(
        ner, VARIANTS["luke"], QUICK, data, folder / "weights", folder / "tokenizer",
        seed=1, device="cpu", profile="fixed", progress=False,
    ).datasets["dev"].sentences  # fmt: skip


@pytest.mark.usefixtures("quick")
def test_transformers_roberta_is_the_baseline(folder: Path, tmp_path: Path) -> None:
    from transformers import RobertaConfig, RobertaForMaskedLM

    sizes = {name: getattr(CONFIG, name) for name in RobertaConfig().to_dict() if hasattr(CONFIG, name)}
    RobertaForMaskedLM(RobertaConfig(**sizes)).save_pretrained(tmp_path / "weights")
    shutil.copytree(folder / "tokenizer", tmp_path / "tokenizer")
    metrics = run(tmp_path, tmp_path / "out", variant="roberta")
    assert metrics["dev"]["gold"] == metrics["data"]["dev"]["entities"]
    assert load_file(tmp_path / "out" / "model.safetensors")["classifier.weight"].shape == (5, 64)


@pytest.mark.parametrize(
    ("profile", "dev", "kept"), [("fixed", [0.2, 0.6, 0.6], 2), ("paper", [0.2, 0.6, 0.1], 3)]
)
def test_the_kept_epoch(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, dev: list[float], kept: int
) -> None:
    """The weights of an epoch are told apart by what the classifier holds when dev is scored."""
    monkeypatch.setitem(ner.PRESETS, "three", Hyperparameters(1e-3, 1e-3, batch_size=60, epochs=3))
    seen: list[torch.Tensor] = []
    predict = loop.predict

    def remember(run: Run, split: str) -> Any:
        seen.append(run.module.state_dict()["classifier.weight"].clone())
        return predict(run, split)

    monkeypatch.setattr(loop, "predict", remember)
    found = iter(dev)
    score = ner.score
    monkeypatch.setattr(ner, "score", lambda *sides: {**score(*sides), "f1": next(found, 0.0)})
    metrics = run(folder, tmp_path, preset="three", profile=profile)
    assert [epoch["dev_f1"] for epoch in metrics["epochs"]] == dev
    assert metrics["kept_epoch"] == kept
    written = load_file(tmp_path / "model.safetensors")["classifier.weight"]
    assert torch.equal(written, seen[kept - 1])
    assert not torch.equal(seen[0], seen[1])


def prepare(folder: Path, **changes: Any) -> Run:
    arguments = {"seed": 3, "device": "cpu", "profile": "fixed", "progress": False}
    task, row = TASKS["ner"], VARIANTS["luke"]
    hyperparameters = replace(QUICK, head_learning_rate=0.25)
    return prepare_run(
        task,
        row,
        hyperparameters,
        EXAMPLES,
        folder / "weights",
        folder / "tokenizer",
        **{**arguments, **changes},
    )


def test_optimiser_follows_profile_and_hyperparameters(folder: Path) -> None:
    optimizers = {profile: loop.optimizer_of(prepare(folder, profile=profile)) for profile in PROFILES}
    assert isinstance(optimizers["fixed"], torch.optim.AdamW)
    assert not isinstance(optimizers["paper"], torch.optim.AdamW)
    for optimizer in optimizers.values():
        groups = [
            (group["lr"], group["weight_decay"], len(group["params"])) for group in optimizer.param_groups
        ]
        assert groups[2:] == [(0.25, 0.01, 1), (0.25, 0.0, 1)]
        assert [group[:2] for group in groups[:2]] == [
            (QUICK.learning_rate, 0.01),
            (QUICK.learning_rate, 0.0),
        ]
        assert {(group["betas"], group["eps"]) for group in optimizer.param_groups} == {((0.9, 0.98), 1e-6)}


def test_each_epoch_shows_every_feature_once_in_a_new_order(folder: Path) -> None:
    prepared = prepare(folder)
    words = sum(len(feature.word_ids) for feature in prepared.features["train"].items)
    epochs = []
    for epoch in range(2):
        steps = range(epoch * prepared.steps_per_epoch, (epoch + 1) * prepared.steps_per_epoch)
        batches = [loop.parts_of_step(prepared, step)[0].batch for step in steps]
        assert sum(int(batch.inputs.word_mask.sum()) for batch in batches) == words
        assert sum(len(batch.sizes) for batch in batches) == 60
        epochs.append([batch.sizes for batch in batches])
    assert epochs[0] != epochs[1]


NOTHING = r"ner, variant luke: NOTHING is predicted on dev and test: .* in 1 epochs at learning rates 1e-09 and 2e-09 "
NOTHING += r"\(classifier\); take higher ones or more epochs"


def test_silence_on_questions_is_an_error_too() -> None:
    questions = {"questions": 3, "predicted": 0}
    metrics = {"splits_without_predictions": ["dev", "test"], "dev": questions, "test": questions}
    with pytest.raises(ValueError, match="cloze_qa: NOTHING is predicted on dev and test"):
        finetuning.report_silence("cloze_qa", metrics, QUICK, allowed=False)


def silent(monkeypatch: pytest.MonkeyPatch, splits: tuple[str, ...] = ("dev", "test")) -> None:
    """Makes a model find nothing in these splits, and one entity in the other."""
    monkeypatch.setitem(ner.PRESETS, "dull", Hyperparameters(1e-9, 2e-9, batch_size=30, epochs=1))

    def decode(dataset: Any, *rest: Any) -> list[list[Span]]:
        found = [] if dataset.path.stem in splits else [Span(0, 1, "PER")]
        return [found for _ in dataset.sentences]

    monkeypatch.setattr(ner, "decode", decode)


@pytest.mark.usefixtures("quick")
def test_a_log_without_a_bar_is_told_how_far_it_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loop, "_TELL_SECONDS", 0)
    with caplog.at_level(logging.INFO):
        run(folder, tmp_path)
    told = [record.message for record in caplog.records if record.message.startswith("fine-tuning: step")]
    steps = (tmp_path / "training.jsonl").read_text().count('"step"')
    assert len(told) == steps > 1
    assert re.fullmatch(rf"fine-tuning: step 1 of {steps}, loss \d\.\d{{3}}", told[0])
    assert re.fullmatch(rf"fine-tuning: step {steps} of {steps}, loss \S+, dev_F1 0\.\d{{3}}", told[-1])


def test_a_model_that_predicts_nothing_is_an_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    silent(monkeypatch)
    with pytest.raises(ValueError, match=NOTHING):
        run(folder, tmp_path / "out", preset="dull", allow_no_predictions=False)
    assert sorted(contents(tmp_path / "out")) == FILES, "what was computed is there to be looked at"
    with caplog.at_level(logging.WARNING):
        metrics = run(folder, tmp_path / "allowed", preset="dull")
    assert metrics["splits_without_predictions"] == ["dev", "test"]
    assert [record.message.split(":")[0] for record in caplog.records] == ["ner, variant luke"] * 2
    assert [f"NOTHING is predicted on {split}:" in caplog.text for split in ("dev", "test")] == [True] * 2


def test_a_split_without_predictions_is_a_warning(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    silent(monkeypatch, ("test",))
    with caplog.at_level(logging.WARNING):
        metrics = run(folder, tmp_path, preset="dull", allow_no_predictions=False)
    assert metrics["splits_without_predictions"] == ["test"]
    told = [record.message.split(":")[1] for record in caplog.records]
    assert [each for each in told if "NOTHING" in each] == [" NOTHING is predicted on test"]


def test_nothing_is_right_where_there_is_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent(monkeypatch)
    shutil.copytree(EXAMPLES, tmp_path / "data")
    for split in ("dev", "test"):
        lines = (EXAMPLES / f"{split}.txt").read_text().splitlines()
        plain = "".join(f"{line.rsplit(' ', 1)[0]} O\n" if line else "\n" for line in lines)
        (tmp_path / "data" / f"{split}.txt").write_text(plain)
    metrics = run(folder, tmp_path / "out", tmp_path / "data", preset="dull", allow_no_predictions=False)
    for split in ("dev", "test"):
        assert [metrics[split][name] for name in ("gold", "predicted", "correct", "f1")] == [0, 0, 0, 0.0]
    assert metrics["splits_without_predictions"] == ["dev", "test"], (
        "said, but no error: there is none to find"
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"variant": "ernie"}, "variant 'ernie' is unknown; expected one of luke, luke_original_attention"),
        (
            {"preset": "huge"},
            "preset 'huge' is unknown; expected one of tiny, demo, small-encoder, base, large",
        ),
        ({"profile": "both"}, "profile 'both' is unknown; expected one of fixed, paper"),
    ],
)
def test_unknown_names_are_refused(
    folder: Path, tmp_path: Path, changes: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match="is unknown") as error:
        run(folder, tmp_path, **changes)
    assert message in str(error.value)


@pytest.mark.usefixtures("quick")
def test_missing_data_is_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"absent: no such folder; expected one with train"):
        run(folder, tmp_path / "out", tmp_path / "absent")
    shutil.copytree(EXAMPLES, tmp_path / "data")
    (tmp_path / "data" / "dev.txt").unlink()
    with pytest.raises(
        ValueError, match=r"data: no file for the split 'dev'; give one dev\.\* or .* \(found .*train\.txt\)"
    ):
        run(folder, tmp_path / "out", tmp_path / "data")
    for name in ("dev.conll", "dev.txt"):
        shutil.copy(EXAMPLES / "dev.txt", tmp_path / "data" / name)
    with pytest.raises(ValueError, match=r"data: found dev.conll, dev.txt for the split 'dev'"):
        run(folder, tmp_path / "out", tmp_path / "data")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("quick")
def test_a_tokenizer_of_other_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "tokenizer", tmp_path / "tokenizer")
    save_model(tmp_path / "weights", LukeForPretraining(replace(CONFIG, vocab_size=300)))
    with pytest.raises(
        ValueError, match=r"has 300 word embeddings; give the tokenizer that the weights were"
    ):
        run(tmp_path, tmp_path / "out")


def test_a_model_that_is_hardly_better_than_none_is_told_with_its_figures(
    caplog: pytest.LogCaptureFixture,
) -> None:
    little = {"f1": 22 / 121, "predicted": 11, "correct": 11, "gold": 110}  # all of it is right
    enough, silent = {**little, "f1": 0.2}, {**little, "f1": 0.0, "predicted": 0}
    for dev, test, told in ((little, enough, "dev"), (enough, little, "test"), (enough, silent, "")):
        caplog.clear()
        report_little("ner, variant luke", {"dev": dev, "test": test}, TASKS["ner"].PRESETS["tiny"])
        if told:
            wanted = (
                f"ner, variant luke: on {told} the model is hardly better than one that predicts nothing: "
            )
            assert caplog.messages[0].startswith(
                wanted + "F1 18.2 %, 11 predicted, 11 of them right, of 110 that are there"
            )
        assert len(caplog.messages) == bool(told)
