"""Models by name: pinned to a revision, asked for before anything runs, fetched by those who read them."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import DATA
from tests.support.hugging_face import NEW, NEWEST, OLDER, Hub, fetched, forget
from tests.support.stages import run_of
from workflows import BuildSequences, ExportHuggingFace, FineTune, Pretrain, TrainTokenizer
from workflows.base.stage import Stage
from workflows.run.file import Run

DUMP = str(DATA / "wiki-40.xml.bz2")


def check(stage: Stage) -> dict[str, Any]:
    """Check as the command line does, but for the machine, and return what decides the bytes."""
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
