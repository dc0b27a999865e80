"""BuildLinkedSentences: pages of a dump in; sentences whose names are all links out, as a data set of ner.

A page links a name once, and has others that it does not link: who learnt names from all its sentences would learn that
most are none. So a sentence is taken if each of its words with a capital is in a link. The first word is free, and so
is that behind a full stop or a quotation mark, since these may have a capital and be no name.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipeline import storage
from pipeline.sequences.sentences import split
from tasks.linking.corpora.pages import NO_LINKS, are_held_out, linked_pages, read_pages, smallest
from tasks.linking.corpora.pages import OVER_LIMIT as PAGES_OVER_LIMIT
from tasks.ner.words import Word, split_words

FILES = {"train": "train.jsonl", "dev": "dev.jsonl", "test": "test.jsonl"}
TYPE = "LINK"  # of all entities
LEAST_WORDS, MOST_WORDS = 5, 40
BEGINNINGS = frozenset('."“„«')
NO_LINK, OTHER_LENGTH = "sentences:no_link", "sentences:length"
PART_OF_WORD, NOT_LINKED = "sentences:part_of_word", "sentences:not_linked"
OVER_LIMIT = "sentences:over_limit"
Span = tuple[int, int]


class Choice(NamedTuple):
    """The choice of sentences.

    `share` of the pages are held out; of these are at most `held_out` sentences, of the others `train`.
    """

    share: float
    train: int = 20_000
    held_out: int = 1_000


class Skipped(Exception):
    """The reason why a sentence is not taken."""


def build(
    paragraphs: Sequence[str],
    folder: str,
    language: str,
    choice: Choice,
    *,
    pages: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> storage.Result:
    """Write the three files; hashes choose the sentences and order them.

    Half of those of held-out pages are dev, the others test. As many pages with links are read as sentences are
    wanted, which bounds the time; their sentences are held in memory, some 300 bytes each. Raises: ValueError: a
    file would have none.
    """
    linked = np.fromiter(chain.from_iterable(map(linked_pages, paragraphs)), np.int64)
    is_apart = are_held_out(linked, choice.share)
    apart_pages = set(smallest(linked[is_apart], choice.held_out).tolist())
    wanted = pa.array(sorted({*smallest(linked[~is_apart], choice.train).tolist(), *apart_pages}), pa.int64())
    found = defaultdict[bool, list[tuple[bytes, bytes]]](list)
    drops = Counter({NO_LINKS: pages - len(linked), PAGES_OVER_LIMIT: len(linked) - len(wanted)})
    chosen = chain.from_iterable(read_pages(path, wanted) for path in paragraphs)
    for number, (page, _, rows) in enumerate(chosen, start=1):
        for place, row in enumerate(rows):
            links = [(link["start"], link["end"]) for link in row["links"]]
            for line in lines_of(row["text"], links, language, drops):
                order = hashlib.blake2b(f"{page} {place} ".encode() + line, digest_size=8).digest()
                found[page in apart_pages].append((order, line))
        progress(number, len(wanted))
    train, apart = (
        [line for _, line in sorted(found[held_out])[:most]]
        for held_out, most in ((False, choice.train), (True, choice.held_out))
    )
    drops[OVER_LIMIT] = sum(map(len, found.values())) - len(train) - len(apart)
    middle = (len(apart) + 1) // 2
    splits = {"train": train, "dev": apart[:middle], "test": apart[middle:]}
    return storage.Result(
        tuple(write(folder, name, splits[name]) for name in FILES),
        {name: len(lines) for name, lines in splits.items()},
        dict(+drops),
    )


def write(folder: str, name: str, lines: Sequence[bytes]) -> storage.FileEntry:
    """Write the file of a split. Raises: ValueError where it has no line."""
    if not lines:
        raise ValueError(
            f"{name}: no sentence for it whose words with capitals are all in links; wanted a larger dump, a "
            "larger corpus.held_out, from whose pages dev and test are, or a language that writes names alone with "
            "capitals"
        )
    with storage.atomic_output(storage.join(folder, FILES[name])) as stream:
        stream.writelines(lines)
    return storage.describe(folder, FILES[name], len(lines))


def lines_of(text: str, links: Sequence[Span], language: str, drops: Counter[str]) -> Iterator[bytes]:
    """A line of JSON for each sentence of a paragraph that is taken; the others are counted by why they are not."""
    for start, end in split(text, language, links=links):
        inside = [link for link in links if start <= link[0] and link[1] <= end]
        names = [link for link in inside if has_capital(text[slice(*link)])]
        words = next(iter(split_words(text, [(start, end)])), [])
        try:
            tags = tags_of(words, names)
        except Skipped as reason:
            drops[str(reason)] += 1
        else:
            values = {"tokens": [word for word, *_ in words], "ner_tags": tags}
            yield json.dumps(values, ensure_ascii=False).encode() + b"\n"


def has_capital(text: str) -> bool:
    """Return whether a letter in it is a capital, wherever: of l'Académie and iPhone, too."""
    return any(map(str.isupper, text))


def tags_of(words: Sequence[Word], names: Sequence[Span]) -> list[str]:
    """The tag of each word of a sentence, by the spans of the links that are names.

    Raises: Skipped where there is none, where the sentence has too few words or too many, where a name does not begin
    and end as words do, and where a word has a capital and is in no link.
    """
    if not names:
        raise Skipped(NO_LINK)
    if not LEAST_WORDS <= len(words) <= MOST_WORDS:
        raise Skipped(OTHER_LENGTH)
    first = {start: place for place, (_, start, _) in enumerate(words)}
    last = {end: place for place, (_, _, end) in enumerate(words)}
    tags = ["O"] * len(words)
    for start, end in names:
        if start not in first or end not in last:
            raise Skipped(PART_OF_WORD)
        tags[first[start]] = f"B-{TYPE}"
        for place in range(first[start] + 1, last[end] + 1):
            tags[place] = f"I-{TYPE}"
    for (before, *_), (word, *_), tag in zip(words, words[1:], tags[1:], strict=False):
        if tag == "O" and has_capital(word) and before not in BEGINNINGS:
            raise Skipped(NOT_LINKED)
    return tags
