"""Files that number their words: CoNLL-U with ranges and empty nodes, other columns, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from tasks.ner import task
from tasks.ner.conllu import numbers_words

SEEN = """\
# newdoc id = first
# sent_id = 1
# text = Ana Pell can't see de Lyon.
1\tAna\tAna\tPROPN\t_\tNumber=Sing\t2\tnsubj\t_\tNER=B-PER
2\tPell\tPell\tPROPN\t_\t_\t1\tflat\t_\tNER=I-PER|SpaceAfter=No
3-4\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
3\tca\tcan\tAUX\t_\t_\t5\taux\t_\tNER=O
4\tn't\tnot\tPART\t_\t_\t5\tadvmod\t_\t_
5\tsee\tsee\tVERB\t_\t_\t0\troot\t_\tNER=O
5.1\tagain\tagain\tADV\t_\t_\t_\t_\t5:advmod\tNER=B-X
6-7\tdu Lyon\t_\t_\t_\t_\t_\t_\t_\tNER=B-LOC
6\tde\tde\tADP\t_\t_\t7\tcase\t_\t_
7\tLyon\tLyon\tPROPN\t_\t_\t5\tobj\t_\t_
8\t#\t#\tSYM\t_\t_\t5\tpunct\t_\t_

# newdoc id = second
1\tBob\tBob\tPROPN\t_\t_\t0\troot\t_\tner=x|NER=B-PER
# a comment between words
2\tran\trun\tVERB\t_\t_\t1\tdep\t_\t_


