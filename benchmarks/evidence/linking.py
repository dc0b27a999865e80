"""Which page a gold mention stands for: by how common pages are, by the words around their links, and by LUKE.

    python -m benchmarks.evidence.linking --pages DIR --mentions DIR --tokenizer DIR --held-out FILE --gold FILE

A mention is asked that has two candidates or more, its page among them. Documents that are pages of the dump are left
out. Held-out pages of the dump, which are documents of BuildDocuments, choose how the bag of words is made, all weights
and all that makes probabilities; it is as if the dump had never had them. Each method is the logarithm of the prior
plus weighted scores. Intervals are of resampled documents, for the mean over all models.
"""

import itertools
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from benchmarks.evidence.disambiguation import SAMPLES, WEIGHTS, Floats, Probe, Scores, methods, tables
from benchmarks.evidence.gold_mentions import Documents, bags_of_words
from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Record, Report, progress, target
from benchmarks.harness.workloads import timed
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.entities.annotator import Annotator
from tasks.entities.candidates import CandidateFinder
from tasks.entities.certainty import Certainty, reliability
from tasks.entities.disambiguation import load_model
from tasks.entities.documents.reading import read_documents
from tasks.entities.linker import Linker
from tasks.entities.scores import is_page, resolver
from tasks.linking.calibration import Outcomes, Row, at_best, fit_discount

SMALLEST = np.finfo(np.float64).tiny
WANTED_POINTS, BEYOND, WANTED_ERROR = 5.0, 0.01, 0.05
BAGS = "Accuracy in per cent with the best weight; the best where weights are chosen is the baseline."
CERTAINTY = """Expected calibration error of the answers to mentions that have candidates: those whose page the dump
has, and all. "before" is at temperature 1 and without a discount for pages that are no candidates."""
Shares = Sequence[Sequence[Floats | list[float]]]  # of the candidates of each mention of each document


# Models


def scores_of(documents: Documents, shares: Shares, prior_weight: float) -> Scores:
    """The logit of each candidate, up to a constant, by shares in which the prior has this weight."""
    return [
        np.log(np.maximum(shares[each.index][each.place], SMALLEST)) - each.log_prior * prior_weight
        for each in documents.mentions
    ]


def models_scores(
    linkers: Mapping[str, Linker], probe: Probe, documents: Documents, choosing: int
) -> tuple[dict[str, list[Scores]], list[Record], list[Record]]:
    """The scores of each model, locally and globally; how long they took; and how sure their answers may be.

    The first `choosing` documents choose. Globally the entities that are put in are those of the prior's weight that is
    best locally.
    """
    scores, times, certainties = dict[str, list[Scores]](), list[Record](), list[Record]()
    for name, linker in linkers.items():
        weight = 1.0
        for kind in ("LUKE, local", "LUKE, global"):
            progress(f"{name}: {kind}, the prior's weight {weight:.3g}")
            way = replace(linker, is_global=kind == "LUKE, global", certainty=Certainty(prior_weight=weight))
            shares, clock = timed(lambda way=way: way.shares(documents.asked))  # type: ignore[misc]
            times.append({"model": name, "method": kind, "prior weight": weight, **clock})
            found = scores_of(documents, shares, weight)
            scores.setdefault(kind, []).append(found)
            best = 1 / max(probe.weighed(found)[1][0], WEIGHTS[1])
            if kind == "LUKE, global":
                certainties.append(certainty_row(f"prior + {kind}", documents, shares, choosing, weight))
            weight = best
    return scores, times, certainties


def certainty_row(
    method: str, documents: Documents, shares: Shares, choosing: int, weight: float = 1.0
) -> Record:
    """How far probabilities are from the share that is right, with what the first documents choose, and before.

    Args:
        method: what is asked.
        documents: those that choose first.
        shares: of all candidates.
        choosing: how many documents choose.
        weight: the prior's weight in these shares.
    """
    rows: list[list[Row]] = [
        [*zip(titles, asked.candidates, of_each, strict=True)]
        for titles, asked, of_each in zip(documents.titles, documents.asked, shares, strict=True)
    ]
    held_out, gold = (Outcomes.of([*itertools.chain(*part)]) for part in (rows[:choosing], rows[choosing:]))
    known = Outcomes.of([row for part in rows[choosing:] for row in part if row[0] is not None])
    choices, _, is_right = held_out.reached()
    before = Certainty(prior_weight=weight)
    after = replace(before, temperature=at_best(choices, is_right)[0], discount=fit_discount(held_out))

    def error(outcomes: Outcomes, certainty: Certainty) -> float | None:
        found: float | None = reliability(*outcomes.answers(certainty))["expected_calibration_error"]
        return found

    return {
        "method": method,
        "temperature": after.temperature,
        "discount": after.discount,
        "before": error(known, before),
        "in the dump": error(known, after),
        "all": error(gold, after),
    }


