"""Markup that makes lines: heading tags, poems, tabs, definition lists; and rows of tables that no table is around.

`split_blocks` works on the source, where the edges of tags, templates and links are still seen; `keep_bars` behind the
cut, where what is left of a table is seen.
"""

import re

from pipeline.mediawiki.tags import BLOCK_TAGS, INLINE_TAGS, KINDS, PROTOCOLS
from pipeline.wikitext.placeholders import BREAK, CUT, GONE, KIND, protect

# Looked for first, since few pages have any.
_SOME_TAG = re.compile(r"<(?:[hH][1-6]|[pP][oO][eE][mM]|[tT][aA][bB][bB][eE][rR])\b")
_SOME_TERM = re.compile(r";(?<=[\n*#:>];)")
_SOME_BAR = re.compile(r"\n[|!]")
_HEADING_TAGS = re.compile(r"<h([1-6])\b[^<>]*>([^\n]{0,500}?)</h\1\s*>", re.IGNORECASE | re.ASCII)
# Between the lines of a poem; and between tabs, whose names are no text.
_BETWEEN = {"poem": r"\n[ :]*", "tabber": r"(?:<tabber\b[^<>]*>|\|-\|)(?:\s*[^\s=|<>\[\]{}][^\n=|<>\[\]{}]{0,200}=)?"}
_TERM = re.compile(r"\n((?i:<(?:noinclude|onlyinclude|translate)>)?)(?=[*#:]*;)([*#:;]++)([^\n]*:[^\n]*)")
_ADDRESS = rf"(?<!\w){PROTOCOLS}[^\s<>\[\]]++"
_TERM_TOKENS = re.compile(
    rf"""<!--.*?(?:-->|$) | \[\[[^\[\]]*\]\] | \[{_ADDRESS}[^\[\]]*+\] | {_ADDRESS}
    | (?P<open>\{{\{{|-\{{) | (?P<shut>\}}\}}|\}}-) | (?P<quotes>'{{2,}})
    | <(?P<slash>/?)(?P<tag>[a-z][a-z0-9]*)(?![\w-])[^<>]*?(?P<empty>/?)> | (?P<colon>:)""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_TAGS = (INLINE_TAGS | BLOCK_TAGS | KINDS.keys()) - {"br", "hr", "wbr"}
_ROW_MARKS = ("|-", "|+", "|}")
_NO_TEXT = f"{GONE}{KIND}{CUT} \t"


def split_blocks(text: str) -> str:
    """The source with headings in tags as headings, and with the lines of poems, tabs and the terms of lists apart."""
    if _SOME_TAG.search(text):
        text = _HEADING_TAGS.sub(lambda tags: f"\n{'=' * int(tags[1])}{tags[2]}{'=' * int(tags[1])}\n", text)
        for tag, between in _BETWEEN.items():
            text = _break_lines(text, tag, re.compile(between, re.IGNORECASE | re.ASCII))
    return _TERM.sub(_split_term, f"\n{text}")[1:] if text[:1] == ";" or _SOME_TERM.search(text) else text


def _break_lines(text: str, tag: str, between: re.Pattern[str]) -> str:
    """The lines in these tags stay lines."""
    begins, ends = (re.compile(mark, re.IGNORECASE | re.ASCII) for mark in (rf"<{tag}\b", rf"</{tag}\s*>"))
    pieces: list[str] = []
    position = 0
    while (first := begins.search(text, position)) and (last := ends.search(text, first.end())):
        pieces += text[position : first.start()], between.sub(BREAK, text[first.start() : last.start()])
        position = last.start()
    return "".join((*pieces, text[position:])) if pieces else text


def _split_term(line: re.Match[str]) -> str:
    """``;term:definition`` with a break for the colon that parts them, as in MediaWiki.

    It is the first that is in no bold or italics, tag, link, address or template.
    """
    tag, marks, text = line.groups()
    nested = 0  # tags and templates that are open
    styles = 0  # 1 for italics, 2 for bold
    for token in _TERM_TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "colon":
            if not nested and not styles:
                return f"\n{tag}{marks}{text[: token.start()]}{BREAK}{text[token.end() :]}"
        elif kind == "quotes":
            styles ^= {2: 1, 3: 2, 4: 2}.get(len(token.group()), 3)
        elif kind == "open":
            nested += 1
        elif kind == "shut" or (token["slash"] and token["tag"].lower() in _TAGS):
            nested = max(0, nested - 1)
        elif token["tag"] and not token["empty"] and token["tag"].lower() in _TAGS:
            nested += 1
    return line.group()


def keep_bars(text: str) -> str:
    """The text with the bars protected that begin a line outside any table, where MediaWiki shows them.

    A template may open a table or close it. So, behind a line of nothing but templates in the same section, lines are
    rows if they follow it at once, or if a line that separates rows is among the lines around them; and then up to the
    table's end.
    """
    if text[:1] not in ("|", "!") and not _SOME_BAR.search(text):
        return text
    lines = text.split("\n")
    before_mark = _before_marks(lines)
    behind_template = in_table = opened = False
    for number, line in enumerate(lines):
        if line[:1] == "=":
            behind_template = in_table = False
        elif line[:1] == "|" or (line[:1] == "!" and ("|" in line or "!!" in line)):
            in_table = in_table or opened or (behind_template and before_mark[number])
            if not in_table:
                lines[number] = protect(line[0]) + line[1:]
            elif line.startswith("|}"):
                in_table = False
        opened = GONE in line and not line.strip(_NO_TEXT)
        behind_template = behind_template or opened
    return "\n".join(lines)


def _before_marks(lines: list[str]) -> list[bool]:
    """Of each line whether a mark of a table begins it or a line below it, with no empty line between."""
    marked = [False] * len(lines)
    below = False
    for number in range(len(lines) - 1, -1, -1):
        line = lines[number]
        below = line.startswith(_ROW_MARKS) or (below and line[:1] not in ("", "="))
        marked[number] = below
    return marked
