"""Masks: every rule of the pretraining task, over many sequences."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from model.data.masking import Masker, choose_words, masked_count
from model.data.shards import AnnotatedSequence, Corpus
from model.luke.batch import IGNORED, collate
from model.luke.config import UNKNOWN_ENTITY
from tests.support.properties import given, settings, st
from tests.support.shards import SPECIAL_IDS, WORDS, random_rows, write_sequences

MASK, CLS, SEP, PAD = 59, 0, 2, 1


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("sequences")
    return Corpus(write_sequences(folder, random_rows(300), max_words=512, max_mention_words=3))


def masker(corpus: Corpus, profile: str = "fixed", seed: int = 0, **shares: float) -> Masker:
    return Masker(corpus.facts, corpus.word_starts, profile=profile, seed=seed, **shares)


def sequence_of(words: list[int], entities: tuple[int, ...] = (5,)) -> AnnotatedSequence:
    zeros = np.zeros(len(entities), dtype=np.int16)
    return AnnotatedSequence(np.array(words, dtype=np.uint16), np.array(entities), zeros, zeros + 1, 7)


def words_of(words: np.ndarray, word_starts: np.ndarray) -> list[list[int]]:
    """Positions by word: the first token and every beginning token start one."""
    groups: list[list[int]] = []
    for position, word in enumerate(words):
        if position == 0 or word_starts[word]:
            groups.append([])
        groups[-1].append(position)
    return groups


@pytest.mark.parametrize("profile", ["fixed", "paper"])
def test_structure_of_masked_sequences(corpus: Corpus, profile: str) -> None:
    for index, epoch in itertools.product(range(len(corpus)), (0, 1)):
        sequence = corpus[index]
        masked = masker(corpus, profile).mask(sequence, epoch=epoch, index=index)
        assert (masked.word_ids[0], masked.word_ids[-1]) == (CLS, SEP)
        assert (masked.word_labels[0], masked.word_labels[-1]) == (IGNORED, IGNORED)
        words, labels = masked.word_ids[1:-1], masked.word_labels[1:-1]
        is_chosen = labels != IGNORED
        assert is_chosen.any()
        assert np.array_equal(labels[is_chosen], sequence.word_ids[is_chosen])
        assert np.array_equal(words[~is_chosen], sequence.word_ids[~is_chosen])
        assert np.array_equal(masked.entity_starts, sequence.entity_starts + 1)
        assert np.array_equal(masked.entity_ends, sequence.entity_ends + 1)
        is_entity_chosen = masked.entity_labels != IGNORED
        assert is_entity_chosen.sum() == max(1, round(len(sequence.entity_ids) * 0.15))
        assert (masked.entity_ids[is_entity_chosen] == 2).all()
        assert np.array_equal(masked.entity_labels[is_entity_chosen], sequence.entity_ids[is_entity_chosen])
        assert np.array_equal(masked.entity_ids[~is_entity_chosen], sequence.entity_ids[~is_entity_chosen])


@pytest.mark.parametrize("share", [0.15, 0.5, 1.0])
def test_the_share_of_hidden_entities_is_a_matter_of_its_own(corpus: Corpus, share: float) -> None:
    for index in range(len(corpus)):
        sequence = corpus[index]
        masked = masker(corpus, entity_share=share).mask(sequence, epoch=0, index=index)
        is_chosen = masked.entity_labels != IGNORED
        assert is_chosen.sum() == max(1, round(len(sequence.entity_ids) * share))
        assert np.array_equal(masked.entity_ids == 2, is_chosen | (sequence.entity_ids == 2))
        plain = masker(corpus).mask(sequence, epoch=0, index=index)
        assert np.array_equal(masked.word_ids, plain.word_ids)
        assert not (is_chosen < (plain.entity_labels != IGNORED)).any()


def test_whole_words_share_their_fate(corpus: Corpus) -> None:
    for index in range(len(corpus)):
        sequence = corpus[index]
        masked = masker(corpus).mask(sequence, epoch=0, index=index)
        groups = words_of(sequence.word_ids, corpus.word_starts)
        budget = masked_count(len(sequence.word_ids), 0.15)
        chosen_groups = []
        for group in groups:
            chosen = {bool(masked.word_labels[position + 1] != IGNORED) for position in group}
            assert len(chosen) == 1
            if chosen == {True}:
                chosen_groups.append(group)
                hidden = [masked.word_ids[position + 1] == MASK for position in group]
                assert all(hidden) or not any(hidden)
        taken = sum(map(len, chosen_groups))
        assert taken <= budget or (len(chosen_groups) == 1 and taken == min(map(len, groups)))
        left = [len(group) for group in groups if group not in chosen_groups]
        # Nothing that would still have fitted is left out.
        assert taken >= budget or all(length > budget - taken for length in left)


@pytest.mark.parametrize("profile", ["fixed", "paper"])
def test_shares_of_masking(corpus: Corpus, profile: str) -> None:
    generator = np.random.default_rng(1)
    subject, counts = masker(corpus, profile), np.zeros(4)
    for index in range(150):
        # Ordinary words only, so that a word left as it was is told from one drawn at random.
        words = generator.integers(4, 59, size=400).astype(np.uint16)
        masked = subject.mask(sequence_of(words.tolist()), epoch=0, index=index)
        new, label = masked.word_ids[1:-1], masked.word_labels[1:-1]
        chosen = label != IGNORED
        assert chosen.sum() == 60
        counts += [
            chosen.sum(),
            (new[chosen] == MASK).sum(),
            ((new != MASK) & (new != words))[chosen].sum(),
            (new == words)[chosen].sum(),
        ]
    total, hidden, random, kept = counts
    # 9,000 draws, those of one word together (mean length 2 or 1): 5 standard deviations are at most 0.04.
    assert abs(hidden / total - 0.8) < 0.04
    assert abs(random / total - 0.1 * 54 / 55) < 0.03
    assert abs(kept / total - 0.1 * 56 / 55) < 0.03


def test_paper_masks_exactly_the_budget_in_sub_words(corpus: Corpus) -> None:
    words = [4, 5, 7, 9, 11, 13, 15, 17, 19, 21] * 4
    subject, splits = masker(corpus, "paper"), 0
    for index in range(50):
        masked = subject.mask(sequence_of(words), epoch=0, index=index)
        chosen = masked.word_labels[1:-1] != IGNORED
        assert chosen.sum() == 6
        splits += any(len({bool(chosen[i]) for i in group}) == 2 for group in words_of(words, corpus.word_starts))
    assert splits == 50


def test_random_words(corpus: Corpus) -> None:
    allowed = {"fixed": set(range(WORDS)) - set(SPECIAL_IDS), "paper": set(range(PAD + 1, WORDS))}
    for profile, words in allowed.items():
        subject, counts = masker(corpus, profile), np.zeros(WORDS, int)
        for index in range(400):
            masked = subject.mask(sequence_of([4] * 200), epoch=0, index=index)
            counts += np.bincount(masked.word_ids[1:-1], minlength=WORDS)
        # What is neither the word (4) nor [MASK] was drawn at random, some 21 times each, standard deviation 4.6.
        drawn = [word for word in words if word not in (4, MASK)]
        assert set(np.flatnonzero(counts)) == words | {MASK}
        assert abs(counts[drawn] - counts[drawn].mean()).max() < 24


def test_every_place_is_masked_alike_and_words_apart_from_entities(corpus: Corpus) -> None:
    subject, sequence = masker(corpus), sequence_of([4] * 40, (5,) * 20)
    masked = [subject.mask(sequence, epoch=0, index=index) for index in range(2000)]
    words = np.array([each.word_labels[1:-1] != IGNORED for each in masked], float)
    entities = np.array([each.entity_labels != IGNORED for each in masked], float)
    # 300 of 2,000 each on average, standard deviation 16.
    for are_chosen in (words, entities):
        assert abs(are_chosen.sum(axis=0) - 300).max() < 80
    assert abs(np.corrcoef(words.T, entities.T)[:40, 40:]).max() < 0.12, "of independent draws 0, deviation 0.022"


def test_masks_are_a_function_of_seed_epoch_and_index(corpus: Corpus) -> None:
    def labels(seed: int, epoch: int, index: int) -> list[int]:
        return masker(corpus, seed=seed).mask(sequence_of([4] * 400), epoch=epoch, index=index).word_labels.tolist()

    assert labels(1, 2, 3) == labels(1, 2, 3)
    distinct = {tuple(labels(*key)) for key in itertools.product(range(2), range(2), range(2))}
    assert len(distinct) == 8


@pytest.mark.parametrize("nothing", ["word_share", "entity_share"])
def test_at_a_share_of_nothing_nothing_is_hidden(corpus: Corpus, nothing: str) -> None:
    for index in range(len(corpus)):
        sequence = corpus[index]
        masked = masker(corpus, **{nothing: 0.0}).mask(sequence, epoch=0, index=index)
        assert (masked.word_labels != IGNORED).any() == (nothing == "entity_share")
        assert (masked.entity_labels != IGNORED).any() == (nothing == "word_share")
        if nothing == "word_share":
            assert np.array_equal(masked.word_ids[1:-1], sequence.word_ids)
        else:
            assert np.array_equal(masked.entity_ids, sequence.entity_ids)


@pytest.mark.parametrize("share", [0.15, 1.0])
def test_unknown_entities_can_be_left_out(corpus: Corpus, share: float) -> None:
    """At least one known entity is hidden where there is one; [UNK] stays what it is."""
    for index in range(len(corpus)):
        sequence = corpus[index]
        ids = np.where(np.arange(len(sequence.entity_ids)) % 3, sequence.entity_ids, UNKNOWN_ENTITY)
        subject = masker(corpus, entity_share=share, masks_unknown=False)
        masked = subject.mask(replace(sequence, entity_ids=ids), epoch=0, index=index)
        is_known = ids != UNKNOWN_ENTITY
        assert np.array_equal(masked.entity_ids[~is_known], ids[~is_known])
        assert (masked.entity_labels[~is_known] == IGNORED).all()
        hidden = int((masked.entity_labels != IGNORED).sum())
        assert hidden == (max(1, round(share * is_known.sum())) if is_known.any() else 0)


def test_no_entities_are_no_obstacle(corpus: Corpus) -> None:
    masked = masker(corpus).mask(sequence_of([4, 6], ()), epoch=0, index=0)
    assert len(masked.entity_ids) == 0
    assert collate([masked], max_mention_words=3, entities=True).shape.entities == 0


def literal_choice(lengths: list[int], order: list[int], budget: int) -> list[int]:
    chosen: list[int] = []
    for word in order:
        if sum(lengths[other] for other in chosen) + lengths[word] <= budget:
            chosen.append(word)
    return chosen or [min(order, key=lambda word: lengths[word])]


@settings(max_examples=300, deadline=None)
@given(data=st.data(), lengths=st.lists(st.integers(1, 9), min_size=1, max_size=60), budget=st.integers(1, 60))
def test_choice_of_words_equals_the_literal_rule(data: st.DataObject, lengths: list[int], budget: int) -> None:
    order = data.draw(st.permutations(range(len(lengths))))
    chosen = choose_words(np.array(lengths), np.array(order), budget)
    assert chosen.tolist() == literal_choice(lengths, order, budget)
