"""What `serving.py` runs beside the service: the linker's own answers, and clients of every kind."""

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from benchmarks.harness.workloads import Record, serve
from tests.support.clients import crowd, honest

SHORTEST, LONGEST = 80, 4000  # characters of a paragraph that is asked


def answers(*, arguments: Sequence[str], documents: str, most: int, output: str) -> Record:
    """Write what a linker in this process answers to each of so many paragraphs alone; every other brings mentions."""
    from tasks.io.records import Record as Document
    from tasks.linking.__main__ import parser
    from tasks.linking.documents.reading import read_documents
    from tasks.linking.open import open_linker
    from tasks.linking.options import settings_of

    lines = chain.from_iterable(each.text.split("\n") for each in read_documents(Path(documents)))
    texts = [line[:LONGEST] for line in lines if len(line) >= SHORTEST][:most]
    linker = open_linker(settings_of(parser().parse_args(["serve", *arguments])))
    with Path(output).open("w", encoding="utf-8") as stream:
        for number, text in enumerate(texts):
            document: Record = {"text": text}
            [found] = linker.answer([Document("text", document)])
            if number % 2:
                spans = [{name: each[name] for name in ("start", "end")} for each in found["mentions"]]
                document["mentions"] = spans
                [found] = linker.answer([Document("text", document)])
            print(json.dumps([document, found["mentions"]]), file=stream)
    return {"documents": len(texts)}


if __name__ == "__main__":
    serve(answers, crowd, honest)
