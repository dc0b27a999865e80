"""Entity linking: `python -m tasks.entities link`, `serve`, `score`, `train`, `calibrate` and `convert`.

    python -m tasks.entities link --mentions DIR --model DIR < text
    python -m tasks.entities serve --mentions DIR --model DIR
    python -m tasks.entities score GOLD PREDICTIONS --mentions DIR
    python -m tasks.entities train --train FILE --dev FILE --mentions DIR --model DIR --output DIR
    python -m tasks.entities calibrate --documents FILE --mentions DIR --model DIR --output calibration.json
    python -m tasks.entities convert FILE > documents.jsonl

`link` writes a JSON line for each document: `id`, `text`, and `mentions` with `mention`, `start`, `end`, `title`,
`page_id`, `qid`, `entity_id`, `probability`, `link_probability` and `step`; with `--ner` also `label` and
`label_probability`. Places are code points, ends are excluded.
"""

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pipeline.sequences.tokenizer import WordTokenizer
from tasks.entities.annotator import Annotator
from tasks.entities.candidates import STEPS, CandidateFinder
from tasks.entities.disambiguation.entity_model import TOKENS_PER_BATCH, load_model, model_folder, read_titles
from tasks.entities.linker import Linker, open_contexts
from tasks.entities.score_command import (
    add_conversion,
    add_document_errors,
    add_longer_mentions,
    add_scores,
    add_table,
    tell,
)
from tasks.io.arguments import positive, stop
from tasks.linker_training.calibration_command import (
    add_calibration,
    add_certainty,
    run_calibration,
    with_options,
)
from tasks.linker_training.training_command import add_training
from tasks.serving.documents import KINDS, STDIN, Parser, check_inputs, documents_of
from tasks.serving.linking.formats import FORMATS, find_format
from tasks.serving.linking.service import add_service, check_packages, serve
from tasks.serving.predict import their_words
from tasks.serving.recognition import add_recognition, with_recognition
from tasks.serving.streams import AT_ONCE, add_on_error, answer_stream, tell_errors

TOKENS_PER_DOCUMENT = 128  # a guess, by which documents are taken together: answers wait for all of these


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(
        prog="python -m tasks.entities", description="Link mentions to pages of Wikipedia."
    )
    commands = whole.add_subparsers(required=True)
    link = commands.add_parser("link", help="find the pages that documents mention")
    link.set_defaults(run=run_link)
    add_documents(link)
    add_recognition(link)
    add_method(link)
    add_certainty(link)
    service = commands.add_parser("serve", help="link documents that come over HTTP")
    service.set_defaults(run=run_serve, find_mentions=False, candidates=False)
    add_service(service)
    add_recognition(service)
    add_method(service)
    add_certainty(service)
    add_scores(commands.add_parser("score", help="compare answers with gold documents"))
    train = commands.add_parser("train", help="fine-tune a model on documents with titles")
    add_table(train, required=True)
    add_document_errors(train)
    add_training(train)
    calibrate = commands.add_parser("calibrate", help="choose how sure link is, on documents with titles")
    calibrate.set_defaults(run=run_calibrate)
    add_method(calibrate)
    add_document_errors(calibrate)
    add_calibration(calibrate)
    add_conversion(commands.add_parser("convert", help="write documents of any format as JSON lines"))
    return whole


def add_documents(link: argparse.ArgumentParser) -> None:
    """What is linked, and how it is answered."""
    link.add_argument(
        "inputs", nargs="*", default=[STDIN], metavar="FILE", help="documents; - or none: those on stdin"
    )
    link.add_argument(
        "--input",
        choices=KINDS,
        help="what a document is: a JSON object a line (id, text, and mentions that are given), a line of text, or a "
        "file of text (default: JSON where the first line begins with a brace, else a line of text)",
    )
    link.add_argument(
        "--find-mentions", action="store_true", help="find mentions, also where a document brings its own"
    )
    link.add_argument("--candidates", action="store_true", help="show all candidates of each mention")
    link.add_argument(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        help="of answers: lines of JSON, AIDA-CoNLL's columns, an HTML page, or wikitext (default: %(default)s)",
    )
    add_on_error(link)


