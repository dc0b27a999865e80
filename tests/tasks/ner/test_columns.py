"""Column files: real data sets, the three tag schemes, and what a user can get wrong."""

from pathlib import Path

import pytest

from tasks.ner.columns import check_same_words, lines_with_tags, read_columns
from tasks.ner.spans import SCHEMES, Span
from tests.support.properties import given, st

WORDS = ("Marie", "Curie", "saw", "Paris", "France", ".")
SPANS = [Span(0, 2, "PER"), Span(3, 4, "LOC"), Span(4, 5, "LOC")]
TAGS = {
    "IOB1": ("I-PER", "I-PER", "O", "I-LOC", "B-LOC", "O"),
    "IOB2": ("B-PER", "I-PER", "O", "B-LOC", "B-LOC", "O"),
    "IOBES": ("B-PER", "E-PER", "O", "S-LOC", "S-LOC", "O"),
}


def write(tmp_path: Path, text: str, name: str = "train.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


def column_text(tags: tuple[str, ...], separator: str = " ") -> str:
    return "\n".join(separator.join(row) for row in zip(WORDS, tags, strict=True)) + "\n"


@pytest.mark.parametrize(
    ("name", "documents", "sentences", "entities", "scheme", "separator"),
    [
        ("wikigold.conll.txt", 145, 1696, 3558, "IOB1", " "),
        ("wnut17/wnut17train.conll", 3394, 3394, 1975, "IOB2", "\t"),
        ("wnut17/emerging.dev.conll", 1009, 1009, 836, "IOB2", "\t"),
        ("wnut17/emerging.test.annotated", 1287, 1287, 1079, "IOB2", "\t"),
    ],
)
def test_real_files(
    shared: Path, name: str, documents: int, sentences: int, entities: int, scheme: str, separator: str
) -> None:
    file = read_columns(shared / "data" / "ner" / name)
    assert (file.scheme, file.separator) == (scheme, separator)
    assert sum(bool(document.sentences) for document in file.documents) == documents
    assert len(file.sentences) == sentences
    assert sum(len(sentence.spans) for sentence in file.sentences) == entities


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme_is_recognised_and_written_again(tmp_path: Path, scheme: str) -> None:
    file = read_columns(write(tmp_path, column_text(TAGS[scheme])))
    assert (file.scheme, list(file.sentences[0].spans), file.sentences[0].words) == (scheme, SPANS, WORDS)
    rows = [line.split() for line in lines_with_tags(file, [SPANS]) if line]
    assert tuple(row[-1] for row in rows) == TAGS[scheme]
    assert tuple(row[-2] for row in rows) == TAGS[scheme]


@pytest.mark.parametrize("letters", ["BILUO", "BMESO"])
def test_iobes_may_have_other_letters(tmp_path: Path, letters: str) -> None:
    spans, words = [Span(0, 3, "PER"), Span(4, 5, "LOC")], WORDS[:5]
    tags = [f"{letters[0]}-PER", f"{letters[1]}-PER", f"{letters[2]}-PER", "O", f"{letters[3]}-LOC"]
    text = "".join(f"{word} x y {tag}\n" for word, tag in zip(words, tags, strict=True))
    file = read_columns(write(tmp_path, text))
    assert (file.scheme, list(file.sentences[0].spans)) == ("IOBES", spans)


def test_documents_blank_lines_and_line_numbers(tmp_path: Path) -> None:
    text = "a X Y O\n\n-DOCSTART- -X- O O\nb X Y I-LOC\n \t \nc X Y O\n\n\n-DOCSTART-\n\nd X Y O\n-DOCSTART-\n"
    file = read_columns(write(tmp_path, "\ufeff" + text.replace("\n", "\r\n")))
    assert file.has_documents
    assert [[s.words for s in document.sentences] for document in file.documents] == [
        [("a",)], [("b",), ("c",)], [("d",)], [],
    ]  # fmt: skip
    assert [sentence.lines[0] for sentence in file.sentences] == [1, 4, 6, 11]
    assert [document.start for document in file.documents] == [
        (), ("-DOCSTART-", "-X-", "O", "O"), ("-DOCSTART-",), ("-DOCSTART-",),
    ]  # fmt: skip


def test_odd_white_space_belongs_to_the_word(tmp_path: Path) -> None:
    file = read_columns(write(tmp_path, "a\u00a0b\tO\nc\u2028d \t I-PER \n"))
    assert file.sentences[0].words == ("a\u00a0b", "c\u2028d")
    assert file.sentences[0].spans == (Span(1, 2, "PER"),)


def test_a_word_may_have_a_blank_where_tabs_part_columns(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- O\n\nNew York\tNNP\tB-LOC\nis\tVBZ\tO \n"
    sentence = read_columns(write(tmp_path, text)).sentences[0]
    assert sentence.words == ("New York", "is")
    assert sentence.spans == (Span(0, 1, "LOC"),)
    other = read_columns(write(tmp_path, text.replace("York", "Jersey"), "other.txt"))
    with pytest.raises(ValueError, match="not the words of"):
        check_same_words(read_columns(write(tmp_path, text)), other)


HEADED = "word ner pos\nAda B-PER NNP\nmet O VBD\n\n-DOCSTART-\nBob B-PER NNP\n"


@pytest.mark.parametrize("column", ["2", "-2", "ner"])
def test_the_tags_stand_in_another_column(tmp_path: Path, column: str) -> None:
    text = HEADED if column == "ner" else HEADED.removeprefix("word ner pos\n")
    file = read_columns(write(tmp_path, text), tag_column=column)
    assert [(sentence.words, sentence.spans) for sentence in file.sentences] == [
        (("Ada", "met"), (Span(0, 1, "PER"),)),
        (("Bob",), (Span(0, 1, "PER"),)),
    ]
    assert file.sentences[1].place(0).endswith("train.txt:6" if column == "ner" else "train.txt:5")
    assert lines_with_tags(file, [[Span(1, 2, "X")], []])[:2] == ["Ada B-PER NNP O", "met O VBD B-X"]


@given(st.lists(st.lists(st.sampled_from(["O", "B-X", "I-X", "I-Y"]), min_size=1, max_size=4), min_size=1, max_size=3))
def test_written_predictions_read_back_as_the_same_spans(tmp_path_factory: pytest.TempPathFactory, tags: list) -> None:
    folder = tmp_path_factory.mktemp("columns")
    text = "\n\n".join("\n".join(f"w{n} {tag}" for n, tag in enumerate(sentence)) for sentence in tags)
    spans = [sentence.spans for sentence in read_columns(write(folder, text), strict=False).sentences]
    words = "-DOCSTART- O\n\n" + "\n\n".join("\n".join(f"w{n} O" for n, _ in enumerate(row)) for row in tags)
    file = read_columns(write(folder, words))
    written = "\n".join(lines_with_tags(file, spans))
    again = read_columns(write(folder, written, "predictions.txt"))
    assert [sentence.spans for sentence in again.sentences] == spans
    check_same_words(file, again)
