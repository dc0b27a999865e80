"""Which of its text's targets a held-out link leads to: by how common they are, by the words around it, and by LUKE.

    python -m benchmarks.evidence.disambiguation --sequences DIR --links DIR --mentions DIR --tokenizer DIR
        --arm NAME DIR... [--found FILE] [--device cuda]

A mention counts whose text links to two known entities or more elsewhere, and whose own entity is known. Each method
is the logarithm of how often the text links to a candidate, plus weighted scores. Some of the held-out pages choose the
weights; the others are asked. Intervals are of resampled pages, for the mean over all models.
"""

import argparse
import itertools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.evidence.ambiguous import Floats, Integers, Mention, mentions_of
from benchmarks.evidence.words_around import around_links, around_mentions
from benchmarks.harness.options import Options, absolute
from benchmarks.harness.report import Record, Report, progress
from model.data.collation import collate
from model.data.masking import Masker
from model.data.shards import HELD_OUT, Corpus
from model.luke.batch import IGNORED
from model.luke.heads import ENTITY_LOSS, LukeForPretraining
from model.pretraining.evaluation import evaluating, read_pretrained
from model.pretraining.ranking import candidate_logits
from pipeline.lookup.held_out import is_held_out

WEIGHTS = (0.0, *(round(2.0 ** (power / 2), 4) for power in range(-10, 11)))
SAMPLES, SEED = 10_000, 20_201_116
Scores = list[Floats]  # of the candidates of each mention


@torch.no_grad()
def model_scores(
    module: LukeForPretraining, corpus: Corpus, mentions: Sequence[Mention], *, batch_size: int = 32
) -> Scores:
    """The logit of each candidate where all known entities of a sequence are hidden; computed where the model is."""
    facts = corpus.facts
    masker = Masker(
        facts,
        corpus.word_starts,
        profile="fixed",
        seed=SEED,
        word_share=0.0,
        entity_share=1.0,
        masks_unknown=False,
    )
    of_sequence: dict[int, list[int]] = {}
    for number, mention in enumerate(mentions):
        of_sequence.setdefault(mention.index, []).append(number)
    found: Scores = [np.zeros(0)] * len(mentions)
    indices = sorted(of_sequence)
    head, table = module.heads[ENTITY_LOSS]
    device = table.weight.device
    with evaluating(module):
        for first in range(0, len(indices), batch_size):
            chosen = indices[first : first + batch_size]
            masked = [masker.mask(corpus[index], epoch=0, index=index) for index in chosen]
            batch = collate(masked, max_mention_words=facts.max_mention_words, entities=True)
            states, labels = module.masked_states(batch.to(device))[ENTITY_LOSS]
            rows, counter = dict[int, int](), itertools.count()
            for index, each in zip(chosen, masked, strict=True):
                hidden = np.flatnonzero(each.entity_labels != IGNORED).tolist()
                row_of = {place: next(counter) for place in hidden}
                rows |= {number: row_of[mentions[number].place] for number in of_sequence[index]}
            candidates = [mentions[number].candidates for number in rows]
            assert labels[[*rows.values()]].tolist() == [mentions[number].label for number in rows]
            scores = candidate_logits(head, states[[*rows.values()]], table.weight, candidates)
            for number, score in zip(rows, scores, strict=True):
                found[number] = score
    return found


@dataclass(frozen=True)
class Candidates:
    """The candidates of mentions, one mention's after the other's."""

    starts: Integers  # of each mention
    mentions: Integers  # of each candidate the number of its mention
    are_right: NDArray[np.bool_]
    log_prior: Floats

    @classmethod
    def of(cls, mentions: Sequence[Mention]) -> "Candidates":
        """Those of these mentions, none of which is without candidates."""
        sizes = [len(each.candidates) for each in mentions]
        assert all(sizes)
        return cls(
            np.cumsum([0, *sizes[:-1]]),
            np.repeat(np.arange(len(mentions)), sizes),
            np.concatenate([each.candidates == each.label for each in mentions]),
            np.concatenate([each.log_prior for each in mentions]),
        )

    def is_right(self, scores: Floats) -> NDArray[np.bool_]:
        """Whether the best candidate of each mention is its entity; of equals the first counts."""
        best = np.flatnonzero(scores == np.maximum.reduceat(scores, self.starts)[self.mentions])
        _, first = np.unique(self.mentions[best], return_index=True)
        return self.are_right[best[first]]


