"""Choices among the targets of a held-out link's text: by how common they are, by the words around it, and by LUKE.

    python -m benchmarks.evidence.disambiguation --sequences DIR --links DIR --mentions DIR --tokenizer DIR
        --models DIR... --chosen-by SHARE

A mention counts whose text links to two known entities or more elsewhere, and whose own entity is known. Each method
is the logarithm of how often the text links to a candidate, plus weighted scores. Some of the held-out pages choose the
weights; the others are asked. Intervals are of resampled pages, for the mean over all models.
"""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.evidence.words_around import Floats, Integers, WordsAround, around_mentions
from benchmarks.harness.options import Options
from benchmarks.harness.report import Record, Report, progress
from model.data.masking import Masker
from model.data.shards import HELD_OUT, Corpus
from model.hf.load import read_pretrained
from model.luke.batch import IGNORED, collate
from model.luke.config import SPECIAL_ENTITIES, UNKNOWN_ENTITY
from model.luke.heads import ENTITY_LOSS, LukeForPretraining, logits_of_vectors
from model.pretraining.evaluation import evaluating
from pipeline.lookup.held_out import is_held_out
from pipeline.sequences import commonest

WEIGHTS = (0.0, *(round(2.0 ** (power / 2), 4) for power in range(-10, 11)))
SAMPLES, SEED = 10_000, 20_201_116
PRIOR, BAG = "the prior", "prior + bag of words"
Scores = list[Floats]  # of the candidates of each mention


@dataclass(frozen=True)
class Mention:
    """An annotation of a held-out sequence, its known candidates, and the logarithm of each one's share of links."""

    page_id: int
    index: int
    place: int
    label: int
    candidates: Integers
    log_prior: Floats


def ambiguous_mentions(corpus: Corpus, **folders: str) -> tuple[list[Mention], Counter[str]]:
    """Return annotations of known entities whose texts link to two known entities or more, beside held-out links.

    Then how many annotations there are, and how many are left out, by reason.
    """
    offsets, places, counts = commonest.held_out_counts(sequences=str(corpus.folder), **folders)
    tables = [{label: links for label, links in each.items() if label != UNKNOWN_ENTITY} for each in counts]
    found, annotations = list[Mention](), Counter[str]()
    for index in range(len(corpus)):
        sequence = corpus[index]
        for place, label in enumerate(sequence.entity_ids.tolist()):
            table = tables[places[offsets[index] + place]]
            annotations["held-out annotations"] += 1
            if label < SPECIAL_ENTITIES:
                annotations["left out: their entity is not in the vocabulary"] += 1
            elif len(table) < 2:
                annotations["left out: their text has one known target or none"] += 1
            else:
                links = np.array(list(table.values()), np.float64)
                own = np.array(list(table), np.int64), np.log(links / links.sum())
                found.append(Mention(sequence.page_id, index, place, label, *own))
    return found, annotations


