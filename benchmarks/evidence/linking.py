"""Which page a gold mention stands for: by how common pages are, by the words of documents, and by LUKE.

    python -m benchmarks.evidence.linking --pages DIR --mentions DIR --contexts DIR --tokenizer DIR --held-out FILE

A mention is asked that has two candidates or more, its page among them. Documents that are pages of the dump are left
out. Held-out pages of the dump, which are documents of BuildDocuments, choose how the bag of words is made, all weights
and all that makes probabilities; it is as if the dump had never had them. Intervals are of resampled documents, for the
mean over all models. "Adapted" methods have seen the gold documents, too, as those of `calibrate --like`: their
mentions of pages that the dump has, but no title.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from benchmarks.evidence.ambiguous import Floats
from benchmarks.evidence.disambiguation import SAMPLES, Probe, Scores, tables
from benchmarks.evidence.gold_mentions import Documents, bags_of_words
from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Record, Report, progress, target
from benchmarks.harness.workloads import timed
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.entities.annotator import Annotator
from tasks.entities.candidates import CandidateFinder
from tasks.entities.certainty import Certainty, reliability
from tasks.entities.disambiguation.entity_model import load_model
from tasks.entities.documents.document import Document, LeftOut
from tasks.entities.documents.reading import read_documents
from tasks.entities.linker import Linker, open_contexts
from tasks.entities.scores import Resolve, is_page, resolver
from tasks.linker_training.calibration import calibrate
from tasks.linker_training.outcomes import Outcomes, rows_of
from workflows.corpora.pages import ended

Shares = Sequence[Sequence[Floats | list[float]]]  # of the candidates of each mention of each document
AT_ONCE = 16  # documents
WANTED_POINTS, BEYOND, WANTED_ERROR = 5.0, 0.01, 0.05
BAGS = "Accuracy in per cent with the best weight; the best where weights are chosen is the baseline."
CERTAINTY = """What the held-out pages choose, as `calibrate` does, and the expected calibration error of the answers to
mentions that have candidates: those whose page the dump has, and all. "before" is at temperature 1 and without a
discount for pages that are no candidates. Adapted methods add the offset of uncommon pages, before as well, which
titles have no part in."""
GOLD = DATA / "entity-linking/wned-wiki.jsonl"
PRIOR, BAG, CONTEXTS = BASES = ("the prior", "prior + bag of words", "prior + contexts")
ADAPTED = ", adapted"
WAYS = LOCAL, GLOBAL = f"{CONTEXTS} + LUKE, local", f"{CONTEXTS} + LUKE, global"


@dataclass(frozen=True)
class Material:
    """What is asked.

    Attributes:
        linker: by the prior and, where they are given, contexts.
        tokenizer: of the models and of the bag of words.
        choosing: the documents that choose.
        like: the gold documents that are asked, without titles, and with the mentions alone whose page the dump has.
        documents: these first, then the gold ones.
        probe: their ambiguous mentions.
        page_counts, gold_counts: of mentions, why they are left out.
    """

    linker: Linker
    tokenizer: WordTokenizer
    choosing: Sequence[Document]
    like: Sequence[Document]
    documents: Documents
    probe: Probe
    page_counts: Counter[str]
    gold_counts: Counter[str]


@dataclass(frozen=True)
class Found:
    """What was measured: by method which of the asked are right (a row of each model), certainties, and times."""

    right: dict[str, list[Floats]] = field(default_factory=dict)
    certainties: list[Record] = field(default_factory=list)
    times: list[Record] = field(default_factory=list)

    def add(self, method: str, model: str, material: Material, linker: Linker) -> None:
        """Ask the gold documents, and look at the answers. What is adapted is asked without that before."""
        if material.like:
            plain = replace(linker, certainty=replace(linker.certainty, uncommon_offset=0.0))
            self.add(method, model, replace(material, like=()), plain)
            method += ADAPTED
        asked = material.documents.asked[len(material.choosing) :]
        if linker.contexts is None:
            asked = [each._replace(contexts=None, coherence=None) for each in asked]
        shares, clock = timed(lambda: linker.shares(asked))
        self.right.setdefault(method, []).append(right_of(material, shares))
        self.certainties.append(
            certainty_row(f"{model}: {method}" if model else method, material, linker, shares)
        )
        if model:
            self.times.append({"model": model, "method": method, **clock})


def read(chosen: argparse.Namespace, report: Report) -> tuple[Material, set[str]]:
    """The documents of the options, and the titles of the held-out pages; how many there are is told in the report."""
    annotator, wrong = Annotator.open(chosen.mentions), LeftOut()
    finder, documents = CandidateFinder(annotator.table), Documents()
    contexts = open_contexts(chosen.contexts, annotator.table) if chosen.contexts else None
    linker = Linker(finder, annotator, contexts=contexts)
    pages, gold = read_documents(chosen.held_out), read_documents(chosen.gold, wrong)
    choosing = pages[:: max(1, len(pages) // chosen.choosing)][: chosen.choosing]
    asked = [each for each in gold if not is_page(each.id, finder)]
    documents.add(choosing, linker, are_pages=True)
    first, page_counts = len(documents.mentions), documents.counts.copy()
    documents.add(asked, linker, are_pages=False)
    gold_counts = documents.counts - page_counts
    gold_counts["left out: a wrong place"] = len(wrong.mentions)
    probe = Probe(documents.mentions, [*range(first)], [*range(first, len(documents.mentions))])
    report.head.append(
        f"{len(gold):,} documents; {wrong.documents.total():,} that cannot be read are left out. "
        f"{len(gold) - len(asked):,} of them are pages of the dump and left out, "
        f"{len(asked):,} remain, with {len(probe.asked):,} mentions that are asked. {first:,} mentions of "
        f"{len(choosing):,} held-out pages choose. {len(chosen.models)} models. Accuracies are in per cent, intervals "
        f"of 95 % are of {SAMPLES:,} samples of documents.\n"
    )
    tokenizer = WordTokenizer.load(chosen.tokenizer)
    resolve = resolver(finder)
    like = [untitled(each, resolve) for each in asked]
    material = Material(linker, tokenizer, choosing, like, documents, probe, page_counts, gold_counts)
    return material, {each.id for each in pages}


def untitled(document: Document, resolve: Resolve) -> Document:
    """A document with those of its mentions whose page is known, but without their titles."""
    known = [each for each in document.mentions or () if resolve(each)]
    return replace(document, mentions=tuple(replace(each, title=None, qid=None) for each in known))


# Answers


def right_of(material: Material, shares: Shares) -> Floats:
    """Which of the asked mentions have the largest share at their page; of equals the first counts."""
    first, probe = len(material.choosing), material.probe
    asked = [probe.mentions[number] for number in probe.asked]
    best = [int(np.argmax(shares[each.index - first][each.place])) for each in asked]
    return np.array(best, np.float64) == [each.label for each in asked]


def measure(folders: Sequence[Path], material: Material, *, globally: bool) -> Found:
    """The prior, contexts, and each model in both ways.

    The held-out pages choose the weights and the certainty of each linker; globally those of the local way are taken.
    """
    found, linker = Found(), material.linker
    prior, unadapted = replace(linker, contexts=None), replace(material, like=())
    found.add(PRIOR, "", unadapted, calibrated(prior, unadapted))
    if linker.contexts is not None:
        found.add(CONTEXTS, "", material, calibrated(linker, material))
    for folder in folders:
        progress(f"{folder.name}: what held-out pages choose")
        model = load_model(folder, linker.finder.table, material.tokenizer)
        local = calibrated(replace(linker, model=model, is_global=False), material)
        found.add(LOCAL, folder.name, material, local)
        if globally:
            progress(f"{folder.name}: globally")
            found.add(GLOBAL, folder.name, material, replace(local, is_global=True))
    return found


def calibrated(linker: Linker, material: Material) -> Linker:
    """The linker with the certainty that the held-out pages choose; it answers whatever the probability."""
    certainty, _ = calibrate(
        linker, material.choosing, own_links=True, like=material.like, min_probability=0.0, at_once=AT_ONCE
    )
    return replace(linker, certainty=certainty)


def certainty_row(method: str, material: Material, linker: Linker, shares: Shares) -> Record:
    """How far probabilities are from the share that is right; `shares` are those of the gold documents."""
    first = len(material.choosing)
    of_each = zip(material.documents.asked[first:], material.documents.titles[first:], shares, strict=True)
    rows = [row for asked, titles, own in of_each for row in rows_of(linker, asked, titles, own)]
    gold, known = Outcomes.of(rows), Outcomes.of([row for row in rows if row.title is not None])
    certainty = linker.certainty

    def error(outcomes: Outcomes, certainty: Certainty) -> float | None:
        found: float | None = reliability(*outcomes.answers(certainty))["expected_calibration_error"]
        return found

    return {
        "method": method,
        "prior weight": certainty.prior_weight,
        "context weight": certainty.context_weight,
        "coherence weight": certainty.coherence_weight,
        "unknown offset": certainty.unknown_offset,
        "uncommon offset": certainty.uncommon_offset,
        "temperature": certainty.temperature,
        "discount": certainty.discount,
        "before": error(known, replace(certainty, temperature=1.0, discount=0.0)),
        "in the dump": error(known, certainty),
        "all": error(gold, certainty),
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
    """Points above the prior and above the bag of words, of the better way; and the calibration error of each method.

    Above the bag of words is what has the whole interval above zero.
    """
    rows, found = {row["method"]: row for row in differences}, []
    for base, what, key, least in (
        (PRIOR, "points", "mean", WANTED_POINTS),
        (BAG, "points at the interval's lower end", "from", BEYOND),
    ):
        measured = [row for way in WAYS if (row := rows.get(f"{way} less {base}"))]
        if measured:
            best = max(measured, key=lambda row: row["mean"])
            found.append(target(f"{best['method']}, {what}", best[key], least=least))
    for row in certainties:
        name = f"expected calibration error, {row['method']}"
        found.append(target(name, row["in the dump"], most=WANTED_ERROR))
    return found


def fill(report: Report, material: Material, bags: Mapping[str, Scores], found: Found) -> None:
    """The tables of what was measured."""
    probe = material.probe
    best = max(bags.values(), key=lambda each: probe.weighed(each)[2])
    means = {method: np.mean(rows, axis=0) for method, rows in found.right.items()}
    right = {PRIOR: means.pop(PRIOR), BAG: probe.weighed(best)[0], **means}
    accuracies, differences = tables(probe, right, BASES)
    report.add("Targets", targets(differences, found.certainties))
    report.add("Accuracy", accuracies)
    report.add("Differences", differences, "In points.")
    report.add("Bags of words", [bag_row(probe, name, bag) for name, bag in bags.items()], BAGS)
    report.add("Certainty", found.certainties, CERTAINTY)
    report.add("Mentions", mention_rows(material.gold_counts, material.page_counts))
    if found.times:
        report.add("Time", found.times, "Of the gold documents.")


def main(arguments: list[str]) -> None:
    """Measure and write the report."""
    options = Options("evidence.linking", __doc__)
    options.take("tokenizer", "threads")
    add = options.add_argument
    add("--pages", type=absolute, required=True, help="folder of ExtractPages")
    add("--mentions", type=absolute, required=True, help="folder of BuildMentionTable")
    add("--contexts", type=absolute, help="folder of BuildContexts, which did not read the held-out pages")
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
    resolve = partial(ended, material.linker.finder.targets)
    bags = bags_of_words(material.documents, chosen.pages, skipped, resolve, material.tokenizer)
    fill(report, material, bags, measure(chosen.models, material, globally=not chosen.local))
    report.finish()


if __name__ == "__main__":
    main(sys.argv[1:])
