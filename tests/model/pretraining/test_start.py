"""The model that pretraining starts from, around the words of a base model or without one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from model.data.shards import Corpus, SequenceFacts
from model.luke.config import MASK_ENTITY, PRESETS
from model.luke.heads import LukeForPretraining, PaperEntityHead
from model.luke.titles import Titles, TitleWords, vectors_of_titles
from model.pretraining.recipes import AROUND_A_BASE, RECIPES, choose
from model.pretraining.start import begin_with_words, build_model
from tests.support.models import words_of_transformers
from tests.support.shards import random_rows, title_words, write_sequences


@pytest.fixture
def facts(tmp_path: Path) -> SequenceFacts:
    return Corpus(write_sequences(tmp_path / "sequences", random_rows(9))).facts


@pytest.mark.parametrize("kind", ["RobertaForMaskedLM", "RobertaModel", "BertForMaskedLM", "BertModel"])
def test_what_the_base_model_lacks_is_new_and_named(tmp_path: Path, facts: SequenceFacts, kind: str) -> None:
    theirs = words_of_transformers(kind)
    theirs.save_pretrained(tmp_path / "base")
    module, new = build_model(facts, choose("tiny", base_model=str(tmp_path / "base")), seed=3)
    state = module.state_dict()
    head = {key for key in state if key.startswith("word_head.")}
    assert {key for key in new if "entity" not in key} == (set() if "ForMaskedLM" in kind else head)
    assert {key for key in state if "entity" in key} <= new
    assert torch.equal(state["luke.word_embeddings.token.weight"], theirs.get_input_embeddings().weight)
    assert module.config.word_encoder == ("bert" if kind.startswith("Bert") else "roberta")
    assert module.config.entity_vocab_size == facts.entity_vocab_size


@pytest.mark.parametrize("kind", ["RobertaModel", "BertModel"])
def test_a_new_word_head_is_the_same_with_and_without_entities(tmp_path: Path, facts: SequenceFacts, kind: str) -> None:
    """So that arms with and without entities differ in these alone; another seed draws another one."""
    words_of_transformers(kind).save_pretrained(tmp_path / "base")

    def head(seed: int, **flags: Any) -> dict[str, torch.Tensor]:
        module, _ = build_model(facts, choose("tiny", base_model=str(tmp_path / "base"), **flags), seed=seed)
        return module.word_head.state_dict()

    ours, plain, other = head(3), head(3, entities=False), head(4)
    assert all(torch.equal(ours[name], plain[name]) for name in ours)
    assert not torch.equal(ours["dense.weight"], other["dense.weight"])
    assert ours["dense.weight"].std() == pytest.approx(0.02, rel=0.1)
    assert not ours["dense.bias"].any()


@pytest.mark.parametrize("kind", ["RobertaForMaskedLM", "BertForMaskedLM", "BertModel"])
def test_rows_of_no_word_are_left_out_of_a_base_model(
    tmp_path: Path, facts: SequenceFacts, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its vocabulary is the tokenizer's, though its tables are rounded up."""
    caplog.set_level("INFO")
    theirs = words_of_transformers(kind, vocab_size=64)
    theirs.save_pretrained(tmp_path / "base")
    module, new = build_model(facts, choose("tiny", base_model=str(tmp_path / "base")), seed=3)
    size = facts.word_vocab_size
    assert size == module.config.vocab_size == 60
    table = module.luke.word_embeddings.token.weight
    assert torch.equal(table, theirs.get_input_embeddings().weight[:size])
    assert "luke.word_embeddings.token.weight" not in new
    assert "last 4 word rows are no word of its tokenizer: left out" in caplog.text
    assert module.word_head.bias.shape == (size,)
    if "ForMaskedLM" in kind:
        assert torch.equal(module.word_head.bias, theirs.get_output_embeddings().bias[:size])


def test_half_a_word_head_is_refused(tmp_path: Path, facts: SequenceFacts) -> None:
    words_of_transformers("BertForMaskedLM").save_pretrained(tmp_path / "base")
    path = tmp_path / "base" / "model.safetensors"
    weights = load_file(path)
    del weights["cls.predictions.transform.dense.bias"]
    save_file(weights, path)
    with pytest.raises(ValueError, match=r"base: missing keys word_head\.dense\.bias; unexpected keys none"):
        build_model(facts, choose("tiny", base_model=str(tmp_path / "base")), seed=3)


