"""Lines: which are headings, items or running text; bold and italics; what is left of markup inside a line.

`split_lines` comes first, `clean` last; `without_quotes` is for labels of links, too.
"""

import re
from collections import Counter

from pipeline.mediawiki.characters import REFERENCE, referenced_character, without_unseen
from pipeline.mediawiki.languages import ANY_CASE_WORDS, MAGIC_WORDS
from pipeline.wikitext.link_rules import LinkRules
from pipeline.wikitext.placeholders import CUT, GONE, reveal

_HEADING = re.compile(rf"(={{1,6}})(.+?)\1[\s{CUT}{GONE}]*")
_RULER = re.compile(r"-{4,}")
_LIST_MARKS = re.compile(r"[*#:;]+")
_LINE_STARTS = frozenset("=|!*#:;-") | {chr(code) for code in range(0x10000) if chr(code).isspace()}
_QUOTES = re.compile("'{2,}")
_MAGIC_WORD = re.compile("__(?=[^\\W_])[\\w\u0300-\u1cff\u200c\u200d]{1,40}?__")  # marks are letters here
_STRAY_BRACKETS = re.compile(r"(?:\[\[+|\]\]+|\{\{+|\}\}+)([.,;:!?)，。、；：）]?)")


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
    """(kind, text) of a line of its own, without its marks; None where the line is running text."""
    first = line[:1]
    if first == "=":
        heading = _HEADING.fullmatch(line)
        return ("heading", heading[2]) if heading else None
    if first == "|" or (first == "!" and ("|" in line or "!!" in line)):
        return "table_row", line  # of a table that has lost its beginning or end
    if marks := _LIST_MARKS.match(line) or _RULER.match(line):
        return "", line[marks.end() :]
    if line.isspace():
        return "", ""
    return ("", line) if first == " " else None


def without_quotes(line: str) -> str:
    """The line without its bold and italics marks."""
    bold = line.count("'''")
    plain = line.replace("'''", "")
    if "''''" in line or (bold % 2 and plain.count("''") % 2):
        kept = iter(_literal_quotes(line))
        return _QUOTES.sub(lambda _: "'" * next(kept), line)
    return plain.replace("''", "")


def _literal_quotes(line: str) -> list[int]:
    """For each run of apostrophes in a line: how many are letters, as MediaWiki balances bold and italics."""
    runs = list(_QUOTES.finditer(line))
    lengths = [len(run.group()) for run in runs]
    literal = [1 if length == 4 else max(0, length - 5) for length in lengths]
    marks = [length - kept for length, kept in zip(lengths, literal, strict=True)]
    bold = [index for index, mark in enumerate(marks) if mark == 3]
    if (len(bold) + marks.count(5)) % 2 and (marks.count(2) + marks.count(5)) % 2 and bold:
        literal[_false_bold(line, [(index, runs[index].start() + literal[index]) for index in bold])] += 1
    return literal


def _false_bold(line: str, bold: list[tuple[int, int]]) -> int:
    """The bold mark that is an apostrophe and italics: after a one-letter word, else a word, else a blank."""
    after_word = after_blank = None
    for index, position in bold:
        if position and line[position - 1] == " ":
            after_blank = index if after_blank is None else after_blank
        elif position >= 2 and line[position - 2] == " ":
            return index
        elif after_word is None:
            after_word = index
    return next(index for index in (after_word, after_blank, bold[0][0]) if index is not None)


def clean(text: str, drops: Counter[str], *, paper: bool = False) -> str:
    """Marked lines as the reader's text, still with the marks of links and breaks; lines stay lines.

    Brackets that belong to nothing and magic words go, character references are decoded; characters that no reader sees
    stay in profile "paper" alone.
    """
    text = text.replace(CUT, "").replace(GONE, "")
    if any(bracket in text and bracket * 2 in text for bracket in "[]{}"):  # one alone is found faster
        text, stray = _STRAY_BRACKETS.subn(lambda found: found[1] or " ", text)
        drops["markup:stray_brackets"] += stray
    if "__" in text:
        text = _MAGIC_WORD.sub(_switch, text)
    if "&" in text:
        text = REFERENCE.sub(_character, text)
    return reveal(text if paper else without_unseen(text))


def _switch(word: re.Match[str]) -> str:
    """A behaviour switch gives no text; other words between underscores do, and most switches want capitals."""
    folded = word.group().lower()
    wanted = folded in MAGIC_WORDS and (word.group() != folded or not folded.isascii() or folded in ANY_CASE_WORDS)
    return "" if wanted else word.group()


def _character(reference: re.Match[str]) -> str:
    character = referenced_character(reference.group())
    return " " if character.isspace() else character
