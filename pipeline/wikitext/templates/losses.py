"""The losses by templates without a rule, by their names; and the tags that the project does not know."""

import re
from collections.abc import Mapping
from operator import add
from typing import NamedTuple

from pipeline.wikitext.placeholders import reveal
from pipeline.wikitext.templates.table import TemplateTable, silent

_NAME = re.compile(r"\{+([^|{}<]*)")
_WORD = re.compile(r"\w+")
_MOST_COUNTED = 100_000  # characters of a template in which words are counted
_EXAMPLE = 120  # characters


class Loss(NamedTuple):
    """The loss by a template's uses in running text: words and links of its source, which need not all be shown."""

    uses: int
    words: int
    links: int
    example: str


Losses = dict[str, Loss]


def is_alone(text: str, start: int, end: int) -> bool:
    """Tell whether a template has its line to itself, or to itself and others."""
    return text[start - 1 : start] in ("", "\n", "}") and text[end : end + 1] in ("", "\n", "{")


def count_loss(losses: Losses, text: str, start: int, end: int, templates: TemplateTable) -> None:
    """Add the template at a place, unless it stands on lines of its own or is known to show no text."""
    raw = _NAME.match(text, start, end)
    if raw is None or is_alone(text, start, end):
        return
    name, rule = templates.find(raw[1])
    if rule is silent or name in templates.spoken or not name:
        return
    source = text[raw.end() : min(end, start + _MOST_COUNTED)]
    words = sum(1 for _ in _WORD.finditer(source))
    example = " ".join(text[start : min(end, start + 2 * _EXAMPLE)].split())[:_EXAMPLE]
    add_losses(losses, {name[0].upper() + name[1:]: Loss(1, words, source.count("[["), example)})


def count_tag(losses: Losses, tag: re.Match[str]) -> None:
    """Add a tag that the project does not know, by its name in angle brackets; its words are shown as they are."""
    example = " ".join(reveal(tag.string[tag.start() : tag.start() + 2 * _EXAMPLE]).split())[:_EXAMPLE]
    add_losses(losses, {f"<{tag[1].lower()}>": Loss(1, 0, 0, example)})


def add_losses(losses: Losses, others: Mapping[str, Loss]) -> None:
    """Add others to losses; of two examples the first stays."""
    for name, other in others.items():
        found = losses.get(name)
        losses[name] = Loss._make((*map(add, found[:3], other[:3]), found.example)) if found else other
