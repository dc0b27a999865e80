"""What decides the meaning of the figures of `benchmarks.evidence`, beside plain loops."""

import itertools
import math
from argparse import Namespace
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.evidence import ambiguous, known_entities
from benchmarks.evidence import disambiguation as probe
from benchmarks.evidence.words_around import around_links, around_mentions
from model.data.collation import collate
from model.data.held_out import HeldOut
from model.data.masking import MaskedSequence
from model.data.shards import HELD_OUT, Corpus
from model.luke.batch import IGNORED
from model.luke.config import MASK_ENTITY, SPECIAL_ENTITIES, UNKNOWN_ENTITY
from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from model.pretraining.evaluation import evaluate
from pipeline.lookup.held_out import is_held_out
from pipeline.sequences import commonest
from tests.support.models import TINY
from tests.support.shards import ENTITIES, WORDS, random_rows, write_sequences


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sequences(
        tmp_path_factory.mktemp("sequences"), random_rows(40), held_out=random_rows(30, seed=1)
    )


@pytest.fixture(scope="module")
def mentions(folder: Path) -> list[ambiguous.Mention]:
    """Every known entity of the held-out sequences, among all known ones or some."""
    corpus, generator, found = Corpus(folder, HELD_OUT), np.random.default_rng(3), []
    for index in range(len(corpus)):
        sequence = corpus[index]
        for place, label in enumerate(sequence.entity_ids.tolist()):
            if label >= SPECIAL_ENTITIES:
                known = np.arange(SPECIAL_ENTITIES, ENTITIES)
                candidates = generator.permutation(known)[: generator.integers(2, len(known))]
                prior = np.log(generator.dirichlet(np.ones(len(candidates))))
                found.append(ambiguous.Mention(sequence.page_id, index, place, label, candidates, prior))
    assert len(found) > 20
    return found


def test_the_words_around_a_link_beside_loops(folder: Path, mentions: list[ambiguous.Mention]) -> None:
    """tf-idf as scikit-learn defines it: idf = ln((1 + n) / (1 + df)) + 1, vectors of length 1."""
    training, held_out = Corpus(folder), Corpus(folder, HELD_OUT)
    texts = [training[index] for index in range(len(training))]
    seen = Counter(word for text in texts for word in set(text.word_ids.tolist()))
    idf = [math.log((1 + len(texts)) / (1 + seen[word])) + 1 for word in range(WORDS)]

    def around(text: object, place: int) -> Counter[int]:
        words = text.word_ids.tolist()  # type: ignore[attr-defined]
        start, end = text.entity_starts[place], text.entity_ends[place]  # type: ignore[attr-defined]
        return Counter(words[:start] + words[end:])

    def vector(counts: Counter[int]) -> np.ndarray:
        found = np.array([counts[word] * idf[word] for word in range(WORDS)])
        return found / (np.linalg.norm(found) or 1)

    entities = {entity: Counter[int]() for entity in range(ENTITIES)}
    for text in texts:
        for place, entity in enumerate(text.entity_ids.tolist()):
            entities[entity] += around(text, place)
    words = around_mentions(held_out, [(each.index, each.place) for each in mentions])
    found = around_links(training, sublinear=False).cosines(words, [each.candidates for each in mentions])
    for mention, cosines in zip(mentions, found, strict=True):
        own = vector(around(held_out[mention.index], mention.place))
        wanted = [own @ vector(entities[candidate]) for candidate in mention.candidates.tolist()]
        np.testing.assert_allclose(cosines, wanted, atol=1e-12)


