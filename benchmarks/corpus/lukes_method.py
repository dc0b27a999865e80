"""How LUKE's authors made sequences of a page, told anew from what their public code does, to measure beside.

Each sentence is cut at its links, and every piece goes alone through a slow RoBERTa tokenizer; sentences are then
packed greedily. What is left out here, in favour of this method: reading the page from LMDB, following redirects
there, splitting sentences (their spans are given), and writing TFRecord files.

The tokenizer is transformers' own of the paper's time, or whatever does the same. This module needs nothing beyond
the standard library, so that a Python with an old transformers can run it:
`python lukes_method.py PAGES.jsonl TOKENIZER_FOLDER LIMITS ROUNDS` prints a line of JSON.
"""

import gc
import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_BLANKS = re.compile(r"\s+")

Annotation = tuple[int, int, int]  # entity id, start, end
Sentence = tuple[list[str], list[Annotation]]
Limits = Mapping[str, int]


class Text(NamedTuple):
    """A paragraph with its links (entity id, start, end) and the spans of its sentences."""

    text: str
    links: Sequence[Annotation]
    sentences: Sequence[tuple[int, int]]


class Row(NamedTuple):
    """A sequence, as the shards hold it."""

    word_ids: list[int]
    entity_ids: list[int]
    entity_starts: list[int]
    entity_ends: list[int]


def build_page(page: Sequence[Text], tokenizer: Any, limits: Limits) -> tuple[list[Row], int]:
    """(sequences, number of all tokens made) of one page."""
    sentences = [
        tokenize_sentence(paragraph.text, start, end, paragraph.links, tokenizer)
        for paragraph in page
        for start, end in paragraph.sentences
    ]
    least, most = limits["min_sentence_words"], limits["max_words"] - 2
    kept = [sentence for sentence in sentences if least <= len(sentence[0]) <= most]
    return list(pack(kept, tokenizer, limits)), sum(len(words) for words, _ in sentences)


def tokenize_sentence(
    text: str, start: int, end: int, links: Sequence[Annotation], tokenizer: Any
) -> Sentence:
    """The pieces between and inside the links, each alone; every link of the paragraph is looked at."""

    def tokens(begin: int, end: int) -> list[str]:
        piece = text[begin:end]
        leading_space = begin == 0 or piece.startswith(" ") or text[begin - 1] == " "
        return tokenizer.tokenize(_BLANKS.sub(" ", piece).rstrip(), add_prefix_space=leading_space)

    words: list[str] = []
    entities = []
    for number, link_start, link_end in links:
        if not (start <= link_start < end and link_end <= end):
            continue
        words += tokens(start, link_start)
        inside = tokens(link_start, link_end)
        entities.append((number, len(words), len(words) + len(inside)))
        words += inside
        start = link_end
    return words + tokens(start, end), entities


def pack(sentences: Sequence[Sentence], tokenizer: Any, limits: Limits) -> Iterator[Row]:
    """Whole sentences, as many as fit; what has no link is left out."""
    words: list[str] = []
    links: list[Annotation] = []
    longest = limits["max_mention_words"]
    for index, (sentence, entities) in enumerate(sentences):
        links += [(number, start + len(words), end + len(words)) for number, start, end in entities]
        words = words + sentence
        is_last = index == len(sentences) - 1
        if is_last or len(words) + len(sentences[index + 1][0]) > limits["max_words"] - 2:
            if links:
                numbers, starts, ends = zip(*links[: limits["max_entities"]], strict=True)
                cut = [min(end, start + longest) for start, end in zip(starts, ends, strict=True)]
                yield Row(tokenizer.convert_tokens_to_ids(words), [*numbers], [*starts], cut)
            words, links = [], []


def digests(pages: Iterable[Sequence[Row]]) -> list[str]:
    """A few hexadecimal digits for each page's sequences, to compare without keeping them."""
    texts = (json.dumps([list(row) for row in page]) for page in pages)
    return [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]


def measure(
    pages: Sequence[Sequence[Text]], make: Callable[[], Any], limits: Limits, rounds: int
) -> dict[str, Any]:
    """CPU seconds of the pages in each round, and what came out.

    A round begins with a new tokenizer, whose cache of words is empty, and does the pages twice: the `first` time words
    are still to be learnt, `again` every word is in the cache. A whole Wikipedia lies between the two.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)  # as in the workers of the pipeline
    seconds: dict[str, list[float]] = {"first": [], "again": []}
    for _ in range(rounds):
        tokenizer = make()
        for times in seconds.values():
            begin = time.process_time()
            built = [build_page(page, tokenizer, limits) for page in pages]
            times.append(time.process_time() - begin)
    tokens = sum(count for _, count in built)
    return {"seconds": seconds, "tokens": tokens, "digests": digests(rows for rows, _ in built)}


def main(path: str, folder: str, limits: str, rounds: str) -> None:
    """The installed transformers' slow tokenizer on pages: JSON lines of [text, links, sentences] a paragraph."""
    import transformers

    files = [str(next(Path(folder).glob(f"{name}*"))) for name in ("vocab", "merges")]
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    pages = [[Text(*paragraph) for paragraph in json.loads(line)] for line in lines]
    found = measure(pages, lambda: transformers.RobertaTokenizer(*files), json.loads(limits), int(rounds))
    print(json.dumps({"name": f"transformers {transformers.__version__}", **found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
