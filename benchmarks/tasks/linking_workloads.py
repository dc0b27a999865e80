"""What `linking.py` measures inside of processes of their own. Each imports no more than its own work needs."""

import contextlib
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO
from unittest.mock import patch

from benchmarks.harness.workloads import Record, in_turn, kernel_size, serve, timed


def link(*, arguments: Sequence[str], rounds: int) -> Record:
    """The command `link`, so many times: mentions, seconds from the opening of the table on, and the largest size."""
    from tasks.entities.__main__ import main

    rows = []
    for number in range(rounds):
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            with contextlib.redirect_stdout(output):
                _, clock = timed(lambda: main(["link", *arguments]))
            rows.append({"round": number, "mentions": count_mentions(output), **clock})
    return {"rows": rows, "largest MB": kernel_size("VmHWM")}


def count_mentions(answers: IO[str]) -> int:
    """How many mentions have a page in what `link` has written."""
    answers.seek(0)
    return sum(each["title"] is not None for line in answers for each in json.loads(line)["mentions"])


def encoder(*, arguments: Sequence[str], rounds: int, threads: int) -> Record:
    """`link` with an open table and model, and in turn the encoder alone on the same batches, which are made before."""
    import torch

    from tasks.entities.__main__ import at_once, open_linker, parser
    from tasks.serving.documents import Parser, documents_of
    from tasks.serving.formats import JSON_LINES
    from tasks.serving.streams import answer_stream

    torch.set_num_threads(threads)
    options = parser().parse_args(["link", *arguments])
    linker = open_linker(options)
    assert linker.model
    luke = linker.model.module.luke

    def whole() -> None:
        with tempfile.TemporaryFile("w", encoding="utf-8") as output:
            given = documents_of(options.inputs, options.input)
            answer_stream(
                linker.answer, given, output, parse=Parser(options.input), form=JSON_LINES,
                on_error="stop", size=at_once(options),
            )  # fmt: skip

    @torch.inference_mode()
    def alone() -> None:
        for batch, rows in batches:
            luke.encode_flat(batch, rows)

    with patch.object(luke, "encode_flat", wraps=luke.encode_flat) as calls:
        whole()
    batches = [call.args for call in calls.call_args_list]
    mentions = linker.steps.total()
    return {
        "rows": in_turn({"link": whole, "encoder": alone}, rounds),
        "mentions": mentions,
        "batches": len(batches),
        "words": sum(batch.shape.words for batch, _ in batches),
    }


def loaded(*, model: str, tokenizer: str) -> Record:
    """The resident size of a process that has loaded a model and its tokenizer."""
    from model.pretraining.evaluation import read_pretrained
    from pipeline.sequences.tokenizer import WordTokenizer

    kept = read_pretrained(Path(model)).eval(), WordTokenizer.load(tokenizer)
    return {"MB": kernel_size("VmRSS"), "parameters": sum(each.numel() for each in kept[0].parameters())}


if __name__ == "__main__":
    serve(link, encoder, loaded)
