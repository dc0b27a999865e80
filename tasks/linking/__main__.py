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
    add_link(commands.add_parser("link", help="find the pages that documents mention"))
    add_serve(commands.add_parser("serve", help="link documents that come over HTTP"))
    add_score(commands.add_parser("score", help="compare answers with gold documents"))
    add_calibrate(commands.add_parser("calibrate", help="choose how sure link is, on documents with titles"))
    add_convert(commands.add_parser("convert", help="write documents of any format as JSON lines"))
    return whole


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    options = parser().parse_args(arguments)
    run(partial(options.run, options))


if __name__ == "__main__":
    main()
