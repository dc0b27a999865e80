"""Which page a gold mention stands for: by how common pages are, by the words around their links, and by LUKE.

    python -m benchmarks.evidence.linking --pages DIR --mentions DIR --tokenizer DIR --held-out FILE --gold FILE

A mention is asked that has two candidates or more, its page among them. Documents that are pages of the dump are left
out. Held-out pages of the dump, which are documents of BuildDocuments, choose how the bag of words is made, all weights
and all that makes probabilities; it is as if the dump had never had them. Each method is the logarithm of the prior
plus weighted scores. Intervals are of resampled documents, for the mean over all models.
"""

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

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
from tasks.linker_training.calibration import Outcomes, Row, at_best, fit_discount

SMALLEST = np.finfo(np.float64).tiny
WANTED_POINTS, BEYOND, WANTED_ERROR = 5.0, 0.01, 0.05
BAGS = "Accuracy in per cent with the best weight; the best where weights are chosen is the baseline."
CERTAINTY = """Expected calibration error of the answers to mentions that have candidates: those whose page the dump
has, and all. "before" is at temperature 1 and without a discount for pages that are no candidates."""
WEIGHED = "Of the model and of the bag of words; that of the logarithm of the prior is 1."
GOLD = DATA / "entity-linking/wned-wiki.jsonl"
WAYS = LOCAL, GLOBAL = "LUKE, local", "LUKE, global"
Found = tuple[dict[str, list[Scores]], list[Record], list[Record]]
Shares = Sequence[Sequence[Floats | list[float]]]  # of the candidates of each mention of each document


@dataclass(frozen=True)
class Material:
    """What is asked.

    Attributes:
        linker: by the prior alone.
        tokenizer: of the models and of the bag of words.
        documents: those that choose first, then the gold ones.
        choosing: how many documents choose.
        probe: their ambiguous mentions.
        page_counts, gold_counts: of mentions, why they are left out.
    """

    linker: Linker
    tokenizer: WordTokenizer
    documents: Documents
    choosing: int
    probe: Probe
    page_counts: Counter[str]
    gold_counts: Counter[str]


