"""Entity linking: `python -m tasks.linking link`, `serve`, `score`, `calibrate` and `convert`.

docs/reference/tasks.md has the formats of documents and answers.
"""

import argparse
from collections.abc import Sequence
from functools import partial

from tasks.io.arguments import run
from tasks.linking.commands.calibrate import add_calibrate
from tasks.linking.commands.link import add_link, add_serve
from tasks.linking.commands.score import add_convert, add_score


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    whole = argparse.ArgumentParser(
        prog="python -m tasks.linking", description="Link mentions to pages of Wikipedia."
    )
    commands = whole.add_subparsers(required=True)
    for name, add, text in (
        ("link", add_link, "Link the mentions of documents to Wikipedia's pages."),
        ("serve", add_serve, "Link documents over HTTP."),
        ("score", add_score, "Compare answers with gold documents."),
        ("calibrate", add_calibrate, "Fit probabilities and a threshold to documents with titles."),
        ("convert", add_convert, "Write documents of any format as JSON lines."),
    ):
        add(commands.add_parser(name, help=text, description=text))
    return whole


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = parser().parse_args(arguments)
    run(partial(options.run, options))


if __name__ == "__main__":
    main()
