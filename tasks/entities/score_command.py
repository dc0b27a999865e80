"""The command line of `python -m tasks.entities score` and `convert`, and the options that other commands share."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tasks.entities.annotator import Annotator
from tasks.entities.candidates import MOST, CandidateFinder
from tasks.entities.documents.document import LeftOut, to_json
from tasks.entities.documents.reading import read_documents
from tasks.entities.scores import score_files
from tasks.io.arguments import check_output, positive


def add_scores(score: argparse.ArgumentParser) -> None:
    """What is compared, and how."""
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
    add_longer_mentions(score, "count candidates as link does with it; give it where link had it")
    add_document_errors(score)


def add_conversion(convert: argparse.ArgumentParser) -> None:
    """What is converted."""
    convert.set_defaults(run=run_convert)
    convert.add_argument("file", type=Path, help="ours, ZELDA's, ELEVANT's, AIDA-CoNLL's or WNED's")
    add_document_errors(convert)


def add_table(command: argparse.ArgumentParser, *, required: bool) -> None:
    command.add_argument(
        "--mentions",
        type=Path,
        required=required,
        help="folder of BuildMentionTable"
        + ("" if required else ": titles go through its redirects, and candidates are counted"),
    )
    command.add_argument(
        "--most-candidates",
        type=positive,
        default=MOST,
        metavar="N",
        help="how many pages a mention can stand for: the commonest ones (default: %(default)s)",
    )


def add_longer_mentions(command: argparse.ArgumentParser, text: str) -> None:
    command.add_argument("--longer-mentions", action="store_true", help=text)


def add_document_errors(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        default="stop",
        help="a mention with a wrong place or title, or a line that is no document: stop there, or leave out the "
        "mention or the document, and say so on stderr (default: %(default)s)",
    )


def run_score(options: argparse.Namespace) -> int:
    """Print the scores, and write the gold mentions whose page the dump lacks."""
    for name in ("leave_out_pages", "unknown_titles", "longer_mentions"):
        if getattr(options, name) and not options.mentions:
            raise ValueError(f"--{name.replace('_', '-')}: the dump's pages are told by --mentions DIR")
    if options.unknown_titles:
        check_output("--unknown-titles", options.unknown_titles, (options.gold, options.predictions))
    finder = None
    if options.mentions:
        finder = CandidateFinder(Annotator.open(options.mentions).table, options.most_candidates)
    left_out = LeftOut()
    scores = score_files(
        options.gold,
        options.predictions,
        finder,
        leaves_out_pages=options.leave_out_pages,
        longer_mentions=options.longer_mentions,
        left_out=left_out if options.on_error == "skip" else None,
        unknown_titles=options.unknown_titles,
    )
    counts = {
        "mentions_left_out": len(left_out.mentions),
        "documents_left_out": left_out.documents.total(),
        "answers_left_out": left_out.answers.total(),
    }
    print(json.dumps(scores | counts, indent=2, ensure_ascii=False))
    tell(left_out.told())
    return 0


def run_convert(options: argparse.Namespace) -> int:
    """Write the documents as JSON lines."""
    left_out = LeftOut()
    for document in read_documents(options.file, left_out if options.on_error == "skip" else None):
        print(json.dumps(to_json(document), ensure_ascii=False))
    tell(left_out.told())
    return 0


def tell(left_out: Sequence[str]) -> None:
    """Say on stderr what is left out."""
    for each in left_out:
        print(f"left out: {each}", file=sys.stderr)
