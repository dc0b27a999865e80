"""Where a link leads and what it shows: the rules of a wiki under a profile."""

import re
from collections import Counter
from functools import cache, lru_cache
from string import ascii_lowercase
from unicodedata import is_normalized
from urllib.parse import unquote

from pipeline.mediawiki.languages import (
    CANONICAL_NAMESPACES,
    CATEGORY,
    FILE,
    INTERWIKI_PREFIXES,
    LANGUAGE_CODES,
    NAMESPACE_ALIASES,
    UNSPACED_LANGUAGES,
    VARIANTS,
    base_language,
    link_prefix,
    link_trail,
)
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import capitalize, normalize_title
from pipeline.wikitext.cut import tokens
from pipeline.wikitext.placeholders import BREAK, CUT, GONE, OPEN, protect, reveal
from pipeline.wikitext.templates.table import DumpTemplates, TemplateTable

# What an address begins with.
PROTOCOLS = r"(?i:(?:https?|ftps?|news|ircs?|mailto):|(?=//))"

_KNOWN_TITLES = 1 << 16
# Titles with nothing to decode, split off, tidy or protect are taken as they are.
_PLAIN = "[^\x00-\x1f\x7f-\xa0%&_:#<>{' \u1680-\u180e\u2000-\u206f\u3000\ufffd]+"
_PLAIN_TITLE = re.compile(f"{_PLAIN}(?:[' ]{_PLAIN})*")
# The first letter is one of ASCII's, whose capital `resolve_all` knows.
_PLAIN_TITLES = re.compile(f"^(?:((?=[!-~]){_PLAIN_TITLE.pattern})|.*)$", re.MULTILINE)
_CONTROLS = re.compile("[\x00-\x1f\x7f]+")
_SHORT_TITLE = 60  # characters, which no encoding makes longer than a title may be
_INVALID_TITLE = re.compile("[<>\\[\\]{}|\x00-\x1f\x7f\ufffd]")
_MAX_TITLE_BYTES = 255
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

    def __init__(self, site: SiteInfo, profile: str, dumped: DumpTemplates | None = None) -> None:
        self.site = site
        self.paper = profile == "paper"
        self.trail = re.compile("") if self.paper else link_trail(site.language)
        prefix = "" if self.paper else link_prefix(site.language)
        self.prefix = re.compile(rf"(?<![{prefix}])([{prefix}]{{1,64}}){OPEN}") if prefix else None
        self.templates = None if self.paper else TemplateTable(site.language, dumped)
        self.tokens = tokens(() if self.paper else file_prefixes(site))
        self.pattern = re.compile(
            rf"\[\[(?!{PROTOCOLS})([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]({self.trail.pattern})"
        )
        self.variants = VARIANTS.get(base_language(site.language), ())
        self.line_joint = "" if base_language(site.language) in UNSPACED_LANGUAGES else " "
        # Prefixes of links without text that lead to nothing else, whatever follows.
        self.prefixes = {
            code: "interlanguage"
            for code in LANGUAGE_CODES
            if code != site.language.lower() and not site.namespace_of(f"{code}:")
        }
        self.prefixes["Category"] = "category"
        self.resolve = lru_cache(_KNOWN_TITLES)(self._resolve)
        self.capitals = {letter: capitalize(letter, site) for letter in ascii_lowercase}

    def resolve_all(self, raws: list[str]) -> list[tuple[str, str, str]]:
        """(title or "", reason why it is none, what the link shows without a label) of each link of a page.

        Titles with nothing special are read by one pattern for all of them, without a call each. Here the first two
        need a capital at most; the last two are resolved one by one:

            >>> rules = LinkRules(SiteInfo("en", "enwiki", "first-letter", ()), "fixed")
            >>> rules.resolve_all(["ape", "1984", "Caf%C3%A9#Menu", "de:D"])
            [('Ape', '', 'ape'), ('1984', '', '1984'), ('Café', '', 'Café#Menu'), ('', 'interlanguage', '')]
        """
        lines = "\n".join(raws)
        if not raws or not is_normalized("NFC", lines):
            return list(map(self.resolve, raws))
        capital = self.capitals.get
        # Small letters, which come after "[", become capitals; a digit or a mark stays.
        return [
            (raw if raw < "[" else capital(raw[0], raw[0]) + raw[1:], "", raw)
            if plain and len(raw) <= _SHORT_TITLE
            else self.resolve(raw)
            for plain, raw in zip(_PLAIN_TITLES.findall(lines), raws, strict=True)
        ]

    def _resolve(self, raw: str) -> tuple[str, str, str]:
        """The same of one link."""
        if _PLAIN_TITLE.fullmatch(raw) and len(raw) <= _SHORT_TITLE and is_normalized("NFC", raw):
            return capitalize(raw, self.site), "", raw
        if reason := self.prefixes.get(raw.partition(":")[0]):
            return "", reason, ""
        target, reason = classify(raw, self.site, keep_fragment=self.paper)
        shown = reveal(raw).replace(BREAK, " ").strip().removeprefix(":")
        if "%" in shown:
            shown = _CONTROLS.sub(" ", unquote(shown, errors="replace"))
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
def link_rules(site: SiteInfo, profile: str, dumped: DumpTemplates | None = None) -> LinkRules:
    """The rules of a wiki, made once."""
    return LinkRules(site, profile, dumped)


def caption(label: str) -> str:
    """The caption of an image: what comes after the last bar, unless that is an option such as "thumb"."""
    text = label.rpartition("|")[2]
    return "" if _IMAGE_OPTION.fullmatch(text) else text