def weighted(log_prior: Floats, parts: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """(candidates): the logarithm of the prior plus the weighted parts."""
    return sum((weight * part for part, weight in zip(parts, weights, strict=True)), log_prior)


def choose_weights(candidates: Candidates, parts: Sequence[Floats]) -> tuple[int, tuple[float, ...]]:
    """How many mentions are right with the best weights, and these; of equals the smallest."""
    found = [
        (int(candidates.is_right(weighted(candidates.log_prior, parts, weights)).sum()), weights)
        for weights in itertools.product(WEIGHTS, repeat=len(parts))
    ]
    return max(found, key=lambda each: (each[0], -sum(each[1])))


def interval(pages: Integers, values: Floats) -> tuple[float, float, float]:
    """The mean of a value of each mention, and its interval of 95 % over resampled pages."""
    _, rows = np.unique(pages, return_inverse=True)
    sums, counts = np.bincount(rows, values), np.bincount(rows)
    generator = np.random.default_rng(SEED)
    drawn = generator.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), SAMPLES)
    low, high = np.percentile((drawn @ sums) / (drawn @ counts), [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


@dataclass(frozen=True)
class Probe:
    """All mentions, the numbers of those that choose weights, and of those that are asked."""

    mentions: list[Mention]
    choosing: list[int]
    asked: list[int]

    @classmethod
    def of(cls, mentions: list[Mention], share: float) -> "Probe":
        """The mentions of the first pages, that share of all pages, choose; ValueError where either part is empty."""
        chooses = [is_held_out(each.page_id, share) for each in mentions]
        found = cls(mentions, np.flatnonzero(chooses).tolist(), np.flatnonzero(~np.array(chooses)).tolist())
        if not found.choosing or not found.asked:
            raise ValueError(
                f"--chosen-by {share}: {len(found.choosing)} mentions choose and {len(found.asked)} are asked; both "
                "need some: build the sequences with another --held-out"
            )
        return found

    def part(self, numbers: list[int], parts: Sequence[Scores]) -> tuple[Candidates, list[Floats]]:
        """The candidates of the mentions of these numbers, and their scores."""
        candidates = Candidates.of([self.mentions[n] for n in numbers])
        return candidates, [np.concatenate([each[n] for n in numbers]) for each in parts]

    def alone(self, scores: Scores) -> Floats:
        """Which of the asked are right by these scores without the prior."""
        candidates, (part,) = self.part(self.asked, [scores])
        return candidates.is_right(part).astype(np.float64)

    def weighed(self, *parts: Scores) -> tuple[Floats, tuple[float, ...], int]:
        """Which of the asked are right with the best weights of the others, these, and how many others are right."""
        count, weights = choose_weights(*self.part(self.choosing, parts))
        candidates, scores = self.part(self.asked, parts)
        right = candidates.is_right(weighted(candidates.log_prior, scores, weights))
        return right.astype(np.float64), weights, count


def methods(
    probe: Probe, bags: Sequence[Scores], models: Mapping[str, Sequence[Scores]]
) -> tuple[Record, list[Record]]:
    """By method which of the asked are right (a mean over models), and a row of each choice of weights.

    `models` are the scores of each model, by what they are called.
    """
    bag = max(bags, key=lambda each: probe.weighed(each)[2])
    right, choices = dict[str, Floats](), list[Record]()

    def weigh(name: str, models: Sequence[Sequence[Scores]]) -> None:
        """Add the mean of what these models, each a few scores, have right."""
        found = [probe.weighed(*parts) for parts in models]
        right[name] = np.mean([each for each, _, _ in found], axis=0)
        for _, weights, count in found:
            share = 100 * count / len(probe.choosing)
            choices.append({"method": name, "weights": weights, "accuracy where chosen": share})

    weigh("the prior", [()])
    weigh("prior + bag of words", [(bag,)])
    for kind, scores in models.items():
        right[kind] = np.mean([probe.alone(each) for each in scores], axis=0)
        weigh(f"prior + {kind}", [(each,) for each in scores])
        weigh(f"prior + {kind} + bag of words", [(each, bag) for each in scores])
    return right, choices


def tables(
    probe: Probe, right: Mapping[str, Floats], bases: Sequence[str] = ("the prior", "prior + bag of words")
) -> tuple[list[Record], list[Record]]:
    """The accuracy of each method in per cent, and what models add to the others, with intervals over pages."""
    pages = np.array([probe.mentions[n].page_id for n in probe.asked], np.int64)

    def row(name: str, values: Floats) -> Record:
        mean, low, high = interval(pages, 100 * values)
        return {"method": name, "mean": mean, "from": low, "to": high}

    differences = [
        row(f"{name} less {base}", values - right[base])
        for name, values in right.items()
        for base in bases
        if name.startswith("prior + ") and name != base and base in right
    ]
    return [row(name, values) for name, values in right.items()], differences


def read_options(arguments: list[str]) -> tuple[Options, argparse.Namespace]:
    """The command line."""
    options = Options("evidence.disambiguation", __doc__)
    options.take("sequences", "tokenizer", "threads", "arms", "device")
    add = options.add_argument
    add("--links", type=absolute, help="folder of ResolveLinks")
    add("--mentions", type=absolute, help="folder of BuildMentionTable")
    add(
        "--found",
        type=absolute,
        help="file.npz of the mentions: written where it is not there, else read instead of --links and --mentions",
    )
    add("--chosen-by", type=float, required=True, help="share of all pages, held out, that choose weights")
    return options, options.read(arguments)


def summary(probe: Probe, arms: Mapping[str, Sequence[Scores]]) -> str:
    """What was asked of which models."""
    asked = [probe.mentions[n] for n in probe.asked]
    reachable = sum(each.is_reachable for each in asked) / len(asked)
    pages = len({each.page_id for each in asked})
    models = ", ".join(f"{len(own)} of {name}" for name, own in arms.items()) or "none"
    return (
        f"{len(asked):,} mentions of {pages:,} pages are asked; the right entity is among the candidates of "
        f"{reachable:.1%}. {len(probe.choosing):,} mentions on other pages choose the weights. "
        f"Models: {models}. Accuracies are in per cent, intervals of 95 % are of {SAMPLES:,} samples of pages.\n"
    )


def main(arguments: list[str]) -> None:
    """Run the probe and write its report."""
    options, chosen = read_options(arguments)
    torch.set_num_threads(chosen.threads)
    held_out, training = Corpus(chosen.sequences, HELD_OUT), Corpus(chosen.sequences)
    try:
        found, annotations = mentions_of(held_out, chosen)
        probe = Probe.of(found, chosen.chosen_by)
    except ValueError as error:
        options.error(str(error))
    progress(f"{len(found):,} mentions; words around links")
    around = around_mentions(held_out, [(each.index, each.place) for each in found])
    candidates = [each.candidates for each in found]
    bags = [around_links(training, sublinear=each).cosines(around, candidates) for each in (False, True)]
    arms: dict[str, list[Scores]] = {}
    for name, folders in chosen.arms.items():
        progress(name)
        models = (read_pretrained(each).to(chosen.device) for each in folders)
        arms[name] = [model_scores(each, held_out, found) for each in models]
    right, choices = methods(probe, bags, arms)
    accuracies, differences = tables(probe, right)
    packages = ["torch", "numpy", "scipy", "scikit-learn"]
    report = Report("Which entity a held-out link leads to", chosen, packages)
    report.head.append(summary(probe, arms))
    report.add("Accuracy", accuracies)
    report.add("Mentions", [{"what": what, "count": number} for what, number in annotations.items()])
    report.add("What LUKE adds", differences, "In points.")
    report.add("Weights", choices)
    report.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