def test_mentions_are_known_ambiguous_and_counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By texts that are one and the same for each label: of an even one ambiguous, of an odd one not."""
    corpus = Corpus(folder, HELD_OUT)
    sequences = [corpus[index] for index in range(len(corpus))]
    offsets = np.cumsum([0, *(len(each.entity_ids) for each in sequences)])
    labels = np.concatenate([each.entity_ids for each in sequences])
    counts = [
        {label: 3, SPECIAL_ENTITIES: 1, UNKNOWN_ENTITY: 9}
        if label % 2 == 0
        else {label: 3, UNKNOWN_ENTITY: 9}
        for label in range(ENTITIES)
    ]
    monkeypatch.setattr(commonest, "held_out_counts", lambda **_: (offsets, labels, iter(counts)))
    found, annotations = ambiguous.ambiguous_mentions(corpus, links="", mentions="", tokenizer="")
    wanted = [label for label in labels.tolist() if label >= SPECIAL_ENTITIES and len(counts[label]) == 3]
    assert [each.label for each in found] == wanted
    assert [sequences[each.index].entity_ids[each.place] for each in found] == wanted
    assert {each.is_reachable for each in found} == {True}
    for each in found:
        assert dict(zip(each.candidates.tolist(), np.exp(each.log_prior), strict=True)) == pytest.approx(
            {each.label: 0.75, SPECIAL_ENTITIES: 0.25}
        )
    assert annotations.pop("held-out annotations") == len(labels) == annotations.total() + len(found)
    assert all(annotations.values())
    assert len(annotations) == 2


def test_mentions_that_were_kept_are_the_same(
    folder: Path, mentions: list[ambiguous.Mention], tmp_path: Path
) -> None:
    """Without a mention table; those of other sequences are refused."""
    corpus, counted = Corpus(folder, HELD_OUT), Counter({"held-out annotations": 99, "left out": 3})
    chosen = Namespace(found=tmp_path / "found.npz", links=None, mentions=None)
    with pytest.raises(ValueError, match=r"^there are no mentions yet: give --links and --mentions"):
        ambiguous.mentions_of(corpus, chosen)
    ambiguous.write_mentions(chosen.found, (mentions, counted), corpus)
    found, annotations = ambiguous.mentions_of(corpus, chosen)
    assert annotations == counted
    for own, wanted in zip(found, mentions, strict=True):
        np.testing.assert_equal(vars(own), vars(wanted))
    with pytest.raises(ValueError, match=r"found.npz: is there; leave --links and --mentions out"):
        ambiguous.mentions_of(corpus, Namespace(found=chosen.found, links=tmp_path, mentions=tmp_path))
    np.savez(tmp_path / "vectors.npz", titles=np.array(["Love"]))
    with pytest.raises(ValueError, match=r"vectors.npz: has no numbers, so --found of another benchmark"):
        ambiguous.read_mentions(tmp_path / "vectors.npz", corpus)
    (tmp_path / "half.npz").write_bytes(chosen.found.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"half.npz: no file that --found has written"):
        ambiguous.read_mentions(tmp_path / "half.npz", corpus)
    other = Corpus(write_sequences(tmp_path / "other", random_rows(3), held_out=random_rows(2)), HELD_OUT)
    with pytest.raises(ValueError, match=r"found.npz: its mentions are not of .*other; give another --found"):
        ambiguous.mentions_of(other, chosen)


def test_scores_of_a_model_are_those_of_each_sequence_alone(
    folder: Path, mentions: list[ambiguous.Mention]
) -> None:
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


def test_pages_that_choose_are_not_asked(mentions: list[ambiguous.Mention]) -> None:
    found = probe.Probe.of(mentions, 0.5)
    assert sorted([*found.choosing, *found.asked]) == list(range(len(mentions)))
    assert all(is_held_out(mentions[n].page_id, 0.5) for n in found.choosing)
    assert not any(is_held_out(mentions[n].page_id, 0.5) for n in found.asked)
    with pytest.raises(ValueError, match=r"^--chosen-by 1.0: \d+ mentions choose and 0 are asked"):
        probe.Probe.of(mentions, 1.0)


def test_what_is_right_and_the_weights_beside_loops(mentions: list[ambiguous.Mention]) -> None:
    """Of equal scores the first counts, of equal weights the smallest."""
    generator, candidates = np.random.default_rng(5), probe.Candidates.of(mentions)
    parts = [[generator.integers(0, 3, len(each.candidates)) / 2 for each in mentions] for _ in range(2)]
    flat = [np.concatenate(part) for part in parts]

    def right(*weights: float) -> list[bool]:
        found = []
        for place, mention in enumerate(mentions):
            scores = mention.log_prior.tolist()
            for weight, part in zip(weights, parts, strict=True):
                scores = [
                    score + weight * each for score, each in zip(scores, part[place].tolist(), strict=True)
                ]
            found.append(mention.candidates[scores.index(max(scores))] == mention.label)
        return found

    first = [
        bool(m.candidates[p.tolist().index(max(p))] == m.label)
        for m, p in zip(mentions, parts[0], strict=True)
    ]
    assert candidates.is_right(flat[0]).tolist() == first
    assert any(first)
    totals = {weights: sum(right(*weights)) for weights in itertools.product(probe.WEIGHTS, repeat=2)}
    count, chosen = probe.choose_weights(candidates, flat)
    assert count == max(totals.values()) == totals[chosen]
    assert sum(chosen) == min(sum(weights) for weights, total in totals.items() if total == count)


def test_a_score_that_knows_and_one_that_does_not(mentions: list[ambiguous.Mention]) -> None:
    """The weight of what knows is above 0, that of what is always wrong is 0, and each adds what it can."""
    knows = [(each.candidates == each.label).astype(float) * 30 for each in mentions]
    errs = [-each for each in knows]
    found = probe.Probe.of(mentions, 0.5)
    reachable = np.array([mentions[n].is_reachable for n in found.asked])
    right, weights, _ = found.weighed(knows)
    assert np.array_equal(right == 1, reachable)
    assert weights[0] > 0
    prior, none, _ = found.weighed()
    by_errors, weights, _ = found.weighed(errs)
    assert (none, weights) == ((), (0.0,))
    assert np.array_equal(prior, by_errors)
    table, choices = probe.methods(found, [errs, knows], {"LUKE": [errs, knows]})
    assert np.array_equal(table["prior + bag of words"] == 1, reachable), "the better bag is chosen"
    np.testing.assert_allclose(table["prior + LUKE"], (prior + reachable) / 2)
    assert len(choices) == 1 + 1 + 2 + 2
    accuracies, differences = probe.tables(found, table)
    assert [row["method"] for row in accuracies] == list(table)
    assert {row["method"]: row["mean"] for row in differences} == pytest.approx(
        {
            f"{name} less {base}": 100 * (table[name] - table[base]).mean()
            for name, base in [
                ("prior + bag of words", "the prior"),
                ("prior + LUKE", "the prior"),
                ("prior + LUKE", "prior + bag of words"),
                ("prior + LUKE + bag of words", "the prior"),
                ("prior + LUKE + bag of words", "prior + bag of words"),
            ]
        }
    )


def test_an_interval_is_of_pages() -> None:
    """Of pages that differ as wholes the interval is as wide as that of one value a page."""
    pages = np.repeat(np.arange(50), 10)
    values = (pages % 2).astype(float)
    mean, low, high = probe.interval(pages, values)
    assert mean == 0.5
    spread = 1.96 * 0.5 / math.sqrt(50)
    assert (low, high) == pytest.approx((0.5 - spread, 0.5 + spread), abs=0.03)


def test_known_entities_are_those_of_the_evaluation(folder: Path) -> None:
    """Of all pages the same shares as `evaluate`, and of some pages their sequences alone."""
    torch.manual_seed(0)
    module = LukeForPretraining(TINY)
    held_out = HeldOut.open(folder)
    found = known_entities.asked(module, held_out, rounds=2)
    figures = evaluate(module, held_out, rounds=2, asks_words=False)
    assert len(found["rank"]) == figures["known_entity_count"]
    assert (found["rank"] == 1).mean() == pytest.approx(figures["known_entity_top_1"])
    rows = known_entities.rows_of([found], held_out.training_counts)
    assert [row["asked"] for row in rows] == [
        len(found["rank"]),
        *(count for name, count in figures.items() if "_seen_" in name and name.endswith("_count") and count),
    ]
    assert rows[0]["LUKE"] == pytest.approx(100 * figures["known_entity_top_1"])
    evens = np.arange(len(found["rank"])) % 2 == 0
    table = found | {"commonest": np.where(evens, found["label"], -1)}
    same, other = (
        known_entities.rows_of([table | {"rank": np.where(right, 1, 2)}], held_out.training_counts)[0]
        for right in (evens, ~evens)
    )
    assert same["LUKE less it, from"] == same["LUKE less it, to"] == 0
    assert other["LUKE less it, from"] < other["LUKE"] - other["commonest target"] < other["LUKE less it, to"]
    some = known_entities.beyond(held_out, 0.5)
    pages = {each.page_id for each in (some.corpus[index] for index in some.shuffled())}
    assert pages == {1000 + n for n in range(30) if not is_held_out(1000 + n, 0.5)}
    assert evaluate(module, some, asks_words=False)["sequences"] == len(some) < len(held_out)
    with pytest.raises(ValueError, match=r"^--beyond 1.0: no held-out page is left"):
        known_entities.beyond(held_out, 1.0)
