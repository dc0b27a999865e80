"""Sentence boundaries by language."""

import functools
import importlib
import sys
from collections.abc import Callable, Iterable

import sentencex

from pipeline import storage

DEFAULT = "sentencex"
Splitter = Callable[[str, str], Iterable[tuple[int, int]]]


def split(text: str, language: str, splitter: str = DEFAULT) -> list[tuple[int, int]]:
    """Half-open spans of a text's sentences in code points, without blank edges and empty ones.

    Args:
        text: a paragraph.
        language: a wiki's code ("en", "de", ...); for codes that it does not know, `sentencex` uses its general rules.
        splitter: a name for `find_splitter`.

    Raises:
        ValueError: the splitter's spans overlap, go back, or lie outside of the text.
    """
    spans = []
    last = 0
    for start, end in find_splitter(splitter)(text, language):
        if not last <= start <= end <= len(text):
            raise ValueError(
                f"sentence splitter {splitter}: gave the span ({start}, {end}) behind position {last} of a text of "
                f"{len(text)} characters; wanted spans in order that do not overlap"
            )
        last = end
        sentence = text[start:end]
        start += len(sentence) - len(sentence.lstrip())
        end = start + len(sentence.strip())
        if start < end:
            spans.append((start, end))
    return spans


@functools.cache
def find_splitter(name: str) -> Splitter:
    """The splitter of that name: `sentencex`, or `module:function`, a function of (text, language) to spans.

    Raises:
        ValueError: there is none.
    """
    if name == DEFAULT:
        return _sentencex
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
    """What decides the sentences of a splitter: its name and, where it is the user's, the SHA-256 of its module."""
    if find_splitter(name) is _sentencex:
        return [name]
    source = getattr(sys.modules[name.partition(":")[0]], "__file__", None)
    return [name, storage.file_sha256(source) if source else ""]


def _sentencex(text: str, language: str) -> Iterable[tuple[int, int]]:
    try:
        boundaries = sentencex.get_sentence_boundaries(language, text)
    except BaseException as error:
        if (
            type(error).__name__ != "PanicException"
        ):  # of the library's Rust; no Exception, so that few catch it
            raise
        raise RuntimeError(f"sentencex: {error}") from None
    for boundary in boundaries:
        yield boundary["start_index"], boundary["end_index"]
