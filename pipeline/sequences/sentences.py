"""Sentence boundaries by language."""

import functools
import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from importlib import metadata
from itertools import accumulate, islice, pairwise

import sentencex

from pipeline import storage
from pipeline.sequences import boundaries, phrases

DEFAULT = "sentencex"
# Without one of these inside, a text is one sentence: a mark, or what is neither Latin nor its dashes and quotes.
_MARK = re.compile(r"[.!?;:\n]|[^\x00-\x7f\u00a1-\u024f\u2010-\u2015\u2018-\u201f]")
_OTHER_BLANK = re.compile(r"[^\S\x00-\x7f]")
_WINDOW = 10_000  # characters that sentencex gets at once
Span = tuple[int, int]
Splitter = Callable[[str, str], Iterable[Span]]


def split(
    text: str, language: str, splitter: str = DEFAULT, links: SequenceOf[Span] = (), *, profile: str = "fixed"
) -> list[Span]:
    """Half-open spans of a text's sentences in code points, without blank edges and empty ones.

    For codes that it does not know `sentencex` uses its general rules. No sentence ends inside one of the `links`,
    spans in order. Profile `paper` takes what the splitter gives: its false ends stay, and ends inside links.
    Raises: ValueError: the splitter's spans overlap, go back, or lie outside of the text.
    """
    if (find := find_splitter(splitter)) is not None:
        found: Iterable[Span] = _checked(find(text, language), text, splitter)
    else:
        ends = _piece_ends(text, language) if profile == "paper" else _sentence_ends(text, language)
        found = pairwise((0, *ends, len(text)))
    spans = _trimmed(found, text)
    return spans if profile == "paper" or not links or len(spans) < 2 else _around_links(spans, links)


def _sentence_ends(text: str, language: str) -> list[int]:
    if language in phrases.LANGUAGES:
        return phrases.phrase_ends(text)
    if _MARK.search(text, 0, len(text) - 1) is None:
        return []
    ends = _piece_ends(text, language)
    return boundaries.true_ends(text, ends, language) if ends else ends


def _trimmed(found: Iterable[Span], text: str) -> list[Span]:
    """Spans without blank edges and empty ones."""
    spans = []
    for start, end in found:
        sentence = text[start:end]
        begin = start + len(sentence) - len(sentence.lstrip())
        if kept := len(sentence.strip()):
            spans.append((begin, begin + kept))
    return spans


def _checked(found: Iterable[Span], text: str, splitter: str) -> Iterator[Span]:
    """A splitter's spans. Raises: ValueError: they overlap, go back, or lie outside of the text."""
    last = 0
    for start, end in found:
        if not last <= start <= end <= len(text):
            raise ValueError(
                f"sentence splitter {splitter}: gave the span ({start}, {end}) behind position {last} of a text of "
                f"{len(text)} characters; wanted spans in order that do not overlap"
            )
        last = end
        yield start, end


def _around_links(spans: SequenceOf[Span], links: SequenceOf[Span]) -> list[Span]:
    """The spans, where a link lies across the end of one together with the next."""
    joined = [spans[0]]
    waiting = iter(links)
    first, last = next(waiting)
    for start, end in spans[1:]:
        stop = joined[-1][1]
        while last <= start and (link := next(waiting, None)):
            first, last = link
        if first < stop and start < last:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


@functools.cache
def find_splitter(name: str) -> Splitter | None:
    """The splitter `module:function` of that name, a function of (text, language) to spans; None for `sentencex`.

    Raises: ValueError: there is none.
    """
    if name == DEFAULT:
        return None
    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(f"sentence splitter {name}: wanted {DEFAULT} or module:function")
    try:
        found: Splitter = getattr(importlib.import_module(module), function)
    except Exception as error:  # whatever a module of the user's does
        raise ValueError(f"sentence splitter {name}: cannot be imported ({error})") from None
    if not callable(found):
        raise ValueError(f"sentence splitter {name}: is a {type(found).__name__}; wanted a function")
    return found


def splitter_identity(name: str) -> list[str]:
    """Return a splitter's name, and its version or, of the user's, the SHA-256 of its module."""
    if find_splitter(name) is None:
        return [name, metadata.version(DEFAULT)]
    source = getattr(sys.modules[name.partition(":")[0]], "__file__", None)
    return [name, storage.file_sha256(source) if source else ""]


def _piece_ends(text: str, language: str) -> list[int]:
    """Return where sentencex ends a sentence inside of a text.

    A long text goes to it in windows, since its time grows with the square of some texts' length: each window
    begins with the last sentence of the one before, or goes on in a sentence that is longer than a window.
    """
    ends: list[int] = []
    start = stop = 0
    while not stop or stop < len(text):
        stop = start + _WINDOW
        pieces = _pieces(text[start:stop], language)
        ends += islice(accumulate(map(len, pieces[:-1]), initial=start), 1, None)
        start = ends[-1] if len(pieces) > 1 else stop
    return ends


def _pieces(text: str, language: str) -> list[str]:
    """Return what sentencex makes of a text, or the text as one sentence where it breaks down; lengths alone count."""
    try:
        # It takes blanks beyond ASCII for parts of words, and breaks down at those behind a single capital.
        pieces: list[str] = sentencex.segment(language, text if text.isascii() else _OTHER_BLANK.sub(" ", text))
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust; no Exception, so that few catch it
            raise
        return [text]
    return pieces
