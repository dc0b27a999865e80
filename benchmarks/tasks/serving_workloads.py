"""What `serving.py` runs beside the service: the linker's own answers, and clients of every kind."""

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.workloads import Record, serve
from tests.support.clients import crowd, honest


def answers(*, arguments: Sequence[str], texts: Sequence[str], output: str) -> Record:
    """Write what a linker in this process answers to each text alone; every other one brings its mentions."""
    from tasks.io.records import Record as Document
    from tasks.linking.__main__ import parser
    from tasks.linking.open import open_linker
    from tasks.linking.options import settings_of

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
