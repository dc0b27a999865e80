"""Inside a paragraph: links, quotes, character references and blanks become plain text with spans."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import NamedTuple

import mwparserfromhell
from mwparserfromhell.nodes import ExternalLink, Text, Wikilink

from pipeline.languages import (
    CATEGORY,
    FILE,
    INTERWIKI_PREFIXES,
    LANGUAGE_CODES,
    UNSPACED_LANGUAGES,
    base_language,
    link_trail,
)
from pipeline.markup import BREAK, CUT, protect, reveal
from pipeline.quotes import QUOTES, kept_quotes, without_quotes
from pipeline.titles import ENTITY, SiteInfo, entity_character, normalize_title

_INNERMOST_LINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)?))?\]\]")
_EXTERNAL_LINK = re.compile(
    r"\[(?:(?:https?|ftps?|news|ircs?|mailto):|(?=//))[^\s\[\]]+\s*([^\[\]\n]*)\]", re.I
)
_IMAGE_OPTION = re.compile(
    r"\s*(?:thumb|thumbnail|frame|framed|frameless|border|left|right|center|centre|none|upright.*|baseline|sub|super|top"
    r"|text-top|middle|bottom|text-bottom|\d*(?:x\d+)?\s*px|(?:alt|link|page|class|lang|thumb|thumbtime)\s*=.*"
    r"|mini|miniatur|gerahmt|rahmenlos|hochkant.*|links|rechts|zentriert|vignette|gauche|droite|centré|cadre)?\s*",
    re.IGNORECASE | re.DOTALL,
)
_INVALID_TITLE = re.compile("[<>\\[\\]{}|\x00-\x1f\x7f\ufffd]")
_INVISIBLE = re.compile(rf"{ENTITY.pattern}|[{CUT}]|__[^\W\da-z_]{{2,30}}(?:_[^\W\da-z_]{{1,30}}){{0,6}}__")
_STRAY_BRACKETS = re.compile(r"\[{2,}|\]{2,}|\{{2,}|\}{2,}")
_BLANKS = re.compile(r"\s{2,}|[^\S ]|\A | \Z")  # all but single blanks between words
_HIDDEN_QUOTE = protect("'")
_NO_TRAIL = re.compile("")

Span = tuple[int, int, str]


class RawLink(NamedTuple):
    """``[[title|label]]`` as in the source; ``label`` is None without a pipe and may hold links itself."""

    title: str
    label: "tuple[str | RawLink, ...] | None"


Piece = str | RawLink


# Brackets


def parse(source: str) -> list[Piece]:
    """The text and links of a paragraph; mwparserfromhell says what nested and unbalanced brackets mean."""
    if "[" not in source:
        return [source]
    return list(_from_nodes(mwparserfromhell.parse(source, skip_style_tags=True).nodes))


def _from_nodes(nodes: Iterable[object]) -> Iterator[Piece]:
    for node in nodes:
        if isinstance(node, Wikilink):
            label = None if node.text is None else tuple(_from_nodes(node.text.nodes))
            yield RawLink(str(node.title), label)
        elif isinstance(node, ExternalLink) and node.brackets:
            yield from () if node.title is None else _from_nodes(node.title.nodes)
        else:
            yield node.value if isinstance(node, Text) else str(node)


def scan(source: str) -> Iterator[Piece]:
    """The same by regular expressions in linear time: innermost links only, other brackets are stray."""
    position = 0
    for match in _INNERMOST_LINK.finditer(source):
        yield _EXTERNAL_LINK.sub(r"\1", source[position : match.start()])
        label = match.group(2)
        yield RawLink(match.group(1), None if label is None else (_EXTERNAL_LINK.sub(r"\1", label),))
        position = match.end()
    yield _EXTERNAL_LINK.sub(r"\1", source[position:])


# Targets


def classify(raw: str, site: SiteInfo, *, keep_fragment: bool = False) -> tuple[str, str]:
    """(title, "") of a link to an article, or ("", reason) of any other link.

    Reasons: category, file, interlanguage (these give no text), other_namespace, interwiki, same_page,
    invalid_title.
    """
    raw = reveal(raw).replace(CUT, "").strip()
    colon = raw.startswith(":")
    title, fragment = normalize_title(raw, site)
    prefix, found, rest = title.partition(":")
    prefix = prefix.strip().lower()
    if found and prefix == site.language.lower() and prefix in LANGUAGE_CODES and rest.strip():
        return classify(f"{rest}#{fragment}" if fragment else rest, site, keep_fragment=keep_fragment)
    key = site.namespace_of(title)
    if key:
        special = {CATEGORY: "category", FILE: "file"}
        return "", "other_namespace" if colon else special.get(key, "other_namespace")
    if found and prefix in LANGUAGE_CODES:
        return "", "interwiki" if colon else "interlanguage"
    if found and prefix in INTERWIKI_PREFIXES:
        return "", "interwiki"
    if not title:
        return "", "same_page" if fragment else "invalid_title"
    if not prefix or _INVALID_TITLE.search(title) or len(title.encode("utf-8", "surrogatepass")) > 255:
        return "", "invalid_title"
    return f"{title}#{fragment}" if fragment and keep_fragment else title, ""


class PageContext:
    """What the paragraphs of one page share: the wiki, the profile, the drops, the targets seen."""

    def __init__(self, site: SiteInfo, profile: str, drops: Counter[str]) -> None:
        self.paper = profile == "paper"
        self.drops = drops
        self.trail = _NO_TRAIL if self.paper else link_trail(site.language)
        self.unspaced = base_language(site.language) in UNSPACED_LANGUAGES
        self.classify = cache(partial(classify, site=site, keep_fragment=self.paper))


class Writer:
    """Collects the raw text of one paragraph and the spans of its annotations."""

    def __init__(self, page: PageContext) -> None:
        self.page, self.drops = page, page.drops
        self.parts: list[str] = []
        self.length = 0
        self.spans: list[Span] = []
        self.after_link = False

    def write(self, text: str) -> None:
        """Append text; right after a link, its first letters belong to the link."""
        if self.after_link and text:
            trail = self.page.trail.match(text)
            if trail and trail.end():
                start, end, target = self.spans.pop()
                self.spans.append((start, end + trail.end(), target))
            self.after_link = False
        self.parts.append(text)
        self.length += len(text)

    def write_all(self, pieces: Iterable[Piece]) -> None:
        for piece in pieces:
            if isinstance(piece, str):
                self.write(piece)
            else:
                self.link(piece)

    def link(self, link: RawLink) -> None:
        """Append a link's text, with an annotation where it leads to an article."""
        self.after_link = False
        target, reason = self.page.classify(link.title)
        nested = any(isinstance(piece, RawLink) for piece in link.label or ())
        if reason or nested:
            self.drops[f"links:{reason or 'around_link'}"] += 1
        if reason == "file" and self.page.paper and link.label:
            self.write_all((BREAK, *caption(link.label), BREAK))
        elif nested and reason not in ("category", "file", "interlanguage"):
            self.write_all(link.label or ())
        elif reason not in ("category", "file", "interlanguage"):
            start = self.length
            self.write(self.label(link))
            if not reason:
                self.spans.append((start, self.length, target))
                self.after_link = True

    def label(self, link: RawLink) -> str:
        """The text that a link shows: quotes are marks in a label of its own, and letters in a title."""
        text = "".join(piece for piece in link.label or () if isinstance(piece, str)).replace(BREAK, " ")
        if text:
            plain = without_quotes(text)
            return plain.replace("'", _HIDDEN_QUOTE)
        title = reveal(link.title).replace(BREAK, " ").strip()
        return protect(title.removeprefix(":"))


