"""Fine-tuned LUKE of transformers: the same logits from our encoder and its classifier, or a refusal."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from models_for_tests import TINY, luke_of_transformers, random_batch, words_of_transformers
from safetensors.torch import load_file, save_file

from model.batch import Batch
from model.checkpoint import load_luke
from model.fine_tuned import ARCHITECTURES, FineTuned, load_fine_tuned


def logits(fine_tuned: FineTuned, batch: Batch) -> torch.Tensor:
    """The linear layer on the states that the architecture has; spans are the first word and the third."""
    words, entities = fine_tuned.luke(batch)
    states = {
        "LukeForEntityClassification": entities[:, 0],
        "LukeForEntityPairClassification": entities[:, :2].flatten(1),
        "LukeForEntitySpanClassification": torch.cat(
            [words[:, :1].expand_as(entities), words[:, 2:3].expand_as(entities), entities], dim=-1
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
    batch = random_batch()
    positions = batch.entity_positions.clone()
    positions[..., 0] = torch.where(positions[..., 0] < 0, 5, positions[..., 0])
    batch = replace(batch, entity_mask=torch.ones_like(batch.entity_mask), entity_positions=positions)
    inputs = {
        "input_ids": batch.word_ids,
        "attention_mask": batch.word_mask.long(),
        "entity_ids": batch.entity_ids,
        "entity_attention_mask": batch.entity_mask.long(),
        "entity_position_ids": batch.entity_positions,
    }
    if kind == "LukeForEntitySpanClassification":
        first = torch.zeros_like(batch.entity_ids)
        inputs |= {"entity_start_positions": first, "entity_end_positions": first + 2}
    with torch.no_grad():
        output = theirs(**inputs)
        found = logits(fine_tuned, batch)
    wanted = (
        torch.stack([output.start_logits, output.end_logits], dim=-1)
        if kind == "LukeForQuestionAnswering"
        else output.logits
    )
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)


def test_encoder_alone_is_read_as_well(tmp_path: Path) -> None:
    theirs = luke_of_transformers("LukeForEntityPairClassification")
    theirs.save_pretrained(tmp_path)
    ours = load_luke(str(tmp_path), use_entity_aware_attention=True).state_dict()
    table = theirs.luke.entity_embeddings.entity_embeddings.weight
    assert torch.equal(ours["entity_embeddings.token.weight"], table)


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
    with pytest.raises(
        ValueError, match=r"missing keys layers\.0\.attention\.entity_to_entity_query\.bias, "
    ):
        load_fine_tuned(str(tmp_path / "typing"))
