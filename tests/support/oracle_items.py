"""The oracle's first half: mwparserfromhell's whole tree becomes a row of items (text, links, gaps, headings)."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from mwparserfromhell.nodes import Argument, Comment, ExternalLink, Heading, HTMLEntity, Tag, Template, Text, Wikilink
from mwparserfromhell.wikicode import Wikicode

from pipeline.mediawiki.characters import decode_references
from pipeline.mediawiki.languages import (
    CATEGORY,
    FILE,
    INTERWIKI_PREFIXES,
    LANGUAGE_CODES,
    MAGIC_WORDS,
    link_prefix,
    link_trail,
)
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import normalize_title

# Tags that give no text, within a line and as blocks of their own.
SILENT_TAGS = frozenset(
    """ce charinsert chem hiero includeonly indicator maplink math phonos ref templatedata
    templatestyles""".split()  # noqa: SIM905
)
SILENT_BLOCK_TAGS = frozenset(
    """categorytree dynamicpagelist gallery graph imagemap inputbox mapframe pre references rss score source
    syntaxhighlight table timeline""".split()  # noqa: SIM905
)
BLOCK_TAGS = frozenset(
    "blockquote br caption center dd div dl dt hr li ol p poem td th tr ul".split()  # noqa: SIM905
)
INLINE_TAGS = frozenset(
    """a abbr b bdi bdo big cite code data del dfn em font i ins kbd langconvert mark noinclude nowiki onlyinclude q
    rb rbc rp rt rtc ruby s samp section small span strike strong sub sup time translate tt tvar u var
    wbr""".split()  # noqa: SIM905
)
HEADING_TAGS = frozenset(f"h{level}" for level in range(1, 7))
_KNOWN_TAGS = SILENT_TAGS | SILENT_BLOCK_TAGS | BLOCK_TAGS | INLINE_TAGS
_MARK_IN_TEXT = re.compile(
    r"""</?(?P<tag>[A-Za-z][A-Za-z0-9]*)(?:[\s/][^<>]*)?> | (?P<quotes>'{2,})
    | (?P<brackets>\[{2,}|\]{2,}|\{{2,}|\}{2,}) | (?P<magic_word>__(?=[^\W_])\w{1,40}?__)""",
    re.VERBOSE,
)
_NOT_IN_TITLES = re.compile("[<>\\[\\]{}|\x00-\x1f\x7f\ufffd]|~~~|%[0-9A-Fa-f]{2}|&#?[0-9A-Za-z\x80-\U0010ffff]+;")
_SILENT_LINKS = ("category", "file", "interlanguage")


@dataclass(frozen=True)
class Letters:
    """Text; ``literal`` where its characters can no longer be markup."""

    text: str
    literal: bool = False


@dataclass(frozen=True)
class Anchor:
    """The text of an annotated link."""

    text: str
    target: str


@dataclass(frozen=True)
class Gap:
    """Something that shows no text here.

    "comment" and "hidden": as if it were not there, its line break included, but "hidden" stops a link trail;
    "inline": stops a link trail; "lost": the same where something was cut out of the line; "block": so was this, and
    alone on its line it ends the paragraph; "break": the edge of a block; "mark": a list mark, and the colon between
    term and definition.
    """

    kind: str


@dataclass(frozen=True)
class Title:
    """A heading, as items."""

    items: "tuple[Item, ...]"


Item = Letters | Anchor | Gap | Title
INLINE, LOST, BLOCK, BREAK = Gap("inline"), Gap("lost"), Gap("block"), Gap("break")
COMMENT, HIDDEN, MARK = Gap("comment"), Gap("hidden"), Gap("mark")


def walk(tree: Wikicode | None, site: SiteInfo) -> Iterator[Item]:
    """The items of a tree's nodes, in order."""
    for node in [] if tree is None else tree.nodes:
        if isinstance(node, Text):
            yield from plain_text(str(node.value))
        elif isinstance(node, HTMLEntity):
            yield Letters(decode_references(str(node)), literal=True)
        elif isinstance(node, Comment):
            yield COMMENT
        elif isinstance(node, Template | Argument):
            yield BLOCK
        elif isinstance(node, Heading):
            yield Title(tuple(walk(node.title, site)))
        elif isinstance(node, Wikilink):
            yield from wikilink(node, site)
        elif isinstance(node, ExternalLink):
            yield from external_link(node, site)
        elif isinstance(node, Tag):
            yield from tag(node, site)


def plain_text(text: str) -> Iterator[Item]:
    """A text node; the marks that mwparserfromhell left in it, because they have no partner, are no text."""
    position = 0
    for match in _MARK_IN_TEXT.finditer(text):
        name = (match.group("tag") or "").lower()
        if name and name not in _KNOWN_TAGS:
            continue
        yield Letters(decode_references(text[position : match.start()]))
        position = match.end()
        if match.group("brackets"):
            yield Letters(" ")
        elif word := match.group("magic_word"):
            yield COMMENT if word.lower() in MAGIC_WORDS else Letters(word)
        else:
            yield BREAK if name in BLOCK_TAGS | SILENT_BLOCK_TAGS else LOST if name in SILENT_TAGS else INLINE
    yield Letters(decode_references(text[position:]))


def tag(node: Tag, site: SiteInfo) -> Iterator[Item]:
    name = str(node.tag).strip().lower()
    if node.wiki_markup in ("*", "#", ":", ";"):
        yield MARK
    elif name in SILENT_BLOCK_TAGS:
        yield LOST if any(str(attribute.name).strip() == "inline" for attribute in node.attributes) else BREAK
    elif name in SILENT_TAGS:
        yield LOST
    elif name == "nowiki":
        literal = "" if node.contents is None else decode_references(str(node.contents))
        yield from (INLINE, Letters(literal, literal=True), INLINE)
    elif name in HEADING_TAGS:
        yield Title(tuple(walk(node.contents, site)))
    elif name == "poem":  # each of its lines is one
        yield from (BREAK, *broken_lines(walk(node.contents, site)), BREAK)
    elif name in BLOCK_TAGS:
        yield from (BREAK, *walk(node.contents, site), BREAK)
    elif name in INLINE_TAGS:
        yield from (INLINE, *walk(node.contents, site), INLINE)
    else:  # MediaWiki shows a tag that it does not know
        opening, closing = unknown_tag(node)
        yield from (Letters(opening), *walk(node.contents, site), Letters(closing))


def broken_lines(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        if isinstance(item, Letters):
            first, *others = item.text.split("\n")
            yield Letters(first, item.literal)
            for other in others:
                yield from (BREAK, Letters(other, item.literal))
        else:
            yield item


def unknown_tag(node: Tag) -> tuple[str, str]:
    whole, contents = str(node), "" if node.contents is None else str(node.contents)
    if node.self_closing or not contents:
        return whole, ""
    opening = whole.find(contents, len(str(node.tag)) + 1)
    return whole[:opening], whole[opening + len(contents) :]


def external_link(node: ExternalLink, site: SiteInfo) -> Iterator[Item]:
    if not node.brackets:
        yield Letters(str(node.url))
    else:
        label = list(walk(node.title, site))
        yield from (INLINE, *label, INLINE) if label else (LOST,)


def wikilink(node: Wikilink, site: SiteInfo) -> Iterator[Item]:
    raw = link_title(node.title)
    target, reason = classify(raw, site)
    if reason in _SILENT_LINKS:
        yield BLOCK if reason == "file" else HIDDEN
        return
    if node.text == "" or any(isinstance(part, Template | Argument) for part in node.title.nodes):
        target = ""  # MediaWiki fills in an empty label when it saves; a template's text is not known
    label = [] if node.text is None or is_template(node.text) else list(walk(node.text, site))
    if node.text is not None and node.text.filter_wikilinks():  # a link around a link is none
        yield from (INLINE, *label, INLINE)
        return
    shown = flat(label)
    if not label:
        shown = decode_references(unquote(raw)).strip().removeprefix(":")
    yield Anchor(shown, target) if target else Letters(shown, literal=True)
    if not target:
        yield INLINE


def is_template(label: Wikicode) -> bool:
    """Return whether a label is only a template, in whose place the title is shown."""
    kinds = [type(part) for part in label.nodes if not isinstance(part, Comment) and str(part).strip()]
    return bool(kinds) and all(issubclass(kind, Template | Argument) for kind in kinds)


def link_title(title: Wikicode) -> str:
    """A link's title as written, without the comments and templates in it."""
    return "".join(str(node) for node in title.nodes if not isinstance(node, Comment | Template | Argument))


def flat(items: Iterable[Item]) -> str:
    """The text of a label: a break in it is a blank."""
    shown = (item.text if isinstance(item, Letters | Anchor) else " " if item == BREAK else "" for item in items)
    return "".join(shown)


def classify(raw: str, site: SiteInfo) -> tuple[str, str]:
    """(title, "") where a link leads to an article, else ("", reason)."""
    title, fragment = normalize_title(raw, site)
    colon = raw.strip().startswith(":")
    prefix, has_prefix, rest = title.partition(":")
    prefix = prefix.strip().lower() if has_prefix else ""
    key = site.namespace_of(title)
    if prefix in site.own_prefixes and not key and rest.strip():
        return classify(f":{rest}", site)
    if key:
        return "", {CATEGORY: "category", FILE: "file"}.get(key, "namespace") if not colon else "namespace"
    if prefix in LANGUAGE_CODES:
        return "", "interwiki" if colon else "interlanguage"
    if prefix in INTERWIKI_PREFIXES:
        return "", "interwiki"
    if not title:
        return "", "same_page" if fragment else "invalid"
    if {".", ".."} & set(title.split("/")) or _NOT_IN_TITLES.search(title):
        return "", "invalid"
    if title.startswith(":") or len(title.encode()) > 255:
        return "", "invalid"
    return title, ""


def with_trails(items: Iterable[Item], site: SiteInfo) -> list[Item]:
    """Move the letters right after a link into it, and in some languages those before it."""
    trail = link_trail(site.language)
    prefix = link_prefix(site.language)
    moved: list[Item] = []
    link_at = -1
    for item in items:
        if link_at >= 0 and isinstance(item, Letters) and not item.literal and item.text:
            letters = trail.match(item.text)
            width = letters.end() if letters else 0
            link = moved[link_at]
            if isinstance(link, Anchor):
                moved[link_at] = Anchor(link.text + item.text[:width], link.target)
            item = Letters(item.text[width:])
            link_at = -1
        if isinstance(item, Anchor):
            before = moved[-1] if moved else None
            if prefix and isinstance(before, Letters) and not before.literal:
                letters = re.search(f"[{prefix}]*\\Z", before.text)
                start = letters.start() if letters else len(before.text)
                moved[-1] = Letters(before.text[:start])
                item = Anchor(before.text[start:] + item.text, item.target)
            link_at = len(moved)
        elif item != COMMENT:
            link_at = -1
        moved.append(item)
    return moved
