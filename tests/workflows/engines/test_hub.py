"""Models by name: pinned to a revision, asked for before anything runs, fetched by those who read them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import DATA
from tests.support.hugging_face import NEWEST, OLDER, Hub, hugging_face
from tests.support.stages import run_of
from workflows import BuildSequences, ExportHuggingFace, FineTune, Pretrain, TrainTokenizer
from workflows.base.stage import Stage
from workflows.engines import hub as engine
from workflows.run.file import Run

DUMP = str(DATA / "wiki-40.xml.bz2")
OLD, NEW = "pytorch_model.bin", "model.safetensors"
SMALL = {"config.json": b'{"model_type": "roberta", "hidden_size": 768}', "README.md": b"a card"}
ROBERTA = {**SMALL, "vocab.json": b'{"<s>": 0}', "merges.txt": b"#version: 0.2\n", "tokenizer.json": b"{}"}
KERAS, TWO = {"tf_model.h5": b"other"}, [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
REPOSITORIES = {
    "someone/luke": {**ROBERTA, **KERAS, "entity_vocab.json": b"[]", NEW: b"new", OLD: b"old"},
    "someone/large": {**ROBERTA, **{name: name.encode() for name in TWO}},
    "someone/old": {**ROBERTA, **KERAS, OLD: b"old"},
    "someone/bert": {**SMALL, "vocab.txt": b"[PAD]\n", "tokenizer_config.json": b"{}", NEW: b"new"},
    "someone/flax": {**ROBERTA, "flax_model.msgpack": b"other"},
    "someone/speech": {**SMALL, NEW: b"new"},
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Hugging Face on this machine, and an empty cache."""
    from huggingface_hub import constants

    with hugging_face(REPOSITORIES) as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        files = f"{served.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        forget()
        yield served
    forget()


def forget() -> None:
    """What a new run does not know yet."""
    engine.find_model.cache_clear()


def fetched(served: Hub) -> set[str]:
    """The files that were fetched since the last call, without repository and revision."""
    names = {path.split("/", 2)[2] for path in served.fetched}
    served.fetched.clear()
    return names


def check(stage: Stage) -> dict[str, Any]:
    """What the command line's check does, but for the machine; gives what decides the bytes."""
    _ = stage.hash8
    type(stage).check_needs(stage)
    return stage.bytes_parameters()


def test_nothing_is_fetched_while_the_command_is_checked(hub: Hub, tmp_path: Path) -> None:
    def given(name: str) -> Run:
        return run_of(tmp_path, corpus={"dump": DUMP}, pretraining={"base_model": name}, machine=machine)

    machine = {"device": "cpu"}
    tuned = run_of(tmp_path, fine_tuning={"weights": {"luke": "someone/luke"}}, machine=machine)
    pinned = f"someone/luke@{NEWEST}"
    tokenizer = dict.fromkeys(("vocab.json", "merges.txt"), pinned)
    assert check(Pretrain(settings=given("someone/luke")))["base_model"] == pinned
    assert check(ExportHuggingFace(settings=given("someone/luke")))["tokenizer"] == tokenizer
    found = check(FineTune(settings=tuned))
    assert (found["weights"], found["tokenizer"], found["preset"]) == (pinned, tokenizer, "auto")
    sequences = BuildSequences(settings=given("someone/luke"))
    assert sequences.bytes_parameters()["tokenizer"] == tokenizer
    assert not any(isinstance(stage, TrainTokenizer) for stage in sequences.upstream())
    assert fetched(hub) == set()
    # The stages fetch: the tokenizer alone, then the weights of the same revision.
    folder = Path(sequences.tokenizer_folder())
    assert fetched(hub) == {"vocab.json", "merges.txt"}
    assert {path.name for path in folder.iterdir()} == {"vocab.json", "merges.txt"}
    fine_tuning = FineTune(settings=tuned)
    assert fine_tuning.weights_folder() == str(folder)
    assert fetched(hub) == {"config.json", "entity_vocab.json", "tokenizer.json", NEW}
    assert fine_tuning.preset_name() == "base"


def test_a_name_is_pinned_to_the_revision_that_was_found(hub: Hub, tmp_path: Path) -> None:
    def stage(name: str) -> BuildSequences:
        return BuildSequences(settings=run_of(tmp_path, pretraining={"base_model": name}))

    first = stage("someone/luke").hash8
    hub.newest = "c" * 40  # somebody uploads
    assert Path(stage("someone/luke").tokenizer_folder()).name == NEWEST
    assert stage(f"someone/luke@{NEWEST}").hash8 == first
    assert stage("someone/luke@v1").tokenizer_identity()["vocab.json"] == f"someone/luke@{OLDER}"
    forget()
    assert stage("someone/luke").tokenizer_identity()["vocab.json"] == "someone/luke@" + "c" * 40


def test_without_a_network_the_cache_serves(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    online = engine.find_model("someone/luke", "--weights")
    folder = engine.model_folder("someone/luke", "--weights")
    hub.newest = "c" * 40
    forget()
    assert engine.find_model("someone/luke", "--weights").revision == hub.newest  # nothing of it is fetched
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    forget()
    found = engine.find_model("someone/luke", "--weights")
    assert found.identity == online.identity
    assert engine.model_folder("someone/luke", "--weights") == folder
    assert engine.tokenizer_folder("someone/luke", "--weights") == folder
    for name in ("someone/luke@v1", "someone/old"):
        with pytest.raises(ValueError, match=rf"^--weights {name}: .* not to be had .*Connection refused"):
            engine.find_model(name, "--weights")


@pytest.mark.parametrize(
    ("name", "weights"), [("someone/luke", {NEW}), ("someone/large", {*TWO}), ("someone/old", {OLD})]
)
def test_old_weights_are_fetched_only_where_there_are_no_others(
    hub: Hub, name: str, weights: set[str]
) -> None:
    engine.model_folder(name, "--weights")
    names = fetched(hub)
    assert {file for file in names if file.startswith(("model", "pytorch", "tf"))} == weights
    assert {"config.json", "vocab.json", "merges.txt"} < names
    assert "README.md" not in names


def test_names_without_a_model_are_refused_by_their_parameter(hub: Hub, tmp_path: Path) -> None:
    def weights(name: str) -> Run:
        return run_of(tmp_path, fine_tuning={"weights": {"luke": name}}, machine={"device": "cpu"})

    def base(name: str) -> Run:
        return run_of(tmp_path, pretraining={"base_model": name}, machine={"device": "cpu"})

    luke, model = "^fine_tuning.weights.luke", "^pretraining.base_model"
    for kind, run, message in (
        (FineTune, weights("someone/flax"), rf"{luke} someone/flax: found neither \*\.safetensors nor "),
        (Pretrain, base("someone/flax"), rf"{model} someone/flax: found neither .* at Hugging"),
        (FineTune, weights("./luke"), rf"{luke} .*/luke: no such folder; give"),
        (FineTune, weights("someone/none"), rf"{luke} someone/none: .* \(404 .* Not Found"),
        (BuildSequences, base("someone/luke@v9"), rf"{model} someone/luke@v9: .*Revision Not"),
        (BuildSequences, base("someone/speech"), rf"^someone/speech@{NEWEST} at .* found no vocab"),
    ):
        with pytest.raises(ValueError, match=message):
            check(kind(settings=run))
    assert fetched(hub) == set()
