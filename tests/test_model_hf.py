"""Exchange with transformers: export, strict import, and every refusal."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from models_for_tests import TINY, random_batch, shake, transformers_values

from model.checkpoint import load_luke, load_strictly, save_model
from model.heads import LukeForPretraining
from model.hf import ENCODER_KEYS, OURS_TO_THEIRS, from_transformers, rename, to_transformers
from model.hf_export import export

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


def test_names_are_one_to_one_and_round_trip() -> None:
    state = LukeForPretraining(replace(TINY, use_entity_aware_attention=True)).state_dict()
    theirs = to_transformers(state)
    assert len(theirs) == len(state)
    back = from_transformers(theirs, "", with_heads=True)
    assert back.keys() == state.keys()
    assert all(torch.equal(back[key], state[key]) for key in state)
    assert len(set(OURS_TO_THEIRS.values())) == len(OURS_TO_THEIRS)


def test_every_entry_of_the_table_is_used() -> None:
    state = LukeForPretraining(replace(TINY, use_entity_aware_attention=True)).state_dict()
    modules = {key.removeprefix("luke.").rpartition(".")[0] for key in state}
    assert {name.format(0) for name in ENCODER_KEYS} <= modules


@pytest.mark.parametrize(
    "key", ["luke.layers.x.output.weight", "head.weight", "luke.layers.0.0.output.weight", "a"]
)
def test_unknown_names_have_no_counterpart(key: str) -> None:
    assert rename(key, OURS_TO_THEIRS) is None


def test_transformers_loads_the_export_without_a_word(exported: Path, source: Path) -> None:
    import transformers

    theirs, info = transformers.LukeForMaskedLM.from_pretrained(exported, output_loading_info=True)
    assert not any(info.values()), info
    state = to_transformers(pretrained(source).state_dict())
    loaded = theirs.state_dict()
    for key, tensor in state.items():
        assert torch.equal(loaded[key][: len(tensor)], tensor), key
    words, entities = (
        "luke.embeddings.word_embeddings.weight",
        "luke.entity_embeddings.entity_embeddings.weight",
    )
    assert torch.equal(loaded["lm_head.decoder.weight"], loaded[words])
    assert torch.equal(loaded["lm_head.decoder.bias"], loaded["lm_head.bias"])
    assert torch.equal(loaded["entity_predictions.decoder.weight"], loaded[entities])
    assert torch.equal(loaded[words][50265:], loaded[words][[1039, 10431]])
    assert torch.equal(loaded[entities][-1], loaded[entities][2])
    for layer in range(TINY.num_hidden_layers):
        for name in ("w2e_query", "e2w_query", "e2e_query"):
            prefix = f"luke.encoder.layer.{layer}.attention.self"
            assert torch.equal(loaded[f"{prefix}.{name}.weight"], loaded[f"{prefix}.query.weight"])


def test_export_computes_what_the_source_computes(exported: Path, source: Path) -> None:
    import transformers

    ours = pretrained(source)
    theirs = transformers.LukeForMaskedLM.from_pretrained(exported).eval()
    batch = random_batch(ours.config)
    with torch.no_grad():
        wanted = theirs(
            input_ids=batch.word_ids,
            attention_mask=batch.word_mask.long(),
            entity_ids=batch.entity_ids,
            entity_attention_mask=batch.entity_mask.long(),
            entity_position_ids=batch.entity_positions,
        )
        words, entities = ours.luke(batch)
        logits = ours.word_head(words, ours.luke.word_embeddings.token.weight)
        entity_logits = ours.entity_head(entities, ours.luke.entity_embeddings.token.weight)
    torch.testing.assert_close(wanted.logits[..., :50265], logits, atol=1e-5, rtol=0)
    torch.testing.assert_close(wanted.entity_logits[..., : len(TITLES)], entity_logits, atol=1e-5, rtol=0)


@pytest.mark.parametrize("entity_aware", [False, True])
def test_export_comes_back_with_the_same_bits(exported: Path, source: Path, entity_aware: bool) -> None:
    ours = pretrained(source).luke.state_dict()
    back = load_luke(str(exported), use_entity_aware_attention=entity_aware).state_dict()
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


def test_export_and_tokenizer_work_together(exported: Path) -> None:
    import transformers

    tokenizer = transformers.LukeTokenizer.from_pretrained(exported, task="entity_pair_classification")
    model = transformers.LukeModel.from_pretrained(exported)
    encoded = tokenizer("Beyoncé lives in Los Angeles.", entity_spans=[(0, 7), (17, 28)], return_tensors="pt")
    assert encoded["entity_ids"].tolist() == [[2, 6]]
    assert model(**encoded).entity_last_hidden_state.isfinite().all()


def test_an_export_is_a_tokenizer_and_a_model_to_go_on_with(exported: Path, tmp_path: Path) -> None:
    words = json.loads((exported / "vocab.json").read_text())
    config = json.loads((exported / "config.json").read_text())
    assert (words["<ent>"], words["<ent2>"]) == (50265, 50266)
    assert config["vocab_size"] == len(words) == 50267
    pretrained(tmp_path / "next", vocab_size=50267)
    export(
        tmp_path / "next",
        tmp_path / "again",
        tokenizer=exported,
        entity_vocab=tmp_path / "next" / "entity_vocab.json",
    )
    assert (tmp_path / "again" / "vocab.json").read_bytes() == (exported / "vocab.json").read_bytes()


def test_export_has_the_same_bytes_each_time(
    shared: Path, source: Path, exported: Path, tmp_path: Path
) -> None:
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


def test_learnt_entity_aware_queries_are_exported(shared: Path, tmp_path: Path) -> None:
    import transformers

    module = pretrained(tmp_path / "a", use_entity_aware_attention=True)
    run_export(shared, tmp_path / "a", tmp_path / "b")
    loaded = transformers.LukeForMaskedLM.from_pretrained(tmp_path / "b").state_dict()
    learnt = module.state_dict()["luke.layers.1.attention.word_to_entity_query.weight"]
    assert torch.equal(loaded["luke.encoder.layer.1.attention.self.w2e_query.weight"], learnt)


def test_entity_table_as_wide_as_the_words(shared: Path, tmp_path: Path) -> None:
    import transformers

    pretrained(tmp_path / "a", entity_emb_size=16)
    run_export(shared, tmp_path / "a", tmp_path / "b")
    _, info = transformers.LukeForMaskedLM.from_pretrained(tmp_path / "b", output_loading_info=True)
    assert not any(info.values()), info


def test_what_cannot_be_exported_is_refused(shared: Path, source: Path, tmp_path: Path) -> None:
    pretrained(tmp_path / "paper", entity_head="paper")
    with pytest.raises(ValueError, match=r"entity_head is 'paper', but transformers has only the head"):
        run_export(shared, tmp_path / "paper", tmp_path / "out")
    pretrained(tmp_path / "words", vocab_size=300)
    with pytest.raises(
        ValueError, match=r"vocab\.json: 50265 entries, but the model has 300; give the vocabulary"
    ):
        run_export(shared, tmp_path / "words", tmp_path / "out")
    tokenizer = shared / "data" / "roberta-tokenizer"
    vocabulary = tmp_path / "entities.json"
    with pytest.raises(ValueError, match=r"entities\.json: no such file"):
        export(source, tmp_path / "out", tokenizer=tokenizer, entity_vocab=vocabulary)
    titles = {title: number for number, title in enumerate(["[PAD]", "[UNK]", "A", "B", "C", "D"])}
    vocabulary.write_text(json.dumps(titles))
    with pytest.raises(ValueError, match=r"entities\.json: \[MASK\] missing"):
        export(source, tmp_path / "out", tokenizer=tokenizer, entity_vocab=vocabulary)
    vocabulary.write_text(json.dumps(titles | {"B": 2, "[MASK]": 3} | {"A": 4, "C": 5} | {"D": 6}))
    with pytest.raises(ValueError, match=r"entities\.json: 7 entries, but the model has 6; give"):
        export(source, tmp_path / "out", tokenizer=tokenizer, entity_vocab=vocabulary)
    vocabulary.write_text(json.dumps({"[PAD]": 1, "[UNK]": 0, "[MASK]": 2, "A": 3, "B": 4, "C": 5}))
    with pytest.raises(
        ValueError, match=r"entities\.json: begins with \('\[UNK\]', '\[PAD\]', '\[MASK\]'\), wanted"
    ):
        export(source, tmp_path / "out", tokenizer=tokenizer, entity_vocab=vocabulary)
    vocabulary.write_text("{")
    with pytest.raises(ValueError, match=r"entities\.json: not JSON"):
        export(source, tmp_path / "out", tokenizer=tokenizer, entity_vocab=vocabulary)
    save_model(tmp_path / "encoder", pretrained(tmp_path / "whole").luke)
    with pytest.raises(ValueError, match="encoder: no prediction heads in the weights"):
        run_export(shared, tmp_path / "encoder", tmp_path / "out", source / "entity_vocab.json")
    with pytest.raises(ValueError, match=r"config\.json: no such file"):
        export(tmp_path, tmp_path / "out", tokenizer=tokenizer, entity_vocab=source / "entity_vocab.json")
    assert not (tmp_path / "out").exists()


def test_keys_of_another_architecture_are_refused() -> None:
    state = to_transformers(LukeForPretraining(TINY).state_dict())
    with pytest.raises(
        ValueError, match=r"^folder: unexpected keys classifier\.weight, luke\.gate\.bias; only"
    ):
        from_transformers(
            state | {"luke.gate.bias": torch.zeros(1), "classifier.weight": torch.zeros(1)},
            "folder",
            with_heads=True,
        )


def test_untied_word_head_is_refused_with_heads_only() -> None:
    import transformers

    theirs = transformers.LukeForMaskedLM(transformers.LukeConfig(**transformers_values(TINY)))
    state = dict(theirs.state_dict())
    with pytest.raises(
        ValueError, match=r"lm_head\.decoder\.weight differs from luke\.embeddings\.word_embeddings"
    ):
        from_transformers(state, "folder", with_heads=True)
    assert not any("head" in key for key in from_transformers(state, "folder", with_heads=False))


def test_old_checkpoints_position_ids_are_passed_over() -> None:
    state = to_transformers(LukeForPretraining(TINY).state_dict())
    ours = from_transformers(
        state | {"luke.embeddings.position_ids": torch.zeros(1)}, "folder", with_heads=True
    )
    load_strictly(LukeForPretraining(TINY), ours, source="folder", optional=set())
