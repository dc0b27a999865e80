"""The rules of masking over a real shard: pages of a real dump, RoBERTa's tokens, the pipeline's own writer.

Masks are a function of the seed, so these tests always end alike. Where a share is asked for, it has to lie within
Bernstein's bound: masks that are right would miss it with a probability below CHANCE of being drawn.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip(
    "sentencex", reason="a shard of real pages is made by the pipeline, which splits sentences with it"
)

from model.data.masking import MaskedSequence, Masker
from model.data.shards import AnnotatedSequence, Corpus
from model.luke.batch import IGNORED
from model.luke.config import UNKNOWN_ENTITY
from pipeline import schemas
from pipeline.sequences.packing import Limits, build_page
from pipeline.sequences.shards import shard, write_word_starts
from pipeline.sequences.tokenizer import WordTokenizer
from tests.support.real_pages import real_pages
from tests.support.shards import write_manifest

CHANCE = 1e-6
PAGES, EPOCHS = 16, 30
Masked = tuple[AnnotatedSequence, MaskedSequence]


@pytest.fixture(scope="module")
def corpus(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A shard of the first pages of a real dump; every link's target is an entity."""
    roberta = WordTokenizer.load(shared / "data/roberta-tokenizer")
    folder, limits = tmp_path_factory.mktemp("real"), Limits()
    titles: dict[str, int] = {}
    pages = real_pages(shared / "data/wikipedia/enwiki-2006-500.xml.bz2", "en")
    with shard(
        str(folder / "sequences/block-00000.arrow"), schemas.sequences(roberta.vocab_size).schema
    ) as writer:
        for number, page in enumerate(itertools.islice(pages, PAGES)):
            sequences, _, _ = build_page(
                page,
                language="en",
                tokenizer=roberta,
                entity_id=lambda title: titles.setdefault(title, len(titles) + 3),
                limits=limits,
                profile="fixed",
            )
            writer.extend(number, sequences)
    write_word_starts(str(folder), roberta.word_starts())
    facts = {"word_vocab_size": roberta.vocab_size, "entity_vocab_size": len(titles) + 3, "mask_id": 50264}
    facts |= {
        "special_ids": [0, 1, 2, 3, 50264],
        "max_words": 512,
        "max_entities": 128,
        "max_mention_words": 30,
    }
    rows = {"sequences/block-00000.arrow": writer.count, "word_starts.arrow": roberta.vocab_size}
    write_manifest(folder, rows, facts)
    return Corpus(folder)


@pytest.fixture(scope="module")
def masked(corpus: Corpus) -> Callable[..., list[Masked]]:
    """What a profile's masks make of every sequence in every epoch, drawn once."""

    @cache
    def drawn(profile: str = "fixed") -> list[Masked]:
        masker = Masker(corpus.facts, corpus.word_starts, profile=profile, seed=1)
        return [
            (corpus[index], masker.mask(corpus[index], epoch=epoch, index=index))
            for epoch, index in itertools.product(range(EPOCHS), range(len(corpus)))
        ]

    return drawn


def bound(count: int, share: float) -> float:
    """How far the mean of so many independent (or negatively dependent) outcomes may be from its expectation."""
    rarity = math.log(2 / CHANCE)
    return (rarity / 3 + math.sqrt(rarity**2 / 9 + 2 * count * share * (1 - share) * rarity)) / count


def assert_share(outcomes: np.ndarray, share: float) -> None:
    assert abs(outcomes.mean() - share) < bound(len(outcomes), share) < 0.03


def test_the_shard_is_real(corpus: Corpus) -> None:
    words = sum(len(corpus[index].word_ids) for index in range(len(corpus)))
    assert words > 50_000
    # Words of several tokens, without which whole words would be no rule.
    starts = np.concatenate([corpus.word_starts[corpus[index].word_ids] for index in range(len(corpus))])
    assert 0.1 < 1 - starts.mean() < 0.4


@pytest.mark.parametrize("profile", ["fixed", "paper"])
def test_15_percent_of_the_tokens_are_chosen_and_never_more_than_the_budget(
    masked: Callable[..., list[Masked]], profile: str
) -> None:
    """The budget is a count, not a chance: in sub-words it is met, and by whole words all but met."""
    tokens = chosen = 0
    for sequence, found in masked(profile):
        budget = max(1, round(0.15 * len(sequence.word_ids)))
        count = int((found.word_labels != IGNORED).sum())
        assert count == budget if profile == "paper" else count <= budget or budget == 1
        tokens += len(sequence.word_ids)
        chosen += count
    assert chosen / tokens == pytest.approx(0.15, abs=1e-3)


def test_whole_words_are_never_split_and_share_one_draw_of_80_10_10(
    corpus: Corpus, masked: Callable[..., list[Masked]]
) -> None:
    hidden, same = [], []
    for sequence, found in masked():
        starts = corpus.word_starts[sequence.word_ids]
        starts[0] = True
        first = np.flatnonzero(starts)
        sizes = np.diff(np.append(first, len(starts)))

        def per_word(is_so: np.ndarray, first: np.ndarray = first) -> np.ndarray:
            return np.add.reduceat(is_so.astype(int), first)

        words, labels = found.word_ids[1:-1], found.word_labels[1:-1]
        chosen = per_word(labels != IGNORED)
        assert ((chosen == 0) | (chosen == sizes)).all()
        masks = per_word((words == corpus.facts.mask_id) & (labels != IGNORED))
        assert ((masks == 0) | (masks == sizes)).all()
        kept = per_word(words == sequence.word_ids)
        # A random word may have a token of the old one, but hardly ever all of them.
        hidden.append((masks > 0)[chosen > 0])
        same.append((kept == sizes)[chosen > 0])
    assert_share(np.concatenate(hidden), 0.8)
    assert_share(np.concatenate(same), 0.1)
    # What is neither was drawn at random.
    assert_share(~np.concatenate(hidden) & ~np.concatenate(same), 0.1)


