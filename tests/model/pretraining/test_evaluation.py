"""Held-out evaluation: brute force, the same masks every time, baselines, and nothing disturbed."""

import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from model import evaluation
from model.data.held_out import HeldOut
from model.data.shards import Corpus
from model.files import PRETRAINING, save_model
from model.luke.batch import IGNORED, collate
from model.luke.heads import LukeForPretraining
from model.pretraining.evaluation import Schedule, evaluate, sample_predictions
from model.pretraining.loader import choose_sequences
from tests.support.models import TINY
from tests.support.shards import ENTITIES, random_rows, write_arrow, write_sequences

TRAINING, UNSEEN = random_rows(30), random_rows(11, seed=5)


@pytest.fixture(scope="module")
def module() -> LukeForPretraining:
    torch.manual_seed(8)
    return LukeForPretraining(TINY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sequences(tmp_path_factory.mktemp("sequences"), TRAINING, held_out=UNSEEN)


def write_commonest(path: Path, folder: Path, rows: list[dict[str, Any]], **changes: Any) -> Path:
    """The file that a run of the pipeline writes: here every second entity's own id, and -1."""
    labels = [[entity if place % 2 == 0 else -1 for place, entity in enumerate(row["entity_ids"])] for row in rows]
    columns = {"commonest": labels, "commonest_known": [[4] * len(row) for row in labels]} | changes
    schema = pa.schema(
        [(name, pa.list_(pa.int32())) for name in columns], metadata={"sequences": Corpus(folder).fingerprint}
    )
    write_arrow(path, pa.table(columns, schema=schema))
    return path


def masked_entities(held_out: HeldOut) -> list[tuple[int, int, int]]:
    """(sequence, place, label) of every masked entity."""
    masker = held_out.make_masker(masks_words=False)
    return [
        (index, place, label)
        for index in range(len(held_out))
        for place, label in enumerate(masker.mask(held_out.corpus[index], epoch=0, index=index).entity_labels.tolist())
        if label != IGNORED
    ]


def test_evaluation_equals_brute_force(module: LukeForPretraining, folder: Path, tmp_path: Path) -> None:
    held_out = HeldOut.open(folder, write_commonest(tmp_path / "commonest.arrow", folder, UNSEEN))
    figures = evaluate(module, held_out, batch_size=3)
    of_words, of_entities = held_out.make_masker(), held_out.make_masker(masks_words=False)
    losses, ranks, words = [], [], []
    module.eval()
    for index, masks_words in itertools.product(range(len(held_out)), (True, False)):
        masked = (of_words if masks_words else of_entities).mask(held_out.corpus[index], epoch=0, index=index)
        assert (masked.word_labels != IGNORED).any() == masks_words
        batch = collate([masked], max_mention_words=3, entities=True)
        with torch.no_grad():
            words_and_entities = module.luke(batch).split([batch.shape.words, batch.shape.entities])
            word_logits, logits = (
                head(states, table.weight)
                for states, (head, table) in zip(words_and_entities, module.heads.values(), strict=True)
            )
        for row, label in zip(logits, masked.entity_labels.tolist(), strict=True):
            if label != IGNORED and not masks_words:
                losses.append(-float(row.log_softmax(0)[label]))
                ranks.append(row.argsort(descending=True).tolist().index(label) + 1)
        for row, label in zip(word_logits, masked.word_labels.tolist(), strict=True):
            if label != IGNORED:
                words.append((-float(row.log_softmax(0)[label]), int(row.argmax()) == label))
    labels = [label for _, _, label in masked_entities(held_out)]
    assert figures["masked_entity_count"] == len(labels) == 11
    assert figures["masked_entity_loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert figures["masked_entity_top_1"] == pytest.approx(np.mean([rank == 1 for rank in ranks]))
    assert figures["masked_entity_top_10"] == pytest.approx(np.mean([rank <= 10 for rank in ranks]))
    assert figures["masked_entity_mean_reciprocal_rank"] == pytest.approx(np.mean([1 / rank for rank in ranks]))
    assert figures["masked_word_count"] == len(words)
    assert figures["masked_word_loss"] == pytest.approx(np.mean([loss for loss, _ in words]), rel=1e-5)
    assert figures["masked_word_accuracy"] == pytest.approx(np.mean([right for _, right in words]))
    assert figures["known_entity_count"] == sum(label >= 3 for label in labels) < len(labels)


def test_what_the_model_says_is_what_it_is_judged_by(module: LukeForPretraining, folder: Path, tmp_path: Path) -> None:
    """The same masks as in `evaluate`, and by brute force the same softmax."""
    held_out = HeldOut.open(folder, write_commonest(tmp_path / "commonest.arrow", folder, UNSEEN))
    rows = sample_predictions(module, held_out, count=5)
    assert len(rows) == 5
    assert sample_predictions(module, held_out, count=100)[:5] == rows, "always the same"
    places = {index: (place, label) for index, place, label in reversed(masked_entities(held_out)) if label > 2}
    order = [index for index in held_out.shuffled() if index in places][:5]
    assert len(sample_predictions(module, held_out, count=100)) == len(places)
    for row, index in zip(rows, order, strict=True):
        place, label = places[index]
        source, masked = UNSEEN[index], held_out.make_masker(masks_words=False)
        assert row["label"] == label == source["entity_ids"][place]
        mention = slice(source["entity_starts"][place], source["entity_ends"][place])
        assert row["word_ids"][row["start"] : row["end"]] == source["word_ids"][mention]
        assert row["commonest"] == 4
        hidden = masked.mask(held_out.corpus[index], epoch=0, index=index)
        with torch.no_grad():
            batch = collate([hidden], max_mention_words=3, entities=True)
            state = module.eval().luke(batch)[batch.shape.words + place]
            logits = module.entity_head(state, module.luke.entity_embeddings.token.weight)
        shares = logits[3:].softmax(dim=0)
        assert row["said"] == 3 + int(shares.argmax())
        assert row["certainty"] == pytest.approx(float(shares.max()), abs=1e-4)
        assert row["of_label"] == pytest.approx(float(shares[label - 3]), abs=1e-4)


def test_baselines_answer_at_the_same_places(module: LukeForPretraining, folder: Path, tmp_path: Path) -> None:
    held_out = HeldOut.open(folder, write_commonest(tmp_path / "commonest.arrow", folder, UNSEEN))
    figures = evaluate(module, held_out)
    places = masked_entities(held_out)
    seen = Counter(entity for row in TRAINING for entity in row["entity_ids"])
    frequent = max(range(ENTITIES), key=lambda entity: (seen[entity], -entity))
    frequent_known = max(range(3, ENTITIES), key=lambda entity: (seen[entity], -entity))
    assert held_out.most_frequent == (frequent, frequent_known)
    assert figures["masked_entity_most_frequent_top_1"] == np.mean([label == frequent for *_, label in places])
    right = [place % 2 == 0 or label == frequent for _, place, label in places]
    assert figures["masked_entity_commonest_top_1"] == np.mean(right)
    known = [label for *_, label in places if label >= 3]
    assert figures["known_entity_most_frequent_top_1"] == np.mean([label == frequent_known for label in known])
    assert figures["known_entity_commonest_top_1"] == np.mean([label == 4 for label in known])
    bands = {name: value for name, value in figures.items() if "_seen_" in name and name.endswith("_count")}
    assert len(bands) == 5
    assert sum(bands.values()) == len(known)
    assert bands["known_entity_seen_1_to_9_count"] == sum(1 <= seen[label] <= 9 for label in known)
    assert "masked_entity_commonest_top_1" not in evaluate(module, HeldOut.open(folder))


def test_a_title_answers_for_the_mention_that_is_its_words(module: LukeForPretraining, tmp_path: Path) -> None:
    """A whole title goes before a name, the first of equal names before others, and what is no title is wrong."""
    # Titles by `title_words`: 3 is [7], 4 is [8, 9] and named [8], 5 is [9, 10, 11] and named [9], ..., 8 is
    # [12, 13, 14] and named [12], 9 is [13], and 11 has no words.
    cases = [([7], 3), ([8, 9], 4), ([8], 4), ([9], 5), ([12, 13, 14], 8), ([13], 9), ([9, 10], 4), ([20], 5)]
    wanted = [3, 4, 4, 5, 8, 9, -1, -1]
    rows = [
        {"word_ids": [30, *words, 31], "entity_ids": [entity], "entity_starts": [1], "entity_ends": [1 + len(words)]}
        | {"page_id": page}
        for page, (words, entity) in enumerate(cases)
    ]
    held_out = HeldOut.open(write_sequences(tmp_path, TRAINING, held_out=rows))
    assert [held_out.titled_of(index).tolist() for index in range(len(cases))] == [[each] for each in wanted]
    figures = evaluate(module, held_out)
    frequent = held_out.most_frequent[1]
    right = [(answer if answer >= 0 else frequent) == entity for answer, (_, entity) in zip(wanted, cases, strict=True)]
    assert figures["known_entity_title_top_1"] == figures["masked_entity_title_top_1"] == np.mean(right) >= 0.75
    assert not any("commonest" in name for name in figures)


def test_masks_and_sample_are_the_same_every_time(module: LukeForPretraining, folder: Path) -> None:
    first, again = HeldOut.open(folder), HeldOut.open(folder)
    assert evaluate(module, first) == evaluate(module, again)
    assert evaluate(module, first, sequences=4) == evaluate(module, again, sequences=4)
    assert evaluate(module, first, sequences=4)["masked_entity_count"] < 11
    assert evaluate(module, first, batch_size=2) == pytest.approx(evaluate(module, first, batch_size=11), rel=1e-5)
    assert first.sample(4) == sorted(first.sample(4))
    assert set(first.sample(4)) < set(first.sample(7)) < set(range(11))


def test_more_rounds_mask_other_places(module: LukeForPretraining, folder: Path) -> None:
    held_out = HeldOut.open(folder)
    masker = held_out.make_masker()
    masked = [
        masker.mask(held_out.corpus[index], epoch=epoch, index=index) for epoch in range(5) for index in range(11)
    ]
    labels = [label for each in masked for label in each.entity_labels.tolist() if label != IGNORED]
    assert len({str(each.entity_labels.tolist()) for each in masked}) > 22
    figures = evaluate(module, held_out, rounds=5, batch_size=4)
    assert figures["masked_entity_count"] == len(labels) == 55
    assert figures["masked_entity_most_frequent_top_1"] == np.mean(np.array(labels) == held_out.most_frequent[0])
    assert figures["masked_word_loss"] != evaluate(module, held_out)["masked_word_loss"]


def test_nothing_is_disturbed(module: LukeForPretraining, folder: Path) -> None:
    module.train()
    module.luke.layers[0].eval()
    before = {name: part.training for name, part in module.named_modules()}
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].tolist()
    evaluate(module, HeldOut.open(folder))
    assert {name: part.training for name, part in module.named_modules()} == before
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.random.get_state()[1].tolist() == numpy_state
    assert all(parameter.grad is None for parameter in module.parameters())


def test_a_model_without_entities_is_judged_on_its_words(folder: Path) -> None:
    module = LukeForPretraining(replace(TINY, entity_vocab_size=3))
    words = {f"masked_word_{name}" for name in ("count", "loss", "accuracy", "perplexity")}
    assert set(evaluate(module, HeldOut.open(folder))) == words | {"sequences"}


def test_schedule_bounds_what_evaluation_costs() -> None:
    demo = Schedule(every=25, steps=110, batch_size=8)
    assert [step for step in range(1, 111) if demo.is_due(step)] == [25, 50, 75, 100, 110]
    assert (demo.sequences(25), demo.sequences(110)) == (25, 110)
    large = Schedule(every=1000, steps=200_000, batch_size=2048)
    assert large.sequences(1000) == large.sequences(200_000) == 4096
    assert Schedule(every=1, steps=9, batch_size=1).sequences(1) == 1
    assert not any(Schedule(every=0, steps=9, batch_size=1).is_due(step) for step in range(1, 10))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 61}, "the model has 61 words, the sequences have 60"),
        ({"entity_vocab_size": 13}, "the model has 13 entities, the sequences have 12"),
    ],
)
def test_sequences_of_another_model_are_refused(folder: Path, changes: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(LukeForPretraining(replace(TINY, **changes)), HeldOut.open(folder))


def test_no_held_out_sequences_are_refused(module: LukeForPretraining, tmp_path: Path) -> None:
    held_out = HeldOut.open(write_sequences(tmp_path, TRAINING, held_out=[]))
    assert len(held_out) == 0
    with pytest.raises(ValueError, match=r"no held-out sequence; raise corpus\.held_out"):
        evaluate(module, held_out)


def test_labels_of_other_sequences_are_refused(folder: Path, tmp_path: Path) -> None:
    other = write_sequences(tmp_path / "other", TRAINING, held_out=random_rows(11, seed=6))
    short = [[1]] * len(UNSEEN)
    cases = [
        (write_commonest(tmp_path / "a", other, UNSEEN), "made of sequences"),
        (write_commonest(tmp_path / "b", folder, UNSEEN[:4]), "commonest is not parallel"),
        (write_commonest(tmp_path / "c", folder, UNSEEN, commonest_known=short), "commonest_known is not parallel"),
        (write_commonest(tmp_path / "d", folder, []), "no rows, but there are 11"),
    ]
    for path, message in cases:
        with pytest.raises(ValueError, match=message):
            HeldOut.open(folder, path)


def test_command_line(
    module: LukeForPretraining, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(tmp_path, module)
    arguments = [str(tmp_path), str(folder), "--device", "cpu"]
    assert evaluation.main(arguments) == 0
    assert json.loads(capsys.readouterr().out) == evaluate(module, HeldOut.open(folder))
    # What was left out of training was not seen.
    (tmp_path / PRETRAINING).write_text('{"recipe": {"min_entities": 3}}')
    assert evaluation.main(arguments) == 0
    seen = choose_sequences(Corpus(folder), 3)
    wanted = evaluate(module, HeldOut.open(folder, seen=seen))
    assert json.loads(capsys.readouterr().out) == wanted != evaluate(module, HeldOut.open(folder))
    assert evaluation.main([str(tmp_path), str(tmp_path)]) == 1
    assert "manifest.json: no such file" in capsys.readouterr().err
    (tmp_path / PRETRAINING).write_text('{"word_head": false}')
    assert evaluation.main(arguments) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == evaluate(module, HeldOut.open(folder), masks_words=False)
    assert "its word head was not trained" in said.err
