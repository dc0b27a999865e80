"""The batches of pretraining: each sequence once an epoch, whoever prepares them."""

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model.data.shards import Corpus, epoch_order
from model.luke.heads import LukeForPretraining
from model.pretraining.loader import Loader, Step
from model.pretraining.phases import PhaseTraining
from model.training.ranks import Ranks
from tests.support import forked
from tests.support.models import TINY
from tests.support.pretraining import SHORT, rows_of


def test_loader_visits_each_sequence_once_an_epoch(sequences: Path) -> None:
    loader = Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True)
    visited = [pair for step in range(11) for pair in loader.indices(step)]
    assert len(visited) == 55
    for epoch in range(5):
        indices = [index for at, index in visited if at == epoch]
        assert indices == epoch_order(11, seed=3, epoch=epoch).tolist()


def test_sequences_with_few_known_entities_are_left_out(sequences: Path) -> None:
    corpus = Corpus(sequences)
    known = [int((corpus[index].entity_ids >= 3).sum()) for index in range(len(corpus))]
    wanted = [index for index, count in enumerate(known) if count >= 2]
    assert 0 < len(wanted) < len(corpus)
    recipe = replace(SHORT, min_entities=2)
    loader = Loader(corpus, recipe, profile="fixed", seed=3, entities=True)
    visited = [index for step in range(len(wanted)) for _, index in loader.indices(step)]
    assert sorted(visited) == sorted(wanted * SHORT.batch_size)
    assert loader.left_out == len(corpus) - len(wanted)
    with pytest.raises(ValueError, match=rf"^min_entities is 99, but no sequence of .* more than {max(known)} "):
        Loader(corpus, replace(SHORT, min_entities=99), profile="fixed", seed=3, entities=True)


@pytest.mark.parametrize(("count", "workers"), [(1, 2), (2, 0), (3, 1)])
def test_all_processes_together_see_exactly_the_epochs(sequences: Path, count: int, workers: int) -> None:
    corpus = Corpus(sequences)
    alone = Loader(corpus, SHORT, profile="fixed", seed=3, entities=True)
    seen: dict[int, list[bytes]] = {}
    for rank in range(count):
        loader = Loader(corpus, SHORT, profile="fixed", seed=3, entities=True, ranks=Ranks(rank=rank, count=count))
        for step, parts in zip(range(11), loader.stream(0, 11, workers), strict=True):
            seen.setdefault(step, []).extend(rows_of(parts))
    assert len(seen) * SHORT.batch_size == 5 * len(corpus)  # five whole epochs
    for step, rows in seen.items():
        assert sorted(rows) == sorted(rows_of(alone(step)))
        assert len(rows) == SHORT.batch_size


@pytest.mark.parametrize("budget", [1, 40, 70, 10_000])
def test_micro_batches_by_tokens(sequences: Path, budget: int) -> None:
    corpus = Corpus(sequences)
    by_count, by_tokens = (
        Loader(corpus, replace(SHORT, tokens_per_batch=tokens), profile="fixed", seed=3, entities=True)
        for tokens in (0, budget)
    )
    parts = by_tokens(4)
    sizes = [part.batch.shape.words + part.batch.shape.entities for part in parts]
    assert all(size <= budget or len(part.batch.shape.lengths) == 1 for size, part in zip(sizes, parts, strict=True))
    assert all(first + second > budget for first, second in itertools.pairwise(sizes))
    assert sorted(rows_of(parts)) == sorted(rows_of(by_count(4)))
    assert {tuple(part.totals.items()) for part in parts} == {tuple(by_count(4)[0].totals.items())}


def test_more_processes_than_sequences_in_a_batch_are_refused(sequences: Path) -> None:
    with pytest.raises(ValueError, match="a batch of 5 sequences is too small for 6 processes"):
        Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True, ranks=Ranks(5, 6))


def test_loader_says_what_the_whole_step_holds(sequences: Path) -> None:
    loader = Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True)
    parts = loader(4)
    assert [len(part.batch.shape.lengths) for part in parts] == [2, 2, 1]
    for name, field in (("masked_word", "word_labels"), ("masked_entity", "entity_labels")):
        assert {part.totals[name] for part in parts} == {sum(len(getattr(part.batch, field)) for part in parts)}


@pytest.mark.parametrize("count", [1, 2])
def test_the_paper_s_loss_is_the_mean_of_micro_batches_means(sequences: Path, count: int) -> None:
    """Its formula: of each micro-batch of each process the mean over its own labels; their sum by their number."""
    module = LukeForPretraining(TINY).eval()
    loaders = [
        Loader(Corpus(sequences), SHORT, profile="paper", seed=3, entities=True, ranks=Ranks(rank, count))
        for rank in range(count)
    ]
    parts = [loader(4) for loader in loaders]
    sizes = [len(part.batch.shape.lengths) for each in parts for part in each]
    assert sizes == ([2, 2, 1] if count == 1 else [2, 1, 2])

    class Together(Ranks):
        """As if the other processes were there."""

        def sum(self, values: Any) -> dict[str, float]:
            assert list(values) == ["parts"]
            return {"parts": len(sizes)}

    found, literal = [], []
    for loader, mine in zip(loaders, parts, strict=True):
        training = PhaseTraining.__new__(PhaseTraining)
        training.loader, training.ranks = loader, Together()
        for part in training.with_totals(mine):
            found.append(module(part.batch, part.totals).losses)
            literal.append(module(part.batch).losses)
    for name in ("masked_word", "masked_entity"):
        means = [float(losses[name].detach()) for losses in literal]
        loss = sum(float(losses[name].detach()) for losses in found)
        assert loss == pytest.approx(sum(means) / len(means), rel=1e-6)
    fixed = Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True)(4)
    assert len({tuple(part.totals.values()) for part in fixed}) == 1
    assert len({tuple(part.totals.values()) for part in parts[0]}) > 1


def test_a_step_travels_as_one_tensor(sequences: Path) -> None:
    parts = Loader(Corpus(sequences), SHORT, profile="fixed", seed=3, entities=True)(4)
    assert len(parts) > 1
    found = Step.of(parts).micro_batches()
    assert len({part.batch.numbers.untyped_storage().data_ptr() for part in found}) == 1
    for part, other in zip(parts, found, strict=True):
        assert (part.totals, part.batch.shape) == (other.totals, other.batch.shape)
        assert part.batch.numbers.equal(other.batch.numbers)


FEW_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
from model import pretrain
sys.exit(pretrain.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_step_of_two_thousand_sequences_takes_few_open_files(sequences: Path, tmp_path: Path) -> None:
    options = ["--preset", "tiny", "--workers", "2", "--device", "cpu"]
    for value in ("steps=2", "warmup_steps=0", "batch_size=2048", "num_hidden_layers=1", "hidden_size=64"):
        options += ["--set", value]
    errors = tmp_path / "errors.txt"
    process = forked.start(FEW_FILES, sequences, tmp_path / "output", *options, errors=errors)
    assert forked.end(process) == 0, errors.read_text()
    assert (tmp_path / "output" / "model.safetensors").is_file()
