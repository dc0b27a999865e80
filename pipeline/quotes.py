"""Bold and italics: runs of apostrophes, balanced line by line as MediaWiki does."""

import re

QUOTES = re.compile("'{2,}")


def literal_quotes(line: str) -> list[int]:
    """For each run of apostrophes in a line: how many are letters, as MediaWiki balances bold and italics."""
    runs = list(QUOTES.finditer(line))
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


def without_quotes(line: str) -> str:
    """The line without its bold and italics marks."""
    bold = line.count("'''")
    plain = line.replace("'''", "")
    if "''''" in line or (bold % 2 and plain.count("''") % 2):
        kept = iter(literal_quotes(line))
        return QUOTES.sub(lambda _: "'" * next(kept), line)
    return plain.replace("''", "")
