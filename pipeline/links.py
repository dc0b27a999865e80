"""The links of a page: where they lead, what they show, and where their text stands.

A link that is an annotation becomes its text between ``OPEN`` and ``CLOSE``; its title goes to a list, in order.
One regular expression reads the plain links of a whole page. Lines whose brackets it leaves over go to
mwparserfromhell, which says what nested and unbalanced brackets mean.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from itertools import chain
from unicodedata import is_normalized
from urllib.parse import unquote

import mwparserfromhell
from mwparserfromhell.nodes import ExternalLink, Heading, Text, Wikilink

from pipeline.languages import (
    CANONICAL_NAMESPACES,
    CATEGORY,
    FILE,
    INTERWIKI_PREFIXES,
    LANGUAGE_CODES,
    NAMESPACE_ALIASES,
    UNSPACED_LANGUAGES,
    base_language,
    link_trail,
)
from pipeline.markup import BREAK, CLOSE, CUT, GONE, OPEN, protect, reveal, tokens
from pipeline.quotes import without_quotes
from pipeline.titles import SiteInfo, capitalize, normalize_title

# mwparserfromhell's time grows with the square of the open brackets, so what it sees is bounded.
PARSER_LIMIT = 4_000  # characters of one stretch of lines
PARSER_BUDGET = 2_000_000  # of a page: characters times open brackets

_KNOWN_TITLES = 1 << 16
_PROTOCOLS = r"(?i:(?:https?|ftps?|news|ircs?|mailto):|(?=//))"
_IN_ADDRESS = rf"[^\s\[\]\"'{OPEN}{CLOSE}{protect('<')}]"
_EXTERNAL_LINK = re.compile(rf"\[{_PROTOCOLS}{_IN_ADDRESS}+(?:'(?!'){_IN_ADDRESS}*)*[^\S\n]*([^\[\]\n]*)\]")
_LEFT_OVER = re.compile(rf"\[\[|\]\]|\[{_PROTOCOLS}\S")
# What a title may hold that has to be decoded, split off, tidied or protected; others are taken as they are.
_SPECIAL = re.compile(
    "[\x00-\x1f\x7f-\xa0%&_:#<>{\u1680-\u180e\u2000-\u206f\u3000\ufdd0-\uffff]|''|  |^ | $|^$"
)
_NONCHARACTERS_AND_LINES = re.compile("[\n\r\ufdd0-\ufdef]")
_SHORT_TITLE = 60  # characters, which no encoding makes longer than a title may be
_INVALID_TITLE = re.compile("[<>\\[\\]{}|\x00-\x1f\x7f\ufffd]")
_MAX_TITLE_BYTES = 255
_HIDDEN_QUOTE = protect("'")
_WITHOUT_TEXT = ("category", "file", "interlanguage")
_IMAGE_OPTION = re.compile(
    r"\s*(?:thumb|thumbnail|frame|framed|frameless|border|left|right|center|centre|none|upright.*|baseline|sub|super|top"
    r"|text-top|middle|bottom|text-bottom|\d*(?:x\d+)?\s*px|(?:alt|link|page|class|lang|thumb|thumbtime)\s*=.*"
    r"|mini|miniatur|gerahmt|rahmenlos|hochkant.*|links|rechts|zentriert|vignette|gauche|droite|centré|cadre)?\s*",
    re.IGNORECASE | re.DOTALL,
)


def classify(raw: str, site: SiteInfo, *, keep_fragment: bool = False) -> tuple[str, str]:
    """(title, "") of a link to an article, or ("", reason) of any other link.

    Reasons: category, file, interlanguage (these give no text), other_namespace, interwiki, same_page,
    invalid_title.
    """
    raw = reveal(raw).replace(CUT, "").replace(GONE, "").strip()
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
    too_long = len(title.encode("utf-8", "surrogatepass")) > _MAX_TITLE_BYTES
    if not prefix or too_long or _INVALID_TITLE.search(title):
        return "", "invalid_title"
    return f"{title}#{fragment}" if fragment and keep_fragment else title, ""


def file_prefixes(site: SiteInfo) -> frozenset[str]:
    """The lower-cased prefixes of the File namespace: local, older and canonical names."""
    aliases = {**CANONICAL_NAMESPACES, **NAMESPACE_ALIASES.get(base_language(site.language), {})}
    names = {name for name, key in aliases.items() if key == FILE}
    return frozenset(names | {(site.namespace_name(FILE) or "file").lower()})


class LinkRules:
    """How a wiki's links are read under a profile; knows the titles that it has seen."""

    def __init__(self, site: SiteInfo, profile: str) -> None:
        self.site = site
        self.paper = profile == "paper"
        self.trail = re.compile("") if self.paper else link_trail(site.language)
        self.tokens = tokens(() if self.paper else file_prefixes(site))
        self.pattern = re.compile(
            rf"\[\[(?!{_PROTOCOLS})([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]({self.trail.pattern})"
        )
        self.line_joint = "" if base_language(site.language) in UNSPACED_LANGUAGES else " "
        # Prefixes of links without text that lead to nothing else, whatever follows.
        self.prefixes = {
            code: "interlanguage"
            for code in LANGUAGE_CODES
            if code != site.language.lower() and not site.namespace_of(f"{code}:")
        }
        self.prefixes["Category"] = "category"
        self.resolve = lru_cache(_KNOWN_TITLES)(self._resolve)

    def _resolve(self, raw: str) -> tuple[str, str, str]:
        """(title or "", reason why it is none, what the link shows without a label)."""
        if not _SPECIAL.search(raw) and len(raw) <= _SHORT_TITLE and is_normalized("NFC", raw):
            return capitalize(raw, self.site), "", raw
        if reason := self.prefixes.get(raw.partition(":")[0]):
            return "", reason, ""
        target, reason = classify(raw, self.site, keep_fragment=self.paper)
        shown = reveal(raw).replace(BREAK, " ").strip().removeprefix(":")
        if "%" in shown:
            shown = _NONCHARACTERS_AND_LINES.sub(" ", unquote(shown, errors="replace"))
        return target, reason, protect(shown)  # in a title, two apostrophes and the like are letters

    def show(self, reason: str, label: str, drops: Counter[str]) -> str:
        """The text of a link that is no annotation."""
        drops[f"links:{reason}"] += 1
        if reason not in _WITHOUT_TEXT:
            return label
        if reason != "file":
            return CUT
        return f"{BREAK}{caption(label)}{BREAK}" if self.paper else GONE


