"""Export to transformers: what it loads is what was written, to the bit, and every refusal."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from model.files import save_model
from model.hf.__main__ import main
from model.hf.export import export
from model.hf.keys import COPIES, to_transformers
from model.hf.load import load_luke, read_model
from model.luke.heads import LukeForPretraining
from tests.model.hf.test_card import answer
from tests.support.models import (
    TINY,
    flat_of,
    luke_of_transformers,
    random_batch,
    save_tied,
    shake,
    transformers_inputs,
)
from tests.support.padded import PaddedBatch

TITLES = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "Beyoncé": 3, "Los Angeles": 4, "東京": 5}


def pretrained(folder: Path, **changes: object) -> LukeForPretraining:
    """Save a random pretrained model with the words of RoBERTa's tokenizer and a few entities."""
    torch.manual_seed(0)
    values = {"vocab_size": 50265, "entity_vocab_size": len(TITLES)} | changes
    module = shake(LukeForPretraining(replace(TINY, **values))).eval()
    save_model(folder, module)
    (folder / "entity_vocab.json").write_text(json.dumps(TITLES))
    return module


def run_export(shared: Path, source: Path, output: Path, entity_vocab: Path | None = None) -> None:
    export(
        source,
        output,
        tokenizer=shared / "data" / "roberta-tokenizer",
        entity_vocab=entity_vocab or source / "entity_vocab.json",
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrain")
    pretrained(folder)
    return folder


@pytest.fixture
def exported(shared: Path, source: Path, tmp_path: Path) -> Path:
    run_export(shared, source, tmp_path / "export")
    return tmp_path / "export"


def test_transformers_loads_the_export_without_a_word(exported: Path, source: Path) -> None:
    import transformers

    theirs, info = transformers.LukeForMaskedLM.from_pretrained(exported, output_loading_info=True)
    assert not any(info.values()), info
    state = to_transformers(pretrained(source).state_dict())
    loaded = theirs.state_dict()
    for key, tensor in state.items():
        assert torch.equal(loaded[key][: len(tensor)], tensor), key
    words, entities = ("luke.embeddings.word_embeddings.weight", "luke.entity_embeddings.entity_embeddings.weight")
    assert torch.equal(loaded["lm_head.decoder.weight"], loaded[words])
    assert torch.equal(loaded["lm_head.decoder.bias"], loaded["lm_head.bias"])
    assert torch.equal(loaded["entity_predictions.decoder.weight"], loaded[entities])
    assert torch.equal(loaded[words][50265:], loaded[words][[1039, 10431]])
    assert torch.equal(loaded[entities][-1], loaded[entities][2])
    for layer in range(TINY.num_hidden_layers):
        for name in ("w2e_query", "e2w_query", "e2e_query"):
            prefix = f"luke.encoder.layer.{layer}.attention.self"
            assert torch.equal(loaded[f"{prefix}.{name}.weight"], loaded[f"{prefix}.query.weight"])


@torch.no_grad()
def outputs(theirs: Any, ours: LukeForPretraining, batch: PaddedBatch) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """The outputs of transformers' model for a batch, and our logits of words and of entities."""
    found = theirs(**transformers_inputs(batch))
    flat = flat_of(batch)
    words, entities = ours.luke(flat).split([flat.shape.words, flat.shape.entities])
    logits = ours.word_head(words, ours.luke.word_embeddings.token.weight)
    return found, logits, ours.entity_head(entities, ours.luke.entity_embeddings.token.weight)


def test_export_computes_what_the_source_computes(exported: Path, source: Path) -> None:
    import transformers

    ours = pretrained(source)
    theirs = transformers.LukeForMaskedLM.from_pretrained(exported).eval()
    batch = random_batch(ours.config)
    wanted, logits, entity_logits = outputs(theirs, ours, batch)
    found = wanted.logits[batch.word_mask][:, :50265]
    torch.testing.assert_close(found, logits, atol=1e-5, rtol=0)
    found = wanted.entity_logits[batch.entity_mask][:, : len(TITLES)]
    torch.testing.assert_close(found, entity_logits, atol=1e-5, rtol=0)


def test_words_of_bert_are_exported_with_their_own_tokenizer(tmp_path: Path) -> None:
    """Positions of BERT begin at 0, of transformers' LUKE behind the padding's id."""
    import transformers

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "@", "#", "los", "angeles", "##s", "."]
    tokenizer = tmp_path / "tokenizer"
    tokenizer.mkdir()
    (tokenizer / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    (tokenizer / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    ours = pretrained(tmp_path / "source", word_encoder="bert", pad_token_id=0, vocab_size=len(words))
    export(
        tmp_path / "source",
        tmp_path / "out",
        tokenizer=tokenizer,
        entity_vocab=tmp_path / "source" / "entity_vocab.json",
    )
    theirs, info = transformers.LukeForMaskedLM.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(info.values()), info
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert read("Los Angeless. <ent>")["input_ids"] == [2, 7, 8, 9, 10, len(words), 3]
    batch = random_batch(ours.config)
    word_ids = batch.word_ids.clamp(1, len(words) - 1).masked_fill(~batch.word_mask, 0)
    batch = replace(batch, word_ids=word_ids)
    wanted, logits, entity_logits = outputs(theirs.eval(), ours, batch)
    found = wanted.logits[batch.word_mask][:, : len(words)]
    torch.testing.assert_close(found, logits, atol=1e-5, rtol=0)
    found = wanted.entity_logits[batch.entity_mask][:, : len(TITLES)]
    torch.testing.assert_close(found, entity_logits, atol=1e-5, rtol=0)
    assert answer(tmp_path / "out") in {*TITLES, "[MASK2]"}


@pytest.mark.parametrize("entity_aware", [False, True])
def test_export_comes_back_with_the_same_bits(exported: Path, source: Path, entity_aware: bool) -> None:
    ours = pretrained(source).luke.state_dict()
    back = load_luke(str(exported), use_entity_aware_attention=entity_aware, mask_word=4).state_dict()
    for key, tensor in ours.items():
        assert torch.equal(back[key][: len(tensor)], tensor), key
    assert set(back) - set(ours) == {key for key in back if "_to_" in key}
    assert (set(back) > set(ours)) == entity_aware


@pytest.mark.parametrize("name", ["LukeTokenizer", "AutoTokenizer"])
def test_transformers_loads_the_tokenizer(exported: Path, name: str) -> None:
    import transformers

    tokenizer = getattr(transformers, name).from_pretrained(exported)
    text = "Beyoncé lives in Los Angeles."
    encoded = tokenizer(text, entity_spans=[(0, 7), (17, 28)], entities=["Beyoncé", "Nobody"])
    assert encoded["input_ids"] == [0, 40401, 261, 12695, 1074, 11, 1287, 1422, 4, 2]
    assert encoded["entity_ids"] == [3, 1]
    assert tokenizer.convert_tokens_to_ids(["<ent>", "<ent2>", "<mask>"]) == [50265, 50266, 50264]
    # <mask> takes the blank before it, as in RoBERTa.
    assert tokenizer("a <mask> b", add_special_tokens=False)["input_ids"] == [102, 50264, 741]
    assert tokenizer.entity_vocab == TITLES | {"[MASK2]": 6}
    assert (tokenizer.entity_pad_token_id, tokenizer.entity_mask2_token_id) == (0, 6)
    assert json.loads((exported / "entity_vocab.json").read_text()) == TITLES | {"[MASK2]": 6}


def test_an_export_is_a_tokenizer_and_a_model_to_go_on_with(exported: Path, tmp_path: Path) -> None:
    words = json.loads((exported / "vocab.json").read_text())
    config = json.loads((exported / "config.json").read_text())
    assert (words["<ent>"], words["<ent2>"]) == (50265, 50266)
    assert config["vocab_size"] == len(words) == 50267
    pretrained(tmp_path / "next", vocab_size=50267)
    export(
        tmp_path / "next", tmp_path / "again", tokenizer=exported, entity_vocab=tmp_path / "next" / "entity_vocab.json"
    )
    assert (tmp_path / "again" / "vocab.json").read_bytes() == (exported / "vocab.json").read_bytes()


def test_export_has_the_same_bytes_each_time(shared: Path, source: Path, exported: Path, tmp_path: Path) -> None:
    run_export(shared, source, tmp_path / "again")
    names = sorted(path.name for path in exported.iterdir())
    assert names == [
        "README.md",
        "config.json",
        "entity_vocab.json",
        "merges.txt",
        "model.safetensors",
        "tokenizer_config.json",
        "vocab.json",
    ]
    for name in names:
        assert (exported / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_entity_table_as_wide_as_the_words(shared: Path, tmp_path: Path) -> None:
    import transformers

    pretrained(tmp_path / "a", entity_emb_size=16)
    run_export(shared, tmp_path / "a", tmp_path / "b")
    _, info = transformers.LukeForMaskedLM.from_pretrained(tmp_path / "b", output_loading_info=True)
    assert not any(info.values()), info


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entity_head": "paper"}, "entity_head is 'paper', but transformers has only the head"),
        ({"vocab_size": 300}, r"vocab\.json: 50265 entries, but the model has 300; give the vocabulary"),
        (
            {"word_encoder": "bert", "hidden_act": "relu"},
            "model: hidden_act is 'relu', in the word head, too, where transf",
        ),
    ],
)
def test_models_that_transformers_cannot_be_are_refused(
    shared: Path, tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    pretrained(tmp_path / "model", **changes)
    with pytest.raises(ValueError, match=message):
        run_export(shared, tmp_path / "model", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ("{", "not JSON"),
        ('{"[PAD]": 0, "[UNK]": 1, "A": 2, "B": 3, "C": 4, "D": 5}', r"\[MASK\] missing"),
        (json.dumps(TITLES | {"A": 6}), "7 entries, but the model has 6; give"),
        (json.dumps(TITLES | {"[PAD]": 1, "[UNK]": 0}), r"begins with \('\[UNK\]', '\[PAD\]', '\[MASK\]'\), wanted"),
    ],
)
def test_vocabularies_of_other_entities_are_refused(
    shared: Path, source: Path, tmp_path: Path, content: str | None, message: str
) -> None:
    if content is not None:
        (tmp_path / "entities.json").write_text(content)
    with pytest.raises(ValueError, match=rf"entities\.json: {message}"):
        run_export(shared, source, tmp_path / "out", tmp_path / "entities.json")
    assert not (tmp_path / "out").exists()


def test_folders_without_a_pretrained_model_are_refused(shared: Path, source: Path, tmp_path: Path) -> None:
    save_model(tmp_path / "encoder", pretrained(tmp_path / "whole").luke)
    (tmp_path / "empty").mkdir()
    for name, message in (
        ("encoder", "encoder: no prediction heads in the weights"),
        ("empty", r"config\.json: no such file"),
        ("nowhere", "nowhere: no such folder; give the folder of a pretrained model"),
    ):
        with pytest.raises(ValueError, match=message):
            run_export(shared, tmp_path / name, tmp_path / "out", source / "entity_vocab.json")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("entity_aware", [False, True])
def test_what_transformers_wrote_is_exported_again_with_the_same_bits(
    shared: Path, tmp_path: Path, entity_aware: bool
) -> None:
    import transformers

    titles = TITLES | {"[MASK2]": 3, "Beyoncé": 6}
    changes = {"vocab_size": 50265, "entity_vocab_size": len(titles), "use_entity_aware_attention": entity_aware}
    theirs = save_tied(luke_of_transformers("LukeForMaskedLM", **changes), tmp_path / "theirs")
    (tmp_path / "entities.json").write_text(json.dumps(titles))
    run_export(shared, tmp_path / "theirs", tmp_path / "ours", tmp_path / "entities.json")
    again, info = transformers.LukeForMaskedLM.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(info.values()), info
    state = again.state_dict()
    for key, tensor in theirs.state_dict().items():
        if "pooler" not in key:
            assert torch.equal(state[key][: len(tensor)], tensor), key
    # [MASK2] had a row already, and keeps it.
    assert len(state["entity_predictions.bias"]) == len(titles)
    vocabulary = json.loads((tmp_path / "ours" / "entity_vocab.json").read_text())
    assert vocabulary == titles
    saved = load_file(tmp_path / "ours" / "model.safetensors")
    assert set(COPIES) <= set(saved)
    assert sum("_query." in key for key in saved) == 6 * TINY.num_hidden_layers
    again.save_pretrained(tmp_path / "third")
    _, weights = read_model(str(tmp_path / "third"))
    ours = to_transformers(weights)
    assert all(torch.equal(ours[key], state[key]) for key in ours)
    assert set(state) - set(ours) - set(COPIES) == {"luke.pooler.dense.weight", "luke.pooler.dense.bias"}


def test_lite_keeps_the_special_entities_and_can_learn_its_mask(shared: Path, source: Path, tmp_path: Path) -> None:
    import transformers

    tokenizer_folder = shared / "data" / "roberta-tokenizer"
    titles = source / "entity_vocab.json"
    export(source, tmp_path / "lite", tokenizer=tokenizer_folder, entity_vocab=titles, lite=True)
    module, info = transformers.LukeForMaskedLM.from_pretrained(tmp_path / "lite", output_loading_info=True)
    assert not any(info.values()), info
    table = module.luke.entity_embeddings.entity_embeddings.weight
    whole = pretrained(tmp_path / "same").luke.entity_embeddings.token.weight
    assert torch.equal(table, whole[[0, 1, 2, 2]])
    assert module.config.entity_vocab_size == 4
    tokenizer = transformers.LukeTokenizer.from_pretrained(tmp_path / "lite", task="entity_classification")
    assert tokenizer.entity_vocab == {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 3}
    encoded = tokenizer("Beyoncé lives.", entity_spans=[(0, 7)], return_tensors="pt")
    weights = torch.linspace(-1, 1, TINY.hidden_size)
    (module.luke(**encoded).entity_last_hidden_state * weights).sum().backward()
    assert table.grad[2].abs().max() > 0
    card = (tmp_path / "lite" / "README.md").read_text()
    assert "| entities in the vocabulary | 4, the special ones alone |" in card


def test_card_counts_the_parameters_that_transformers_counts_and_its_program_runs(exported: Path) -> None:
    import transformers

    module = transformers.LukeForMaskedLM.from_pretrained(exported)
    # The word head's matrix, which transformers does not tie, is the word embeddings'.
    count = module.num_parameters() - module.lm_head.decoder.weight.numel()
    assert f"| parameters | {count:,} |" in (exported / "README.md").read_text()
    assert answer(exported) in {*TITLES, "[MASK2]"}


def test_command_line(shared: Path, source: Path, tmp_path: Path) -> None:
    vocabulary = tmp_path / "entity_vocab.json"
    vocabulary.write_text(json.dumps({title: row for row, title in enumerate(TITLES)}))
    arguments = ["export", str(source), str(tmp_path / "out"), "--entity-vocab", str(vocabulary), "--lite"]
    arguments += ["--tokenizer", str(shared / "data" / "roberta-tokenizer")]
    assert main(arguments) == 0
    assert "## Use" in (tmp_path / "out" / "README.md").read_text()
