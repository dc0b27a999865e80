"""Documents in five formats: what is read, and what is said of bad ones."""

import gzip
import json
import re
import shutil
from pathlib import Path

import pytest

from tasks.io.records import Record
from tasks.linking.documents.document import Document, Mention, Skipped, to_json
from tasks.linking.documents.json_lines import read_document
from tasks.linking.documents.reading import read_documents
from tests.support import DATA
from tests.support.properties import given, st

FILES = DATA / "documents"
TURING = [("Alan Turing", "Alan Turing"), ("Bletchley Park", "Bletchley Park")]
LATER = [("Turing", "Alan Turing"), ("Manchester", "Manchester")]
JOYCE = [("Zürich", "Zürich"), ("Joyce", "James Joyce"), ("Ulysses", "Ulysses (novel)")]
LABELS = [*JOYCE[:2], ("Ulysses", "Ulysses")]  # Wikidata's
NOBODY = [("Frau Keller", None)]


def named(document: Document) -> list[tuple[str, str | None]]:
    return [(document.text[each.start : each.end], each.title) for each in document.mentions or ()]


@pytest.mark.parametrize(
    ("file", "ids", "first", "second"),
    [
        ("ours.jsonl", ["turing", "zürich 😀"], TURING + LATER, JOYCE + NOBODY),
        ("zelda.jsonl", ["7", "8"], TURING + LATER, JOYCE),
        ("elevant.jsonl", ["0", "1"], TURING + LATER, LABELS + NOBODY),
        ("aida.tsv", ["1 Codes", "2 Books"], [*TURING, ("London", "London"), LATER[1]], JOYCE + NOBODY),
        ("wned.xml", ["turing.txt", "zurich.txt"], TURING + LATER, JOYCE + NOBODY),
    ],
)
def test_formats_are_told_by_their_content(
    file: str, ids: list[str], first: list[tuple[str, str]], second: list[tuple[str, str]], tmp_path: Path
) -> None:
    documents = read_documents(FILES / file)
    assert [each.id for each in documents] == ids
    assert [named(each) for each in documents] == [first, second]
    # What was read is the same once it is written in our format.
    rewritten = tmp_path / "documents"
    lines = [json.dumps(to_json(each), ensure_ascii=False) for each in documents]
    rewritten.write_text("\n".join(lines), encoding="utf-8")
    again = read_documents(rewritten)
    assert [(each.id, each.text, each.mentions, each.annotated) for each in again] == [
        (each.id, each.text, each.mentions, each.annotated) for each in documents
    ]


def test_formats_have_texts_annotated_parts_and_qids() -> None:
    """Columns have a sentence a line, WNED's texts their own ends of lines; ELEVANT tells pages by QID."""
    texts = [each.text for each in read_documents(FILES / "aida.tsv")]
    assert texts[0] == "Alan Turing worked at Bletchley Park .\nLondon Manchester called"
    assert texts[1] == "In Zürich , Joyce wrote Ulysses\nFrau Keller sold him paper ."
    assert "Park.\r\nAfter" in read_documents(FILES / "wned.xml")[0].text
    turing, joyce = read_documents(FILES / "elevant.jsonl")
    assert (turing.annotated, joyce.annotated) == ((0, 79), (0, 44))
    assert [each.qid for each in turing.mentions or ()] == ["Q7251", "Q155921", "Q7251", "Q18125"]
    assert [each.qid for each in joyce.mentions or ()] == ["Q72", "Q6882", "Q6511", None]
    assert [each.page for each in joyce.mentions or ()] == ["Q72", "Q6882", "Q6511", None]


def test_labels_may_be_optional_and_nested_and_stay_so(tmp_path: Path) -> None:
    """Each nested label is a mention for itself; a date has no page, whatever it is called."""
    labels = [
        {
            "span": [0, 15], "entity_id": "Q1", "name": "NIL", "optional": True, "children": [1],
            "parent": None,
        },
        {
            "span": [8, 15], "entity_id": "Q84", "name": "London", "optional": False, "children": [],
            "parent": 0,
        },
        {"span": [19, 23], "entity_id": "DATETIME", "name": "1940", "optional": True},
        {"span": [0, 5], "entity_id": "Q2"},
        {"span": [0, 6], "entity_id": "Q3", "name": "mayor", "desc": True},
    ]  # fmt: skip
    line = {"text": "Mayors of London in 1940", "labels": labels}
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps(line))
    wanted = (
        Mention(0, 15, None, "Q1", optional=True),
        Mention(8, 15, "London", "Q84"),
        Mention(19, 23, optional=True),
        Mention(0, 5, None, "Q2"),
        Mention(0, 6, "mayor", "Q3", optional=True),
    )
    [document] = read_documents(path)
    assert document.mentions == wanted
    written = to_json(document)
    assert written["mentions"] == [
        {"start": 0, "end": 15, "title": None, "qid": "Q1", "optional": True},
        {"start": 8, "end": 15, "title": "London", "qid": "Q84"},
        {"start": 19, "end": 23, "title": None, "optional": True},
        {"start": 0, "end": 5, "title": None, "qid": "Q2"},
        {"start": 0, "end": 6, "title": "mayor", "qid": "Q3", "optional": True},
    ]
    path.write_text(json.dumps(written))
    assert read_documents(path)[0].mentions == wanted


