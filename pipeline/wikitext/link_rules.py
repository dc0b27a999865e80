"""The target of a link and the text that it shows: the rules of a wiki under a profile."""

import re
from collections import Counter
from functools import cache, lru_cache
from string import ascii_lowercase
from unicodedata import is_normalized
from urllib.parse import unquote

from pipeline.mediawiki import languages
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.tags import PROTOCOLS
from pipeline.mediawiki.titles import capitalize, is_valid_title, normalize_title
from pipeline.mediawiki.wiki_rules import parse_rules
from pipeline.wikitext.cut.tokens import IMAGE_OPTION, tokens
from pipeline.wikitext.placeholders import ANGLE, BREAK, CUT, GONE, OPEN, protect, reveal
from pipeline.wikitext.templates.table import LONGEST_KNOWN, DumpTemplates, TemplateTable

_KNOWN_TITLES = 1 << 16
# Titles with nothing to decode, split off, tidy, protect or refuse are taken as they are.
_PLAIN = "[^\x00-\x1f\x7f-\xa0%&_:#<>{}~/' \u1680-\u180e\u2000-\u206f\u3000\ufffd]+"
_PLAIN_TITLE = re.compile(rf"(?!\.){_PLAIN}(?:[' ]{_PLAIN})*")
# The first letter is one of ASCII's, whose capital `resolve_all` knows.
_PLAIN_TITLES = re.compile(f"^(?:((?=[!-~]){_PLAIN_TITLE.pattern})|.*)$", re.MULTILINE)
_CONTROLS = re.compile("[\x00-\x1f\x7f]+")
_SHORT_TITLE = 60  # characters, which no encoding makes longer than a title may be
_INVALID_TITLE = re.compile("[<>\\[\\]{}|\x00-\x1f\x7f\ufffd]")  # for profile "paper"
_MAX_TITLE_BYTES = 255
_LONG_TITLE = 500  # characters; a title with any number of the wiki's own prefixes is no longer
# What can be in no link's title, nor behind "#": templates, whose text is not known, tags and what <nowiki> protects; a
# "<" that begins no tag is text, as it is in MediaWiki.
_NOT_IN_TITLES = re.compile(f"(?!{ANGLE})[{{}}\x00-\x08\x0b-\x1f\x7f\ufffd]")
_ESCAPED_CONTROL = re.compile(r"%(?:[01][0-9a-f]|7f)|&#(?:0*(?:9|1[03])|x0*[9ad]);", re.IGNORECASE)
_ADDRESS_TARGET = re.compile(rf"\s*{PROTOCOLS}")
_LINE_MARKS = ("*", "#", ":", ";", "=", "|", "!", " ")  # what a link shows begins no list
ADDRESS = "address"  # instead of a reason: the brackets are those of a link to an address
_WITHOUT_TEXT = ("category", "file", "interlanguage")


def read_target(raw: str, site: SiteInfo, *, paper: bool = False) -> tuple[str, str]:
    """(title, "") of a link to an article by its target as it is written, or ("", reason) of any other link.

    Reasons: category, file, interlanguage (these give no text), other_namespace, interwiki, same_page, invalid_title:
    MediaWiki makes no link of it. Profile "paper" knows the last but for what is plainly no title, reads over tags and
    templates in titles and keeps fragments.
    """
    if not paper and (_NOT_IN_TITLES.search(raw) or _ESCAPED_CONTROL.search(raw)):
        return "", "invalid_title"
    raw = reveal(raw).replace(CUT, "").replace(GONE, "").strip()
    title, fragment = normalize_title(raw, site)
    return classify(title, fragment, site, colon=raw.startswith(":"), paper=paper)


def classify(title: str, fragment: str, site: SiteInfo, *, colon: bool, paper: bool) -> tuple[str, str]:
    """The same of a normalised title; ``colon`` says that nothing but a link in the text can be meant."""
    prefix, found, rest = title.partition(":")
    prefix = prefix.strip().lower()
    if key := site.namespace_of(title):
        special = {languages.CATEGORY: "category", languages.FILE: "file"}
        return "", "other_namespace" if colon else special.get(key, "other_namespace")
    if found and prefix in site.own_prefixes and rest.strip() and len(rest) <= _LONG_TITLE:
        title = normalize_title(rest, site)[0]
        return classify(title, fragment, site, colon=True, paper=paper)
    if found and prefix in site.prefixes[0]:
        return "", "interwiki" if colon else "interlanguage"
    if found and prefix in site.prefixes[1]:
        return "", "interwiki"
    if not title:
        return "", "same_page" if fragment else "invalid_title"
    if not (_is_title_of_paper(title) if paper else is_valid_title(title)):
        return "", "invalid_title"
    return f"{title}#{fragment}" if fragment and paper else title, ""


def _is_title_of_paper(title: str) -> bool:
    too_long = len(title.encode("utf-8", "surrogatepass")) > _MAX_TITLE_BYTES
    return not (title.startswith(":") or too_long or _INVALID_TITLE.search(title))


