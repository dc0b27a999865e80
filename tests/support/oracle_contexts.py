"""The oracle of contexts: the words of each title's page and around links to it, in plain Python.

As in ``oracle_tables``: dictionaries and loops, written from what the documents say, without code of ``pipeline``.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np

from tests.support.oracle_sequences import is_held_out
from tests.support.oracle_tables import Pages, Row, follow, word_boundaries


@dataclass(frozen=True)
class Contexts:
    """The tables by title and by page, how many paragraphs there are, and how much was left out, by reason."""

    rows: list[Row]
    page_titles: list[Row]
    words: dict[str, int]
    paragraphs: int
    drops: Counter[str]

    def weight(self, word: str, count: int) -> float:
        """The weight of a word that is there so often."""
        return (1 + math.log(count)) * (math.log((1 + self.paragraphs) / (1 + self.words[word])) + 1)

    def cosine(self, text: str, title: str) -> float:
        """That of a text's words and the title's."""
        counts = Counter(word for word in words_of(text) if word in self.words)
        rows = [row for row in self.rows if row["title"] == title]
        theirs = {word: weight for row in rows for word, weight in zip(row["words"], row["weights"], strict=True)}
        weights = {word: self.weight(word, count) for word, count in counts.items()}
        length = math.hypot(*weights.values())
        shared = weights.keys() & theirs.keys()
        return sum(weights[word] * theirs[word] for word in shared) / length if length else 0.0


def words_of(text: str) -> list[str]:
    """The words, their case folded."""
    cuts = pairwise(word_boundaries(text))
    return [text[start:end].casefold() for start, end in cuts if text[start].isalnum()]


def contexts(
    pages: Pages, titles: Mapping[str, Row], *, held_out: float = 0.0, most_links: int = 64, most_words: int = 50
) -> Contexts:
    """The table of contexts, by title, from the pages that are not held out."""
    seen = [
        {**row, "paragraph": number}
        for _, page in groupby(pages.paragraphs, key=lambda row: row["page_id"])
        for number, row in enumerate(page)
        if not is_held_out(row["page_id"], held_out)
    ]
    names = {page["page_id"]: page["title"] for page in pages.pages}
    found = Counter(word for row in seen for word in set(words_of(row["text"])))
    known = {word: count for word, count in found.items() if count > 1}
    bags: dict[str, list[str]] = defaultdict(list)
    links: dict[str, list[tuple[int, str]]] = defaultdict(list)
    drops = Counter({"words:rare": len(found) - len(known)})
    drops["paragraphs:held_out"] = len(pages.paragraphs) - len(seen)
    drops["links:held_out"] = sum(len(row["links"]) for row in pages.paragraphs)
    for row in seen:
        bags[names[row["page_id"]]] += words_of(row["text"])
        drops["links:held_out"] -= len(row["links"])
        for link in row["links"]:
            title, status = follow(link["target"], titles)
            if title == names[row["page_id"]]:
                drops["links:same_page"] += 1
                continue
            drops["links:loop"] += status == "loop"
            if status != "loop":
                place = (row["page_id"], row["paragraph"], link["start"])
                links[title].append((place_hash(*place), row["text"]))
    for title, places in links.items():
        drops["links:enough"] += len(places[most_links:])
        for _, text in sorted(places)[:most_links]:
            bags[title] += words_of(text)
    made = Contexts([], [], known, len(seen), +drops)
    for title, bag in sorted(bags.items()):
        weights = {word: made.weight(word, count) for word, count in Counter(bag).items() if word in known}
        heaviest = sorted(weights, key=lambda word: (-weights[word], word))[:most_words]
        length = math.hypot(*(weights[word] for word in heaviest))
        made.rows.append({"title": title, "words": heaviest, "weights": [weights[word] / length for word in heaviest]})
    order = {title: number for number, title in enumerate(sorted(bags))}
    for page_id, rows in groupby(seen, key=lambda row: row["page_id"]):
        ends = [follow(link["target"], titles) for row in rows for link in row["links"]]
        own = {names[page_id], *(title for title, status in ends if status != "loop")}
        made.page_titles.append({"page_id": page_id, "titles": sorted(order[title] for title in own)})
    made.page_titles.sort(key=lambda row: row["page_id"])
    return made


def vectors(pages: Sequence[Sequence[int]], titles: int, most: int = 1 << 20, size: int = 64) -> np.ndarray:
    """(titles, size): the vectors of titles, up to signs, by NumPy's decomposition of the whole matrix.

    Args:
        pages: the titles of each, by their numbers.
        titles: how many there are.
        most: of the commonest ones that make directions.
    """
    matrix = np.zeros((len(pages), titles))
    for row, own in enumerate(pages):
        matrix[row, own] = 1
    weights = 1 + np.log((1 + len(pages)) / (1 + matrix.sum(axis=0)))
    common = sorted(sorted(range(titles), key=lambda title: (-matrix[:, title].sum(), title))[:most])
    matrix *= weights
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    _, strengths, turned = np.linalg.svd(matrix[:, common], full_matrices=False)
    is_there = strengths[:size] > 1e-6
    found = matrix.T @ (matrix[:, common] @ turned[:size][is_there].T) / strengths[:size][is_there]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    found *= weights[:, None] / np.where(lengths > 1e-6, lengths, 1)
    return np.asarray(found)


# Of XXH64, which is public
_PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_BITS = (1 << 64) - 1


def place_hash(page_id: int, paragraph: int, start: int) -> int:
    """XXH64 of each number in turn, the hash before it as the seed; with a sign."""
    seed = xxh64(page_id, 8, 42)
    for number in (paragraph, start):
        seed = xxh64(number, 4, seed)
    return seed - (seed >> 63 << 64)


def xxh64(number: int, size: int, seed: int) -> int:
    """XXH64 of a number of 4 or 8 bytes."""
    one, two, three, four, five = _PRIMES
    found, number = seed + five + size & _BITS, number & ((1 << 8 * size) - 1)
    if size == 8:
        found ^= _rotated(number * two, 31) * one & _BITS
        found = _rotated(found, 27) * one + four & _BITS
    else:
        found ^= number * one & _BITS
        found = _rotated(found, 23) * two + three & _BITS
    for shift, prime in ((33, two), (29, three), (32, 1)):
        found = (found ^ found >> shift) * prime & _BITS
    return found


def _rotated(number: int, bits: int) -> int:
    number &= _BITS
    return (number << bits | number >> 64 - bits) & _BITS
