"""Answers of a fine-tuned model: `python -m tasks.predict MODEL_DIR < questions.jsonl`."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from model.files import CONFIG, read_json
from model.pretraining.recipes import PRECISIONS
from tasks.entities.annotations import open_annotator
from tasks.io.arguments import OneFolder
from tasks.serving.predict import BATCH_SIZE, TOKENS_PER_BATCH, load
from tasks.serving.streams import ON_ERROR, answer_stream, lines_of


def positive(text: str) -> int:
    """A number from 1 on, from the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: wanted a number, 1 or more")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: a folder; questions on stdin, answers on stdout."""
    parser = argparse.ArgumentParser(prog="python -m tasks.predict", description="Ask a fine-tuned model.")
    parser.add_argument(
        "folder", action=OneFolder, metavar="MODEL_DIR", help="folder of FineTune or of transformers"
    )
    parser.add_argument(
        "--mentions",
        type=Path,
        help="folder of BuildMentionTable, which finds the entities of questions and texts",
    )
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument(
        "--tokens-per-batch",
        type=int,
        default=TOKENS_PER_BATCH,
        help=f"words and entities computed at once; 0: {BATCH_SIZE} inputs (default: %(default)s)",
    )
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="float32", help="of matrix products (default: float32)"
    )
    parser.add_argument(
        "--top",
        type=positive,
        metavar="K",
        help="tell the probabilities of the K likeliest classes, of each entity for ner; questions: the K best answers",
    )
    parser.add_argument(
        "--on-error",
        choices=ON_ERROR,
        default=ON_ERROR[0],
        help="a line that cannot be answered: report it in the answer's place as {error, line}, and end with status 1; "
        "skip it, with counts on stderr; or stop there (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    if options.tokens_per_batch < 0:
        parser.error("--tokens-per-batch: 0 or more")
    try:
        annotate = open_annotator(options.mentions, options.folder) if options.mentions else None
        predictor = load(options.folder, device=options.device, annotate=annotate)
        if annotate is None and read_json(options.folder / CONFIG).get("entities_sha256"):
            print(
                "fine-tuned with the entities of a mention table, and asked without: see --mentions",
                file=sys.stderr,
            )
        predictor = replace(
            predictor, tokens_per_batch=options.tokens_per_batch, precision=options.precision, top=options.top
        )
        lines = lines_of(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
        errors = answer_stream(predictor.answer, lines, sys.stdout, on_error=options.on_error)
    except ValueError as error:
        sys.exit(f"error: {error}")
    except BrokenPipeError:  # nobody reads any more; what Python would flush at its end has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    if errors and options.on_error == "skip":
        for reason, count in errors.most_common():
            print(f"left out: {count}: {reason}", file=sys.stderr)
    elif errors:
        sys.exit(1)


if __name__ == "__main__":
    main()
