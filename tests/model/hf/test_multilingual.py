"""Models with XLM-R's words: exported as mLUKE, and started from the layouts of mLUKE and multilingual E5."""

import json
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

from model.data.shards import Corpus
from model.files import save_model
from model.hf.compare import check
from model.hf.export import export
from model.hf.load import entity_vocabulary
from model.luke.heads import LukeForPretraining
from model.pretraining.recipes import choose
from model.pretraining.start import build_model
from pipeline.sequences.tokenizer import WordTokenizer
from tests.model.hf.test_card import answer
from tests.support.models import TINY, luke_of_transformers, save_tied, shake, words_of_transformers
from tests.support.shards import random_rows, write_sequences
from tests.support.unigram import pieces, write_unigram

TITLES = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "en:Japan": 3, "ja:日本": 3, "en:Tokyo": 4, "de:Tokio": 4}


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = replace(TINY, vocab_size=len(pieces()), entity_vocab_size=5)
    save_model(tmp_path / "source", shake(LukeForPretraining(config)))
    write_unigram(tmp_path / "words")
    titles = tmp_path / "titles.json"
    titles.write_text(json.dumps(TITLES))
    export(tmp_path / "source", tmp_path / "mluke", tokenizer=tmp_path / "words", entity_vocab=titles)
    return tmp_path / "mluke"


def test_transformers_computes_the_same(exported: Path) -> None:
    differences, absent, left_out = check(exported)
    assert max(differences.values()) < 1e-12
    assert {*differences} == {"word states", "word logits", "entity states", "entity logits"}
    assert (absent, left_out) == ([], "")
    titles = entity_vocabulary(str(exported))
    assert titles == TITLES | {"[MASK2]": 5}
    names = [[title for title, row in titles.items() if row == each] for each in range(6)]
    assert answer(exported) in map(str, names)


@pytest.mark.parametrize("name", ["MLukeTokenizer", "AutoTokenizer"])
def test_transformers_loads_the_tokenizer(exported: Path, name: str) -> None:
    import transformers

    theirs, ours = getattr(transformers, name).from_pretrained(exported), WordTokenizer.load(exported)
    text, spans = "Tokyo is (in) 東京 . x", [(0, 5), (10, 12), (14, 16)]
    encoded = theirs(text, entity_spans=spans, entities=["de:Tokio", "ja:日本", "nothing"])
    ends = [0, 5, 10, 12, 13, 16, len(text)]  # a blank belongs to what follows it
    words = ours.encode_as_written([text[start:end] for start, end in pairwise(ends)])
    assert encoded["input_ids"] == [ours.cls_id, *chain.from_iterable(words), ours.sep_id]
    assert (encoded["entity_ids"], theirs.entity_vocab["[MASK2]"]) == ([4, 3, 1], 5)
    assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode_with_offsets(text)[0]
    marks = [len(pieces()), len(pieces()) + 1]
    assert [theirs.entity_1_token_id, theirs.entity_2_token_id] == marks
    ids = theirs("<ent> <ent2> a <mask>", add_special_tokens=False)["input_ids"]
    assert [ids[0], *ids[2:]] == [marks[0], marks[1], *ours.encode(["a"], [True])[0], ours.mask_id]
    assert not {*marks} & {*ours.encode(["<ent> <ent2>"], [True])[0]}


def test_an_export_is_exported_again(exported: Path, tmp_path: Path) -> None:
    """Its markers and second mask stay where they are, as in the released mLUKE."""
    export(exported, tmp_path / "again", tokenizer=exported, entity_vocab=exported / "entity_vocab.json")
    for name in ("tokenizer.json", "entity_vocab.json", "model.safetensors"):
        assert (tmp_path / "again" / name).read_bytes() == (exported / name).read_bytes(), name


@pytest.mark.parametrize("kind", ["LukeForMaskedLM", "BertModel"])
def test_pretraining_starts_from_mluke_and_from_bert_with_words_of_xlm_r(tmp_path: Path, kind: str) -> None:
    """The former has two words more than its tokenizer; the latter some that are none, and names another padding."""
    facts = Corpus(write_sequences(tmp_path / "sequences", random_rows(9))).facts
    size = facts.word_vocab_size
    theirs: Any = words_of_transformers("BertModel", vocab_size=size + 35, pad_token_id=0)
    if kind == "LukeForMaskedLM":
        theirs = luke_of_transformers(kind, vocab_size=size + 2, entity_vocab_size=9)
    save_tied(theirs, tmp_path / "base")
    module, new = build_model(facts, choose("tiny", base_model=str(tmp_path / "base")), seed=3)
    assert torch.equal(module.luke.word_embeddings.token.weight, theirs.get_input_embeddings().weight[:size])
    assert (module.config.pad_token_id, module.config.entity_vocab_size) == (facts.pad_id, facts.entity_vocab_size)
    assert "luke.entity_embeddings.token.weight" in new
