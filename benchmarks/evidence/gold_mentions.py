"""Gold mentions with their candidates, and the words around them and around the links of a dump's pages."""

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, vstack

from benchmarks.evidence.ambiguous import Integers, Mention
from benchmarks.evidence.disambiguation import Scores
from benchmarks.evidence.words_around import WordsAround, word_counts
from pipeline import storage
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.entities.candidates import NO_LINKS, Asked
from tasks.entities.documents.document import Document
from tasks.entities.linker import Linker
from tasks.entities.scores import resolver
from tasks.io.windows import token_spans

Ends = Callable[[str], str | None]  # where a link to a title ends
RADII = (None, 200, 50)  # tokens on either side of a mention that are its words; None: the whole document


@dataclass
class Documents:
    """Documents with their candidates, and their ambiguous mentions.

    Attributes:
        asked: the documents.
        titles: of each of their mentions; None where it has none, or one that the dump lacks.
        mentions: the ambiguous ones, whose page is a candidate. Candidates are numbered, the commonest first; `page_id`
            and `index` are the document's number.
        counts: why the others are none.
    """

    asked: list[Asked] = field(default_factory=list)
    titles: list[list[str | None]] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, documents: Sequence[Document], linker: Linker, *, are_pages: bool) -> None:
        """Add documents; where they are pages of the dump, it is as if it had never had them."""
        finder = linker.finder
        resolve = resolver(finder)
        own = finder.own_links(documents) if are_pages else [NO_LINKS] * len(documents)
        for document, without in zip(documents, own, strict=True):
            gold, index = document.mentions or (), len(self.asked)
            ends = [resolve(each) for each in gold]
            self.asked.append(linker.ask(document.text, gold, without))
            self.titles.append([None if title in without.alone else title for title in ends])
            for place, (title, candidates) in enumerate(
                zip(self.titles[-1], self.asked[-1].candidates, strict=True)
            ):
                titles = [each.title for each in candidates.items]
                reason = "left out: optional" if gold[place].optional else left_out(title, titles)
                self.counts[reason or "asked"] += 1
                if title and not reason:
                    numbers = np.arange(len(titles), dtype=np.int64)
                    prior = np.log([each.prior for each in candidates.items])
                    self.mentions.append(Mention(index, index, place, titles.index(title), numbers, prior))

    def candidates(self, mention: Mention) -> list[str]:
        """The titles of a mention's candidates."""
        return [each.title for each in self.asked[mention.index].candidates[mention.place].items]


def left_out(title: str | None, titles: Sequence[str]) -> str:
    """Why a mention of this page with these candidates is not asked; empty where it is."""
    if not title:
        return "left out: no title, or none of the dump"
    if title not in titles:
        return "left out: the page is not among the candidates"
    return "left out: the page is the only candidate" if len(titles) < 2 else ""


# The bag of words


def bags_of_words(
    documents: Documents, pages: Path, skipped: Collection[str], resolve: Ends, tokenizer: WordTokenizer
) -> dict[str, Scores]:
    """The cosines of each form of the bag of words, by what it is called; pages of `skipped` titles do not count."""
    titles = dict.fromkeys(itertools.chain.from_iterable(map(documents.candidates, documents.mentions)))
    numbers = {title: number for number, title in enumerate(titles)}
    paragraphs = words_of_links(pages, skipped, resolve, numbers, tokenizer)
    candidates = [
        np.array([numbers[one] for one in documents.candidates(each)]) for each in documents.mentions
    ]
    around = {radius: words_of_mentions(documents, tokenizer, radius) for radius in RADII}
    found = dict[str, Scores]()
    for sublinear in (False, True):
        bag = WordsAround(*paragraphs, len(numbers), sublinear=sublinear)
        for radius, words in around.items():
            name = "whole documents" if radius is None else f"{radius} tokens on either side"
            found[name + ", logarithm of counts" * sublinear] = bag.cosines(words, candidates)
    return found


def words_of_links(
    pages: Path, skipped: Collection[str], resolve: Ends, numbers: Mapping[str, int], tokenizer: WordTokenizer
) -> tuple[csr_matrix, Integers, Integers]:
    """The paragraphs that link to numbered titles.

    How often each has each word; of each link (title, paragraph); of each word that a link spans (title, word).
    """
    resolve, paths = (
        lru_cache(1 << 20)(resolve),
        storage.read_manifest(str(pages)).paths(str(pages), "paragraphs/"),
    )
    texts, places, inside = list[Integers](), list[tuple[int, int]](), list[tuple[int, int]]()
    for row in itertools.chain.from_iterable(
        storage.read_rows(path, ["title", "text", "links"]) for path in paths
    ):
        found = [(resolve(each["target"]), each["start"], each["end"]) for each in row["links"]]
        links = [(numbers[title], start, end) for title, start, end in found if title and title in numbers]
        if links and row["title"] not in skipped:
            ids, characters = tokenizer.encode_with_offsets(row["text"])
            spans = token_spans(np.array(characters).reshape(-1, 2), np.array([each[1:] for each in links]))
            places += [(number, len(texts)) for number, _, _ in links]
            for (number, _, _), (first, last) in zip(links, spans.tolist(), strict=True):
                inside += [(number, word) for word in ids[first:last]]
            texts.append(np.array(ids, np.int64))
    return word_counts(texts, tokenizer.vocab_size), np.array(places), np.array(inside)


def words_of_mentions(documents: Documents, tokenizer: WordTokenizer, radius: int | None) -> csr_matrix:
    """How often each word stands around each mention, without those that it spans: (mentions, words)."""
    rows = []
    for index, of_document in itertools.groupby(documents.mentions, key=lambda each: each.index):
        asked = documents.asked[index]
        ids, characters = tokenizer.encode_with_offsets(asked.text)
        own = [asked.mentions[each.place] for each in of_document]
        spans = token_spans(np.array(characters), np.array([(each.start, each.end) for each in own]))
        far, words = len(ids) if radius is None else radius, np.array(ids, np.int64)
        around = [
            np.concatenate([words[max(0, first - far) : first], words[last : last + far]])
            for first, last in spans.tolist()
        ]
        rows.append(word_counts(around, tokenizer.vocab_size))
    return vstack(rows, format="csr")
