"""All links of a page; and those to addresses, which leave their label."""

import re
from collections import Counter

from pipeline.mediawiki.tags import PROTOCOLS
from pipeline.wikitext.link_rules import LinkRules
from pipeline.wikitext.links.brackets import mark_plain, read_brackets
from pipeline.wikitext.links.paper import mark_left_over
from pipeline.wikitext.placeholders import CLOSE, CUT, GONE, OPEN, protect

_IN_ADDRESS = rf"[^\s\[\]\"'{OPEN}{CLOSE}{protect('<')}]"
# A label may hold brackets, but where another address begins it is the shorter link that is one: time stays linear.
_EXTERNAL_LINK = re.compile(
    rf"\[{PROTOCOLS}(?:(?://)?\[[0-9A-Fa-f:.]{{2,64}}\]{_IN_ADDRESS}*+|{_IN_ADDRESS}++)(?>(?:'(?!'){_IN_ADDRESS}*+)*)[^\S\n]*+((?>(?:[^\[\]\n]++|\[(?!{PROTOCOLS}))*))\]"
)


def mark_links(text: str, rules: LinkRules, drops: Counter[str], title: str = "") -> tuple[str, list[str]]:
    r"""A text of any number of lines with its links marked, and their titles; lines stay lines.

    A link that is an annotation is put between OPEN (\x01) and CLOSE (\x02), with the letters behind it that belong to
    it; any other link leaves its label, or CUT (\x04) where it has no text. `title` is that of the page, which no link
    on it names (but in profile "paper"):

        >>> from pipeline.mediawiki.site import SiteInfo
        >>> rules = LinkRules(SiteInfo("en", "enwiki", "first-letter", ()), "fixed")
        >>> mark_links("See [[ape]]s, [[B|a ''bee'']] and [[de:D]].", rules, Counter())
        ('See \x01apes\x02, \x01a bee\x02 and \x04.', ['Ape', 'B'])
    """
    dropped: Counter[str] = Counter()
    marked, targets = mark_plain(text, rules, dropped)
    if "[[" in marked and not rules.paper:
        dropped.clear()
        marked, targets = read_brackets(text, rules, dropped)
    drops.update(dropped)
    if "[" in marked:
        marked = _EXTERNAL_LINK.sub(lambda link: f"{CUT}{link[1] or GONE}{CUT}", marked)
    if rules.paper:
        marked, targets = mark_left_over(text, marked, targets, rules, drops)
    if rules.prefix:
        marked = rules.prefix.sub(rf"{OPEN}\1", marked)
    if title in targets and not rules.paper:
        marked, targets = _without_own(marked, targets, title, drops)
    return marked, targets


def _without_own(marked: str, targets: list[str], title: str, drops: Counter[str]) -> tuple[str, list[str]]:
    """The links of a page without those to itself, whose text stays."""
    links = iter(targets)
    first, *pieces = marked.split(OPEN)
    pieces = [piece.replace(CLOSE, CUT, 1) if next(links) == title else f"{OPEN}{piece}" for piece in pieces]
    kept = [target for target in targets if target != title]
    drops["links:same_page"] += len(targets) - len(kept)
    return "".join((first, *pieces)), kept