class LinkRules:
    """The rules by which a wiki's links are read under a profile; knows the titles that it has seen."""

    def __init__(self, site: SiteInfo, profile: str, dumped: DumpTemplates | None = None) -> None:
        self.site = site
        self.paper = profile == "paper"
        self.trail = re.compile("") if self.paper else languages.link_trail(site.language)
        prefix = "" if self.paper else languages.link_prefix(site.language)
        self.prefix = re.compile(rf"(?<![{prefix}])([{prefix}]{{1,64}}){OPEN}") if prefix else None
        self.templates = None if self.paper else TemplateTable(site, dumped)
        language = languages.base_language(site.language)
        words = languages.read_table("pronunciation")
        self.spoken = frozenset(words["any"] + words.get(language, []))
        self.tokens = tokens(() if self.paper else site.spellings(languages.FILE))
        # Of three brackets the first two are no link's beginning, since the third is in no title.
        opening = rf"\[\[(?!{PROTOCOLS})" if self.paper else r"\[\[(?<!\[\[\[)"
        self.pattern = re.compile(rf"{opening}([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]({self.trail.pattern})")
        self.variants = parse_rules(site.rules).get("variants") or languages.VARIANTS.get(language, ())
        self.line_joint = "" if language in languages.UNSPACED_LANGUAGES else " "
        # Prefixes of links without text that lead to nothing else, whatever follows.
        others = (code for code in site.prefixes[0] - site.own_prefixes if not site.namespace_of(f"{code}:"))
        self.prefixes = {**dict.fromkeys(others, "interlanguage"), "Category": "category"}
        self._known = lru_cache(_KNOWN_TITLES)(self._resolve)
        self.capitals = {letter: capitalize(letter, site) for letter in ascii_lowercase}

    def resolve_all(self, raws: list[str]) -> list[tuple[str, str, str]]:
        """(title or "", reason why it is none, what the link shows without a label) of each link of a page.

        Titles with nothing special are read by one pattern for all of them, without a call each. Here the first two
        need a capital at most; the last two are resolved one by one:

            >>> rules = LinkRules(SiteInfo("en", "enwiki", "first-letter", ()), "fixed")
            >>> rules.resolve_all(["ape", "1984", "Caf%C3%A9#Menu", "de:D"])
            [('Ape', '', 'ape'), ('1984', '', '1984'), ('Café', '', 'Café#Menu'), ('', 'interlanguage', '')]
        """
        # Longer titles are resolved one by one: all that is looked at here is bounded.
        lines = "\n".join([raw[: _SHORT_TITLE + 1] for raw in raws])
        if not raws or not is_normalized("NFC", lines):
            return list(map(self.resolve, raws))
        capital, known = self.capitals.get, self._known
        # Small letters, which come after "[", become capitals; a digit or a mark stays.
        return [
            (raw if raw < "[" else capital(raw[0], raw[0]) + raw[1:], "", raw)
            if plain and len(raw) <= _SHORT_TITLE
            else known(raw)
            if len(raw) <= LONGEST_KNOWN
            else self._resolve(raw)
            for plain, raw in zip(_PLAIN_TITLES.findall(lines), raws, strict=True)
        ]

    def resolve(self, raw: str) -> tuple[str, str, str]:
        """The same of one link; what is written at great length is not remembered."""
        return self._known(raw) if len(raw) <= LONGEST_KNOWN else self._resolve(raw)

    def _resolve(self, raw: str) -> tuple[str, str, str]:
        if "::" in raw and not raw.startswith(":") and not self.site.is_wikimedia:
            raw = raw.rpartition("::")[2]  # the value of a property, in Semantic MediaWiki
        if _PLAIN_TITLE.fullmatch(raw) and len(raw) <= _SHORT_TITLE and is_normalized("NFC", raw):
            return capitalize(raw, self.site), "", raw
        if reason := self.prefixes.get(raw.partition(":")[0]):
            return "", reason, ""
        target, reason = read_target(raw, self.site, paper=self.paper)
        if not self.paper and _ADDRESS_TARGET.match(raw):
            target, reason = "", ADDRESS
        shown = reveal(raw).replace(BREAK, " ").strip().removeprefix(":")
        if "%" in shown:
            shown = _CONTROLS.sub(" ", unquote(shown, errors="replace"))
        return target, reason, protect(shown)  # in a title, two apostrophes and the like are letters

    def show(self, reason: str, label: str, drops: Counter[str]) -> str:
        """The text of a link that is no annotation; of an address the brackets, which are read again."""
        if reason == ADDRESS:
            return "[["
        drops[f"links:{reason}"] += 1
        if reason not in _WITHOUT_TEXT:
            return label if self.paper or label[:1] not in _LINE_MARKS else f"{CUT}{label}"
        if reason != "file":
            return CUT
        caption = label.rpartition("|")[2]  # what comes last, unless that is an option such as "thumb"
        shown = "" if IMAGE_OPTION.fullmatch(caption) else caption
        return f"{BREAK}{shown}{BREAK}" if self.paper else GONE


@cache
def link_rules(site: SiteInfo, profile: str, dumped: DumpTemplates | None = None) -> LinkRules:
    """The rules of a wiki, made once."""
    return LinkRules(site, profile, dumped)
