"""Page titles: normalisation, redirects, disambiguation pages, the pages of other languages."""

import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote

from pipeline.mediawiki.characters import BLANKS, DIRECTION_MARKS, decode_references, fold_name
from pipeline.mediawiki.languages import base_language, read_table
from pipeline.mediawiki.site import SiteInfo

_DISAMBIGUATION = read_table("disambiguation")
_SWITCHES = [f"__{word}__" for word in _DISAMBIGUATION["switches"]]
_TEMPLATES = frozenset(_DISAMBIGUATION["templates"])
_UNSEEN = re.compile(rf"[{DIRECTION_MARKS}\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
_REDIRECT = re.compile(r"\s*([#\uff03][^\s:#\[\]]{1,40})\s*:?\s*\[\[([^\[\]|\n]{1,500})(?:\|[^\]\n]{0,2000})?\]\]")
# What MediaWiki allows in no title: markup, control characters, signatures, escapes and references that are left when
# one layer of them was decoded, parts of relative paths.
_ILLEGAL = re.compile(
    "[<>\\[\\]{}|\x00-\x1f\x7f\ufffd]|~~~|%[0-9A-Fa-f]{2}"
    "|&(?:[A-Za-z0-9\x80-\U0010ffff]+|#[0-9]+|#[xX][0-9A-Fa-f]+);"
    r"|(?:\A|/)\.{1,2}(?:/|\Z)"
)
_MAX_BYTES = 255
_MOST_COMPOSED = 1000  # characters; a longer title is invalid, and marks take the square of their number
_KNOWN_NAMES = 1 << 12  # of templates, few of which are on most pages
_NO_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<(nowiki|pre)\b[^<>]{0,100}>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_LANGUAGE_LINK = re.compile(
    r"\[\[[ _]*+([a-z][a-z-]{1,20}+)[ _]*+:([^\[\]|\n]{1,300})(?:\|[^\[\]\n]{0,300})?\]\]", re.IGNORECASE
)
_TEMPLATE_NAME = re.compile(r"\{\{[ \t\n_]*([^{}|<>\[\]#\n]{1,80})")


def normalize_title(raw: str, site: SiteInfo) -> tuple[str, str]:
    """(title, fragment) of a link target as MediaWiki reads it.

    Percent escapes and HTML entities are decoded, direction marks removed, ``_`` and runs of blanks become one blank, a
    leading ``:`` goes, the fragment after ``#`` is split off, the first letter is upper (unless the wiki is
    case-sensitive) and a namespace prefix takes its local spelling. Title and fragment may be empty.
    """
    text = unquote(raw, errors="replace") if "%" in raw else raw
    text = decode_references(text)
    if not text.isascii() and len(text) <= _MOST_COMPOSED:
        text = unicodedata.normalize("NFC", text)
    text = BLANKS.sub(" ", _UNSEEN.sub("", text)).strip(" ")
    if text.startswith(":"):
        text = text[1:].lstrip(" ")
    title, _, fragment = text.partition("#")
    return _canonical(title.strip(" "), site), fragment.strip(" ")


def _canonical(title: str, site: SiteInfo) -> str:
    """The title with its namespace prefix in the local spelling and its first letter as the wiki wants it."""
    key = site.namespace_of(title)
    prefix = ""
    if key:
        written, _, title = title.partition(":")
        prefix = (site.names.get(key) or capitalize(written.strip(" "), site)) + ":"
        title = title.strip(" ")
    return prefix + capitalize(title, site)


def capitalize(text: str, site: SiteInfo) -> str:
    """A title or a namespace with the first letter as the wiki wants it."""
    first = text[:1]
    if "A" <= first <= "Z" or site.case == "case-sensitive":
        return text
    if first == "i" and base_language(site.language) in ("tr", "az"):
        return "İ" + text[1:]
    # MediaWiki leaves letters alone whose capital is more than one character, and Georgian.
    upper = first.upper()
    return text if len(upper) != 1 or "\u10d0" <= first <= "\u10ff" else upper + text[1:]


def is_valid_title(title: str) -> bool:
    """Return whether MediaWiki lets a page of the main namespace have this title, which is normalised."""
    if not title or title.startswith(":") or _ILLEGAL.search(title):
        return False
    return len(title) * 4 <= _MAX_BYTES or len(title.encode("utf-8", "surrogatepass")) <= _MAX_BYTES


def redirect_target(text: str, site: SiteInfo) -> tuple[str, str] | None:
    """(title, fragment) of a redirect, whose English or own word follows the mark without a blank; else None."""
    match = _REDIRECT.match(text[:4000])
    if match is None:
        return None
    word = match.group(1).lower().removeprefix("#")
    if word != "redirect" and word not in read_table("redirects")["words"].get(base_language(site.language), ()):
        return None
    title, fragment = normalize_title(match.group(2), site)
    return (title, fragment) if title else None


def is_disambiguation(text: str, site: SiteInfo) -> bool:
    """Return whether a page calls a disambiguation template or has the switch ``__DISAMBIG__``, of any language."""
    before, *comments = text.split("<!--")
    visible = before + "".join(comment.partition("-->")[2] for comment in comments)
    if "__" in visible and any(map(visible.__contains__, _SWITCHES)):
        return True
    return any(_names_disambiguation(name, site) for name in set(_TEMPLATE_NAME.findall(visible)))


@lru_cache(_KNOWN_NAMES)
def _names_disambiguation(template: str, site: SiteInfo) -> bool:
    name = fold_name(template)
    prefix, colon, rest = name.partition(":")
    if colon and site.namespace_of(prefix + ":") == 10:
        name = rest.strip()
    if name in _TEMPLATES or name.endswith(" disambiguation"):
        return True
    return name in _DISAMBIGUATION["templates_of"].get(base_language(site.language), ())


def find_language_links(text: str, site: SiteInfo) -> list[tuple[str, str]]:
    """The (language, title) of each link that stands for the same page in another language, each once, in their order.

    A link with a colon before it is one in the text.
    """
    codes = site.prefixes[0] - site.own_prefixes
    found = ((code.lower(), title.strip(" _")) for code, title in _LANGUAGE_LINK.findall(_NO_MARKUP.sub("", text)))
    return list(dict.fromkeys((code, title) for code, title in found if code in codes and title))
