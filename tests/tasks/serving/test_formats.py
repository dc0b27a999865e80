"""Formats of answers, read again by what is not ours, through the command; texts and classes are hostile."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tasks.ner.columns import read_columns
from tasks.serving.formats import Document, brat_types, document_of, find_format, page, standoff
from tasks.serving.predict import Predictor
from tests.support.asked import Command, lines
from tests.support.properties import given, st

TEXTS = [
    "Abraham Lincoln was born in\nKentucky . 😀 He met Bob O'Neil .",
    "<script>alert('Ada')</script> & \"Bob\" </article> --> Paris\u202e ]]>",
    "Ada left",
]
RECORDS = [*({"text": text} for text in TEXTS), {"words": ["<b>", "Abraham", "Lincoln", "&amp;", "Paris"]}]


@pytest.fixture
def documents(model: Predictor) -> list[Document]:
    answers = model.predict(RECORDS)
    assert all(answer["entities"] for answer in answers[:2])
    return [document_of(record | answer) for record, answer in zip(RECORDS, answers, strict=True)]


class Page(HTMLParser):
    """The page as a browser sees it: the text of each article's paragraphs, the marked entities, all tags."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.marks: list[tuple[str, dict[str, str | None]]] = []
        self.feed(content)
        self.close()
        assert self.open == ["html"] or not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)
        if tag == "p":
            self.texts.append("")
        if tag == "mark":
            self.marks.append(("", dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "p" in self.open:
            self.texts[-1] += data
        if "mark" in self.open:
            text, attributes = self.marks[-1]
            self.marks[-1] = text + data, attributes


TAGS = {"html", "head", "meta", "title", "style", "body", "p", "article", "h2", "mark"}


def test_html_has_the_texts_with_their_entities(ask: Command, model: Predictor, documents: list[Document]) -> None:
    out, told = ask(lines(*RECORDS), "--format", "html", "--top", "2")
    found = Page(out)
    assert told == ""
    assert set(found.tags) == TAGS
    legend, *texts = found.texts
    assert legend.split() == [*model.inputs.labels[1:]]
    assert texts == [document.text for document in documents]
    marks = found.marks[len(legend.split()) :]
    wanted = [
        (document.text[each["start"] : each["end"]], each) for document in documents for each in document.entities
    ]
    assert [(text, attributes["data-label"]) for text, attributes in marks] == [
        (text, each["label"]) for text, each in wanted
    ]
    for (_, attributes), (_, each) in zip(marks, wanted, strict=True):
        title = attributes["title"] or ""
        assert re.fullmatch(rf"{each['label']} \d+\.\d%, \w+ \d+\.\d%", title)
        assert title.startswith(f"{each['label']} {each['probability']:.1%}")
    assert not re.search(r"src=|href|url\(|@import|https?:", out)
    assert "default-src 'none'" in out


def test_hostile_classes_and_names_are_escaped() -> None:
    label = "\"><img src=x onerror=alert(1)>'&"
    form = page(["O", label, "PER"])
    values = {"text": "Ada", "entities": [{"start": 0, "end": 3, "label": label, "probability": 0.5}]}
    content = form.begin + form.answer({"file": "<i>.txt"}, values) + form.error({"line": 3}, "<u>bad</u>") + form.end
    found = Page(content)
    assert set(found.tags) == TAGS
    assert [text for text, _ in found.marks] == [label, "PER", "Ada"]
    assert found.marks[-1][1] == {"class": "l0", "data-label": label, "title": f"{label} 50.0%"}
    assert found.texts[1:] == ["Ada", "<u>bad</u>"]


PAGE = page(["O", "A B"])
ANY_TEXT = st.text(st.sampled_from("ab<>&\"' \n\u2028\té😀"), min_size=1, max_size=20)


@given(ANY_TEXT, st.lists(st.integers(0, 20), max_size=6, unique=True))
def test_any_text_is_whole_in_html_and_brat(text: str, places: list[int]) -> None:
    ends = sorted(min(place, len(text)) for place in places)
    spans = [(start, end) for start, end in zip(ends[::2], ends[1::2], strict=False) if text[start:end].strip()]
    entities = [{"start": start, "end": end, "label": "A B", "probability": 1.0} for start, end in spans]
    document = Document(text, [], entities)
    found = Page(PAGE.answer({"line": 1}, {"text": text, "entities": entities}))
    assert found.texts == [text]
    assert [mark for mark, _ in found.marks] == [text[start:end] for start, end in spans]
    for (start, end), line in zip(
        spans, [each for each in standoff(document, {"A B": "A_B"}) if each[0] == "T"], strict=True
    ):
        _, places_of, covered = line.removesuffix("\n").split("\t", 2)
        name, _, numbers = places_of.partition(" ")
        fragments = [tuple(map(int, each.split(" "))) for each in numbers.split(";")]
        assert name == "A_B"
        assert covered == " ".join(text[first:last] for first, last in fragments)
        assert covered.split() == text[start:end].split()
        assert all(text[first:last] == text[first:last].strip() for first, last in fragments)
        assert covered.splitlines() == [covered]


def test_conll_is_read_again(ask: Command, documents: list[Document], tmp_path: Path) -> None:
    out, _ = ask(lines(*RECORDS), "--format", "conll")
    (tmp_path / "out.txt").write_text(out)
    found = read_columns(tmp_path / "out.txt")
    assert found.has_documents
    assert found.scheme in ("IOB2", None)
    assert len(found.documents) == len(documents)
    for theirs, ours in zip(found.documents, documents, strict=True):
        assert [sentence.words for sentence in theirs.sentences] == [
            tuple(word for word, _, _ in sentence) for sentence in ours.sentences
        ]
        places = [
            (words[span.start][1], words[span.end - 1][2], span.label)
            for sentence, words in zip(theirs.sentences, ours.sentences, strict=True)
            for span in sentence.spans
        ]
        assert places == [(each["start"], each["end"], each["label"]) for each in ours.entities]


def test_words_that_fit_in_no_column_are_errors(ask: Command) -> None:
    given = [{"words": ["New York"]}, {"words": ["", "a"]}, {"words": ["-DOCSTART-"]}, {"words": ["Ada"]}]
    out, told = ask(lines(*given), "--format", "conll", status=1)
    assert out.startswith("-DOCSTART- O\n\n" * 4)
    assert out.splitlines()[8].startswith("Ada ")
    assert [line.partition(" fits")[0] for line in told.splitlines()] == [
        "error: stdin:1: the word 'New York'",
        "error: stdin:2: words[0] is ''; wanted a word that is not blank; leave it out",
        "error: stdin:3: the word '-DOCSTART-'",
    ]


def test_brat_has_two_files_for_each_document(ask: Command, documents: list[Document], tmp_path: Path) -> None:
    output = tmp_path / "to" / "brat"
    out, _ = ask(lines(*RECORDS), "--format", "brat", "--output", output)
    names = [f"line-{number:06d}" for number in range(1, 5)]
    assert out.splitlines() == [f"{output / name}.ann" for name in names]
    assert sorted(path.name for path in output.iterdir()) == sorted(
        ["annotation.conf", *(f"{name}{suffix}" for name in names for suffix in (".ann", ".txt"))]
    )
    for name, document in zip(names, documents, strict=True):
        text = (output / f"{name}.txt").read_bytes().decode()
        assert text == document.text
        rows = [line.split("\t") for line in (output / f"{name}.ann").read_text().splitlines()]
        entities, notes = rows[::2], rows[1::2]
        assert [row[0] for row in entities] == [f"T{n}" for n in range(1, len(document.entities) + 1)]
        for row, note, each in zip(entities, notes, document.entities, strict=True):
            assert row[1].split(" ")[0] == each["label"]
            assert row[2] == text[each["start"] : each["end"]].replace("\n", " ")
            assert note[1:] == [f"AnnotatorNotes {row[0]}", f"{each['label']} {each['probability']:.1%}"]
    sections = re.split(r"^\[(\w+)\]$", (output / "annotation.conf").read_text(), flags=re.M)
    assert sections[1::2] == ["entities", "relations", "events", "attributes"]
    labels = {each["label"] for document in documents for each in document.entities}
    assert labels <= set(sections[2].split())


def test_corrections_in_brat_are_kept(ask: Command, tmp_path: Path) -> None:
    given = (lines(RECORDS[0]), "--format", "brat", "--output", tmp_path)
    first, again = ask(*given)[0], ask(*given)[0]
    assert first == again, "what is there is what would be written"
    corrected = tmp_path / "line-000001.ann"
    corrected.write_text("")
    out, told = ask(*given, status=1)
    assert (out, corrected.read_text()) == ("", "")
    assert told == f"error: stdin:1: {corrected}: is there with another content; give an --output without it\n"


def test_brat_takes_the_names_of_files(ask: Command, tmp_path: Path) -> None:
    pytest.importorskip("sentencex")
    paths = [tmp_path / "a" / "one.txt", tmp_path / "two.md"]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_bytes(b"\xef\xbb\xbfAbraham Lincoln left.\r\n")
    given = ["--text", *paths, tmp_path / "gone.txt", "--format", "brat", "--output", tmp_path / "out"]
    out, told = ask("", *given, status=1)
    assert out.splitlines() == [f"{tmp_path}/out/{name}.ann" for name in ("one", "two")]
    assert told == f"error: {tmp_path}/gone.txt: No such file or directory; wanted a text file\n"
    assert (tmp_path / "out" / "two.txt").read_bytes() == b"Abraham Lincoln left.\r\n"
    _, told = ask("", "--text", paths[0], tmp_path / "one.md", *given[-4:], status=1)
    assert re.fullmatch(r"error: .*one.md and .*one.txt: brat's files of both would be one.ann; rename one\n", told)
    (tmp_path / "file").write_text("")
    _, told = ask("", "--format", "brat", "--output", tmp_path / "file", status=1)
    assert told.startswith("error: ")


@pytest.mark.parametrize("form", ["json", "conll", "brat", "html"])
@pytest.mark.parametrize("on_error", ["report", "skip", "stop"])
def test_errors_are_told_in_every_format(ask: Command, tmp_path: Path, form: str, on_error: str) -> None:
    given = lines({"text": "Ada left"}) + '{"text": "<b>\n' + lines({"text": "Bob left"})
    options = ["--format", form, "--on-error", on_error, *(["--output", tmp_path] if form == "brat" else [])]
    out, told = ask(given, *options, status=0 if on_error == "skip" else 1)
    message = "stdin:2: not JSON (Unterminated string starting at, column 10)"
    in_place = on_error == "report" and form in ("json", "html")
    assert (message in out) == in_place
    assert (f"error: {message}\n" in told) == (on_error != "skip" and not in_place)
    assert ("left out: 1: not JSON" in told) == (on_error == "skip")
    answers = {"json": '"entities"', "conll": " left", "brat": ".ann", "html": "</mark>\n"}[form]
    if form in ("json", "brat"):
        assert out.count(answers) == (1 if on_error == "stop" else 2)
    if form == "conll":
        assert out.count("-DOCSTART-") == {"report": 3, "skip": 2, "stop": 1}[on_error]
    if form == "html":
        assert out.count("<article>") == {"report": 3, "skip": 2, "stop": 1}[on_error]
        Page(out)


def test_folders_are_for_brat_alone(ask: Command, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for options, message in (
        (["--format", "brat", "--output", file], f"error: --output {file}: a file; give a folder to write"),
        (["--format", "brat"], "error: brat keeps each document in files of its own; give --output DIR"),
        (["--output", tmp_path], f"error: --output {tmp_path}: json is written to stdout; only brat has files"),
    ):
        assert ask("", *options, status=1)[1].startswith(message)


def test_types_of_brat_are_ascii(tmp_path: Path) -> None:
    """Classes stay apart, and are shown as they are called."""
    labels = ["ПЕР", "ORG", "МЕС", "Person/a|\nb", "____2", "___"]
    names = ["___", "ORG", "____2", "Person_a__b", "____2_2", "____3"]
    assert brat_types(labels) == dict(zip(labels, names, strict=True))
    form = find_format("brat", ["O", *labels], tmp_path)
    entity = {"start": 0, "end": 3, "label": "МЕС", "probability": 0.5}
    form.answer({"line": 1}, {"text": "Оша", "entities": [entity]})
    assert (tmp_path / "line-000001.ann").read_text().splitlines() == [
        "T1\t____2 0 3\tОша",
        "#1\tAnnotatorNotes T1\tМЕС 50.0%",
    ]
    assert (tmp_path / "annotation.conf").read_text().split("\n")[1:7] == names
    shown, drawn = (tmp_path / "visual.conf").read_text().split("\n\n")
    assert shown.split("\n") == [
        "[labels]", "___ | ПЕР", "____2 | МЕС", "Person_a__b | Person/a b", "____2_2 | ____2", "____3 | ___",
    ]  # fmt: skip
    assert drawn.startswith("[drawing]\nSPAN_DEFAULT\t")


def test_an_answer_about_words_is_a_text() -> None:
    entity: dict[str, Any] = {"start": 1, "end": 3, "label": "PER", "probability": 0.9}
    document = document_of({"words": ["Dr", "Ada", "Pell"], "entities": [entity]})
    assert document.text == "Dr Ada Pell"
    assert document.entities == [{**entity, "start": 3, "end": 11}]
    assert document.sentences == [[("Dr", 0, 2), ("Ada", 3, 6), ("Pell", 7, 11)]]
    assert document_of({"words": [], "entities": []}) == Document("", [], [])
    assert find_format("conll", ["O"], None).answer({"line": 1}, {"text": " ", "entities": []}) == "-DOCSTART- O\n\n"