@cache
def link_rules(site: SiteInfo, profile: str) -> LinkRules:
    """The rules of a wiki, made once."""
    return LinkRules(site, profile)


def caption(label: str) -> str:
    """The caption of an image: what stands after the last bar, unless that is an option such as "thumb"."""
    text = label.rpartition("|")[2]
    return "" if _IMAGE_OPTION.fullmatch(text) else text


def plain_label(label: str) -> str:
    """A label's text: its bold and italics are marks of its own, apostrophes left over are letters."""
    return without_quotes(label.replace(BREAK, " ")).replace("''", _HIDDEN_QUOTE * 2)


# A whole page


def mark_links(text: str, rules: LinkRules, drops: Counter[str]) -> tuple[str, list[str]]:
    """A text of any number of lines with its links marked, and their titles; lines stay lines."""
    marked, targets = _mark_plain(text, rules, drops)
    if "[" in marked:
        marked = _EXTERNAL_LINK.sub(rf"{CUT}\1{CUT}", marked)
    if _LEFT_OVER.search(marked):
        return _mark_left_over(text, marked, targets, rules, drops)
    return marked, targets


def _mark_plain(text: str, rules: LinkRules, drops: Counter[str]) -> tuple[str, list[str]]:
    pieces = rules.pattern.split(text)
    resolve = rules.resolve
    links: list[str] = []
    targets: list[str] = []
    for title, label, trail in zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True):
        target, reason, shown = resolve(title)
        if not label:
            label = shown
        elif "''" in label or BREAK in label:
            label = plain_label(label)
        if reason:
            links.append(rules.show(reason, label, drops) + trail)
        else:
            links.append(f"{OPEN}{label}{trail}{CLOSE}")
            targets.append(target)
    merged = [""] * (2 * len(links) + 1)
    merged[0::2] = pieces[0::4]
    merged[1::2] = links
    return "".join(merged), targets