def test_places_of_wned_are_units_of_utf_16(tmp_path: Path) -> None:
    """Thirty signs of two units each: counted as code points the place were far behind the mention."""
    (tmp_path / "RawText").mkdir()
    (tmp_path / "RawText/ada.txt").write_text("😀" * 30 + " Ada and Ada", encoding="utf-8")
    fields = "<mention>Ada</mention><wikiName>Ada_Lovelace</wikiName><offset>69</offset><length>3</length>"
    path = tmp_path / "ada.xml"
    path.write_text(f'<x><document docName="ada.txt"><annotation>{fields}</annotation></document></x>')
    [document] = read_documents(path)
    assert document.mentions == (Mention(39, 42, "Ada Lovelace"),)


def test_blanks_of_wned_are_alike_and_a_wrong_mention_may_be_left_out(tmp_path: Path) -> None:
    """XML makes the ends of lines of Windows plain ones, so that no mention could have the text's."""
    (tmp_path / "RawText").mkdir()
    (tmp_path / "RawText/a.txt").write_bytes(b"He rode\r\nfrom New\r\nYork to Troy.")
    fields = "<mention>{}</mention><wikiName>X</wikiName><offset>{}</offset><length>9</length>"
    told = [fields.format(*each) for each in (("New\r\nYork", 14), ("New York", 14), ("Rome", 14), ("Troy", 900))]
    content = "".join(f"<annotation>{each}</annotation>" for each in told)
    path = tmp_path / "a.xml"
    path.write_text(f'<x><document docName="a.txt">{content}</document></x>', newline="")
    left_out = Skipped()
    [document] = read_documents(path, left_out)
    assert named(document) == [("New\r\nYork", "X")] * 2
    told = [re.search(r"wanted the mention '(\w+)'", each) for each in left_out.mentions]
    assert [each and each[1] for each in told] == ["Rome", "Troy"]
    with pytest.raises(ValueError, match="wanted the mention 'Rome'"):
        read_documents(path)


def test_signs_of_yago_are_joined_and_a_line_of_blanks_ends_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "aida.tsv"
    rows = ["x\tB\tx\t\\ud83d\\ude00_smile", " ", "y\tB\ty\t\\u00e9t\\u00e9", "\t", "z"]
    path.write_text("\n".join(["-DOCSTART- (1)", *rows]))
    [document] = read_documents(path)
    assert (document.text, named(document)) == ("x\ny\nz", [("x", "😀 smile"), ("y", "été")])
    path.write_text("-DOCSTART- (1)\nx\tB\tx\t\\ud83d_smile\n")
    with pytest.raises(ValueError, match=r"aida.tsv:2: '.*smile' has half of a sign"):
        read_documents(path)


@pytest.mark.parametrize("title", ["", "NIL", "--NME--", "null", None])
def test_some_titles_mean_none(title: str | None) -> None:
    mentions = [{"start": 0, "end": 1, "title": title}]
    document = read_document(Record("x:1", {"text": "a", "mentions": mentions}), 1)
    assert document.mentions == (Mention(0, 1),)


def test_another_mention_in_columns_is_a_mention_of_its_own(tmp_path: Path) -> None:
    """AIDA-CoNLL marks its first token with B; where a file does not, the third column tells."""
    path = tmp_path / "aida.tsv"
    rows = [("New", "New York"), ("York", "New York"), ("Paris", "Paris")]
    lines = [f"{token}\tI\t{words}\t{words.replace(' ', '_')}" for token, words in rows]
    path.write_text("\n".join(["-DOCSTART- (1)", *lines]))
    [document] = read_documents(path)
    assert named(document) == [("New York", "New York"), ("Paris", "Paris")]


def test_wned_wiki_is_read_whole(shared: Path) -> None:
    """One of its 6,765 mentions ends behind the text."""
    path, left_out = shared / "data/entity-linking/wned-wiki.jsonl", Skipped()
    documents = read_documents(path, left_out)
    assert len(documents) == 319
    assert sum(len(each.mentions or ()) for each in documents) == 6764
    [said] = left_out.lines()
    assert said.startswith(
        f"{path}:243: mentions[27]: start, end spans 1897 to 1934; wanted a start below the end, within 0 to 1931"
    )
    with pytest.raises(ValueError, match=re.escape(said)):
        read_documents(path)
    assert all(each.title for document in documents for each in document.mentions or ())


