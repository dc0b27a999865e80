"""Wikitext to paragraphs: running text with the spans and targets of its links, in bounded time.

A page goes through passes over its whole text: ``markup`` cuts what is no running text, ``variants`` chooses among
scripts, ``links`` marks the links, ``split_lines`` joins and sorts the lines, ``inline`` leaves the reader's text,
``paragraphs`` measures it.
"""

import re

from pipeline.inline import clean
from pipeline.links import mark_links
from pipeline.marks import BREAK, CLOSE, CUT, GONE, OPEN
from pipeline.markup import cut
from pipeline.paragraphs import Extraction, read_lines
from pipeline.quotes import without_quotes
from pipeline.targets import LinkRules, link_rules
from pipeline.titles import SiteInfo
from pipeline.variants import choose_variants

PROFILES = ("fixed", "paper")

_HEADING = re.compile(rf"(={{1,6}})(.+?)\1[\s{CUT}{GONE}]*")
_RULER = re.compile(r"-{4,}")
_LIST_MARKS = re.compile(r"[*#:;]+")
_LINE_STARTS = frozenset("=|!*#:;-") | {chr(code) for code in range(0x10000) if chr(code).isspace()}
_NOTHING_BEFORE_TEXT = re.compile(rf"\n{GONE}[{GONE} \t]*")


def extract(text: str, site: SiteInfo, *, profile: str = "fixed") -> Extraction:
    """The paragraphs of a page's wikitext.

    Profile "fixed" drops image captions, joins hard-wrapped lines, takes link trails into the mention and
    cuts fragments off targets; "paper" does the opposite of each, as the paper's code does. Both choose among
    the forms of a wiki in several scripts, which the paper has none of. ValueError for
    an unknown profile; no text raises anything.
    """
    if profile not in PROFILES:
        raise ValueError(f"profile: unknown value {profile!r}; use one of {', '.join(PROFILES)}")
    rules = link_rules(site, profile)
    plain, drops = cut(text, rules.tokens)
    if rules.variants and "-{" in plain:
        plain = choose_variants(plain, rules.variants, drops)
    marked, targets = mark_links("\n" + plain, rules, drops)
    marked = _NOTHING_BEFORE_TEXT.sub("\n", marked)
    sources, kinds = split_lines(marked, rules)
    return read_lines(clean("\n".join(sources), drops), kinds, targets, drops)


def split_lines(text: str, rules: LinkRules) -> tuple[list[str], dict[int, str]]:
    """(the page's headings and lines that are not empty, "heading" or "table_row" by the number of such a line).

    Hard-wrapped lines of running text are joined (not in profile "paper"); list marks and quotes vanish.
    """
    kept: list[str] = []
    kinds: dict[int, str] = {}
    running: list[str] = []
    for line in text.split("\n"):
        if not line:
            read: tuple[str, str] | None = "", ""
        else:
            read = _read_start(line) if line[0] in _LINE_STARTS else None
        kind, content = read or ("", line)
        if "''" in content:
            content = without_quotes(content)
        if read is None and not rules.paper:
            running.append(content)
            continue
        if running:
            kept.append(rules.line_joint.join(running))
            running = []
        if kind:
            kinds[len(kept)] = kind
        if kind or content:
            kept.append(content)
    if running:
        kept.append(rules.line_joint.join(running))
    return kept, kinds


def _read_start(line: str) -> tuple[str, str] | None:
    """(kind, text) of a line that stands alone, without its marks; None where the line is running text."""
    first = line[:1]
    if first == "=":
        heading = _HEADING.fullmatch(line)
        return ("heading", heading[2]) if heading else None
    if first == "|" or (first == "!" and ("|" in line or "!!" in line)):
        return "table_row", line  # of a table that has lost its beginning or end
    if marks := _LIST_MARKS.match(line) or _RULER.match(line):
        text = line[marks.end() :]
        return "", _split_term(text) if ";" in marks.group() else text
    if line.isspace():
        return "", ""
    return ("", line) if first == " " else None


def _split_term(text: str) -> str:
    """``term : definition`` with a break for the first colon that is in no link and no address."""
    colon = text.find(":")
    while colon >= 0:
        linked = text.rfind(OPEN, 0, colon) > text.rfind(CLOSE, 0, colon)
        if not linked and not text.startswith("//", colon + 1):
            return text[:colon] + BREAK + text[colon + 1 :]
        colon = text.find(":", text.find(CLOSE, colon) if linked else colon + 1)
    return text
