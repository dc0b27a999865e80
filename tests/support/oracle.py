"""The oracle of wikitext extraction: mwparserfromhell's whole tree, walked plainly and slowly.

It parses the page in one piece, templates, tables, tags, styles and all, and shares no code with the fast path
(``pipeline.wikitext``). A page becomes a row of items (``oracle_items``), the
row is cut into lines, and lines become paragraphs. Where mwparserfromhell and MediaWiki differ the oracle follows
mwparserfromhell: ``tests/support/agreement.py`` names these classes.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import mwparserfromhell

from pipeline.mediawiki.languages import UNSPACED_LANGUAGES, base_language
from pipeline.mediawiki.site import SiteInfo
from tests.support.oracle_holes import HOLE, closed
from tests.support.oracle_items import (
    BLOCK,
    BREAK,
    COMMENT,
    LOST,
    MARK,
    Anchor,
    Gap,
    Item,
    Letters,
    Title,
    walk,
    with_trails,
)
from tests.support.oracle_templates import expanded

_LIST_MARKS = re.compile("[*#:;]+")
_BLANKS = re.compile(r"\s+")

Found = tuple[int, int, str]  # a link: start, end, target


@dataclass(frozen=True)
class OracleParagraph:
    """A paragraph: its heading, its text, and its links as half-open code points with the title."""

    section: str
    text: str
    links: list[Found]


def extract(text: str, site: SiteInfo, *, styles: bool = True) -> list[OracleParagraph]:
    """The paragraphs of a page's wikitext under the rules of profile "fixed".

    Without ``styles`` mwparserfromhell does not pair the apostrophes of bold and italics, whose pairs may cross
    the edges of everything else.
    """
    text = expanded(text.replace("\r\n", "\n").replace("\r", "\n"), site)
    tree = mwparserfromhell.parse(text, skip_style_tags=not styles)
    return list(paragraphs(with_trails(list(walk(tree, site)), site), site))


def paragraphs(items: Iterable[Item], site: SiteInfo) -> Iterator[OracleParagraph]:
    """Join the lines of running text; each list item and each line with a leading blank stands alone."""
    section = ""
    waiting: list[Item] = []
    for line in lines(items):
        kind = line_kind(line)
        if kind == "none":
            continue
        if kind != "running":
            yield from finish(waiting, section, site)
            waiting = []
        if kind == "heading":
            section = " ".join(heading_text(item, site) for item in line if isinstance(item, Title))
        elif kind == "alone":
            yield from finish(without_list_marks(line), section, site)
        elif kind == "running":
            waiting += [*([Letters("\n")] if waiting else []), *stripped(line)]
    yield from finish(waiting, section, site)


def heading_text(title: Title, site: SiteInfo) -> str:
    return " ".join(paragraph.text for paragraph in paragraphs(title.items, site))


def lines(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Cut the items at line breaks; a heading is a line of its own."""
    line: list[Item] = []
    for item in items:
        if isinstance(item, Title):
            yield line
            yield [item]
            line = []
        elif isinstance(item, Letters) and not item.literal and "\n" in item.text:
            first, *others = item.text.split("\n")
            line.append(Letters(first))
            for other in others:
                yield line
                line = [Letters(other)]
        else:
            line.append(item)
    yield line


def line_kind(line: list[Item]) -> str:
    """heading, none (only comments: the line is not there), blank, alone (a list item or preformatted), running."""
    if any(isinstance(item, Title) for item in line):
        return "heading"
    gaps = {item.kind for item in line if isinstance(item, Gap)}
    seen = [item for item in line if item not in (COMMENT, Letters(""))]
    if seen[:1] == [MARK]:
        return "alone"
    if not any(isinstance(item, Letters | Anchor) and item.text.strip() for item in line):
        if not gaps or "block" in gaps:
            return "blank"
        return "none" if gaps <= {"comment", "hidden"} else "running"
    first = seen[0]
    marked = isinstance(first, Letters) and not first.literal and first.text[:1] in " *#:;"
    return "alone" if marked else "running"


def without_list_marks(line: list[Item]) -> list[Item]:
    """The line without the marks at its beginning; a mark further on parts a term from its definition."""
    kept: list[Item] = []
    for item in line:
        if item == MARK:
            kept += [BREAK] if kept else []
        elif not kept and isinstance(item, Letters) and not item.literal:
            rest = Letters(_LIST_MARKS.sub("", item.text, count=1) if _LIST_MARKS.match(item.text) else item.text)
            kept += [rest] if rest.text else []
        else:
            kept += [item] if item != COMMENT else []
    return kept


def stripped(line: list[Item]) -> list[Item]:
    """The line without blanks at its end, which would part it from the next line where lines join unspaced."""
    last = line[-1]
    return [*line[:-1], Letters(last.text.rstrip(), last.literal)] if isinstance(last, Letters) else line


def finish(items: list[Item], section: str, site: SiteInfo) -> Iterator[OracleParagraph]:
    """The paragraphs of some items, cut at breaks: blanks collapsed, links as spans of the text."""
    language = base_language(site.language)
    unspaced = language in UNSPACED_LANGUAGES
    line: list[tuple[str, int]] = []  # characters, each with the number of its link, or -1
    targets: list[str] = []
    for item in [*items, BREAK]:
        if isinstance(item, Letters | Anchor):
            shown = _BLANKS.sub(lambda blanks: "" if unspaced and blanks.group() == "\n" else " ", item.text)
            is_link = isinstance(item, Anchor) and bool(item.target)
            targets += [item.target] if isinstance(item, Anchor) and item.target else []
            line += [(char, len(targets) - 1 if is_link else -1) for char in shown]
        elif item in (LOST, BLOCK):
            line.append((HOLE, -1))
        elif item == BREAK:
            text, links = measured(closed(line, language, unspaced), targets)
            if text:
                yield OracleParagraph(section, text, links)
            line, targets = [], []


def measured(line: list[tuple[str, int]], targets: list[str]) -> tuple[str, list[Found]]:
    """A line's text with one blank where there are several, and its links without blanks at their edges."""
    kept: list[tuple[str, int]] = []
    for char, link in line:
        if char != " " or (kept and kept[-1][0] != " "):
            kept.append((char, link))
    while kept and kept[-1][0] == " ":
        kept.pop()
    found = []
    for number, target in enumerate(targets):
        places = [place for place, (char, link) in enumerate(kept) if link == number and char != " "]
        if places:
            found.append((places[0], places[-1] + 1, target))
    return "".join(char for char, _ in kept), found
