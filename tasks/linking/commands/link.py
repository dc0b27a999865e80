"""`python -m tasks.linking link` and `serve`: documents in, their links out, by lines or over HTTP."""

import argparse
import sys

from tasks.linking.candidates import STEPS
from tasks.linking.commands.inputs import KINDS, STDIN, Parser, check_inputs, documents_of
from tasks.linking.commands.options import (
    add_certainty,
    add_method,
    add_recognition,
    documents_at_once,
    settings_of,
)
from tasks.linking.formats.formats import FORMATS, find_format
from tasks.linking.linker import Linker
from tasks.linking.open import open_linker
from tasks.linking.service.service import add_service, check_packages, serve
from tasks.serving.streams import add_on_error, answer_stream, report_errors


def add_link(command: argparse.ArgumentParser) -> None:
    """The options of `link`."""
    command.set_defaults(run=run_link)
    command.add_argument(
        "inputs",
        nargs="*",
        default=[STDIN],
        metavar="FILE",
        help="files of documents; - is stdin (default: stdin)",
    )
    command.add_argument(
        "--input",
        choices=KINDS,
        help="a document is a line with a JSON object (id, text, optionally mentions), a line of text, or a file of "
        "text (default: json if the first line begins with a brace, else lines)",
    )
    command.add_argument(
        "--find-mentions", action="store_true", help="find mentions even if a document brings its own"
    )
    command.add_argument("--candidates", action="store_true", help="show all candidates of each mention")
    command.add_argument(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        help="write JSON lines, AIDA-CoNLL's columns, an HTML page, or wikitext (default: %(default)s)",
    )
    add_on_error(command)
    add_recognition(command)
    add_method(command)
    add_certainty(command)


def add_serve(command: argparse.ArgumentParser) -> None:
    """The options of `serve`."""
    command.set_defaults(run=run_serve)
    add_service(command)
    add_recognition(command)
    add_method(command)
    add_certainty(command)


def run_link(options: argparse.Namespace) -> int:
    """Link the inputs, one after another, and return the status."""
    check_inputs(options.inputs)
    if sys.stdout is None:
        raise ValueError("stdout is closed, to which answers go; open it")
    linker = open_linker(settings_of(options))
    errors = answer_stream(
        linker.answer,
        documents_of(options.inputs, options.input),
        sys.stdout,
        parse=Parser(options.input),
        form=find_format(options.format, linker.finder.table.manifest.facts),
        on_error=options.on_error,
        size=documents_at_once(options),
    )
    print(summary(linker), file=sys.stderr)
    return report_errors(errors, options.on_error)


def summary(linker: Linker) -> str:
    """Return a line that counts mentions by what found their candidates, and those whose page is not sure enough."""
    steps = ", ".join(f"{linker.steps[step]:,} {step}" for step in STEPS if linker.steps[step])
    found = f"{linker.steps.total():,} mentions" + (f", candidates by: {steps}" if steps else "")
    unsure = linker.unsure.total()
    return found + (f"; {unsure:,} without a page, since none is probable enough" if unsure else "")


def run_serve(options: argparse.Namespace) -> int:
    """Link what comes over HTTP until the process is told to end."""
    check_packages()
    linker = open_linker(settings_of(options))
    if linker.model:
        linker.model.prepare()
    return serve(linker, options, documents_at_once(options))