def add_method(link: argparse.ArgumentParser) -> None:
    """By what it is linked."""
    add_table(link, required=True)
    link.add_argument(
        "--model",
        type=Path,
        help="folder of Pretrain or ExportHuggingFace, or a LukeForMaskedLM of transformers with entity_vocab.json; "
        "without one the commonest candidate is the answer",
    )
    link.add_argument(
        "--contexts",
        type=Path,
        help="folder of BuildContexts: the words and other mentions of the document count beside the prior",
    )
    link.add_argument(
        "--tokenizer", type=Path, help="the model's tokenizer, where its folder has none (Pretrain)"
    )
    link.add_argument(
        "--local", action="store_true", help="answer all mentions at once, each without the others"
    )
    add_longer_mentions(
        link, "let names and acronyms take over what longer mentions of their document stand for"
    )
    link.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    link.add_argument(
        "--tokens-per-batch",
        type=positive,
        default=TOKENS_PER_BATCH,
        help="words and entities computed at once (default: %(default)s)",
    )


# link and serve


def open_linker(options: argparse.Namespace) -> Linker:
    """The linker of the options of `add_method`, and of those beside it."""
    annotator = Annotator.open(
        options.mentions, min_link_probability=options.min_link_probability, min_commonness=0.0
    )
    finder = CandidateFinder(annotator.table, options.most_candidates)
    linker = Linker(
        finder,
        annotator,
        contexts=open_contexts(options.contexts, annotator.table) if options.contexts else None,
        is_global=not options.local,
        longer_mentions=options.longer_mentions,
        finds_all=options.find_mentions,
        shows_candidates=options.candidates,
    )
    folder = options.model and model_folder(options.model)
    if folder:
        model = load_model(
            folder, annotator.table, tokenizer_of(folder, options.tokenizer), device=options.device
        )
        linker = replace(linker, model=replace(model, tokens_per_batch=options.tokens_per_batch))
    return with_recognition(with_options(linker, folder, options), options)


def tokenizer_of(model: Path, tokenizer: Path | None) -> WordTokenizer:
    """The tokenizer of a model's folder, unless another one is given. Raises: ValueError where the folder has none."""
    if tokenizer:
        return WordTokenizer.load(tokenizer)
    read_titles(model)  # which says what is wrong with another folder
    try:
        return their_words(model)[0]
    except ValueError as error:
        raise ValueError(f"{error}; or give --tokenizer, that of its run") from None


def at_once(options: argparse.Namespace) -> int:
    """How many documents are answered together."""
    computes = options.model or options.ner
    return max(1, options.tokens_per_batch // TOKENS_PER_DOCUMENT) if computes else AT_ONCE


def run_link(options: argparse.Namespace) -> int:
    """Link the inputs, one after another; the status."""
    check_inputs(options.inputs)
    if sys.stdout is None:
        raise ValueError("stdout is closed, to which answers go; open it")
    linker = open_linker(options)
    errors = answer_stream(
        linker.answer,
        documents_of(options.inputs, options.input),
        sys.stdout,
        parse=Parser(options.input),
        form=find_format(options.format, linker.finder.table.manifest.facts),
        on_error=options.on_error,
        size=at_once(options),
    )
    print(told(linker), file=sys.stderr)
    return tell_errors(errors, options.on_error)


def told(linker: Linker) -> str:
    """How many mentions a linker has answered, by what they had candidates, and how many have no page for all that."""
    steps = ", ".join(f"{linker.steps[step]:,} {step}" for step in STEPS if linker.steps[step])
    found = f"{linker.steps.total():,} mentions" + (f", candidates by: {steps}" if steps else "")
    unsure = linker.unsure.total()
    return found + (f"; {unsure:,} without a page, since none is probable enough" if unsure else "")


def run_serve(options: argparse.Namespace) -> int:
    """Link what comes over HTTP, until the process is told to end."""
    check_packages()
    linker = open_linker(options)
    if linker.model:
        linker.model.prepare()
    return serve(linker, options, at_once(options))


# calibrate


def run_calibrate(options: argparse.Namespace) -> int:
    """Write a calibration, and print it."""
    folder = options.model and model_folder(options.model)
    tell(run_calibration(open_linker(options), folder, options, at_once(options)))
    return 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    options = parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        status = run(options)
    except (ValueError, OSError) as error:
        stop(error)
    except KeyboardInterrupt:
        sys.exit(130)
    if status:
        sys.exit(status)


if __name__ == "__main__":
    main()
