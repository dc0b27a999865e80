"""Answers of a fine-tuned model: `python -m tasks.predict MODEL_DIR < questions.jsonl`."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from model.files import CONFIG, read_json
from model.training.precision import PRECISIONS
from tasks.finetuning.registry import TASKS
from tasks.io.annotations import open_annotator
from tasks.io.arguments import add_options, fine_tuned_folder, run
from tasks.io.records import Errors, Record, parse_line
from tasks.serving import streams
from tasks.serving.formats import FORMATS, find_format
from tasks.serving.plain_text import question
from tasks.serving.predict import TOKENS_PER_BATCH, Predictor, load


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    what = "Print a fine-tuned model's answers to the questions on stdin, one JSON object a line."
    parser = argparse.ArgumentParser(prog="python -m tasks.predict", description=what)
    known = {"format": FORMATS, "precision": PRECISIONS, "on_error": streams.ON_ERROR, "task": TASKS}
    add_options(parser, "predict", "answers", "fine_tuned", **known)
    parser.set_defaults(tokens_per_batch=TOKENS_PER_BATCH)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: a folder; questions on stdin, answers on stdout."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.tokens_per_batch < 0:
        parser.error("--tokens-per-batch: 0 or more")
    run(lambda: streams.report_errors(answer(options), options.on_error))


def answer(options: argparse.Namespace) -> Errors:
    """Answers what is given, and counts the reasons of errors. Raises: ValueError for what the model cannot do."""
    if sys.stdout is None or (sys.stdin is None and not options.text):
        raise ValueError("stdin or stdout is closed; questions come by the one, and answers go to the other: open both")
    options.folder = fine_tuned_folder(options.folder, options.task)
    annotate = open_annotator(options.mentions, options.folder) if options.mentions else None
    predictor = load(options.folder, device=options.device, annotate=annotate)
    check_ways(predictor, options)
    if annotate is None and read_json(options.folder / CONFIG).get("entities_sha256"):
        print("fine-tuned with entities of a mention table, asked without: see --mentions", file=sys.stderr)
    predictor = replace(
        predictor, tokens_per_batch=options.tokens_per_batch, precision=options.precision, top=options.top
    )
    is_text, paths = options.text is not None, options.text or []
    form = find_format(options.format, predictor.inputs.labels, options.output, paths)
    cut = Counter[str]()

    def ask(records: Sequence[Record]) -> list[dict[str, Any]]:
        answers = predictor.answer(records)
        cut.update(", ".join(each["cut"]) for each in answers if "cut" in each)
        return answers

    errors = streams.answer_stream(
        ask,
        streams.files(paths) if paths else streams.numbered(streams.lines_of(sys.stdin.buffer)),
        sys.stdout,
        parse=partial(question, language=options.language) if is_text else parse_line,
        form=form,
        on_error=options.on_error,
        size=1 if paths else streams.AT_ONCE,  # a file may be long
    )
    for what, count in cut.items():
        print(f"too long for the model, and cut ({what}): {count} inputs", file=sys.stderr)
    return errors


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
        raise ValueError(f"--format {options.format}: {options.folder} is no ner model; it answers in JSON")


if __name__ == "__main__":
    main()