@torch.no_grad()
def model_scores(
    module: LukeForPretraining, corpus: Corpus, mentions: Sequence[Mention], *, batch_size: int = 32
) -> Scores:
    """Return the logit of each candidate where all known entities of a sequence are hidden."""
    facts = corpus.facts
    hiding = {"word_share": 0.0, "entity_share": 1.0, "masks_unknown": False}
    masker = Masker(facts, corpus.word_starts, profile="fixed", seed=SEED, **hiding)  # type: ignore[arg-type]
    of_sequence: dict[int, list[int]] = {}
    for number, mention in enumerate(mentions):
        of_sequence.setdefault(mention.index, []).append(number)
    found: Scores = [np.zeros(0)] * len(mentions)
    head, table = module.heads[ENTITY_LOSS]
    with evaluating(module):
        for first in range(0, len(indices := sorted(of_sequence)), batch_size):
            chosen = indices[first : first + batch_size]
            masked = [masker.mask(corpus[index], epoch=0, index=index) for index in chosen]
            batch = collate(masked, max_mention_words=facts.max_mention_words, entities=True)
            states, labels = module.masked_states(batch.to(table.weight.device))[ENTITY_LOSS]
            rows, counter = dict[int, int](), itertools.count()
            for index, each in zip(chosen, masked, strict=True):
                hidden = np.flatnonzero(each.entity_labels != IGNORED).tolist()
                row_of = {place: next(counter) for place in hidden}
                rows |= {number: row_of[mentions[number].place] for number in of_sequence[index]}
            candidates = [mentions[number].candidates for number in rows]
            assert labels[[*rows.values()]].tolist() == [mentions[number].label for number in rows]
            sizes = torch.tensor([len(each) for each in candidates])
            entities = torch.from_numpy(np.concatenate([np.zeros(0, np.int64), *candidates])).to(states.device)
            logits = logits_of_vectors(
                head,
                states[[*rows.values()]],
                table.weight[entities],
                head.bias[entities],
                torch.repeat_interleave(sizes).to(states.device),
            )
            scores = np.split(logits.double().cpu().numpy(), np.cumsum(sizes)[:-1]) if rows else []
            for number, score in zip(rows, scores, strict=True):
                found[number] = score
    return found


def is_right(mentions: Sequence[Mention], scores: Scores) -> NDArray[np.bool_]:
    """Tell whether the best candidate of each mention is its entity; of equals the first counts."""
    pairs = zip(mentions, scores, strict=True)
    return np.array([each.candidates[int(np.argmax(own))] == each.label for each, own in pairs], bool)


def weighted(mentions: Sequence[Mention], parts: Sequence[Scores], weights: Sequence[float]) -> Scores:
    """Return the logarithm of each mention's prior plus its weighted parts."""
    of_each = zip(mentions, *parts, strict=True)
    return [sum((w * own for w, own in zip(weights, each, strict=True)), m.log_prior) for m, *each in of_each]


def choose_weights(mentions: Sequence[Mention], parts: Sequence[Scores]) -> tuple[int, tuple[float, ...]]:
    """Return how many mentions are right with the best weights, and these; of equals the smallest."""
    every = itertools.product(WEIGHTS, repeat=len(parts))
    found = [(int(is_right(mentions, weighted(mentions, parts, each)).sum()), each) for each in every]
    return max(found, key=lambda each: (each[0], -sum(each[1])))


def interval(pages: Integers, values: Floats) -> tuple[float, float, float]:
    """Return the mean of a value of each mention, and its interval of 95 % over resampled pages."""
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
        """Have the mentions of the first pages, that share of all, choose; ValueError where either part is empty."""
        chooses = np.array([is_held_out(each.page_id, share) for each in mentions], bool)
        found = cls(mentions, np.flatnonzero(chooses).tolist(), np.flatnonzero(~chooses).tolist())
        if not found.choosing or not found.asked:
            told = f"{len(found.choosing)} mentions choose and {len(found.asked)} are asked; both need some"
            raise ValueError(f"--chosen-by {share}: {told}: build the sequences with another --held-out")
        return found

    def part(self, numbers: list[int], parts: Sequence[Scores]) -> tuple[list[Mention], list[Scores]]:
        """Return the mentions of these numbers, and their scores."""
        return [self.mentions[n] for n in numbers], [[each[n] for n in numbers] for each in parts]

    def alone(self, scores: Scores) -> Floats:
        """Tell which of the asked are right by these scores without the prior."""
        asked, (own,) = self.part(self.asked, [scores])
        return is_right(asked, own).astype(np.float64)

    def weighed(self, *parts: Scores) -> tuple[Floats, tuple[float, ...], int]:
        """Tell which of the asked are right with the others' best weights, these, and how many others are right."""
        count, weights = choose_weights(*self.part(self.choosing, parts))
        asked, own = self.part(self.asked, parts)
        return is_right(asked, weighted(asked, own, weights)).astype(np.float64), weights, count


