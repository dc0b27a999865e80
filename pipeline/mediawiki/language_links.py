"""Interlanguage links: the pages of other languages that a page names in its wikitext, as before Wikidata."""

import re

from pipeline.mediawiki.site import SiteInfo

_NO_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<(nowiki|pre)\b[^<>]{0,100}>.*?(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_LINK = re.compile(
    r"\[\[[ _]*+([a-z][a-z-]{1,20}+)[ _]*+:([^\[\]|\n]{1,300})(?:\|[^\[\]\n]{0,300})?\]\]", re.IGNORECASE
)


def find_language_links(text: str, site: SiteInfo) -> list[tuple[str, str]]:
    """The (language, title) of each link that stands for the same page in another language, each once, in their order.

    A link with a colon before it is one in the text.
    """
    codes = site.prefixes[0] - site.own_prefixes
    found = ((code.lower(), title.strip(" _")) for code, title in _LINK.findall(_NO_MARKUP.sub("", text)))
    return list(dict.fromkeys((code, title) for code, title in found if code in codes and title))
