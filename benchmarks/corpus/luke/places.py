"""Where in a page's wikitext a link stands: running text, or a part that one program reads and the other does not."""

import re
from collections.abc import Callable, Iterator, Mapping

TEXT, LIST, NOWHERE = "running text", "list item", "not found in the source"
_OPTIONS = re.DOTALL | re.IGNORECASE
# The first that holds a link's place is its part of the page.
_PARTS = (
    ("comment", re.compile(r"<!--.*?-->", _OPTIONS)),
    ("reference", re.compile(r"<ref\b[^<>]*(?<!/)>.*?</ref\s*>", _OPTIONS)),
    ("gallery", re.compile(r"<gallery\b.*?</gallery\s*>", _OPTIONS)),
    (
        "caption",
        re.compile(
            r"\[\[\s*(?:file|image|media)\s*:(?:[^\[\]]|\[\[[^\[\]]*\]\]|\[[^\[\]]*\])*\]\]", _OPTIONS
        ),
    ),
    ("template", re.compile(r"\{\{(?:[^{}]|\{\{(?:[^{}]|\{\{[^{}]*\}\})*\}\})*\}\}", _OPTIONS)),
    ("table", re.compile(r"^[ \t:*#;]*\{\|.*?^[ \t]*\|\}|<table\b.*?</table\s*>", _OPTIONS | re.MULTILINE)),
    ("heading", re.compile(r"^=[^\n]*=[ \t]*$", re.MULTILINE)),
    (LIST, re.compile(r"^[*#:;][^\n]*", re.MULTILINE)),
    ("bold or italics", re.compile(r"'{2,5}[^'\n]*(?:'[^'\n]+)*'{2,5}")),
    ("HTML tag", re.compile(r"<(\w+)\b[^<>]*(?<!/)>[^<>]*</\1\s*>", _OPTIONS)),
)
_LINK = re.compile(r"\[\[\s*:?([^\[\]|\n]+)")


def places(wikitext: str) -> Iterator[tuple[str, str]]:
    """Every link of a page in its order: the target as it is written, and the part of the page."""
    parts = [(name, [match.span() for match in pattern.finditer(wikitext)]) for name, pattern in _PARTS]
    for link in _LINK.finditer(wikitext):
        at = link.start()
        names = (name for name, spans in parts if any(start < at < end for start, end in spans))
        yield link[1], next(names, TEXT)


def parts_of(
    wikitext: str, wanted: Mapping[str, int], resolve: Callable[[str], str]
) -> Iterator[tuple[str, int]]:
    """Where the `wanted` links of a page (article -> number) come from, as (part, links).

    Where an article is linked more often than wanted, links outside of the running text are taken first.
    """
    found: dict[str, list[str]] = {}
    for target, part in places(wikitext):
        found.setdefault(resolve(target), []).append(part)
    for article, count in wanted.items():
        parts = sorted(found.get(article, []), key=lambda part: part in (TEXT, LIST))[:count]
        yield from ((part, 1) for part in parts)
        if len(parts) < count:
            yield NOWHERE, count - len(parts)
