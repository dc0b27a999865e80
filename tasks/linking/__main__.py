"""Entity linking: `python -m tasks.linking link`, `serve`, `score`, `calibrate` and `convert`.

docs/reference/tasks.md has the formats of documents and answers.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial

from pipeline.lookup.annotator import Annotator
from pipeline.storage.files import file_sha256
from tasks.io.arguments import add_options, check_output, run
from tasks.linking.calibration.calibration import calibrate
from tasks.linking.candidates import CandidateFinder
from tasks.linking.certainty import write_certainty
from tasks.linking.documents.document import Skipped, to_json
from tasks.linking.documents.reading import read_documents
from tasks.linking.formats.formats import FORMATS, find_format
from tasks.linking.guesses import STEPS
from tasks.linking.inputs import KINDS, Parser, check_inputs, documents_of
from tasks.linking.linker import Linker, basis_of
from tasks.linking.open import LanguageLinkers, open_linker
from tasks.linking.options import DEFAULTS, LINKS, METHOD, complete, documents_at_once, open_linkers, settings_of
from tasks.linking.scores.scores import score_files
from tasks.linking.service.requests import MOST_BYTES, MOST_DOCUMENTS
from tasks.linking.service.service import check_packages, serve
from tasks.serving.streams import ON_ERROR, answer_stream, report_errors, report_left_out


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    whole = argparse.ArgumentParser(prog="python -m tasks.linking", description="Link mentions to pages of Wikipedia.")
    commands = whole.add_subparsers(required=True)
    for name, command, parts, text in (
        ("link", run_link, ("link", "answers", *LINKS), "Link the mentions of documents to Wikipedia's pages."),
        ("serve", run_serve, ("serve", *LINKS), "Link documents over HTTP."),
        ("score", run_score, ("score", "whole_of_score", "documents"), "Compare answers with gold documents."),
        ("calibrate", run_calibrate, (*METHOD, "documents", "calibrate"), "Fit probabilities to gold documents."),
        ("convert", run_convert, ("convert", "documents"), "Write documents of any format as JSON lines."),
    ):
        options = commands.add_parser(name, help=text, description=text)
        add_options(options, *parts, input=KINDS, format=FORMATS, on_error=ON_ERROR)
        options.set_defaults(run=command, most_bytes=MOST_BYTES, most_documents=MOST_DOCUMENTS, **DEFAULTS)
    return whole


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = parser().parse_args(arguments)
    run(partial(options.run, options))


def run_link(options: argparse.Namespace) -> int:
    """Link the inputs, one after another, and return the status."""
    check_inputs(options.inputs)
    if sys.stdout is None:
        raise ValueError("stdout is closed, to which answers go; open it")
    linkers = open_linkers(options)
    linker = next(iter(linkers.values()))
    answer = linker.answer if "" in linkers else LanguageLinkers(linkers).answer
    if options.format == "elevant" and not linker.finder.targets.has_qids:
        raise ValueError(
            "--format elevant: the mention table has no QIDs, by which ELEVANT knows pages; build it with page_props"
        )
    errors = answer_stream(
        answer,
        documents_of(options.inputs, options.input),
        sys.stdout,
        parse=Parser(options.input),
        form=find_format(options.format, linker.finder.table.manifest.facts),
        on_error=options.on_error,
        size=documents_at_once(linker, options.tokens_per_batch),
    )
    for code, each in linkers.items():
        print(f"{code}: " * bool(code) + summary(each), file=sys.stderr)
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
        _ = linker.model.of_titles  # for which the first request would wait
    return serve(linker, options)


def run_score(options: argparse.Namespace) -> int:
    """Print the scores."""
    complete(options, wants_table=False)
    if options.leave_out_pages and not options.mentions:
        raise ValueError("--leave-out-pages: the dump's pages are told by --mentions or --workdir")
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
    )
    counts = {
        "mentions_left_out": len(left_out.mentions),
        "documents_left_out": left_out.documents.total(),
        "answers_left_out": left_out.answers.total(),
    }
    print(json.dumps(scores | counts, indent=2, ensure_ascii=False))
    report_left_out(left_out.lines())
    return 0


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
        min_probability=options.threshold,
        at_once=documents_at_once(linker, options.tokens_per_batch),
    )
    fit = {
        "file_sha256": file_sha256(str(options.documents)),
        "mentions_left_out": len(left_out.mentions),
        "documents_left_out": left_out.documents.total(),
        **fit,
    }
    write_certainty(options.output, certainty, basis_of(linker), fit)
    print(json.dumps(json.loads(options.output.read_text(encoding="utf-8")), indent=2))
    report_left_out(left_out.lines())
    return 0


def run_convert(options: argparse.Namespace) -> int:
    """Write the documents as JSON lines."""
    left_out = Skipped()
    for document in read_documents(options.file, left_out if options.on_error == "skip" else None):
        print(json.dumps(to_json(document), ensure_ascii=False))
    report_left_out(left_out.lines())
    return 0


if __name__ == "__main__":
    main()
