"""Sentence boundaries by language."""

import functools
import importlib
from collections.abc import Callable, Iterable

import sentencex

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
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"sentence splitter {name}: cannot be imported ({error})") from None
    return found


def _sentencex(text: str, language: str) -> Iterable[tuple[int, int]]:
    for boundary in sentencex.get_sentence_boundaries(language, text):
        yield boundary["start_index"], boundary["end_index"]
