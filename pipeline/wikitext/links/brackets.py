"""Links in double brackets. One regular expression reads all plain ones of a page, whose titles are looked up together.

Where brackets are nested, unbalanced or hold others, the page is read as MediaWiki does (Parser::handleInternalLinks).
MediaWiki cuts a page at every ``[[``. A piece that begins with a title, and perhaps a bar and a label, before ``]]``
is a link; any other piece is text, so a link around a link is none, while the inner one is.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pipeline.wikitext.lines import without_quotes
from pipeline.wikitext.link_rules import ADDRESS, LinkRules
from pipeline.wikitext.placeholders import BREAK, CLOSE, CUT, GONE, KIND, OPEN, protect

_LINK = re.compile(r"([^\[\]|\n]*)(?:\|(.*?))?\]\]", re.DOTALL)
_AROUND = re.compile(r"([^\[\]|\n]+)\|")
_WITH_ALL_INSIDE = ("category", "interlanguage")


def mark_plain(text: str, rules: LinkRules, drops: Counter[str]) -> tuple[str, list[str]]:
    """(the text with its plain links marked, their titles); other brackets stay."""
    pieces = rules.pattern.split(text)  # text, title, label and trail of a link, text, title, ...
    links = rules.resolve_all(pieces[1::4])
    written: Sequence[str | None] = pieces[2::4]
    if not rules.paper:
        written, links = _read_labels(written, links)
    # What a link shows without a label has no quotes and no breaks that are marks.
    labels = [label or shown for label, (_, _, shown) in zip(written, links, strict=True)]
    labels = [plain_label(label) if "''" in label or BREAK in label else label for label in labels]
    reasons = [reason for _, reason, _ in links]
    pieces[1::4] = ["" if reason else OPEN for reason in reasons]
    of_links = zip(reasons, labels, strict=True)
    pieces[2::4] = [rules.show(reason, label, drops) if reason else label for reason, label in of_links]
    pieces[3::4] = [trail if reason else trail + CLOSE for reason, trail in zip(reasons, pieces[3::4], strict=True)]
    return "".join(pieces), [target for target, reason, _ in links if not reason]


def _read_labels(
    written: Sequence[str | None], links: list[tuple[str, str, str]]
) -> tuple[Sequence[str | None], list[tuple[str, str, str]]]:
    """(labels, links): a label that is only a template is none; a link with an empty one is none."""
    if GONE in "".join(filter(None, written)):
        written = [None if label and is_template(label) else label for label in written]
    if "" in written:  # MediaWiki fills it in when the page is saved
        both = zip(written, links, strict=True)
        links = [("", "invalid_title", link[2]) if label == "" and not link[1] else link for label, link in both]
    return written, links


class _Open(NamedTuple):
    """A piece that begins a link but does not end one: where its text and the links behind it are."""

    part: int
    targets: int
    title: str
    rest: str


def read_brackets(text: str, rules: LinkRules, drops: Counter[str]) -> tuple[str, list[str]]:
    """(the text with its links marked, their titles), in time that is linear in the text."""
    reader = _Reader(rules, drops)
    first, *pieces = text.split("[[")
    reader.text(first)
    for piece in pieces:
        reader.piece(piece)
    return "".join(reader.parts), reader.targets


class _Reader:
    """Reads a page's pieces, in order, into marked text."""

    def __init__(self, rules: LinkRules, drops: Counter[str]) -> None:
        self.rules, self.drops = rules, drops
        self.parts: list[str] = []
        self.targets: list[str] = []
        self.open: list[_Open] = []

    def piece(self, piece: str) -> None:
        """Read what stands behind ``[[``."""
        link = _LINK.match(piece)
        if link is None:
            around = _AROUND.match(piece)
            title, end = (around[1], around.end()) if around else ("", 0)
            self.open.append(_Open(len(self.parts), len(self.targets), title, piece[end:]))
            self.text(f"[[{piece}")
            return
        label, rest = link[2], piece[link.end() :]
        if label and "[" in label and rest.startswith("]"):  # the first bracket is the label's
            label, rest = f"{label}]", rest[1:]
            rest = rest if rest.startswith("]]") else rest.removeprefix("]")
        target, reason, shown = self.rules.resolve(link[1])
        if reason == ADDRESS:
            self.parts += protect("["), f"[{piece[: link.end() - 2]}]", protect("]")
        elif target and label != "":
            trail = self.rules.trail.match(rest)
            end = trail.end() if trail else 0
            self.parts += OPEN, self.label(label, shown, literal=True), rest[:end], CLOSE
            self.targets.append(target)
            rest = rest[end:]
        else:
            reason = reason or "invalid_title"
            is_text = reason == "invalid_title"
            self.parts.append(self.rules.show(reason, self.label(label, shown, literal=not is_text), self.drops))
        self.text(rest)

    def label(self, label: str | None, shown: str, *, literal: bool) -> str:
        """Return what a link shows; in the label of a link MediaWiki looks for no other."""
        if not label or is_template(label):
            return shown
        label = plain_label(label.replace("\n", " "))
        return label.replace("[", protect("[")).replace("]", protect("]")) if literal else label

    def text(self, text: str) -> None:
        """Append text; each ``]]`` in it ends the innermost piece that is open."""
        first, *others = text.split("]]")
        self.parts.append(first)
        for other in others:
            if self.open:
                self.close(self.open.pop())
            else:
                self.parts.append("]]")
            self.parts.append(other)

    def close(self, opened: _Open) -> None:
        """A link around others shows its label; of a category's or another wiki's all is gone."""
        target, reason, _ = self.rules.resolve(opened.title) if opened.title else ("", "", "")
        if not target and not reason:
            self.parts.append("]]")
            return
        if reason in _WITH_ALL_INSIDE:
            del self.parts[opened.part :], self.targets[opened.targets :]
            self.parts.append(CUT)
        else:
            self.parts[opened.part] = opened.rest
        self.drops[f"links:{reason or 'around_link'}"] += 1


def is_template(label: str) -> bool:
    """Return whether a label is only a template, in whose place the title is shown."""
    return GONE in label and not label.strip(f"{GONE}{KIND}{CUT} \n")


def plain_label(label: str) -> str:
    """A label's text: its bold and italics are marks of its own, apostrophes left over are letters."""
    return without_quotes(label.replace(BREAK, " ")).replace("''", protect("'") * 2)