def test_a_line_that_is_no_document_may_be_left_out(tmp_path: Path) -> None:
    """Ids that are numbers are as if it were there; what is wrong with its mentions is not told."""
    path, left_out = tmp_path / "gold.jsonl", Skipped()
    wrong = {"text": "Ada", "mentions": [{"start": 0, "end": 9}]}
    records = [LINE, {**wrong, "annotated": [0, 9]}, {"text": 3, "mentions": []}, {"text": "Ada"}, wrong, [3]]
    path.write_text("\n\n".join(["{", *map(json.dumps, records), "{"]))
    documents = read_documents(path, left_out)
    assert [(each.id, named(each)) for each in documents] == [("2", [("Ada", "Ada")]), ("6", [])]
    [mention] = left_out.mentions
    assert mention.startswith(f"{path}:11: mentions[0]: start, end spans 0 to 9")
    assert left_out.documents.total() == 6
    told = left_out.lines()
    assert told[0] == mention
    assert re.match(rf"2: not JSON \(.*\) \(the first at {path}:1\)", told[1])
    assert {each.rpartition(":")[2] for each in told[2:]} == {"5)", "7)", "9)", "13)"}
    with pytest.raises(ValueError, match=r"gold\.jsonl:1: not JSON"):
        read_documents(path)


def test_nothing_remains_where_all_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text("{\n{")
    with pytest.raises(ValueError, match=r"no document; all are left out: 2: not JSON \(.*gold.jsonl:1\)"):
        read_documents(path, Skipped())


def test_records_of_an_array_may_be_left_out(tmp_path: Path) -> None:
    path, left_out = tmp_path / "gold.json", Skipped()
    path.write_text(json.dumps([LINE, {"text": 3}, LINE], indent=0))
    documents = read_documents(path, left_out)
    assert [each.id for each in documents] == ["1", "3"]
    [told] = left_out.lines()
    assert told.startswith("1: text is 3; wanted a text (the first at ")
    assert told.endswith("example 2)")


def test_what_is_wrong_in_columns_costs_the_mention_or_the_document(tmp_path: Path) -> None:
    """A wrong title its mention, with all tokens of that; another wrong line the document, with what else is wrong."""
    address = "http://en.wikipedia.org/wiki/"
    bad = "New\tB\tNew York\tNew_York\tYork\nYork\tI\tNew York\tNew_York\tYork"
    good = f"Troy\tB\tTroy\tTroy\t{address}Troy"
    path, left_out = tmp_path / "aida.tsv", Skipped()
    parts = [
        f"(1)\n{bad}\n{good}", f"(2)\n{bad}\nfrom\tX", "(3)\nTroy\tB", f"(4)\n{good}\n\tO", f"(5)\n{good}",
    ]  # fmt: skip
    path.write_text("\n".join(f"-DOCSTART- {each}" for each in parts))
    documents = read_documents(path, left_out)
    assert [(each.id, each.text, named(each)) for each in documents] == [
        ("1", "New York Troy", [("Troy", "Troy")]),
        ("5", "Troy", [("Troy", "Troy")]),
    ]
    [mention] = left_out.mentions
    assert mention.startswith(f"{path}:2: the address is 'York'")
    assert [each.partition(":")[0] for each in left_out.documents.lines()] == ["1", "1", "1"]
    assert sorted(left_out.documents.first.values()) == [f"{path}:{line}" for line in (10, 13, 8)]
    with pytest.raises(ValueError, match=r"aida\.tsv:2: the address is 'York'"):
        read_documents(path)


def test_documents_of_wned_without_a_text_may_be_left_out(tmp_path: Path) -> None:
    left_out = Skipped()
    path = edited(tmp_path, "wned.xml", 'docName="turing.txt"', 'docName="none"')
    [document] = read_documents(path, left_out)
    assert document.id == "zurich.txt"
    [told] = left_out.lines()
    assert re.match(r"1: .*RawText/none: no such file; .* \(the first at .*wned\.xml:3\)", told)


LINE = {"text": "Ada met Bob.", "mentions": [{"start": 0, "end": 3, "title": "Ada"}]}


