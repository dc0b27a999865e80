"""Entity linking: `python -m tasks.linking link`, `serve`, `score`, `calibrate` and `convert`.

    python -m tasks.linking link --mentions DIR --model DIR < text
    python -m tasks.linking serve --mentions DIR --model DIR
    python -m tasks.linking score GOLD PREDICTIONS --mentions DIR
    python -m tasks.linking calibrate --documents FILE --mentions DIR --model DIR --output calibration.json
    python -m tasks.linking convert FILE > documents.jsonl

`link` writes a JSON line for each document: `id`, `text`, and `mentions` with `mention`, `start`, `end`, `title`,
`page_id`, `qid`, `entity_id`, `probability`, `link_probability` and `step`; with `--ner` also `label` and
`label_probability`. Places are code points, ends are excluded.
"""

import argparse
import io
import sys
from collections.abc import Callable, Sequence

from tasks.io.arguments import stop
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
