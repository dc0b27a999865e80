"""The authors' release of LUKE, written here in its layout, and what is refused of it."""

import json
import tarfile
from pathlib import Path

import pytest
import torch

from model.hf.__main__ import main
from model.hf.compare import check
from model.hf.load import fingerprint_model, load_luke, read_model
from model.hf.original import read_entity_titles
from tests.support.models import (
    TINY,
    luke_of_transformers,
    random_batch,
    run_transformers,
    transformers_values,
    words_of_transformers,
)

CONFIGURED = transformers_values(TINY).keys() - {"use_entity_aware_attention"}


def release(folder: Path, name: str = "roberta-base", **changes: object) -> torch.nn.Module:
    """Write a random LUKE as the authors' training does, and return it as a model of transformers."""
    theirs = luke_of_transformers("LukeForMaskedLM", use_entity_aware_attention=False)
    with torch.no_grad():
        theirs.lm_head.decoder.weight.copy_(theirs.luke.embeddings.word_embeddings.weight)
    state = {key.removeprefix("luke."): tensor.clone() for key, tensor in theirs.state_dict().items()}
    if "roberta" not in name:
        state = {key: tensor for key, tensor in state.items() if not key.startswith("lm_head.")}
        bert = words_of_transformers("BertForPreTraining", pad_token_id=0).state_dict()
        state |= {key: tensor for key, tensor in bert.items() if key.startswith("cls.")}
        state["cls.predictions.decoder.weight"] = state["embeddings.word_embeddings.weight"]
    folder.mkdir(parents=True)
    torch.save(state, folder / "pytorch_model.bin")
    values = {
        "bert_model_name": name,
        **{key: value for key, value in theirs.config.to_dict().items() if key in CONFIGURED},
        "output_attentions": False,
        "pad_token_id": 0,  # as libraries of that time wrote it for RoBERTa, too
        **changes,
    }
    metadata = {"model_config": values, "max_seq_length": 512, "max_entity_length": 128}
    (folder / "metadata.json").write_text(json.dumps(metadata | {"max_mention_length": 30}))
    pages = (f"Page {number}" for number in range(3, TINY.entity_vocab_size))
    lines = [f"{title}\t9\n" for title in ("[PAD]", "[UNK]", "[MASK]", *pages)]
    (folder / "entity_vocab.tsv").write_text("".join(lines))
    return theirs


@pytest.mark.parametrize("entity_aware", [False, True])
def test_release_computes_what_transformers_computes(
    tmp_path: Path, entity_aware: bool, caplog: pytest.LogCaptureFixture
) -> None:
    theirs = release(tmp_path / "luke")
    with caplog.at_level("INFO"):
        ours = load_luke(str(tmp_path / "luke"), use_entity_aware_attention=entity_aware, mask_word=4)
    said = f"{tmp_path / 'luke'}: entity-aware queries start as copies of Q, as in the paper"
    assert (said in caplog.text) == entity_aware
    batch = random_batch()
    with torch.no_grad():
        for mine, their_own in zip(ours(batch), run_transformers(theirs.luke, batch), strict=True):
            torch.testing.assert_close(mine, their_own, atol=1e-5, rtol=0)


def test_release_that_started_from_bert(tmp_path: Path) -> None:
    release(tmp_path / "luke", "bert-base-uncased")
    config, weights = read_model(str(tmp_path / "luke"))
    assert (config.word_encoder, config.pad_token_id) == ("bert", 0)
    assert "word_head.dense.weight" in weights
    load_luke(str(tmp_path / "luke"), use_entity_aware_attention=False, mask_word=4)


def test_release_becomes_a_folder_of_transformers(tmp_path: Path) -> None:
    import transformers

    tokenizer = tmp_path / "tokenizer"
    tokenizer.mkdir()
    words = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "@", "#"]
    words += [chr(0x61 + number) for number in range(TINY.vocab_size - len(words))]
    (tokenizer / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (tokenizer / "merges.txt").write_text("#version: 0.2\n")
    theirs = release(tmp_path / "luke").state_dict()
    vocabulary = str(tmp_path / "luke" / "entity_vocab.tsv")
    arguments = [str(tmp_path / "luke"), str(tmp_path / "out"), "--tokenizer", str(tokenizer)]
    assert main(["export", *arguments, "--entity-vocab", vocabulary]) == 0
    module, info = transformers.LukeForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(info.values()), info
    state = module.state_dict()
    for key in (key for key in theirs if "pooler" not in key):
        assert torch.equal(state[key][: len(theirs[key])], theirs[key]), key
    config, _ = read_model(str(tmp_path / "luke"))
    assert (config.word_encoder, config.pad_token_id) == ("roberta", 1)
    differences, absent, left_out = check(tmp_path / "out")
    assert max(differences.values()) < 1e-5
    assert set(differences) == {"word states", "entity states", "word logits", "entity logits"}
    assert not absent
    assert not left_out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bert_model_name": None}, r"metadata\.json: model_config: bert_model_name is None, wanted a name"),
        ({"hidden_size": 17}, r"metadata\.json: model_config: hidden_size is 17, but must be a multiple"),
        (
            {"entity_vocab_size": 99},
            r"entity_vocab\.tsv: 12 lines, but metadata\.json says entity_vocab_size 99",
        ),
        ({"intermediate_size": 25}, r"intermediate\.bias has shape \(24,\), the configuration wants \(25,\)"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    release(tmp_path / "luke", **changes)
    with pytest.raises(ValueError, match=message):
        load_luke(str(tmp_path / "luke"), use_entity_aware_attention=False, mask_word=4)


def test_what_is_not_whole_is_refused(tmp_path: Path) -> None:
    release(tmp_path / "luke")
    folder = tmp_path / "luke"
    (folder / "entity_vocab.tsv").unlink()
    with pytest.raises(ValueError, match=r"entity_vocab\.tsv: no such file"):
        read_model(str(folder))
    (folder / "metadata.json").write_text("{}")
    with pytest.raises(ValueError, match=r"metadata\.json: no model_config in it"):
        read_model(str(folder))


def test_an_archive_is_to_be_unpacked(tmp_path: Path) -> None:
    release(tmp_path / "luke")
    archive = tmp_path / "luke.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(tmp_path / "luke", arcname="luke")
    for load in (read_model, lambda path: check(Path(path))):
        with pytest.raises(
            ValueError, match=r"luke\.tar\.gz: a file; unpack it \(tar xf\) and give the folder"
        ):
            load(str(archive))
    with pytest.raises(ValueError, match=r"metadata\.json: a file; a folder is wanted; give the folder"):
        read_model(str(tmp_path / "luke" / "metadata.json"))


def test_fingerprint_sees_the_configuration(tmp_path: Path) -> None:
    release(tmp_path / "luke")
    before = fingerprint_model(str(tmp_path / "luke"))
    path = tmp_path / "luke" / "metadata.json"
    path.write_text(path.read_text().replace("roberta-base", "roberta-large"))
    assert fingerprint_model(str(tmp_path / "luke")) != before


def test_titles_are_numbered_by_line() -> None:
    assert read_entity_titles("[PAD]\t0\n[UNK]\t0\nA b\t7\n") == {"[PAD]": 0, "[UNK]": 1, "A b": 2}
    with pytest.raises(ValueError, match=r"line 2: 'A' is no title TAB count"):
        read_entity_titles("[PAD]\t0\nA\n")
    with pytest.raises(ValueError, match=r"line 2: '\[PAD\]\\t1' is a second title TAB count"):
        read_entity_titles("[PAD]\t0\n[PAD]\t1\n")
