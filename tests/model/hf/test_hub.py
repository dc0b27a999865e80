"""Models by name: pinned to a revision, fetched once, and found in the cache without a network."""

from pathlib import Path

import pytest

from model.hf import hub as engine
from model.hf.load import load_luke
from tests.support.hugging_face import NEW, OLD, TWO, Hub, fetched, forget
from tests.support.models import words_of_transformers


def test_without_a_network_the_cache_serves(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert engine.fetch(found, ["vocab.json"]) == folder
    for name in ("someone/luke@v1", "someone/old"):
        with pytest.raises(ValueError, match=rf"^--weights {name}: .* not to be had .*Connection refused"):
            engine.find_model(name, "--weights")


@pytest.mark.parametrize(
    ("name", "weights"), [("someone/luke", {NEW}), ("someone/large", {*TWO}), ("someone/old", {OLD})]
)
def test_old_weights_are_fetched_only_where_there_are_no_others(hub: Hub, name: str, weights: set[str]) -> None:
    engine.model_folder(name, "--weights")
    names = fetched(hub)
    assert {file for file in names if file.startswith(("model", "pytorch", "tf"))} == weights
    assert {"config.json", "vocab.json", "merges.txt"} < names
    assert "README.md" not in names


def test_a_model_is_loaded_by_its_name(hub: Hub, tmp_path: Path) -> None:
    words_of_transformers("RobertaForMaskedLM").save_pretrained(tmp_path)
    hub.repositories["someone/small"] = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    load_luke("someone/small", use_entity_aware_attention=False, mask_word=4)
    with pytest.raises(ValueError, match=r"^model someone/none: no such folder, and not to be had from Hugging"):
        load_luke("someone/none", use_entity_aware_attention=False, mask_word=4)