def methods(probe: Probe, bags: list[Scores], models: list[Scores]) -> tuple[dict[str, Floats], list[Record]]:
    """Return by method which of the asked are right (a mean over models), and a row of each choice of weights."""
    bag = max(bags, key=lambda each: probe.weighed(each)[2])
    right, choices = dict[str, Floats](), list[Record]()

    def weigh(name: str, models: Sequence[Sequence[Scores]]) -> None:
        found = [probe.weighed(*parts) for parts in models]
        right[name] = np.mean([each for each, _, _ in found], axis=0)
        for _, weights, count in found:
            share = 100 * count / len(probe.choosing)
            choices.append({"method": name, "weights": weights, "accuracy where chosen": share})

    weigh(PRIOR, [()])
    weigh(BAG, [(bag,)])
    if models:
        right["LUKE"] = np.mean([probe.alone(each) for each in models], axis=0)
        weigh("prior + LUKE", [(each,) for each in models])
        weigh("prior + LUKE + bag of words", [(each, bag) for each in models])
    return right, choices


def tables(probe: Probe, right: Mapping[str, Floats]) -> tuple[list[Record], list[Record]]:
    """Return each method's accuracy in per cent, and what models add to the others, with intervals over pages."""
    pages = np.array([probe.mentions[n].page_id for n in probe.asked], np.int64)

    def row(name: str, values: Floats) -> Record:
        mean, low, high = interval(pages, 100 * values)
        return {"method": name, "mean": mean, "from": low, "to": high}

    differences = [
        row(f"{name} less {base}", values - right[base])
        for name, values in right.items()
        for base in (PRIOR, BAG)
        if name.startswith("prior + ") and name != base
    ]
    return [row(name, values) for name, values in right.items()], differences


def main() -> None:
    shared = ("sequences", "links", "mentions", "tokenizer", "models", "threads", "device")
    options = Options("evidence.disambiguation", __doc__, *shared)
    share = "share of all pages, held out, that choose weights"
    options.add_argument("--chosen-by", type=float, required=True, help=share)
    chosen = options.read()
    torch.set_num_threads(chosen.threads)
    held_out, training = Corpus(chosen.sequences, HELD_OUT), Corpus(chosen.sequences)
    folders = {name: str(getattr(chosen, name)) for name in ("links", "mentions", "tokenizer")}
    found, annotations = ambiguous_mentions(held_out, **folders)
    try:
        probe = Probe.of(found, chosen.chosen_by)
    except ValueError as error:
        options.error(str(error))
    progress(f"{len(found):,} mentions; words around links")
    around = around_mentions(held_out, [(each.index, each.place) for each in found])
    candidates = [each.candidates for each in found]
    bags = [WordsAround(training, sublinear=each).cosines(around, candidates) for each in (False, True)]
    models = []
    for folder in chosen.models:
        progress(f"{folder.name}")
        models.append(model_scores(read_pretrained(folder).to(chosen.device), held_out, found))
    right, choices = methods(probe, bags, models)
    accuracies, differences = tables(probe, right)
    packages = ["torch", "numpy", "scipy", "scikit-learn"]
    report = Report("Which entity a held-out link leads to", chosen, packages)
    pages = len({found[n].page_id for n in probe.asked})
    reachable = np.mean([found[n].label in found[n].candidates for n in probe.asked])
    report.head.append(
        f"{len(probe.asked):,} mentions of {pages:,} pages are asked; the right entity is among the candidates of "
        f"{reachable:.1%}. {len(probe.choosing):,} mentions on other pages choose the weights. {len(models)} models. "
        f"Accuracies are in per cent, intervals of 95 % are of {SAMPLES:,} samples of pages.\n"
    )
    report.add("Accuracy", accuracies)
    report.add("Mentions", [{"what": what, "count": number} for what, number in annotations.items()])
    report.add("What LUKE adds", differences, "In points.")
    report.add("Weights", choices)
    report.finish()


if __name__ == "__main__":
    main()
