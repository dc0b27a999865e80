"""AIDA-CoNLL's columns, which `tasks.linking.documents.aida` reads: a token a line, with tabs between the columns.

A token outside of mentions stands alone. Behind others stand B or I, the mention, the title as YAGO writes it and,
where they are known, the page's address and its number.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise
from typing import Any

from tasks.linking.documents.aida import START
from tasks.linking.documents.document import NO_ENTITY
from tasks.linking.formats.links import LinkedMention, address, ordered
from tasks.ner.words import split_words

NO_TITLE = "--NME--"
Token = tuple[str, int]
"""A token, and the number of the mention that it belongs to; -1 for none."""


def document(values: Mapping[str, Any], wiki: str | None) -> str:
    """The lines of a document; a sentence is a line of its text, and more where a mention goes on.

    Raises: ValueError where its id or a token does not fit into columns, mentions overlap, or one has no token.
    """
    identity = str(values.get("id", ""))
    if re.search(r"[\t\r\n\0]", identity):
        raise ValueError(f"id is {identity!r}; columns want one without tabs and ends of lines")
    mentions = ordered(values)
    sentences = list(tokens(values["text"], mentions))
    words: list[list[str]] = [[] for _ in mentions]
    for word, number in chain.from_iterable(sentences):
        if number >= 0:
            words[number].append(word)
    for mention, own in zip(mentions, words, strict=True):
        if not own:
            raise ValueError(f"the mention {mention['mention']!r} has no word, so that it fits in no column")
    linked = [
        "\t".join([" ".join(own), *link(each, wiki)]) for each, own in zip(mentions, words, strict=True)
    ]
    lines = [f"{START} ({identity})"]
    last = -1
    for sentence in sentences:
        for word, number in sentence:
            lines.append(
                word if number < 0 else f"{word}\t{'I' if number == last else 'B'}\t{linked[number]}"
            )
            last = number
        lines.append("")
        last = -1
    return "\n".join([*lines, ""])


def link(mention: LinkedMention, wiki: str | None) -> list[str]:
    """The columns behind the mention's text."""
    title, page_id = mention["title"], mention["page_id"]
    if title is None:
        return [NO_TITLE]
    columns = [yago(title), address(wiki, title) if wiki else "", "" if page_id is None else str(page_id)]
    return columns if any(columns[1:]) else columns[:1]


def yago(title: str) -> str:
    """A title as YAGO writes it: signs and letters beyond ASCII are \\u and four digits."""
    name = re.sub(r"[^A-Za-z0-9_\U00010000-\U0010ffff]", escaped, title.replace(" ", "_"))
    return name if name not in NO_ENTITY else re.sub("^.", escaped, name)


def escaped(character: re.Match[str]) -> str:
    return f"\\u{ord(character[0]):04x}"


def tokens(text: str, mentions: Sequence[LinkedMention]) -> Iterator[list[Token]]:
    """The tokens of each sentence: words, parted where a mention begins or ends inside. Raises: ValueError."""
    edges = sorted({each[side] for each in mentions for side in ("start", "end")})
    sentence: list[Token] = []
    number = 0
    for line in split_words(text):
        for place, (_, start, end) in enumerate(line):
            cuts = [start, *edges[bisect_right(edges, start) : bisect_left(edges, end)], end]
            for first, last in pairwise(cuts):
                while number < len(mentions) and mentions[number]["end"] <= first:
                    number += 1
                inside = number < len(mentions) and mentions[number]["start"] <= first
                token = (text[first:last], number if inside else -1)
                check(token[0])
                is_first = not place and first == start
                if is_first and sentence and (token[1] < 0 or token[1] != sentence[-1][1]):
                    yield sentence
                    sentence = []
                sentence.append(token)
    if sentence:
        yield sentence


def check(word: str) -> None:
    """Raises: ValueError for a token that means something else to a reader."""
    if word.startswith(START) or "\0" in word:
        raise ValueError(f"the word {word!r} fits in no column; take it out, or give --format json")
