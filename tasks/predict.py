"""Answers of a fine-tuned model: `python -m tasks.predict MODEL_DIR < questions.jsonl`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from model.files import CONFIG, read_json
from model.pretraining.recipes import PRECISIONS
from tasks.entities.annotations import open_annotator
from tasks.io.arguments import OneFolder
from tasks.serving.predict import BATCH_SIZE, TOKENS_PER_BATCH, answer_lines, load


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
    options = parser.parse_args(arguments)
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
        predictor = replace(predictor, tokens_per_batch=options.tokens_per_batch, precision=options.precision)
        for line in answer_lines(predictor, sys.stdin, "stdin"):
            print(line, flush=True)
    except ValueError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
