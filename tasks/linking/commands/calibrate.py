"""`python -m tasks.linking calibrate`: probabilities that fit documents with titles."""

import argparse
import json
from pathlib import Path

from pipeline.storage.files import file_sha256
from tasks.io.arguments import check_output, share
from tasks.linking.calibration.calibration import calibrate
from tasks.linking.certainty import write_certainty
from tasks.linking.commands.options import (
    add_document_errors,
    add_method,
    documents_at_once,
    report_skipped,
    settings_of,
)
from tasks.linking.documents.document import Skipped
from tasks.linking.documents.reading import read_documents
from tasks.linking.linker import basis_of
from tasks.linking.open import open_linker


def add_calibrate(command: argparse.ArgumentParser) -> None:
    """The options of `calibrate`."""
    command.set_defaults(run=run_calibrate)
    add_method(command)
    add_document_errors(command)
    command.add_argument(
        "--documents", type=Path, required=True, help="file of documents with titles, in a format of convert"
    )
    command.add_argument(
        "--output",
        type=Path,
        required=True,
        help="file to write for link --calibration, such as calibration.json",
    )
    command.add_argument(
        "--own-links",
        action="store_true",
        help="the documents are pages of the table's dump: remove each page's own links from the counts",
    )
    command.add_argument(
        "--min-probability",
        type=share,
        metavar="SHARE",
        help="threshold to write: link gives no page to mentions below it (default: the one with the best F1)",
    )


def run_calibrate(options: argparse.Namespace) -> int:
    """Write a calibration, print it, and say what was left out of the documents."""
    check_output("--output", options.output, (options.documents,))
    linker = open_linker(settings_of(options))
    left_out = Skipped()
    documents = read_documents(options.documents, left_out if options.on_error == "skip" else None)
    certainty, fit = calibrate(
        linker,
        documents,
        own_links=options.own_links,
        min_probability=options.min_probability,
        at_once=documents_at_once(options),
    )
    fit = {
        "file_sha256": file_sha256(str(options.documents)),
        "mentions_left_out": len(left_out.mentions),
        "documents_left_out": left_out.documents.total(),
        **fit,
    }
    write_certainty(options.output, certainty, basis_of(linker), fit)
    print(json.dumps(json.loads(options.output.read_text(encoding="utf-8")), indent=2))
    report_skipped(left_out.lines())
    return 0
