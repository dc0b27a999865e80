"""Folders of transformers: `python -m model.hf check DIR` and `python -m model.hf export SOURCE OUTPUT`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def make_parser() -> argparse.ArgumentParser:
    """The command line: `check` and `export`."""
    parser = argparse.ArgumentParser(
        prog="python -m model.hf", description="Compare models with transformers, or export them to it."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser(
        "check",
        help="compare the outputs of a LUKE, RoBERTa or BERT with transformers' (exit status 0: equal, 1: different, "
        "3: encoder equal, head not compared)",
    )
    check.add_argument("folder", type=Path, metavar="DIR", help="folder of transformers")
    export = commands.add_parser("export", help="write a folder that transformers' LukeForMaskedLM loads")
    add = export.add_argument
    add("source", type=Path, help="folder of a pretrained LUKE")
    add("output", type=Path, help="folder to write")
    words = (
        "folder of the tokenizer: RoBERTa's (vocab.json, merges.txt), BERT's (vocab.txt) or XLM-R's (tokenizer.json)"
    )
    add("--tokenizer", type=Path, required=True, help=words)
    add("--entity-vocab", type=Path, required=True, help="entity_vocab.json")
    add("--lite", action="store_true", help="keep only the special entities, such as [MASK]")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; 1 where models differ, 2 for a folder that cannot be read or written.

    3: the encoders are equal, and a head was not compared.
    """
    options = vars(make_parser().parse_args(arguments))
    try:
        if options.pop("command") == "check":
            from model.hf.compare import check_and_print

            return check_and_print(**options)
        from model.hf.export import export

        export(**options)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
