"""The functions that give the figures of `benchmarks.evidence` their meaning, beside plain loops."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.evidence import disambiguation as probe
from benchmarks.evidence import known_entities
from benchmarks.evidence.words_around import WordsAround, around_mentions
from model.data.held_out import HeldOut
from model.data.shards import HELD_OUT, Corpus
from model.luke.batch import IGNORED, MaskedSequence, collate
from model.luke.config import MASK_ENTITY, SPECIAL_ENTITIES, UNKNOWN_ENTITY
from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from model.pretraining.evaluation import evaluate
from pipeline.lookup.held_out import is_held_out
from pipeline.sequences import commonest
from tests.support.models import TINY
from tests.support.shards import ENTITIES, WORDS, random_rows, write_sequences


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sequences(tmp_path_factory.mktemp("sequences"), random_rows(40), held_out=random_rows(30, seed=1))


@pytest.fixture(scope="module")
def mentions(folder: Path) -> list[probe.Mention]:
    """Every known entity of the held-out sequences, among all known ones or some."""
    corpus, generator, found = Corpus(folder, HELD_OUT), np.random.default_rng(3), []
    for index in range(len(corpus)):
        sequence = corpus[index]
        for place, label in enumerate(sequence.entity_ids.tolist()):
            if label >= SPECIAL_ENTITIES:
                known = np.arange(SPECIAL_ENTITIES, ENTITIES)
                candidates = generator.permutation(known)[: generator.integers(2, len(known))]
                prior = np.log(generator.dirichlet(np.ones(len(candidates))))
                found.append(probe.Mention(sequence.page_id, index, place, label, candidates, prior))
    assert len(found) > 20
    return found


def test_the_words_around_a_link_are_weighed(folder: Path, mentions: list[probe.Mention]) -> None:
    """tf-idf as scikit-learn defines it: idf = ln((1 + n) / (1 + df)) + 1, vectors of length 1."""
    training, held_out = Corpus(folder), Corpus(folder, HELD_OUT)

    def around(sequence: Any, place: int) -> np.ndarray:
        start, end = sequence.entity_starts[place], sequence.entity_ends[place]
        return np.bincount(np.delete(sequence.word_ids, np.arange(start, end)), minlength=WORDS)

    texts, entities = [training[index] for index in range(len(training))], np.zeros((ENTITIES, WORDS))
    df = sum(np.bincount(text.word_ids, minlength=WORDS) > 0 for text in texts)
    for text in texts:
        for place, entity in enumerate(text.entity_ids):
            entities[entity] += around(text, place)
    vectors = entities * (idf := np.log((1 + len(texts)) / (1 + df)) + 1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-300
    words = around_mentions(held_out, [(each.index, each.place) for each in mentions])
    found = WordsAround(training, sublinear=False).cosines(words, [each.candidates for each in mentions])
    for mention, cosines in zip(mentions, found, strict=True):
        own = around(held_out[mention.index], mention.place) * idf
        np.testing.assert_allclose(cosines, vectors[mention.candidates] @ own / np.linalg.norm(own), atol=1e-12)


def test_mentions_are_known_ambiguous_and_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By texts that are one and the same for each label: of an even one ambiguous, of an odd one not."""
    corpus = Corpus(folder, HELD_OUT)
    sequences = [corpus[index] for index in range(len(corpus))]
    offsets = np.cumsum([0, *(len(each.entity_ids) for each in sequences)])
    labels = np.concatenate([each.entity_ids for each in sequences])
    other = [{SPECIAL_ENTITIES: 1}, {}]
    counts = [{label: 3, UNKNOWN_ENTITY: 9} | other[label % 2] for label in range(ENTITIES)]
    monkeypatch.setattr(commonest, "held_out_counts", lambda **_: (offsets, labels, iter(counts)))
    found, annotations = probe.ambiguous_mentions(corpus, links="", mentions="", tokenizer="")
    wanted = [label for label in labels.tolist() if label >= SPECIAL_ENTITIES and len(counts[label]) == 3]
    assert [each.label for each in found] == wanted
    assert [sequences[each.index].entity_ids[each.place] for each in found] == wanted
    for each in found:
        assert each.candidates.tolist() == [each.label, SPECIAL_ENTITIES]
        assert np.exp(each.log_prior) == pytest.approx([0.75, 0.25])
    assert annotations.pop("held-out annotations") == len(labels) == annotations.total() + len(found)
    assert all(annotations.values())
    assert len(annotations) == 2


def test_scores_of_a_model_are_those_of_each_sequence_alone(folder: Path, mentions: list[probe.Mention]) -> None:
    torch.manual_seed(0)
    module = LukeForPretraining(TINY)
    held_out = Corpus(folder, HELD_OUT)
    found = probe.model_scores(module, held_out, mentions, batch_size=7)
    assert module.training, "the module's mode is what it was"
    module.eval()
    for mention, scores in zip(mentions, found, strict=True):
        sequence = held_out[mention.index]
        labels = sequence.entity_ids.astype(np.int64)
        is_known = labels != UNKNOWN_ENTITY
        words = np.array([held_out.facts.cls_id, *sequence.word_ids, held_out.facts.sep_id], np.int64)
        masked = MaskedSequence(
            word_ids=words,
            word_labels=np.full(len(words), IGNORED),
            entity_ids=np.where(is_known, MASK_ENTITY, labels),
            entity_labels=np.where(np.arange(len(labels)) == mention.place, labels, IGNORED),
            entity_starts=sequence.entity_starts.astype(np.int64) + 1,
            entity_ends=sequence.entity_ends.astype(np.int64) + 1,
        )
        batch = collate([masked], max_mention_words=held_out.facts.max_mention_words, entities=True)
        with torch.no_grad():
            states, _ = module.masked_states(batch)[ENTITY_LOSS]
            head, table = module.heads[ENTITY_LOSS]
            logits = head(states, table.weight)[0].numpy()
        np.testing.assert_allclose(scores, logits[mention.candidates], atol=1e-5)


def test_known_entities_are_those_of_the_evaluation(folder: Path) -> None:
    """Of all pages the same shares as `evaluate`, and of some pages their sequences alone."""
    torch.manual_seed(0)
    module = LukeForPretraining(TINY)
    held_out = HeldOut.open(folder)
    found = known_entities.asked(module, held_out, rounds=2)
    figures = evaluate(module, held_out, rounds=2, masks_words=False)
    assert len(found["rank"]) == figures["known_entity_count"]
    assert (found["rank"] == 1).mean() == pytest.approx(figures["known_entity_top_1"])
    rows = known_entities.rows_of([found], held_out.training_counts)
    assert [row["asked"] for row in rows] == [
        len(found["rank"]),
        *(count for name, count in figures.items() if "_seen_" in name and name.endswith("_count") and count),
    ]
    assert rows[0]["LUKE"] == pytest.approx(100 * figures["known_entity_top_1"])
    table = found | {"commonest": np.where(found["rank"] == 1, found["label"], -1)}
    (same, *_) = known_entities.rows_of([table], held_out.training_counts)
    assert same["LUKE less it, from"] == same["LUKE less it, to"] == 0
    some = known_entities.beyond(held_out, 0.5)
    pages = {each.page_id for each in (some.corpus[index] for index in some.shuffled())}
    assert pages == {1000 + n for n in range(30) if not is_held_out(1000 + n, 0.5)}
    assert evaluate(module, some, masks_words=False)["sequences"] == len(some) < len(held_out)
    with pytest.raises(ValueError, match=r"^--beyond 1.0: no held-out page is left"):
        known_entities.beyond(held_out, 1.0)