def _mark_left_over(
    text: str, marked: str, targets: list[str], rules: LinkRules, drops: Counter[str]
) -> tuple[str, list[str]]:
    """Where brackets are left over, mwparserfromhell reads the lines again.

    Stretches beyond its limit or the page's budget stay as they are, and are counted.
    """
    source, lines = text.split("\n"), marked.split("\n")
    kept_lines: list[str] = []
    kept_targets: list[str] = []
    waiting, budget, first = iter(targets), PARSER_BUDGET, 0
    while first < len(lines):
        last = _stretch(source, first) if _LEFT_OVER.search(lines[first]) else first + 1
        new_lines = lines[first:last]
        new_targets = [next(waiting) for line in new_lines for _ in range(line.count(OPEN))]
        if _LEFT_OVER.search(new_lines[0]):
            stretch = "\n".join(source[first:last])
            cost = len(stretch) * (1 + abs(stretch.count("[") - stretch.count("]")))
            if len(stretch) > PARSER_LIMIT:
                drops["parser:paragraph_too_long"] += 1
            elif cost > budget:
                drops["parser:page_over_budget"] += 1
            else:
                budget -= cost
                counted: Counter[str] = Counter()
                _mark_plain(stretch, rules, counted)
                drops.subtract(counted)  # what the first reading dropped here
                line, new_targets = _TreeReader(rules, drops).read(stretch)
                new_lines = [line]
        kept_lines += new_lines
        kept_targets += new_targets
        first = last
    return "\n".join(kept_lines), kept_targets


def _stretch(lines: list[str], first: int) -> int:
    """The end of the lines over which the brackets opened in the first are closed; if nowhere, of the first alone."""
    size, opened = 0, 0
    for last in range(first, len(lines)):
        size += len(lines[last]) + 1
        opened += lines[last].count("[[") - lines[last].count("]]")
        if opened <= 0:
            return last + 1
        if size > PARSER_LIMIT:
            break
    return first + 1


# By mwparserfromhell


class _TreeReader:
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
                self.nodes(() if node.title is None else node.title.nodes)
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
        if any(isinstance(node, Wikilink) for node in flat(inside)) and reason not in (
            "category",
            "interlanguage",
        ):
            self.around_link(link, reason)
            return
        text = "".join(str(node.value if isinstance(node, Text) else node) for node in flat(inside))
        label = plain_label(text.replace("\n", " ")) if text else shown
        if reason:
            self.parts.append(self.rules.show(reason, label, self.drops))
        else:
            self.parts += (OPEN, label, CLOSE)
            self.targets.append(target)

    def around_link(self, link: Wikilink, reason: str) -> None:
        """A link around others is none, but they are; a file's caption may hold links."""
        self.drops[f"links:{reason or 'around_link'}"] += 1
        if reason != "file":
            self.nodes(link.text.nodes)
        elif self.rules.paper:
            self.parts.append(BREAK)
            self.nodes(_behind_last_bar(link.text.nodes))
            self.parts.append(BREAK)


def flat(nodes: Iterable[object]) -> Iterator[object]:
    """The nodes of a label, with the labels of external links in their place."""
    return chain.from_iterable(
        (node,)
        if not (isinstance(node, ExternalLink) and node.brackets)
        else flat(() if node.title is None else node.title.nodes)
        for node in nodes
    )


def _behind_last_bar(nodes: list[object]) -> list[object]:
    for index in range(len(nodes) - 1, -1, -1):
        node = nodes[index]
        if isinstance(node, Text) and "|" in node.value:
            return [Text(node.value.rpartition("|")[2]), *nodes[index + 1 :]]
    return nodes