# The report


def bag_row(probe: Probe, name: str, bag: Scores) -> Record:
    """How good a form of the bag of words is with its best weight."""
    right, weights, count = probe.weighed(bag)
    choosing = 100 * count / len(probe.choosing)
    return {"words": name, "weight": weights[0], "choosing": choosing, "asked": 100 * float(right.mean())}


def mention_rows(gold: Counter[str], pages: Counter[str]) -> list[Record]:
    """How many mentions are asked, and why the others are not."""
    return [
        {"mentions": name, "gold": gold[name], "held-out pages": pages[name]}
        for name in sorted({*gold, *pages})
    ]


def targets(differences: Sequence[Record], certainties: Sequence[Record]) -> list[Record]:
    """Points above the prior, what is above the bag of words beyond its interval, and the calibration error."""
    found = []
    for row in differences:
        if "LUKE, global less" in row["method"]:
            is_prior = row["method"].endswith("the prior")
            what = "points" if is_prior else "points at the interval's lower end"
            value = row["mean"] if is_prior else row["from"]
            found.append(
                target(f"{row['method']}, {what}", value, least=WANTED_POINTS if is_prior else BEYOND)
            )
    for row in certainties:
        found.append(
            target(f"expected calibration error, {row['method']}", row["in the dump"], most=WANTED_ERROR)
        )
    return found


def main(arguments: list[str]) -> None:
    """Measure and write the report."""
    options = Options("evidence.linking", __doc__)
    options.take("tokenizer", "threads")
    add = options.add_argument
    add("--pages", type=absolute, required=True, help="folder of ExtractPages")
    add("--mentions", type=absolute, required=True, help="folder of BuildMentionTable")
    add("--held-out", type=absolute, required=True, help="held-out pages of the dump as documents")
    add("--choosing", type=count, default=100, help="so many of these choose (default: %(default)s)")
    add(
        "--gold", type=absolute, default=DATA / "entity-linking/wned-wiki.jsonl", help="documents with titles"
    )
    add("--models", type=absolute, nargs="*", default=[], help="folders of pretraining")
    chosen = options.read(arguments)
    torch.set_num_threads(chosen.threads)
    annotator, tokenizer = Annotator.open(chosen.mentions), WordTokenizer.load(chosen.tokenizer)
    finder, wrong = CandidateFinder(annotator.table), list[str]()
    pages, gold = read_documents(chosen.held_out), read_documents(chosen.gold, wrong)
    choosing = pages[:: max(1, len(pages) // chosen.choosing)][: chosen.choosing]
    asked = [each for each in gold if not is_page(each.id, finder)]
    documents = Documents()
    documents.add(choosing, finder, are_pages=True)
    first, reasons = len(documents.mentions), documents.counts.copy()
    documents.add(asked, finder, are_pages=False)
    probe = Probe(documents.mentions, [*range(first)], [*range(first, len(documents.mentions))])
    progress(f"{len(probe.asked):,} mentions are asked, {first:,} choose; words around links")
    skipped = {each.id for each in pages}
    bags = bags_of_words(documents, chosen.pages, skipped, resolver(finder), tokenizer)
    prior = Linker(finder, annotator)
    linkers = {
        each.name: replace(prior, model=load_model(each, annotator.table, tokenizer))
        for each in chosen.models
    }
    scores, times, certainties = models_scores(linkers, probe, documents, len(choosing))
    certainties.insert(0, certainty_row("the prior", documents, prior.shares(documents.asked), len(choosing)))
    right, choices = methods(probe, [*bags.values()], scores)
    accuracies, differences = tables(probe, right)
    report = Report("Which page a mention stands for", chosen, ["torch", "numpy", "scipy", "scikit-learn"])
    report.head.append(
        f"{len(gold):,} documents. {len(gold) - len(asked):,} of them are pages of the dump and left out, "
        f"{len(asked):,} remain, with {len(probe.asked):,} mentions that are asked. {first:,} mentions of "
        f"{len(choosing):,} held-out pages choose. {len(linkers)} models. Accuracies are in per cent, intervals of 95 "
        f"% are of {SAMPLES:,} samples of documents.\n"
    )
    if linkers:
        report.add("Targets", targets(differences, certainties))
    report.add("Accuracy", accuracies)
    report.add("Differences", differences, "In points.")
    report.add(
        "Weights", choices, "Of the model and of the bag of words; that of the logarithm of the prior is 1."
    )
    report.add("Bags of words", [bag_row(probe, name, bag) for name, bag in bags.items()], BAGS)
    report.add("Certainty", certainties, CERTAINTY)
    counts = documents.counts - reasons
    counts["left out: a wrong place"] = len(wrong)
    report.add("Mentions", mention_rows(counts, reasons))
    if times:
        report.add("Time", times, "Of all documents, those that choose among them.")
    report.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
