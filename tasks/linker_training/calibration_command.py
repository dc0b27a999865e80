"""The command line of certainty: `python -m tasks.entities calibrate`, and what `link` and `serve` take of it."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from pipeline.storage.files import file_sha256
from tasks.entities.annotator import MIN_LINK_PROBABILITY
from tasks.entities.certainty import Certainty, write_certainty
from tasks.entities.documents.document import LeftOut
from tasks.entities.documents.reading import read_documents
from tasks.entities.linker import Linker, basis_of, with_certainty
from tasks.io.arguments import check_output, share, weight
from tasks.linker_training.calibration import calibrate


def add_certainty(link: argparse.ArgumentParser) -> None:
    """How sure a link has to be, and what tells it."""
    link.add_argument(
        "--min-link-probability",
        type=share,
        default=MIN_LINK_PROBABILITY,
        metavar="SHARE",
        help="names that are links less often are not found (default: %(default)s)",
    )
    link.add_argument(
        "--min-probability",
        type=share,
        metavar="SHARE",
        help="mentions whose page is less probable are given none. Of a name that was found, probability times "
        "link_probability counts; of one that --ner found, times label_probability (default: 0; of mentions that "
        "documents bring, that of the calibration)",
    )
    either = link.add_mutually_exclusive_group()
    either.add_argument(
        "--calibration",
        type=Path,
        help="what calibrate wrote for this table, model, contexts and way of linking",
    )
    either.add_argument(
        "--prior-weight",
        type=weight,
        default=1.0,
        metavar="WEIGHT",
        help="of the prior and of contexts, beside the model's score; a calibration has its own (default: %(default)s)",
    )


def add_calibration(calibrate: argparse.ArgumentParser) -> None:
    """By which documents, and where to."""
    # What `link` has beside: mentions are given here, and the rest is chosen.
    calibrate.set_defaults(
        find_mentions=False,
        candidates=False,
        ner=None,
        language=None,
        calibration=None,
        min_link_probability=MIN_LINK_PROBABILITY,
        prior_weight=1.0,
    )
    calibrate.add_argument(
        "--documents", type=Path, required=True, help="documents with titles, in any of the formats"
    )
    calibrate.add_argument(
        "--output", type=Path, required=True, help="the file for link --calibration, such as calibration.json"
    )
    calibrate.add_argument(
        "--own-links",
        action="store_true",
        help="the documents are pages of the table's dump: what each links itself does not count for it",
    )
    calibrate.add_argument(
        "--like",
        type=Path,
        help="documents as those that will be linked, with mentions, such as link answers: they tell how often another "
        "page than the commonest is meant; their titles are not asked, and they are no pages of the table's dump "
        "(default: as often as in --documents)",
    )
    calibrate.add_argument(
        "--min-probability",
        type=share,
        metavar="SHARE",
        help="mentions whose page is less probable are given none (default: that of the best F1)",
    )


def with_options(linker: Linker, model: Path | None, options: argparse.Namespace) -> Linker:
    """The linker with the certainty of the options; `model` is the folder of its model.

    Raises: ValueError for a calibration of something else.
    """
    linker = replace(linker, certainty=Certainty(prior_weight=options.prior_weight))
    return with_certainty(linker, model, options.calibration, options.min_probability)


def run_calibration(
    linker: Linker, model: Path | None, options: argparse.Namespace, at_once: int
) -> list[str]:
    """Calibrate a linker, whose model is in this folder, and print the file; what was left out of the documents."""
    check_output("--output", options.output, (options.documents, options.like))
    skips = options.on_error == "skip"
    left_out, like_left_out = LeftOut(), LeftOut()
    documents = read_documents(options.documents, left_out if skips else None)
    like = read_documents(options.like, like_left_out if skips else None) if options.like else ()
    certainty, fit = calibrate(
        linker,
        documents,
        own_links=options.own_links,
        like=like,
        min_probability=options.min_probability,
        at_once=at_once,
    )
    fit = {
        "file_sha256": file_sha256(str(options.documents)),
        "mentions_left_out": len(left_out.mentions),
        "documents_left_out": left_out.documents.total(),
        "like_sha256": file_sha256(str(options.like)) if options.like else None,
        "like_mentions_left_out": len(like_left_out.mentions),
        "like_documents_left_out": like_left_out.documents.total(),
        **fit,
    }
    write_certainty(options.output, certainty, basis_of(linker, model), fit)
    print(json.dumps(json.loads(options.output.read_text(encoding="utf-8")), indent=2))
    return [*left_out.told(), *like_left_out.told()]
