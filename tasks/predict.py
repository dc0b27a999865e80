"""Answers of a fine-tuned model: `python -m tasks.predict MODEL_DIR < questions.jsonl`."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from model.files import CONFIG, read_json
from model.training.precision import PRECISIONS
from tasks.finetuning.registry import TASKS
from tasks.io.annotations import open_annotator
from tasks.io.arguments import positive, run
from tasks.io.records import Errors, parse_line
from tasks.serving.formats import FORMATS, find_format
from tasks.serving.plain_text import NO_LANGUAGE, question
from tasks.serving.predict import BATCH_SIZE, TOKENS_PER_BATCH, Predictor, load
from tasks.serving.streams import (
    AT_ONCE,
    add_on_error,
    answer_stream,
    files,
    lines_of,
    numbered,
    report_errors,
)


def make_parser() -> argparse.ArgumentParser:
    """Return what the command line takes."""
    what = "Ask a fine-tuned model; questions come by stdin."
    parser = argparse.ArgumentParser(prog="python -m tasks.predict", description=what)
    parser.add_argument(
        "folder", type=Path, nargs="+", metavar="MODEL_DIR", help="folder of FineTune or of transformers"
    )
    parser.add_argument(
        "--text",
        type=Path,
        nargs="*",
        metavar="FILE",
        help="plain text for ner: each FILE is a document or, without any, each line of stdin",
    )
    parser.add_argument(
        "--language",
        default="en",
        help="the wiki's code of the language of --text, by which sentences are found (general rules: one that is not "
        f"known; {NO_LANGUAGE}: a line is one; default: %(default)s)",
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        help="of answers: lines of JSON or, for ner, CoNLL columns, brat's files, an HTML page (default: %(default)s)",
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder to write for --format brat")
    parser.add_argument(
        "--top",
        type=positive,
        metavar="K",
        help="tell the probabilities of the K likeliest classes, of each entity for ner; questions: the K best answers",
    )
    add_on_error(parser)
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
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: a folder; questions on stdin, answers on stdout."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if len(options.folder) > 1:  # as a pattern such as work/fine-tuning-* may give
        parser.error(f"MODEL_DIR: wanted one folder, found {', '.join(map(str, options.folder))}")
    [options.folder] = options.folder
    if options.tokens_per_batch < 0:
        parser.error("--tokens-per-batch: 0 or more")
    run(lambda: report_errors(answer(options), options.on_error))


def answer(options: argparse.Namespace) -> Errors:
    """Answers what is given, and counts the reasons of errors. Raises: ValueError for what the model cannot do."""
    if sys.stdout is None or (sys.stdin is None and not options.text):
        raise ValueError(
            "stdin or stdout is closed; questions come by the one, and answers go to the other: open both"
        )
    annotate = open_annotator(options.mentions, options.folder) if options.mentions else None
    predictor = load(options.folder, device=options.device, annotate=annotate)
    check_ways(predictor, options)
    if annotate is None and read_json(options.folder / CONFIG).get("entities_sha256"):
        print(
            "fine-tuned with the entities of a mention table, and asked without: see --mentions",
            file=sys.stderr,
        )
    predictor = replace(
        predictor, tokens_per_batch=options.tokens_per_batch, precision=options.precision, top=options.top
    )
    is_text, paths = options.text is not None, options.text or []
    form = find_format(options.format, predictor.inputs.labels, options.output, paths)
    return answer_stream(
        predictor.answer,
        files(paths) if paths else numbered(lines_of(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))),
        sys.stdout,
        parse=partial(question, language=options.language) if is_text else parse_line,
        form=form,
        on_error=options.on_error,
        size=1 if paths else AT_ONCE,  # a file may be long
    )


def check_ways(predictor: Predictor, options: argparse.Namespace) -> None:
    """Raises: ValueError for a way of asking or answering that is not the task's."""
    if predictor.task is TASKS["ner"]:
        return
    if options.text is not None:
        raise ValueError(
            f"--text: {options.folder} is no model of ner, which alone is asked about plain text; give lines of JSON "
            "(docs/reference/tasks.md shows them)"
        )
    if options.format != FORMATS[0]:
        raise ValueError(
            f"--format {options.format}: {options.folder} is no model of ner; its answers are JSON"
        )


if __name__ == "__main__":
    main()
