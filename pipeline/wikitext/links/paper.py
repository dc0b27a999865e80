"""Brackets that are left over, in profile "paper": mwparserfromhell, which the paper's code used, reads those lines."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import mwparserfromhell
from mwparserfromhell.nodes import ExternalLink, Heading, Text, Wikilink

from pipeline.mediawiki.tags import PROTOCOLS
from pipeline.wikitext.link_rules import LinkRules
from pipeline.wikitext.links.brackets import mark_plain, plain_label
from pipeline.wikitext.placeholders import BREAK, CLOSE, CUT, GONE, OPEN

# mwparserfromhell's time grows with the square of the open brackets, and doubles with each address in double brackets
# around another, so what it sees is bounded.
PARSER_LIMIT = 4_000  # characters of one stretch of lines
PARSER_BUDGET = 2_000_000  # of a page: characters times open brackets, doubled by nested addresses
_ADDRESSES = re.compile(rf"\[\[{PROTOCOLS}")
_LEFT_OVER = re.compile(rf"\[\[|\]\]|\[{PROTOCOLS}\S")


def mark_left_over(
    text: str, marked: str, targets: list[str], rules: LinkRules, drops: Counter[str]
) -> tuple[str, list[str]]:
    """Have mwparserfromhell read the lines again where brackets are left over.

    Stretches beyond its limit or the page's budget stay as they are, and are counted.
    """
    if not (("[" in marked or "]]" in marked) and _LEFT_OVER.search(marked)):
        return marked, targets
    source, lines = text.split("\n"), marked.split("\n")
    kept_lines: list[str] = []
    kept_targets: list[str] = []
    waiting, budget, first = iter(targets), PARSER_BUDGET, 0
    while first < len(lines):
        last = first + 1
        left_over = _LEFT_OVER.search(lines[first])
        if left_over and budget > 0:
            last, looked_at = _stretch(source, first)
            budget -= looked_at
        new_lines = lines[first:last]
        new_targets = [next(waiting) for line in new_lines for _ in range(line.count(OPEN))]
        if left_over:
            stretch = "\n".join(source[first:last])
            if len(stretch) > PARSER_LIMIT:
                drops["parser:paragraph_too_long"] += 1
            elif (cost := _cost(stretch)) > budget:
                drops["parser:page_over_budget"] += 1
            else:
                budget -= cost
                line, new_targets = _read_again(stretch, rules, drops)
                new_lines = [line]
        kept_lines += new_lines
        kept_targets += new_targets
        first = last
    return "\n".join(kept_lines), kept_targets


def _cost(stretch: str) -> int:
    """Return how long the parser takes at most, in characters of text without a bracket."""
    opened = deepest = 0
    for behind in stretch.split("[[")[1:]:
        deepest = max(deepest, opened + 1)
        opened = max(0, opened + 1 - behind.count("]]"))
    nested = min(deepest, len(_ADDRESSES.findall(stretch)))
    return len(stretch) * (1 + abs(stretch.count("[") - stretch.count("]"))) << nested


def _read_again(stretch: str, rules: LinkRules, drops: Counter[str]) -> tuple[str, list[str]]:
    """The stretch by mwparserfromhell; what its first reading dropped is taken back."""
    dropped: Counter[str] = Counter()
    mark_plain(stretch, rules, dropped)
    drops.subtract(dropped)
    return TreeReader(rules, drops).read(stretch)


def _stretch(lines: list[str], first: int) -> tuple[int, int]:
    """(the end of the lines over which the brackets opened in the first are closed, characters looked at).

    Where they are closed nowhere near, the stretch is the first line alone.
    """
    size, opened = 0, 0
    for last in range(first, len(lines)):
        size += len(lines[last]) + 1
        opened += lines[last].count("[[") - lines[last].count("]]")
        if opened <= 0:
            return last + 1, size
        if size > PARSER_LIMIT:
            break
    return first + 1, size


class TreeReader:
    """Reads lines by mwparserfromhell's tree into marked text."""

    def __init__(self, rules: LinkRules, drops: Counter[str]) -> None:
        self.rules, self.drops = rules, drops
        self.parts: list[str] = []
        self.targets: list[str] = []

    def read(self, source: str) -> tuple[str, list[str]]:
        self.nodes(mwparserfromhell.parse(source, skip_style_tags=True).nodes)
        return "".join(self.parts), self.targets

    def nodes(self, nodes: Iterable[object]) -> None:
        for node in nodes:
            if isinstance(node, Wikilink):
                self.link(node)
            elif isinstance(node, ExternalLink) and node.brackets:
                self.parts.append(CUT)
                self.nodes([Text(GONE)] if not node.title else node.title.nodes)
                self.parts.append(CUT)
            elif isinstance(node, Heading):
                self.text("=" * node.level)
                self.nodes(node.title.nodes)
                self.text("=" * node.level)
            else:
                self.text(str(node.value if isinstance(node, Text) else node))

    def text(self, text: str) -> None:
        """Append text; right after a link, its first letters belong to the link."""
        trail = self.rules.trail.match(text)
        if trail and trail.end() and self.parts and self.parts[-1] == CLOSE:
            self.parts[-1:] = [trail.group(), CLOSE]
            text = text[trail.end() :]
        if text:
            self.parts.append(text)

    def link(self, link: Wikilink) -> None:
        title = str(link.title)
        target, reason, shown = self.rules.resolve(title)
        inside = [] if link.text is None else link.text.nodes
        if any(isinstance(node, Wikilink) for node in flat(inside)) and reason not in ("category", "interlanguage"):
            self.around_link(inside, reason)
            return
        text = "".join(str(node.value if isinstance(node, Text) else node) for node in flat(inside))
        label = plain_label(text.replace("\n", " ")) if text else shown
        if reason:
            self.parts.append(self.rules.show(reason, label, self.drops))
        else:
            self.parts += (OPEN, label, CLOSE)
            self.targets.append(target)

    def around_link(self, label: Sequence[object], reason: str) -> None:
        """A link around others is none, but they are; a file's caption may hold links."""
        self.drops[f"links:{reason or 'around_link'}"] += 1
        if reason != "file":
            self.nodes(label)
        else:
            self.parts.append(BREAK)
            self.nodes(_behind_last_bar(label))
            self.parts.append(BREAK)


def flat(nodes: Iterable[object]) -> Iterator[object]:
    """The nodes of a label, with the labels of external links in their place."""
    return chain.from_iterable(
        (node,)
        if not (isinstance(node, ExternalLink) and node.brackets)
        else flat(() if node.title is None else node.title.nodes)
        for node in nodes
    )


def _behind_last_bar(nodes: Sequence[object]) -> Sequence[object]:
    for index in range(len(nodes) - 1, -1, -1):
        node = nodes[index]
        if isinstance(node, Text) and "|" in node.value:
            return [Text(node.value.rpartition("|")[2]), *nodes[index + 1 :]]
    return nodes
