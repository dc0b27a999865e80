"""Fine-tuned LUKE of transformers: the same logits from our encoder and its classifier, or a refusal."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from model.hf.fine_tuned import ARCHITECTURES, FineTuned, export_fine_tuned, load_fine_tuned
from model.luke.encoder import LukeModel
from tests.support.models import (
    TINY,
    flat_of,
    luke_of_transformers,
    random_batch,
    shake,
    transformers_inputs,
    words_of_transformers,
)
from tests.support.padded import PaddedBatch

ENTITIES = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 4}


def logits(fine_tuned: FineTuned, batch: PaddedBatch) -> torch.Tensor:
    """The linear layer on the states that the architecture has; spans are the first word and the third."""
    flat = flat_of(batch)
    words, entities = fine_tuned.luke(flat).split([flat.shape.words, flat.shape.entities])
    entities, first = entities.unflatten(0, batch.entity_ids.shape), flat.layout.word_offsets[:-1, None]
    states = {
        "LukeForEntityClassification": entities[:, 0],
        "LukeForEntityPairClassification": entities[:, :2].flatten(1),
        "LukeForEntitySpanClassification": torch.cat(
            [words[first].expand_as(entities), words[first + 2].expand_as(entities), entities], dim=-1
        ),
        "LukeForQuestionAnswering": words,
    }[fine_tuned.architecture]
    return torch.nn.functional.linear(states, fine_tuned.head["weight"], fine_tuned.head.get("bias"))


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_logits_equal_transformers(tmp_path: Path, kind: str) -> None:
    labels = {0: "no", 1: "yes"} if kind == "LukeForQuestionAnswering" else {0: "a", 1: "b", 2: "c"}
    theirs = luke_of_transformers(kind, id2label=labels)
    theirs.save_pretrained(tmp_path)
    fine_tuned = load_fine_tuned(str(tmp_path))
    assert fine_tuned.labels == tuple(labels.values())
    assert ("bias" in fine_tuned.head) == (kind != "LukeForEntityPairClassification")
    batch = with_all_entities(random_batch())
    with torch.no_grad():
        found = logits(fine_tuned, batch)
    torch.testing.assert_close(found, their_logits(theirs, batch), atol=1e-5, rtol=0)


def with_all_entities(batch: PaddedBatch) -> PaddedBatch:
    """The batch with an entity in every place; those that were padding mention the word 5."""
    assert batch.entity_positions is not None
    assert batch.entity_mask is not None
    positions = batch.entity_positions.clone()
    positions[..., 0] = torch.where(positions[..., 0] < 0, 5, positions[..., 0])
    labels = torch.full_like(batch.entity_labels, -100)
    everywhere = torch.ones_like(batch.entity_mask)
    return replace(batch, entity_mask=everywhere, entity_positions=positions, entity_labels=labels)


def their_logits(theirs: torch.nn.Module, batch: PaddedBatch) -> torch.Tensor:
    """The output of transformers' model; spans are the first word and the third."""
    inputs = transformers_inputs(batch)
    if type(theirs).__name__ == "LukeForEntitySpanClassification":
        first = torch.zeros_like(batch.entity_ids)
        inputs |= {"entity_start_positions": first, "entity_end_positions": first + 2}
    with torch.no_grad():
        output = theirs(**inputs)
    if hasattr(output, "start_logits"):
        return torch.stack([output.start_logits, output.end_logits], dim=-1)[batch.word_mask]
    return output.logits


def tokenizer_of(folder: Path, words: list[str]) -> Path:
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    return folder


WORD_LIST = ["<s>", "<pad>", "</s>", "<unk>", *(f"word{number}" for number in range(TINY.vocab_size - 5)), "<ent>"]


@pytest.mark.parametrize("kind", ARCHITECTURES)
@pytest.mark.parametrize("entity_aware", [True, False])
def test_export_computes_the_same(tmp_path: Path, kind: str, entity_aware: bool) -> None:
    """<ent>, the last word, is taken from row 7 and <ent2>, which is new, from row 9; [MASK2] is row 4."""
    import transformers

    source = luke_of_transformers(kind, use_entity_aware_attention=entity_aware, id2label={0: "no", 1: "yes"})
    source.save_pretrained(tmp_path / "source")
    fine_tuned = load_fine_tuned(str(tmp_path / "source"))
    tokenizer = tokenizer_of(tmp_path / "tokenizer", WORD_LIST)
    export_fine_tuned(
        fine_tuned, tmp_path / "out", tokenizer=tokenizer, words={"<ent>": 7, "<ent2>": 9}, entities=ENTITIES
    )
    theirs, info = getattr(transformers, kind).from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(info.values()), info
    assert theirs.config.id2label == {0: "no", 1: "yes"}
    batch = with_all_entities(random_batch(replace(TINY, entity_vocab_size=4)))
    word_ids = batch.word_ids.clamp(max=TINY.vocab_size - 2)
    word_ids[:, 5], word_ids[:, 6] = TINY.vocab_size - 1, TINY.vocab_size
    found = their_logits(theirs.eval(), replace(batch, word_ids=word_ids))
    word_ids[:, 5], word_ids[:, 6] = 7, 9
    assert batch.entity_ids is not None
    entity_ids = torch.where(batch.entity_ids == 3, 4, batch.entity_ids)
    assert (entity_ids == 4).any()
    with torch.no_grad():
        wanted = logits(fine_tuned, replace(batch, word_ids=word_ids, entity_ids=entity_ids))
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)
    tokenizer_config = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert tokenizer_config.get("task") == ARCHITECTURES[kind].task


