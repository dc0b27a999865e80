"""The work of `linking.py` and `serving.py` in processes of their own. Each imports no more than its work needs."""

import contextlib
import json
import tempfile
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import IO

from benchmarks.harness.workloads import Record, kernel_size, serve, timed

SHORTEST, LONGEST = 80, 4000  # characters of a paragraph that is asked


def link(*, arguments: Sequence[str], rounds: int, threads: int) -> Record:
    """Run the command `link` so many times: mentions, seconds from the opening of the table on, the largest size."""
    from tasks.linking.__main__ import main

    if "--model" in arguments:
        import torch

        torch.set_num_threads(threads)
    rows = []
    for number in range(rounds):
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            with contextlib.redirect_stdout(output):
                _, clock = timed(lambda: main(["link", *arguments]))
            rows.append({"round": number, "mentions": count_mentions(output), **clock})
    return {"rows": rows, "largest MB": kernel_size("VmHWM")}


def count_mentions(answers: IO[str]) -> int:
    """Return how many mentions have a page in what `link` has written."""
    answers.seek(0)
    return sum(each["title"] is not None for line in answers for each in json.loads(line)["mentions"])


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
    from tests.support.clients import crowd, honest

    serve(link, answers, crowd, honest)