def caption(label: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """The caption of an image: what stands after the last bar, unless that is an option such as "thumb"."""
    for index in range(len(label) - 1, -1, -1):
        piece = label[index]
        if isinstance(piece, str) and "|" in piece:
            label = (piece[piece.rindex("|") + 1 :], *label[index + 1 :])
            break
    only_option = len(label) == 1 and isinstance(label[0], str) and _IMAGE_OPTION.fullmatch(label[0])
    return () if only_option else label


# From raw text to the reader's text


def substitute(
    pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str, spans: list[Span]
) -> tuple[str, list[Span]]:
    """``re.sub`` that moves spans along; an edge inside a match stays as near as the new text allows."""
    pieces: list[str] = []
    starts, moves, position, length = [0], [(0, 0, 0)], 0, 0
    for match in pattern.finditer(text):
        new = replace(match)
        pieces += [text[position : match.start()], new]
        length += match.start() - position
        starts.append(match.start())
        moves.append((match.end() - match.start(), length, len(new)))
        length += len(new)
        position = match.end()
    if not pieces:
        return text, spans

    def moved(offset: int) -> int:
        index = bisect_right(starts, offset) - 1
        width, new_start, new_width = moves[index]
        inside = offset - starts[index]
        return new_start + (inside - width + new_width if inside >= width else min(inside, new_width))

    pieces.append(text[position:])
    return "".join(pieces), [(moved(start), moved(end), target) for start, end, target in spans]


def finish(writer: Writer) -> Iterator[tuple[str, list[Span]]]:
    """The paragraphs of what was written, cut at breaks: (text, spans), with nothing of the markup left."""
    text, spans = "".join(writer.parts), writer.spans
    if "''" in text:
        kept = kept_quotes(text)
        text, spans = substitute(QUOTES, lambda _: "'" * next(kept), text, spans)
    start, waiting = 0, list(reversed(spans))
    for line in text.split(BREAK):
        end = start + len(line)
        inside = []
        while waiting and waiting[-1][0] <= end:
            left, right, target = waiting.pop()
            inside.append((left - start, right - start, target))
        yield _clean(line, inside, writer)
        start = end + 1


def _clean(text: str, spans: list[Span], writer: Writer) -> tuple[str, list[Span]]:
    def visible(match: re.Match[str]) -> str:
        return protect(entity_character(match.group())) if match.group()[0] == "&" else ""

    def stray(_: re.Match[str]) -> str:
        writer.drops["markup:stray_brackets"] += 1
        return " "

    def blank(match: re.Match[str]) -> str:
        at_edge = match.start() == 0 or match.end() == len(match.string)
        return "" if at_edge or (writer.page.unspaced and match.group() == "\n") else " "

    text, spans = substitute(_INVISIBLE, visible, text, spans)
    text, spans = substitute(_STRAY_BRACKETS, stray, text, spans)
    text, spans = substitute(_BLANKS, blank, text, spans)
    return reveal(text), _trimmed(text, spans, writer.drops)


def _trimmed(text: str, spans: list[Span], drops: Counter[str]) -> list[Span]:
    kept = []
    for start, end, target in spans:
        anchor = text[start:end]
        start += len(anchor) - len(anchor.lstrip())
        end = start + len(anchor.strip())
        if start < end:
            kept.append((start, end, target))
        else:
            drops["links:empty"] += 1
    return kept
