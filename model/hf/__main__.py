"""Folders of transformers: `python -m model.hf check DIR`, `export SOURCE OUTPUT`, `push DIR REPO`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path


def make_parser() -> argparse.ArgumentParser:
    """The command line: `check`, `export` and `push`."""
    parser = argparse.ArgumentParser(prog="python -m model.hf", description="Exchange with transformers.")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser(
        "check",
        help="compare a LUKE, RoBERTa or BERT folder in both implementations; exit status 3: the encoder alone, equal",
    )
    check.add_argument("folder", type=Path, metavar="DIR", help="folder of transformers")
    export = commands.add_parser("export", help="write a folder that transformers' LukeForMaskedLM loads")
    export.add_argument("source", type=Path, help="folder of a pretrained LUKE")
    export.add_argument("output", type=Path, help="folder to write")
    export.add_argument(
        "--tokenizer",
        type=Path,
        required=True,
        help="folder of the tokenizer: RoBERTa's (vocab.json, merges.txt) or BERT's (vocab.txt)",
    )
    export.add_argument("--entity-vocab", type=Path, required=True, help="entity_vocab.json or .tsv")
    export.add_argument("--lite", action="store_true", help="keep only the special entities")
    export.add_argument(
        "--statistics", type=Path, help="statistics.json of the sequences, for the model card"
    )
    push = commands.add_parser("push", help="send a folder that export wrote to the Hugging Face hub")
    push.add_argument("folder", type=Path, metavar="DIR", help="folder of transformers, with its card")
    push.add_argument(
        "repo", metavar="REPO", help="OWNER/NAME at Hugging Face; made if it does not exist yet"
    )
    push.add_argument(
        "--card",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a value of the card's head, as license=apache-2.0",
    )
    push.add_argument("--private", action="store_true", help="a new model is not shown to others")
    push.add_argument("--dry-run", action="store_true", help="send nothing, only print what would be sent")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; 1 where models differ, 2 for what cannot be read or sent.

    3: the encoders are equal, and a head was not compared.
    """
    options = vars(make_parser().parse_args(arguments))
    command = options.pop("command")
    try:
        if command == "check":
            from model.hf.compare import check_and_print

            return check_and_print(**options)
        if command == "push":
            from model.hf.push import push as send

            send(**options)
            return 0
        from model.hf.card import read_figures
        from model.hf.export import export as run_export

        statistics = options.pop("statistics")
        run_export(**options, figures=read_figures(statistics) if statistics else {})
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
