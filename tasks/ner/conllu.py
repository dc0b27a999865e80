"""Files that number the words of each sentence: CoNLL-U, CoNLL-U Plus, and others with a number, a word and tags."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.io.records import read_text
from tasks.ner.columns import DOCUMENT_START, ColumnFile, Line, check_column_count, column_place, file_of_lines
from tasks.ner.spans import TAG

CONLLU = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
TAG_KEYS = ("NER", "NE", "Entity")  # in MISC, in any letters
GLOBAL_COLUMNS = re.compile(r"^#\s*global\.columns\s*=\s*(.+)", re.MULTILINE)
NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")
ID = re.compile(r"(\d{1,9})(?:-(\d{1,9})|\.\d+)?")
NUMBERED = re.compile(rf"{ID.pattern}(?:\t[^\t]*\t| +[^ ]+ )")
HAS_TAG = re.compile(r"\s(O|[BIESLUM]-\S+)(\s|$)")
NO_VALUE = ("_", "*")  # in CoNLL-U


@dataclass(frozen=True)
class Layout:
    """The columns of a file."""

    word: int  # the word's place
    tag: int  # that of the tag, or of MISC
    key: str = ""  # that of the tag in MISC
    misc: int = -1  # the place of MISC, -1 where there is none
    is_conllu: bool = False

    def tag_of(self, columns: Sequence[str]) -> str:
        """The tag of a word; empty where it has none."""
        value = columns[self.tag]
        if self.key:
            return pairs(value).get(self.key, "")
        return "" if self.is_conllu and value in NO_VALUE else value

    def ends_without_blank(self, line: Line) -> bool:
        """Return whether MISC says that no blank follows."""
        return not line.starts_document and pairs(line.columns[self.misc]).get("SpaceAfter") == "No"


def numbers_words(path: Path) -> bool:
    """Return whether each line that is no comment and begins no document has a number and a word, the first 0 or 1.

    A line before them may name the columns. There are at least three.
    """
    text = read_text(path, "a CoNLL column file")
    lines = (line for line in text.split("\n") if line.strip() and not line.startswith(("#", DOCUMENT_START)))
    first = next(lines, "")
    if not NUMBERED.match(first) and not HAS_TAG.search(first):
        first = next(lines, "")
    match = NUMBERED.match(first)
    return match is not None and int(match[1]) <= 1 and all(map(NUMBERED.match, lines))


def read_numbered(path: Path, *, tag_column: str = "", strict: bool = True) -> ColumnFile:
    """The sentences of such a file as columns of a word and its tag.

    In CoNLL-U the tag stands in MISC as NER=B-PER (or NE, or Entity), and `tag_column` is another key or the name or
    number of a column; elsewhere it is the last column. A word without a tag has O. The words of a range (8-9) count,
    not the range, unless it has a tag of its own; empty nodes (8.1) do not count. # newdoc begins a document.
    A blank in a word becomes a no-break space. Raises: ValueError naming the file and the line.
    """
    text = read_text(path, "a CoNLL-U file")
    lines = list(split_lines(path, text))
    words = [line for line in lines if line.columns and not line.starts_document]
    check_column_count(words)
    header = None if ID.fullmatch(words[0].columns[0]) else words[0]
    if found := GLOBAL_COLUMNS.search(text):
        layout = conllu_layout(words, found[1].split(), tag_column)
    elif header is None and len(words[0].columns) == len(CONLLU):
        layout = conllu_layout(words, CONLLU, tag_column)
    else:
        layout = plain_layout(words, tag_column, has_header=header is not None)
    numbered = word_lines([line for line in lines if line is not header], layout)
    return file_of_lines(path, numbered, "\t", strict=strict)


def split_lines(path: Path, text: str) -> Iterator[Line]:
    """The lines of a file that are no comments, with their columns; # newdoc as CoNLL's lines have it."""
    for number, line in enumerate(text.split("\n"), start=1):
        if NEW_DOCUMENT.match(line):
            yield Line(f"{path}:", number, (DOCUMENT_START, "O"))
        elif not line.startswith("#"):
            columns = line.split("\t") if "\t" in line else line.split()
            yield Line(f"{path}:", number, tuple(columns) if line.strip() else ())


def plain_layout(words: Sequence[Line], tag_column: str, *, has_header: bool) -> Layout:
    """A number, the word, and the tag in the last column or where `tag_column` says.

    Raises: ValueError where two columns have tags, as those of nested entities do, and it says nothing.
    """
    first, last = words[0], len(words[0].columns) - 1
    if not tag_column:
        if last > 2 and all(TAG.fullmatch(line.columns[last - 1]) for line in words[has_header:]):
            raise ValueError(
                f"{first.where}: columns {last} and {last + 1} both have tags; say which (--tag-column {last})"
            )
        return Layout(1, last)
    place, is_name = column_place(first, tag_column)
    if is_name and not has_header:
        raise ValueError(f"{first.where}: no line names the columns; give --tag-column a number, not {tag_column}")
    return Layout(1, place)


