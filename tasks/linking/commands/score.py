"""`python -m tasks.linking score` and `convert`: answers beside gold documents, and documents as JSON lines."""

import argparse
import json
from pathlib import Path

from pipeline.lookup.annotator import Annotator
from tasks.io.arguments import check_output
from tasks.linking.candidates import CandidateFinder
from tasks.linking.commands.options import add_document_errors, add_table, report_skipped
from tasks.linking.documents.document import Skipped, to_json
from tasks.linking.documents.reading import read_documents
from tasks.linking.scores import score_files


def add_score(score: argparse.ArgumentParser) -> None:
    """Add the options of `score`."""
    score.set_defaults(run=run_score)
    score.add_argument("gold", type=Path, help="documents with titles or QIDs, in any of the formats")
    score.add_argument("predictions", type=Path, help="what link wrote for them")
    add_table(score, required=False)
    score.add_argument(
        "--leave-out-pages",
        action="store_true",
        help="leave out documents whose id is the title of a page of the dump, from which a model may know them",
    )
    score.add_argument(
        "--unknown-titles",
        type=Path,
        metavar="FILE",
        help="write each gold mention whose page the dump lacks as a line of JSON: its document, place, title and QID",
    )
    add_document_errors(score)


def add_convert(convert: argparse.ArgumentParser) -> None:
    """Add the options of `convert`."""
    convert.set_defaults(run=run_convert)
    convert.add_argument("file", type=Path, help="ours, ZELDA's, ELEVANT's, AIDA-CoNLL's or WNED's")
    add_document_errors(convert)


def run_score(options: argparse.Namespace) -> int:
    """Print the scores, and write the gold mentions whose page the dump lacks."""
    for name in ("leave_out_pages", "unknown_titles"):
        if getattr(options, name) and not options.mentions:
            raise ValueError(f"--{name.replace('_', '-')}: the dump's pages are told by --mentions DIR")
    if options.unknown_titles:
        check_output("--unknown-titles", options.unknown_titles, (options.gold, options.predictions))
    finder = None
    if options.mentions:
        finder = CandidateFinder(Annotator.open(options.mentions).table, options.most_candidates)
    left_out = Skipped()
    scores = score_files(
        options.gold,
        options.predictions,
        finder,
        leaves_out_pages=options.leave_out_pages,
        left_out=left_out if options.on_error == "skip" else None,
        unknown_titles=options.unknown_titles,
    )
    counts = {
        "mentions_left_out": len(left_out.mentions),
        "documents_left_out": left_out.documents.total(),
        "answers_left_out": left_out.answers.total(),
    }
    print(json.dumps(scores | counts, indent=2, ensure_ascii=False))
    report_skipped(left_out.lines())
    return 0


def run_convert(options: argparse.Namespace) -> int:
    """Write the documents as JSON lines."""
    left_out = Skipped()
    for document in read_documents(options.file, left_out if options.on_error == "skip" else None):
        print(json.dumps(to_json(document), ensure_ascii=False))
    report_skipped(left_out.lines())
    return 0