def titled(folder: Path, theirs: Any, **flags: Any) -> tuple[LukeForPretraining, Corpus, torch.Tensor]:
    """A model whose entities begin with words, its corpus, and for each entity the vector of its title by hand."""
    theirs.save_pretrained(folder / "base")
    corpus = Corpus(write_sequences(folder / "sequences", random_rows(9)))
    configuration = choose("tiny", flags, base_model=str(folder / "base"))
    module, _ = build_model(corpus.facts, configuration, seed=3)
    begin_with_words(module, corpus)
    table = theirs.get_input_embeddings().weight.detach()
    rows = title_words().to_pylist()
    wanted = torch.zeros(len(rows), table.shape[1])
    for number, row in enumerate(rows):
        if not row["title_word_ids"]:
            continue
        for share, column in ((1.0, "name_word_ids"), (0.3, "title_word_ids")):
            wanted[number] += share * (table[row[column]].mean(dim=0) - table.mean(dim=0))
    return module, corpus, wanted * 0.1 / wanted[3:].std()


@pytest.mark.parametrize("kind", ["RobertaModel", "BertForMaskedLM"])
def test_entities_begin_as_what_their_titles_say(tmp_path: Path, kind: str) -> None:
    theirs = words_of_transformers(kind)
    hidden = theirs.config.hidden_size
    module, corpus, wanted = titled(tmp_path, theirs, entity_emb_size=hidden)
    words, entities = module.luke.word_embeddings, module.luke.entity_embeddings
    wanted[MASK_ENTITY] = words.token.weight[corpus.facts.mask_id]
    torch.testing.assert_close(entities.token.weight, wanted)
    count = module.config.max_words
    torch.testing.assert_close(entities.position.weight[:count], words.position.weight[-count:])
    assert torch.equal(entities.token_type.weight, words.token_type.weight)
    assert torch.equal(entities.norm.weight, words.norm.weight)
    assert not torch.equal(words.norm.weight, torch.ones(hidden))
    state = torch.randn(hidden)
    wanted_state = torch.nn.functional.layer_norm(state, (hidden,), eps=module.config.layer_norm_eps)
    torch.testing.assert_close(module.entity_head.transform(state), wanted_state, atol=0.02, rtol=0)


@pytest.mark.parametrize("head", ["released", "paper"])
def test_narrower_entities_keep_what_matters_most(tmp_path: Path, head: str) -> None:
    """[MASK] whole; of the titles' vectors what [MASK] has of them, and of the rest so much that no table of that rank
    is nearer (Eckart and Young, 1936)."""
    width = 5
    module, corpus, wanted = titled(
        tmp_path, words_of_transformers("RobertaModel"), entity_emb_size=width, entity_head=head
    )
    entities = module.luke.entity_embeddings
    found = entities.projection(entities.token.weight)[3:].detach()
    mask = module.luke.word_embeddings.token.weight[corpus.facts.mask_id].detach()
    torch.testing.assert_close(entities.projection(entities.token.weight[MASK_ENTITY]).detach(), mask)
    own = mask / mask.norm()
    values = torch.linalg.svdvals(wanted[3:] - (wanted[3:] @ own)[:, None] * own)
    assert float((found - wanted[3:]).norm()) == pytest.approx(float(values[width - 1 :].norm()), rel=1e-4)
    state = torch.randn(wanted.shape[1])
    entity_head = module.entity_head
    narrow = entity_head.dense(state) - entity_head.dense.bias
    if isinstance(entity_head, PaperEntityHead):
        torch.testing.assert_close(narrow, state)
        narrow = entity_head.projection(narrow)
    torch.testing.assert_close(entities.token.weight[3:] @ narrow, found @ state)


def test_special_entities_alone_begin_with_no_words() -> None:
    words = TitleWords(np.zeros(0, np.int64), np.zeros(4, np.int64))
    assert not vectors_of_titles(torch.randn(8, 5), Titles(words, words)).any()


def test_wider_entities_say_the_same(tmp_path: Path) -> None:
    theirs = words_of_transformers("RobertaModel")
    module, _, wanted = titled(tmp_path, theirs, entity_emb_size=theirs.config.hidden_size + 8)
    entities = module.luke.entity_embeddings
    torch.testing.assert_close(entities.projection(entities.token.weight)[3:], wanted[3:])


@pytest.mark.parametrize("preset", sorted(RECIPES.keys() - {*AROUND_A_BASE, "large"}))
def test_a_start_without_a_base_is_plain(facts: SequenceFacts, monkeypatch: pytest.MonkeyPatch, preset: str) -> None:
    monkeypatch.setitem(PRESETS, preset, replace(PRESETS[preset], num_hidden_layers=1))
    module, new = build_model(facts, choose(preset), seed=3)
    torch.manual_seed(3)
    plain = LukeForPretraining(module.config).state_dict()
    assert new == plain.keys()
    assert all(torch.equal(tensor, plain[name]) for name, tensor in module.state_dict().items())