def read(chosen: argparse.Namespace, report: Report) -> tuple[Material, set[str]]:
    """The documents of the options, and the titles of the held-out pages; how many there are is told in the report."""
    annotator, wrong = Annotator.open(chosen.mentions), list[str]()
    finder, documents = CandidateFinder(annotator.table), Documents()
    pages, gold = read_documents(chosen.held_out), read_documents(chosen.gold, wrong)
    choosing = pages[:: max(1, len(pages) // chosen.choosing)][: chosen.choosing]
    asked = [each for each in gold if not is_page(each.id, finder)]
    documents.add(choosing, finder, are_pages=True)
    first, page_counts = len(documents.mentions), documents.counts.copy()
    documents.add(asked, finder, are_pages=False)
    gold_counts = documents.counts - page_counts
    gold_counts["left out: a wrong place"] = len(wrong)
    probe = Probe(documents.mentions, [*range(first)], [*range(first, len(documents.mentions))])
    report.head.append(
        f"{len(gold):,} documents. {len(gold) - len(asked):,} of them are pages of the dump and left out, "
        f"{len(asked):,} remain, with {len(probe.asked):,} mentions that are asked. {first:,} mentions of "
        f"{len(choosing):,} held-out pages choose. {len(chosen.models)} models. Accuracies are in per cent, intervals "
        f"of 95 % are of {SAMPLES:,} samples of documents.\n"
    )
    linker, tokenizer = Linker(finder, annotator), WordTokenizer.load(chosen.tokenizer)
    material = Material(linker, tokenizer, documents, len(choosing), probe, page_counts, gold_counts)
    return material, {each.id for each in pages}


# Models


def scores_of(documents: Documents, shares: Shares, prior_weight: float) -> Scores:
    """The logit of each candidate, up to a constant, by shares in which the prior has this weight."""
    return [
        np.log(np.maximum(shares[each.index][each.place], SMALLEST)) - each.log_prior * prior_weight
        for each in documents.mentions
    ]


def models_scores(folders: Sequence[Path], ways: Sequence[str], material: Material) -> Found:
    """The scores of each model in each way; how long they took; and how sure their answers may be.

    The first way has the prior's weight 1, another that which is best in the way before it: globally the prior has a
    say in which entities are put in.
    """
    scores, times, certainties = dict[str, list[Scores]](), list[Record](), list[Record]()
    documents, linker = material.documents, material.linker
    for folder in folders:
        model, weight = load_model(folder, linker.finder.table, material.tokenizer), 1.0
        for kind in ways:
            progress(f"{folder.name}: {kind}, the prior's weight {weight:.3g}")
            certainty = Certainty(prior_weight=weight)
            way = replace(linker, model=model, is_global=kind == GLOBAL, certainty=certainty)
            shares, clock = timed(lambda way=way: way.shares(documents.asked))  # type: ignore[misc]
            times.append({"model": folder.name, "method": kind, "prior weight": weight, **clock})
            found = scores_of(documents, shares, weight)
            scores.setdefault(kind, []).append(found)
            certainties.append(certainty_row(f"{folder.name}: prior + {kind}", material, shares, weight))
            weight = 1 / max(material.probe.weighed(found)[1][0], WEIGHTS[1])
    return scores, times, certainties


def certainty_row(method: str, material: Material, shares: Shares, weight: float = 1.0) -> Record:
    """How far probabilities are from the share that is right: before, and with what the held-out pages choose.

    `shares` are those of all candidates; the prior has this weight in them.
    """
    documents, choosing = material.documents, material.choosing
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
    """Points above the prior and above the bag of words, of the better way; and the calibration error.

    Above the bag of words is what has the whole interval above zero.
    """
    rows, found = {row["method"]: row for row in differences}, []
    for base, what, key, least in (
        ("the prior", "points", "mean", WANTED_POINTS),
        ("prior + bag of words", "points at the interval's lower end", "from", BEYOND),
    ):
        measured = [row for way in WAYS if (row := rows.get(f"prior + {way} less {base}"))]
        if measured:
            best = max(measured, key=lambda row: row["mean"])
            found.append(target(f"{best['method']}, {what}", best[key], least=least))
    for row in certainties:
        found.append(
            target(f"expected calibration error, {row['method']}", row["in the dump"], most=WANTED_ERROR)
        )
    return found


def fill(report: Report, material: Material, bags: Mapping[str, Scores], found: Found) -> None:
    """The tables of what was measured."""
    scores, times, certainties = found
    probe, prior = material.probe, material.linker.shares(material.documents.asked)
    certainties = [certainty_row("the prior", material, prior), *certainties]
    right, choices = methods(probe, [*bags.values()], scores)
    accuracies, differences = tables(probe, right)
    if times:
        report.add("Targets", targets(differences, certainties))
    report.add("Accuracy", accuracies)
    report.add("Differences", differences, "In points.")
    report.add("Weights", choices, WEIGHED)
    report.add("Bags of words", [bag_row(probe, name, bag) for name, bag in bags.items()], BAGS)
    report.add("Certainty", certainties, CERTAINTY)
    report.add("Mentions", mention_rows(material.gold_counts, material.page_counts))
    if times:
        report.add("Time", times, "Of all documents, those that choose among them.")


def main(arguments: list[str]) -> None:
    """Measure and write the report."""
    options = Options("evidence.linking", __doc__)
    options.take("tokenizer", "threads")
    add = options.add_argument
    add("--pages", type=absolute, required=True, help="folder of ExtractPages")
    add("--mentions", type=absolute, required=True, help="folder of BuildMentionTable")
    add("--held-out", type=absolute, required=True, help="held-out pages of the dump as documents")
    add("--choosing", type=count, default=100, help="so many of these choose (default: %(default)s)")
    add("--gold", type=absolute, default=GOLD, help="documents with titles")
    add("--models", type=absolute, nargs="*", default=[], help="folders of pretraining")
    add("--local", action="store_true", help="leave out what is asked globally, which takes longest")
    chosen = options.read(arguments)
    torch.set_num_threads(chosen.threads)
    report = Report("Which page a mention stands for", chosen, ["torch", "numpy", "scipy", "scikit-learn"])
    material, skipped = read(chosen, report)
    progress("words around links")
    resolve = resolver(material.linker.finder)
    bags = bags_of_words(material.documents, chosen.pages, skipped, resolve, material.tokenizer)
    fill(report, material, bags, models_scores(chosen.models, WAYS[: 1 if chosen.local else 2], material))
    report.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