def test_80_10_10_of_sub_words(corpus: Corpus, masked: Callable[..., list[Masked]]) -> None:
    hidden, same = [], []
    for sequence, found in masked("paper"):
        chosen = found.word_labels[1:-1] != IGNORED
        hidden.append((found.word_ids[1:-1] == corpus.facts.mask_id)[chosen])
        same.append((found.word_ids[1:-1] == sequence.word_ids)[chosen])
    assert_share(np.concatenate(hidden), 0.8)
    assert_share(np.concatenate(same), 0.1)


def test_random_words_are_never_special_and_come_from_the_whole_vocabulary(
    corpus: Corpus, masked: Callable[..., list[Masked]]
) -> None:
    drawn = []
    for sequence, found in masked():
        words = found.word_ids[1:-1]
        drawn.append(words[(words != sequence.word_ids) & (words != corpus.facts.mask_id)])
    ids = np.concatenate(drawn)
    assert not np.isin(ids, corpus.facts.special_ids).any()
    for part in range(1, 10):
        assert_share(ids < 4 + part * 5026, part / 10)


def test_what_is_not_chosen_and_the_ends_are_left_as_they_are(
    corpus: Corpus, masked: Callable[..., list[Masked]]
) -> None:
    for sequence, found in masked():
        assert (found.word_ids[0], found.word_ids[-1]) == (corpus.facts.cls_id, corpus.facts.sep_id)
        assert (found.word_labels[[0, -1]] == IGNORED).all()
        labels = found.word_labels[1:-1]
        is_chosen = labels != IGNORED
        assert (found.word_ids[1:-1] == sequence.word_ids)[~is_chosen].all()
        assert (labels == sequence.word_ids)[is_chosen].all()


def test_15_percent_of_the_entities_at_least_one_always_mask_and_each_as_often(
    masked: Callable[..., list[Masked]],
) -> None:
    first: list[np.ndarray] = []
    expected: list[float] = []
    for sequence, found in masked():
        count = len(sequence.entity_ids)
        is_chosen = found.entity_labels != IGNORED
        assert is_chosen.sum() == max(1, round(0.15 * count))
        assert (found.entity_ids[is_chosen] == 2).all()
        assert (found.entity_ids == sequence.entity_ids)[~is_chosen].all()
        assert (found.entity_labels == sequence.entity_ids)[is_chosen].all()
        # Were earlier entities chosen more often than later ones, the first halves would show it.
        half = (count + 1) // 2
        first.append(is_chosen[:half])
        expected += [is_chosen.sum() / count] * half
    assert_share(np.concatenate(first), float(np.mean(expected)))


def test_a_masked_entity_s_words_are_masked_no_more_than_others(masked: Callable[..., list[Masked]]) -> None:
    outcomes: dict[bool, list[bool]] = {True: [], False: []}
    for _, found in masked():
        is_word_chosen = found.word_labels[found.entity_starts] != IGNORED
        for is_entity_chosen, is_chosen in zip(found.entity_labels != IGNORED, is_word_chosen, strict=True):
            outcomes[bool(is_entity_chosen)].append(bool(is_chosen))
    share = float(np.mean(outcomes[False]))
    tolerance = sum(bound(len(found), share) for found in outcomes.values())
    assert abs(float(np.mean(outcomes[True])) - share) < tolerance < 0.03


def test_at_a_share_of_nothing_nothing_is_hidden(corpus: Corpus) -> None:
    whole = Masker(corpus.facts, corpus.word_starts, profile="fixed", seed=1, word_share=0.0)
    words = Masker(corpus.facts, corpus.word_starts, profile="fixed", seed=1, entity_share=0.0)
    for index in range(len(corpus)):
        sequence = corpus[index]
        found, other = whole.mask(sequence, epoch=0, index=index), words.mask(sequence, epoch=0, index=index)
        assert found.word_ids[1:-1].tolist() == sequence.word_ids.tolist()
        assert (found.word_labels == IGNORED).all()
        assert other.entity_ids.tolist() == sequence.entity_ids.tolist()
        assert (other.entity_labels == IGNORED).all()
        assert (found.entity_labels != IGNORED).any() == bool(len(sequence.entity_ids))
        assert (other.word_labels != IGNORED).any()


@pytest.mark.parametrize("share", [0.15, 1.0])
def test_unknown_entities_can_be_left_out(corpus: Corpus, share: float) -> None:
    """At least one known entity is hidden where there is one; [UNK] stays what it is."""
    masker = Masker(
        corpus.facts, corpus.word_starts, profile="fixed", seed=1, entity_share=share, masks_unknown=False
    )
    for index in range(len(corpus)):
        sequence = corpus[index]
        ids = np.where(np.arange(len(sequence.entity_ids)) % 3, sequence.entity_ids, UNKNOWN_ENTITY)
        found = masker.mask(replace(sequence, entity_ids=ids), epoch=0, index=index)
        is_known = ids != UNKNOWN_ENTITY
        assert found.entity_ids[~is_known].tolist() == ids[~is_known].tolist()
        assert (found.entity_labels[~is_known] == IGNORED).all()
        hidden = int((found.entity_labels != IGNORED).sum())
        assert hidden == (max(1, round(share * is_known.sum())) if is_known.any() else 0)