def conllu_layout(words: Sequence[Line], names: Sequence[str], tag_column: str) -> Layout:
    """The layout of columns with these names. Raises: ValueError where there are no tags, or not where it is said."""
    first = words[0]
    if len(names) != len(first.columns) or "FORM" not in names:
        raise ValueError(
            f"{first.where}: {len(first.columns)} columns; wanted those of global.columns: {' '.join(names)}"
        )
    misc, key = names.index("MISC") if "MISC" in names else -1, ""
    if tag_column in names:
        tag = names.index(tag_column)
    elif tag_column.lstrip("-").isdecimal():
        tag, _ = column_place(first, tag_column)
    else:
        tag, key = misc, misc_key(words, names, misc, tag_column)
    return Layout(names.index("FORM"), tag, key, misc, is_conllu=True)


def misc_key(words: Sequence[Line], names: Sequence[str], misc: int, tag_column: str) -> str:
    """The key in MISC that has the tags. Raises: ValueError where no word has it."""
    keys = dict.fromkeys(key for line in words if misc >= 0 for key in pairs(line.columns[misc]))
    wanted = (tag_column,) if tag_column else TAG_KEYS
    for name in wanted:
        for key in keys:
            if key == name or (not tag_column and key.upper() == name.upper()):
                return key
    raise ValueError(
        f"{words[0].source.rstrip(':')}: no tags: {' or '.join(wanted)} is no key in MISC (there: "
        f"{', '.join(keys) or 'none'}) and no column ({', '.join(names)}); give --tag-column the right one"
    )


def word_lines(lines: Sequence[Line], layout: Layout) -> Iterator[Line]:
    """The words of numbered lines, each as a line of itself and its tag, and the other lines as they are."""
    last, skipped = -1, -1  # the word before, and the last of a range that has a tag for all its words
    blanks = blanks_before(lines, layout)
    for line in lines:
        if not line.columns or line.starts_document:
            last, skipped = -1, -1
            yield line
            continue
        identifier, tag = ID.fullmatch(line.columns[0]), layout.tag_of(line.columns)
        if not identifier:
            raise ValueError(
                f"{line.where}: {line.columns[0]!r} is no number of a word; wanted 1, 2, ... or 2-3; put tabs between "
                "columns"
            )
        if identifier[2] and tag:
            skipped = int(identifier[2])
            yield word_line(line, layout.word, tag, blanks.get(line.number))
        elif line.columns[0].isdecimal():
            number = int(identifier[1])
            if number != last + 1 and (last >= 0 or number > 1):
                raise ValueError(
                    f"{line.where}: word {number} follows {'no word' if last < 0 else last}; "
                    "number the words of a sentence from 1, and put an empty line between sentences"
                )
            last = number
            if number > skipped:
                yield word_line(line, layout.word, tag or ("O" if layout.is_conllu else ""), blanks.get(line.number))


def blanks_before(lines: Sequence[Line], layout: Layout) -> dict[int, bool]:
    """Return whether a blank stands before the word or the range of each line, by number; nothing if no line says so.

    MISC has SpaceAfter=No where none follows; in a range it counts for the range. Within a range none stands where
    its words, joined, are its text.
    """
    words = [line for line in lines if line.columns and (line.starts_document or "." not in line.columns[0])]
    if layout.misc < 0 or not any(map(layout.ends_without_blank, words)):
        return {}
    found: dict[int, bool] = {}
    blank = True  # before the next word
    range_end, range_blank, within = "", True, True  # the last word of a range; blanks after and within it
    for place, line in enumerate(words):
        if line.starts_document:
            blank, range_end = True, ""
            continue
        found[line.number] = blank
        follows = not layout.ends_without_blank(line)
        start, _, end = line.columns[0].partition("-")
        if end:
            parts = words[place + 1 : place + 2 + int(end) - int(start)]
            text = "".join(part.columns[layout.word] for part in parts if not part.starts_document)
            range_end, range_blank, within = end, follows, text != line.columns[layout.word]
        elif start == range_end:
            blank, range_end = range_blank, ""
        else:
            blank = within if range_end else follows
    return found


def word_line(line: Line, place: int, tag: str, blank: bool | None) -> Line:
    """A word and its tag as the columns of a line."""
    word = re.sub(r"\s", "\u00a0", line.columns[place].strip())
    if not word:
        raise ValueError(f"{line.where}: no word in column {place + 1}; write it there")
    return Line(line.source, line.number, (word, tag), tag, blank)


def pairs(misc: str) -> Mapping[str, str]:
    """The keys of MISC with their values; some write a blank, a semicolon or a comma for the bar between them."""
    return dict(part.split("=", 1) for part in re.split(r"[|; ]|,(?=\w+=)", misc) if "=" in part)
