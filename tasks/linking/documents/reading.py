"""A file of documents in any of the formats, told from its first characters; and answers of `link`, for its scores."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tasks.io.records import read_text, record_readers
from tasks.io.tables import is_table
from tasks.linking.documents.aida import START, read_aida
from tasks.linking.documents.document import Document, Mention, Skipped, noted
from tasks.linking.documents.json_lines import FORMATS, read_document
from tasks.linking.documents.wned import read_wned

WANTED = (
    "JSON objects with text and mentions, index and wikipedia_titles (ZELDA), or labels (ELEVANT), "
    f"columns that begin with {START} (AIDA-CoNLL), or XML (WNED)"
)


def read_documents(path: Path, left_out: Skipped | None = None) -> list[Document]:
    """The documents of a file, whose ids differ.

    Raises: ValueError naming file and line of what is none, or has no mentions. Where `left_out` is given, what is
    wrong is added there, and left out: the mention or, where no other part can be told, the document.
    """
    documents = list(_read(path, left_out))
    if not documents:
        reason = f"; all are left out: {left_out.documents.lines()[0]}" if left_out and left_out.documents else ""
        raise ValueError(f"{path}: no document{reason}; wanted {WANTED}")
    seen = set[str]()
    for document in documents:
        if document.id in seen:
            raise document.error(f"the id {document.id!r} is there twice; wanted one for each document")
        seen.add(document.id)
    return documents


def _read(path: Path, left_out: Skipped | None) -> Iterator[Document]:
    if not path.is_file():
        found = "a folder" if path.is_dir() else "not a file on disk" if path.exists() else "no such file"
        raise ValueError(f"{path}: {found}; wanted {WANTED}")
    if is_table(path):
        beginning = b"["  # its rows are there as those of an array
    else:
        with path.open("rb") as stream:
            beginning = stream.read(1 << 12).removeprefix(b"\xef\xbb\xbf").lstrip()
    if beginning.startswith(b"<"):
        yield from read_wned(path, left_out)
    elif beginning.startswith(START.encode()):
        yield from read_aida(path, left_out)
    elif beginning.startswith((b"{", b"[")):
        for number, (where, read) in enumerate(record_readers(path), start=1):
            with noted(where, left_out and left_out.documents):
                document = read_document(read(), number, left_out)
                if document.mentions is None:
                    raise document.error(f"no field {' or '.join(FORMATS)}; wanted {WANTED}")
                yield document
    elif beginning:
        found = read_text(path).lstrip().partition("\n")[0]
        raise ValueError(f"{path}: begins with {found[:40]!r}; wanted {WANTED}")


def read_answers(
    path: Path, documents: Iterable[Document], left_out: Skipped | None = None
) -> tuple[dict[str, tuple[Mention, ...]], int]:
    """The mentions that `link` answered by the documents' ids, and how many lines of them report an error instead.

    Raises: ValueError naming an answer that is broken, or to a document that is not there, or has another text. Where
    `left_out` is given, the answer is noted there, and left out.
    """
    texts = {each.id: each for each in documents}
    found, failed = dict[str, tuple[Mention, ...]](), 0
    for number, (where, read) in enumerate(record_readers(path), start=1):
        with noted(where, left_out and left_out.answers):
            record = read()
            if "error" in record.values and "text" not in record.values:
                failed += 1
                continue
            answer = read_document(record, number, is_answer=True)
            if answer.id in found:
                raise answer.error(f"the id {answer.id!r} is there twice; wanted one for each document")
            if answer.id not in texts and left_out:
                raise answer.error("the answer is to none of the gold documents that remain")
            if answer.id not in texts:
                raise answer.error(f"no gold document has the id {answer.id!r}; wanted answers to those documents")
            if texts[answer.id].text != answer.text:
                raise answer.error(f"the text of {answer.id!r} differs from that in {texts[answer.id].where}")
            if answer.mentions is None:
                raise answer.error("no field 'mentions'; wanted what link answers")
            found[answer.id] = answer.mentions
    if not found and not failed:
        reason = f"; all are left out: {left_out.answers.lines()[0]}" if left_out and left_out.answers else ""
        raise ValueError(f"{path}: no answer{reason}; wanted what link wrote")
    return found, failed
