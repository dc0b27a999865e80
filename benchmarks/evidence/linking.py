"""Which page a gold mention stands for: by how common pages are, by the words around their links, and by LUKE.

    python -m benchmarks.evidence.linking --sequences DIR --mentions DIR --tokenizer DIR --held-out FILE --gold FILE

A mention counts that has two candidates or more, its page among them. Documents that are pages of the dump are left
out. Held-out pages of the dump, whose own links are taken out of the prior, choose how the bag of words is made and all
weights. Each method is the logarithm of the prior plus weighted scores. Intervals are of resampled documents, for the
mean over all models.
"""

import itertools
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack

from benchmarks.evidence.disambiguation import (
    SAMPLES,
    WEIGHTS,
    Floats,
    Mention,
    Probe,
    Scores,
    methods,
    tables,
)
from benchmarks.evidence.words_around import WordsAround, counted
from benchmarks.harness.options import DATA, Options, absolute, count
from benchmarks.harness.report import Record, Report, progress
from model.data.shards import Corpus
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.entities.candidates import NO_LINKS, Asked, CandidateFinder
from tasks.entities.disambiguation import EntityModel, disambiguate, load_model
from tasks.entities.documents.document import Document
from tasks.entities.documents.reading import read_documents
from tasks.entities.scores import is_page, resolver
from tasks.io.windows import token_spans

RADII = (None, 200, 50)  # tokens on either side of a mention that are its words; None: the whole document
BAGS = (
    "Accuracy in per cent with the best weight; that which is best where weights are chosen is the baseline."
)
SMALLEST = np.finfo(np.float64).tiny


@dataclass
class Documents:
    """Documents with their candidates, their ambiguous mentions, and why the others are none."""

    asked: list[Asked] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, documents: Sequence[Document], finder: CandidateFinder, *, are_pages: bool) -> None:
        """Add documents; where they are pages of the dump, it is as if it had never had them.

        Candidates are numbered, the commonest first; `page_id` and `index` are the document's number.
        """
        resolve = resolver(finder)
        own = finder.own_links(documents) if are_pages else [NO_LINKS] * len(documents)
        for document, without in zip(documents, own, strict=True):
            gold, index = document.mentions or (), len(self.asked)
            texts = [document.text[each.start : each.end] for each in gold]
            found = finder.of_document(texts, longer=False, without=without)
            self.asked.append(Asked(document.text, gold, found))
            for place, (mention, candidates) in enumerate(zip(gold, found, strict=True)):
                title = mention.title and resolve(mention.title)
                titles = [each.title for each in candidates.items]
                reason = left_out(title if title not in without.alone else None, titles)
                self.counts[reason or "asked"] += 1
                if title and not reason:
                    numbers = np.arange(len(titles), dtype=np.int64)
                    prior = np.log([each.prior for each in candidates.items])
                    self.mentions.append(Mention(index, index, place, titles.index(title), numbers, prior))


def left_out(title: str | None, titles: Sequence[str]) -> str:
    """Why a mention of this page with these candidates is not asked; empty where it is."""
    if not title:
        return "left out: no title, or none of the dump"
    if title not in titles:
        return "left out: the page is not among the candidates"
    return "left out: the page is the only candidate" if len(titles) < 2 else ""


# Scores


def luke_scores(model: EntityModel, documents: Documents, *, is_global: bool, prior_weight: float) -> Scores:
    """The logit of each candidate up to a constant; globally where mentions are put in by prior and logit."""
    found = disambiguate(model, documents.asked, is_global=is_global, prior_weight=prior_weight)
    scores = []
    for each in documents.mentions:
        shares = found[each.index][each.place]
        logs = each.log_prior * prior_weight if shares is None else np.log(np.maximum(shares, SMALLEST))
        scores.append(logs - each.log_prior * prior_weight)
    return scores


def bags_of_words(documents: Documents, training: Corpus, tokenizer: WordTokenizer) -> dict[str, Scores]:
    """The cosines of each form of the bag of words, by what it is called.

    A candidate outside the vocabulary gets the mean of the others, as it does of the model's logits.
    """
    rows = [
        [each.entity_id for each in documents.asked[mention.index].candidates[mention.place].items]
        for mention in documents.mentions
    ]
    known = [np.array([row for row in each if row is not None], np.int64) for each in rows]
    found = dict[str, Scores]()
    words = {radius: words_of(documents, tokenizer, radius) for radius in RADII}
    for sublinear in (False, True):
        around = WordsAround(training, sublinear=sublinear)
        for radius, each in words.items():
            name = f"{'whole documents' if radius is None else f'{radius} tokens on either side'}"
            name += ", logarithm of counts" if sublinear else ""
            cosines = around.cosines(each, known)
            found[name] = [spread(*pair) for pair in zip(rows, cosines, strict=True)]
    return found


def spread(rows: Sequence[int | None], scores: Floats) -> Floats:
    """The scores of known candidates in their places, and their mean in those of the others."""
    is_known = np.array([row is not None for row in rows])
    found = np.full(len(rows), scores.mean() if len(scores) else 0.0)
    found[is_known] = scores
    return found