def test_what_cannot_be_exported(tmp_path: Path) -> None:
    luke_of_transformers("LukeForEntityClassification").save_pretrained(tmp_path / "source")
    fine_tuned = load_fine_tuned(str(tmp_path / "source"))
    arguments = {"words": {"<ent>": 7, "<ent2>": 9}, "entities": ENTITIES}
    long = tokenizer_of(tmp_path / "long", [*WORD_LIST, "more"])
    with pytest.raises(ValueError, match=r"vocab.json: \d+ entries, wanted the ids 0, 1, 2, ... below \d+"):
        export_fine_tuned(fine_tuned, tmp_path / "out", tokenizer=long, **arguments)
    (long / "vocab.json").unlink()
    with pytest.raises(ValueError, match=r"vocab.txt: no such file"):
        export_fine_tuned(fine_tuned, tmp_path / "out", tokenizer=long, **arguments)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("padding", [0, 3])
def test_words_of_bert_get_the_positions_of_roberta(tmp_path: Path, padding: int) -> None:
    """Whatever the padding's id: transformers' LUKE counts from behind it, BERT from 0."""
    import transformers

    config = replace(TINY, word_encoder="bert", pad_token_id=padding, entity_vocab_size=5)
    torch.manual_seed(1)
    fine_tuned = FineTuned(
        "LukeForEntityClassification",
        shake(LukeModel(config).eval()),
        {"weight": torch.randn(2, TINY.hidden_size), "bias": torch.randn(2)},
        ("no", "yes"),
    )
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    words = ["[CLS]", "[SEP]", *(f"w{number}" for number in range(TINY.vocab_size - 2))]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    (folder / "tokenizer_config.json").write_text("{}")
    export_fine_tuned(
        fine_tuned, tmp_path / "out", tokenizer=folder, words={"<ent>": 7, "<ent2>": 9}, entities=ENTITIES
    )
    theirs, info = transformers.LukeForEntityClassification.from_pretrained(tmp_path / "out", output_loading_info=True)
    assert not any(info.values()), info
    assert theirs.config.max_position_embeddings == TINY.max_position_embeddings + padding + 1
    batch = with_all_entities(random_batch(replace(config, entity_vocab_size=4)))
    word_ids = batch.word_ids.clamp(4, TINY.vocab_size - 2).masked_fill(~batch.word_mask, padding)
    batch = replace(batch, word_ids=word_ids)
    entity_ids = torch.where(batch.entity_ids == 3, 4, batch.entity_ids)
    with torch.no_grad():
        wanted = logits(fine_tuned, replace(batch, entity_ids=entity_ids))
    torch.testing.assert_close(their_logits(theirs.eval(), batch), wanted, atol=1e-5, rtol=0)
    again = load_fine_tuned(str(tmp_path / "out"))
    with torch.no_grad():
        torch.testing.assert_close(logits(again, batch), wanted, atol=1e-5, rtol=0)


def test_other_heads_and_broken_ones_are_refused(tmp_path: Path) -> None:
    luke_of_transformers("LukeForMaskedLM").save_pretrained(tmp_path / "pretrained")
    with pytest.raises(ValueError, match=r"architecture 'LukeForMaskedLM', wanted one of LukeForEntityC"):
        load_fine_tuned(str(tmp_path / "pretrained"))
    words_of_transformers("RobertaModel").save_pretrained(tmp_path / "roberta")
    with pytest.raises(ValueError, match="architecture 'RobertaModel', wanted one of"):
        load_fine_tuned(str(tmp_path / "roberta"))
    luke_of_transformers("LukeForEntityClassification").save_pretrained(tmp_path / "typing")
    path = tmp_path / "typing" / "model.safetensors"
    weights = load_file(path)
    bias = weights.pop("classifier.bias")
    save_file(weights, path)
    with pytest.raises(ValueError, match=r"typing: missing keys classifier\.bias; unexpected keys none"):
        load_fine_tuned(str(tmp_path / "typing"))
    wide = {"classifier.bias": bias, "classifier.weight": torch.zeros(2, TINY.hidden_size * 2)}
    save_file(weights | wide, path)
    message = r"classifier\.weight has shape \(2, 32\), the configuration wants \(2, 16\)"
    with pytest.raises(ValueError, match=message):
        load_fine_tuned(str(tmp_path / "typing"))
    queries = {key: tensor for key, tensor in weights.items() if "layer.0.attention.self.e2e" not in key}
    save_file(queries | {"classifier.bias": bias}, path)
    with pytest.raises(ValueError, match=r"missing keys layers\.0\.attention\.entity_to_entity_query\.bias, "):
        load_fine_tuned(str(tmp_path / "typing"))