1\tyes\tyes\tINTJ\t_\t_\t0\troot\t_\t_
"""


def read(tmp_path: Path, text: str, **changes: Any) -> task.ColumnFile:
    path = tmp_path / "train.x"
    path.write_bytes(text.encode())
    return task.TASK.read(path, **changes)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_words_ranges_nodes_comments_and_documents(tmp_path: Path, line_end: str) -> None:
    file = read(tmp_path, "\ufeff" + SEEN.replace("\n", line_end))
    assert [[sentence.words for sentence in document.sentences] for document in file.documents] == [
        [("Ana", "Pell", "ca", "n't", "see", "du\u00a0Lyon", "#")],
        [("Bob", "ran"), ("yes",)],
    ]
    assert [sentence.spans for sentence in file.sentences] == [((0, 2, "PER"), (5, 6, "LOC")), ((0, 1, "PER"),), ()]
    assert (file.scheme, file.has_documents, file.separator) == ("IOB2", True, "\t")
    assert [sentence.blanks for sentence in file.sentences] == [
        (True, True, False, False, True, True, True),  # Ana Pellcan't see du Lyon #
        (True, True),
        (True,),
    ]
    assert [sentence.place(0) for sentence in file.sentences] == [f"{tmp_path}/train.x:{line}" for line in (4, 17, 22)]


def test_blanks_are_those_of_the_text(tmp_path: Path) -> None:
    """A range without a tag, whose words are its text or not; no blank before the next sentence; none known."""
    lines = [
        *("1\t(\tSpaceAfter=No", "2-3\tdu\tSpaceAfter=No", "2\tde\t_", "3\tle\t_", "3.1\tx\t_", "4\t)\t_"),
        *("5-6\tcan't\t_", "5\tca\t_", "6\tn't\tSpaceAfter=No", "7\tgo\tNER=O|SpaceAfter=No", ""),
        "1\tyes\t_",
    ]
    text = "# global.columns = ID FORM MISC\n" + "\n".join(lines)
    first, second = read(tmp_path, text).sentences
    blanks = dict(zip(first.words, first.blanks, strict=True))
    assert blanks == {"(": True, "de": False, "le": True, ")": False, "ca": True, "n't": False, "go": True}
    assert second.blanks == (False,)
    silent = read(tmp_path, text.replace("SpaceAfter=No", "X=Y")).sentences
    assert [sentence.blanks for sentence in silent] == [(), ()]


def test_a_real_file_is_the_same_as_columns(shared: Path, tmp_path: Path) -> None:
    wanted = task.TASK.read(shared / "data" / "ner" / "wikigold.conll.txt")
    text = ""
    for document in wanted.documents:
        text += "# newdoc\n"
        for number, sentence in enumerate(document.sentences, start=1):
            rows = enumerate(sentence.rows, start=1)
            text += f"# sent_id = {number}\n"
            text += "".join(WORD % (place, row[0], row[-1]) for place, row in rows) + "\n"
    found = read(tmp_path, text)
    assert (len(found.sentences), found.scheme) == (1696, "IOB1")
    assert sum(bool(document.sentences) for document in found.documents) == 145
    assert sum(len(sentence.spans) for sentence in found.sentences) == 3558
    for one, other in zip(found.sentences, wanted.sentences, strict=True):
        assert (one.words, one.spans) == (other.words, other.spans)


WORD = "%s\t%s" + 7 * "\t_" + "\tSpaceAfter=No|NER=%s\n"
KEYED = "1\tAna\t_\t_\t_\t_\t_\t_\t_\t%s\n2\tran\t_\t_\t_\t_\t_\t_\t_\t_\n"
PLUS = "# global.columns = ID FORM NER:2 MISC\n1\tAna\tB-PER\tNER=B-LOC\n2\tran\t*\t_\n"


@pytest.mark.parametrize(
    ("text", "column", "wanted"),
    [
        (KEYED % "ner=S-PER|SpaceAfter=No", "", "PER"),  # Stanza
        (KEYED % "SpaceAfter=No;NER=B-PER", "", "PER"),
        (KEYED % "SpaceAfter=No NER=B-PER", "", "PER"),
        (KEYED % "Gloss=a,b,NER=B-PER", "", "PER"),
        (KEYED % "NE=B-PER", "", "PER"),
        (KEYED % "Entity=B-PER|NER=B-LOC", "", "LOC"),
        (KEYED % "Entity=B-PER|NER=B-LOC", "Entity", "PER"),
        (KEYED % "Gold=B-PER", "Gold", "PER"),
        ("1\tAna\tB-PER\t_\t_\t_\t_\t_\t_\t_\n", "3", "PER"),
        ("1\tAna\tB-PER\t_\t_\t_\t_\t_\t_\t_\n2\tran\t_\t_\t_\t_\t_\t_\t_\t_\n", "LEMMA", "PER"),
        (PLUS, "", "LOC"),
        (PLUS, "NER:2", "PER"),
        ("# sent_id = 1\n1\tAna\tB-PER\t-\t-\n2\tran\tO\t-\t-\n", "3", "PER"),  # Universal NER
        ("0\tAna\tB-PER\n1\tran\tO\n\n0\tyes\tO\n", "", "PER"),  # WikiNEuRal
        ("id\tword\tner\tx\n0\tAna\tB-PER\tX\n1\tran\tO\tX\n", "ner", "PER"),
        ("1 Ana NNP B-PER\n2 ran VBD O\n", "", "PER"),
        ("1 Ana B-PER NNP\n2 ran O VBD\n", "3", "PER"),
    ],
)
def test_where_the_tag_stands(tmp_path: Path, text: str, column: str, wanted: str) -> None:
    sentence = read(tmp_path, text, tag_column=column).sentences[0]
    assert sentence.words[0] == "Ana"
    assert sentence.spans == ((0, 1, wanted),)


@pytest.mark.parametrize(
    "text",
    [
        "1 B-NUM\n2 O\n",
        "Ana\tx\tO\n",
        "Chapter\tx\tO\n1\tx\tO\n",
        "a\tb\tx\nc\td\tO\n1\tx\tO\n",
        "1\tx\tO\nb\tx\tO\n",
        "",
        "#\tx\tO\n",
    ],
)
def test_other_files_are_columns(tmp_path: Path, text: str) -> None:
    path = tmp_path / "train.x"
    path.write_text(text)
    assert not numbers_words(path)


def test_numbered_columns_have_documents_as_columns_do(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- O\n\n1\tAna\tB-PER\n\n1\tBob\tB-PER\n-DOCSTART- -X- O\n1\tyes\tO\n"
    file = read(tmp_path, text)
    assert [[each.words for each in document.sentences] for document in file.documents] == [
        [("Ana",), ("Bob",)],
        [("yes",)],
    ]


def test_predictions_are_columns_that_are_scored_against_it(tmp_path: Path) -> None:
    file = read(tmp_path, SEEN)
    spans = [sentence.spans for sentence in file.sentences]
    (tmp_path / "predictions.txt").write_text("\n".join(task.TASK.prediction_lines(file, [*spans[:2], ()])))
    scores = task.TASK.score_files(tmp_path / "train.x", tmp_path / "predictions.txt")
    assert (scores["gold"], scores["correct"], scores["f1"]) == (3, 3, 1.0)
