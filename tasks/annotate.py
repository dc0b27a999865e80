"""Finds Wikipedia's entities in a text: `python -m tasks.annotate --mentions DIR [--page TITLE] < text`.

The answer is a JSON list with an object a line: start and end in characters (the end is excluded), the text there, the
page's title, its entity id, link probability and commonness. Pages outside the vocabulary have the id of [UNK], 1.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pipeline.lookup.entities import UNK_ID
from tasks.entities.annotator import MIN_COMMONNESS, MIN_LINK_PROBABILITY, Annotation, Annotator
from tasks.io.arguments import OneFolder, share


def to_json(text: str, annotations: Sequence[Annotation]) -> str:
    """A list with an object a line: the annotations of a text, each with the text that it covers."""
    rows = ({"text": text[each.start : each.end], **asdict(each)} for each in annotations)
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]" if lines else "[]"


def read_text() -> str:
    """The text on stdin, to the character: ends of lines stay as they are. Raises: ValueError where it is no UTF-8."""
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"stdin: byte {error.start} is no UTF-8; wanted a text in UTF-8") from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line: a mention table; a text on stdin, its entities on stdout, how many they are on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m tasks.annotate", description="Find Wikipedia's entities in a text, read from stdin."
    )
    parser.add_argument("--mentions", action=OneFolder, required=True, help="folder of BuildMentionTable")
    parser.add_argument("--page", help="title of the Wikipedia page that the text comes from")
    parser.add_argument(
        "--entity-vocab", type=Path, metavar="PATH", help="the vocabulary that ids have to be for"
    )
    parser.add_argument(
        "--min-link-probability",
        type=share,
        default=MIN_LINK_PROBABILITY,
        metavar="SHARE",
        help="names that are links less often are left out (default: %(default)s)",
    )
    parser.add_argument(
        "--min-commonness", type=share, default=MIN_COMMONNESS, metavar="SHARE", help="without --page"
    )
    options = parser.parse_args(arguments)
    try:
        annotator = Annotator.open(
            options.mentions,
            vocabulary=options.entity_vocab,
            min_link_probability=options.min_link_probability,
            min_commonness=options.min_commonness,
        )
        text = read_text()
        annotations = annotator.annotate(text, options.page)
    except ValueError as error:
        sys.exit(f"error: {error}")
    print(to_json(text, annotations))
    unknown = sum(each.entity_id == UNK_ID for each in annotations)
    print(f"{len(annotations):,} names, {unknown:,} of them outside the vocabulary", file=sys.stderr)


if __name__ == "__main__":
    main()