def mention(**values: object) -> dict[str, object]:
    return {**LINE, "mentions": [*LINE["mentions"], {"start": 8, "end": 11, "title": "Bob", **values}]}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"mentions": []}, r"no field 'text'; wanted a text"),
        ({"text": 3}, "text is 3; wanted a text"),
        ({**LINE, "id": 1.5}, r"id is 1\.5; wanted a text or a whole number"),
        (
            mention(end=13),
            r"mentions\[1\]: start, end spans 8 to 13; wanted a start below the end, within 0 to 12 characters",
        ),
        (mention(start="8"), r"mentions\[1\]: start, end is \[\"8\", 11\]; wanted two whole numbers"),
        (mention(qid=4), r"mentions\[1\]: qid is 4; wanted one of Wikidata's, such as 'Q42', or null"),
        (mention(optional="no"), r'mentions\[1\]: optional is "no"; wanted true or false'),
        (
            {**LINE, "annotated": [0, 99]},
            "annotated spans 0 to 99; wanted a start below the end, within 0 to 12 characters",
        ),
        ({"text": "Ada", "index": [[0, 3]], "wikipedia_titles": []}, "index has 1 places, wikipedia_titles 0 titles"),
        ({"text": "Ada", "wikipedia_titles": []}, r"no field 'index'; wanted a list of \[start, end\]"),
        ({"text": "Ada", "labels": [{"span": [0, 9], "entity_id": "Q7"}]}, r"labels\[0\]: span spans 0 to 9"),
        ({"text": "Ada", "labels": [{"span": [0, 3]}]}, r"labels\[0\]: no field 'entity_id'; wanted a text"),
        ({"text": "Ada"}, "no field mentions or wikipedia_titles or labels"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named(tmp_path: Path, record: dict[str, object], message: str) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(f"{json.dumps(LINE)}\n\n{json.dumps(record)}\n")
    with pytest.raises(ValueError, match=rf"gold\.jsonl:3: {message}") as error:
        read_documents(path)
    assert "\n" not in str(error.value)


def edited(tmp_path: Path, file: str, old: str, new: str) -> Path:
    """A copy of a file with its texts, changed."""
    shutil.copytree(FILES, tmp_path / "copy")
    path = tmp_path / "copy" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("aida.tsv", "worked\tO", "worked\tX", r":5: found the token 'worked' with 'X'; .* B, I or O"),
        ("aida.tsv", "Frau\tB\tFrau Keller\t--NME--", "Frau\tB", r":23: 2 columns; wanted the token, B, the mention"),
        ("aida.tsv", "http://en.wikipedia.org/wiki/London", "London", r":11: the address is 'London'; .*/wiki/"),
        ("aida.tsv", "(2 Books)", "(1 Codes)", r":15: the id '1 Codes' is there twice"),
        ("wned.xml", "<offset>22</offset>", "<offset>-1</offset>", r":10: offset is '-1'; wanted a whole number"),
        ("wned.xml", "<offset>22</offset>", "<offset>70</offset>", r":10: 'anchester\.' stands at the offset 70; "),
        ("wned.xml", 'docName="turing.txt"', 'docName="../ours.jsonl"', r":3: docName is '\.\./ours\.jsonl'"),
        ("wned.xml", 'docName="turing.txt"', 'docName="none"', r"RawText/none: no such file; .*wned\.xml:3"),
        (
            "wned.xml",
            "<isles.entityAnnotation>",
            '<!DOCTYPE x [<!ENTITY a "b">]>\n<isles.entityAnnotation>',
            r":2: declares an entity",
        ),
        ("wned.xml", "document", "doc", r": no element 'document'|:5: mention stands outside"),
    ],
)  # fmt: skip
def test_a_bad_place_is_named(tmp_path: Path, file: str, old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        read_documents(edited(tmp_path, file, old, new))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no document; wanted JSON objects"),
        (b"token O\n", "begins with 'token O'; wanted JSON"),
        (gzip.compress(b"{}", mtime=0), r"packed \(gzip\); unpack it"),
        ("{}".encode("utf-16"), "byte 0 is not UTF-8"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "gold"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_documents(path)
    with pytest.raises(ValueError, match="nowhere: no such file"):
        read_documents(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"test_other_files.*: a folder; wanted JSON objects"):
        read_documents(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["start", "end", "title", "span", "qid", "optional"]), inner)
    ),
    max_leaves=6,
)
FIELDS = ("text", "id", "mentions", "index", "wikipedia_titles", "labels", "annotated", "evaluation_span")


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_any_record_is_a_document_or_an_error_of_a_line(values: dict[str, object]) -> None:
    document, said = None, ""
    try:
        document = read_document(Record("f:1", values), 1)
    except ValueError as error:
        said = str(error)
    if document is None:
        assert said.startswith("f:1: ")
        assert "\n" not in said
    else:
        assert all(0 <= each.start < each.end <= len(document.text) for each in document.mentions or ())
