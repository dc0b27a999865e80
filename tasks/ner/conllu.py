"""Files that number the words of each sentence: CoNLL-U, CoNLL-U Plus, and others with a number, a word and tags."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.io.records import read_text
from tasks.ner.columns import DOCUMENT_START, ColumnFile, Line, blocks_of, column_place, file_of_blocks

CONLLU = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
TAG_KEYS = ("NER", "NE", "Entity")  # in MISC, in any letters
GLOBAL_COLUMNS = re.compile(r"^#\s*global\.columns\s*=\s*(.+)", re.MULTILINE)
NEW_DOCUMENT = re.compile(r"#\s*newdoc\b")
ID = re.compile(r"(\d{1,9})(?:-(\d{1,9})|\.\d+)?")
NUMBERED = re.compile(rf"{ID.pattern}\t[^\t]*\t")
NO_VALUE = ("_", "*")  # in a column with a name


@dataclass(frozen=True)
class Layout:
    """The columns of a file: the word's place, and that of the tag; or the key of the tag in MISC, at that place."""

    word: int
    tag: int
    key: str
    has_names: bool

    def tag_of(self, columns: Sequence[str]) -> str:
        """The tag of a word; empty where it has none."""
        value = columns[self.tag]
        if self.key:
            return pairs(value).get(self.key, "")
        return "" if self.has_names and value in NO_VALUE else value


def numbers_words(path: Path) -> bool:
    """Whether each line that is no comment begins with a number, a tab, a word and a tab, the first with 0 or 1."""
    first = True
    for line in read_text(path, "a CoNLL column file").split("\n"):
        if line.strip() and not line.startswith("#"):
            match = NUMBERED.match(line)
            if not match or (first and int(match[1]) > 1):
                return False
            first = False
    return not first


def read_numbered(path: Path, *, tag_column: str = "", strict: bool = True) -> ColumnFile:
    """The sentences of such a file as columns of a word and its tag.

    In CoNLL-U the tag stands in MISC as NER=B-PER (or NE, or Entity), and `tag_column` is another key or the name or
    number of a column; elsewhere it is the last column. A word without a tag has O. The words of a range (8-9) count,
    not the range, unless it has a tag of its own; empty nodes (8.1) do not count. # newdoc begins a document.
    A blank in a word becomes a no-break space. Raises: ValueError naming the file and the line.
    """
    text = read_text(path, "a CoNLL-U file")
    lines = list(split_lines(path, text))
    header = GLOBAL_COLUMNS.search(text)
    layout = layout_of(
        [line for line in lines if line.columns and not line.starts_document], header, tag_column
    )
    return file_of_blocks(path, list(blocks_of(word_lines(lines, layout))), "\t", strict=strict)


def split_lines(path: Path, text: str) -> Iterator[Line]:
    """The lines of a file that are no comments, with their columns; # newdoc as CoNLL's lines have it."""
    for number, line in enumerate(text.split("\n"), start=1):
        if NEW_DOCUMENT.match(line):
            yield Line(f"{path}:", number, (DOCUMENT_START, "O"))
        elif not line.startswith("#"):
            yield Line(f"{path}:", number, tuple(line.split("\t")) if line.strip() else ())


def layout_of(words: Sequence[Line], header: re.Match[str] | None, tag_column: str) -> Layout:
    """The columns of a file. Raises: ValueError where there are no tags, or not where `tag_column` says."""
    count = len(words[0].columns)
    for line in words:
        if len(line.columns) != count:
            raise ValueError(f"{line.where}: {len(line.columns)} columns; the lines above have {count}")
    names = header[1].split() if header else list(CONLLU) if count == len(CONLLU) else []
    if names and (len(names) != count or "FORM" not in names):
        raise ValueError(
            f"{words[0].where}: {count} columns; wanted those of global.columns: {' '.join(names)}"
        )
    word = names.index("FORM") if names else 1
    if tag_column in names:
        return Layout(word, names.index(tag_column), "", True)
    if not names or tag_column.lstrip("-").isdecimal():
        place = column_place(words[0], tag_column)[0] if tag_column else count - 1
        return Layout(word, place, "", bool(names))
    return Layout(word, *misc_key(words, names, tag_column), True)


def misc_key(words: Sequence[Line], names: Sequence[str], tag_column: str) -> tuple[int, str]:
    """The place of MISC and the key in it that has the tags. Raises: ValueError where no word has it."""
    place = names.index("MISC") if "MISC" in names else -1
    keys = dict.fromkeys(key for line in words if place >= 0 for key in pairs(line.columns[place]))
    wanted = (tag_column,) if tag_column else TAG_KEYS
    for name in wanted:
        for key in keys:
            if key == name or (not tag_column and key.upper() == name.upper()):
                return place, key
    raise ValueError(
        f"{words[0].source.rstrip(':')}: no tags: {' or '.join(wanted)} is no key in MISC (there: "
        f"{', '.join(keys) or 'none'}) and no column ({', '.join(names)}); give --tag-column the right one"
    )


def word_lines(lines: Sequence[Line], layout: Layout) -> Iterator[Line]:
    """The words of numbered lines, each as a line of itself and its tag, and the other lines as they are."""
    last, skipped = -1, -1  # the word before, and the last of a range that has a tag for all its words
    for line in lines:
        if not line.columns or line.starts_document:
            last, skipped = -1, -1
            yield line
            continue
        identifier, tag = ID.fullmatch(line.columns[0]), layout.tag_of(line.columns)
        assert identifier, line.where
        if identifier[2] and tag:
            skipped = int(identifier[2])
            yield word_line(line, layout.word, tag)
        elif line.columns[0].isdecimal():
            number = int(identifier[1])
            if number != last + 1 and (last >= 0 or number > 1):
                raise ValueError(
                    f"{line.where}: word {number} follows {'no word' if last < 0 else last}; "
                    "number the words of a sentence from 1, and put an empty line between sentences"
                )
            last = number
            if number > skipped:
                yield word_line(line, layout.word, tag or ("O" if layout.has_names else ""))


def word_line(line: Line, place: int, tag: str) -> Line:
    """A word and its tag as the columns of a line."""
    word = re.sub(r"\s", "\u00a0", line.columns[place].strip())
    if not word:
        raise ValueError(f"{line.where}: no word in column {place + 1}; write it there")
    return Line(line.source, line.number, (word, tag), tag)


def pairs(misc: str) -> Mapping[str, str]:
    """The keys of MISC with their values."""
    return dict(part.split("=", 1) for part in misc.split("|") if "=" in part)