def words_of(documents: Documents, tokenizer: WordTokenizer, radius: int | None) -> csr_matrix:
    """How often each word stands around each mention, without those that it spans: (mentions, words)."""
    rows = []
    for index, of_document in itertools.groupby(documents.mentions, key=lambda each: each.index):
        asked, mentions = documents.asked[index], list(of_document)
        ids, characters = tokenizer.encode_with_offsets(asked.text)
        own = [asked.mentions[each.place] for each in mentions]
        spans = token_spans(np.array(characters), np.array([(each.start, each.end) for each in own]))
        far, words = len(ids) if radius is None else radius, np.array(ids, np.int64)
        around = [
            np.concatenate([words[max(0, first - far) : first], words[last : last + far]])
            for first, last in spans.tolist()
        ]
        numbers = np.repeat(np.arange(len(around)), [len(each) for each in around])
        pairs = np.stack([numbers, np.concatenate(around)], axis=1)
        rows.append(counted(pairs, (len(around), tokenizer.vocab_size)))
    return vstack(rows, format="csr")


def models_scores(
    folders: Sequence[Path], probe: Probe, documents: Documents, table: MentionTable, tokenizer: WordTokenizer
) -> tuple[dict[str, list[Scores]], list[Record]]:
    """The scores of each model, locally and globally, and how long they took.

    Globally the entities that are put in are those of the weight that is best locally.
    """
    scores, times = dict[str, list[Scores]](), list[Record]()
    for folder in folders:
        model, weight = load_model(folder, table, tokenizer), 1.0
        for kind in ("LUKE, local", "LUKE, global"):
            progress(f"{folder.name}: {kind}, the prior's weight {weight:.3g}")
            begin, is_global = time.perf_counter(), kind == "LUKE, global"
            found = luke_scores(model, documents, is_global=is_global, prior_weight=weight)
            seconds = time.perf_counter() - begin
            times.append({"method": kind, "prior weight": weight, "seconds": seconds})
            scores.setdefault(kind, []).append(found)
            weight = 1 / max(probe.weighed(found)[1][0], WEIGHTS[1])
    return scores, times


def main(arguments: list[str]) -> None:
    """Measure and write the report."""
    options = Options("evidence.linking", __doc__)
    options.take("sequences", "tokenizer", "threads")
    add = options.add_argument
    add("--mentions", type=absolute, required=True, help="folder of BuildMentionTable")
    add("--held-out", type=absolute, required=True, help="held-out pages of the dump as documents")
    add("--choosing", type=count, default=100, help="so many of these choose (default: %(default)s)")
    add(
        "--gold", type=absolute, default=DATA / "entity-linking/wned-wiki.jsonl", help="documents with titles"
    )
    add("--models", type=absolute, nargs="*", default=[], help="folders of pretraining")
    chosen = options.read(arguments)
    torch.set_num_threads(chosen.threads)
    table, tokenizer = MentionTable(str(chosen.mentions)), WordTokenizer.load(chosen.tokenizer)
    finder, training = CandidateFinder(table), Corpus(chosen.sequences)
    wrong = list[str]()
    pages, gold = read_documents(chosen.held_out), read_documents(chosen.gold, wrong)
    asked = [each for each in gold if not is_page(each.id, finder)]
    documents = Documents()
    documents.add(pages[:: max(1, len(pages) // chosen.choosing)][: chosen.choosing], finder, are_pages=True)
    choosing, reasons = len(documents.mentions), documents.counts.copy()
    documents.add(asked, finder, are_pages=False)
    probe = Probe(documents.mentions, [*range(choosing)], [*range(choosing, len(documents.mentions))])
    progress(f"{len(probe.asked):,} mentions, {choosing:,} that choose; words around links")
    bags = bags_of_words(documents, training, tokenizer)
    scores, times = models_scores(chosen.models, probe, documents, table, tokenizer)
    right, choices = methods(probe, [*bags.values()], scores)
    accuracies, differences = tables(probe, right)
    report = Report("Which page a mention stands for", chosen, ["torch", "numpy", "scipy", "scikit-learn"])
    report.head.append(
        f"{len(gold):,} documents. {len(gold) - len(asked):,} of them are pages of the dump and left out, "
        f"{len(asked):,} remain, with {len(probe.asked):,} mentions that are asked. {choosing:,} mentions of held-out "
        f"pages choose. {len(chosen.models)} models. Accuracies are in per cent, intervals of 95 % are of {SAMPLES:,} "
        "samples of documents.\n"
    )
    report.add("Accuracy", accuracies)
    report.add("Differences", differences, "In points.")
    report.add(
        "Weights", choices, "Of the model and of the bag of words; that of the logarithm of the prior is 1."
    )
    report.add("Bags of words", [bag_row(probe, name, bag) for name, bag in bags.items()], BAGS)
    counts = documents.counts - reasons + Counter({"left out: a wrong place": len(wrong)})
    report.add("Mentions", mention_rows(counts, reasons))
    if times:
        report.add("Time", times, "Of all documents, those that choose among them.")
    report.finish()


def bag_row(probe: Probe, name: str, bag: Scores) -> Record:
    """How good a form of the bag of words is with its best weight."""
    right, weights, count = probe.weighed(bag)
    choosing = 100 * count / len(probe.choosing)
    return {"words": name, "weight": weights[0], "choosing": choosing, "asked": 100 * float(right.mean())}


def mention_rows(gold: Counter[str], pages: Counter[str]) -> list[Record]:
    """How many mentions are asked, and why the others are not."""
    return [
        {"mentions": name, "gold": gold[name], "held-out pages": pages[name]} for name in sorted(gold | pages)
    ]


if __name__ == "__main__":
    main(sys.argv[1:])
