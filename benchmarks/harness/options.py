"""The options that all benchmarks share."""

import argparse
import datetime
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.workloads import ROOT

SHARED = Path(os.environ.get("LUKE_SHARED", ROOT.parent / "shared"))
DATA = SHARED / "data"
TOKENIZER = DATA / "roberta-tokenizer"


def absolute(text: str) -> Path:
    """A path that holds in any folder; links stay."""
    return Path(text).absolute()


def python_of(text: str) -> Path:
    """The interpreter itself, or the one of a folder; a link stays one, as it tells the environment."""
    place = absolute(text)
    found = [path for path in (place, place / "python", place / "bin/python") if path.is_file()]
    if not found:
        raise argparse.ArgumentTypeError(f"no python in {text}")
    return found[0]


def count(text: str) -> int:
    """A number above zero."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError("wanted 1 or more")
    return int(text)


class Arms(argparse.Action):
    """Collects what is said several times, a name and folders, in a dictionary."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: str | None = None) -> None:
        """Raises: argparse.ArgumentError where there is no folder, or a name is there already."""
        name, *folders = values
        arms: dict[str, list[Path]] = getattr(namespace, self.dest)
        if not folders or name in arms:
            raise argparse.ArgumentError(self, f"{name}: wanted a new name, and folders of pretraining")
        setattr(namespace, self.dest, {**arms, name: [absolute(each) for each in folders]})


# Options that several benchmarks have, by the names by which they take them.
_PYTHON = "Python, or its environment, that has wikipedia2vec and wikiextractor"
_ARM = "what models have in common, and their folders; several times"
SHARED_OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "arms": (
        "--arm",
        {
            "dest": "arms",
            "action": Arms,
            "nargs": "+",
            "metavar": ("NAME", "DIR"),
            "default": {},
            "help": _ARM,
        },
    ),
    "dumps": ("--data", {"type": absolute, "default": DATA / "wikipedia", "help": "folder of the dumps"}),
    "device": ("--device", {"default": "cpu", "help": "cpu or cuda (default: %(default)s)"}),
    "peers": ("--peers", {"type": python_of, "help": _PYTHON}),
    "rounds": ("--rounds", {"type": count, "default": 3, "help": "repetitions (default: %(default)s)"}),
    "scratch": ("--scratch", {"type": absolute, "help": "folder for what is removed again"}),
    "sequences": ("--sequences", {"type": absolute, "required": True, "help": "folder of BuildSequences"}),
    "threads": ("--threads", {"type": count, "default": os.cpu_count(), "help": "of torch"}),
    "tokenizer": ("--tokenizer", {"type": absolute, "default": TOKENIZER, "help": "RoBERTa's, a folder"}),
}


class Options(argparse.ArgumentParser):
    """The command line of `benchmarks.<name>`; `quick` says what --quick does beside one round."""

    def __init__(self, name: str, description: str | None, quick: str = "") -> None:
        kind = argparse.RawDescriptionHelpFormatter
        super().__init__(f"python -m benchmarks.{name}", description=description, formatter_class=kind)
        self.name = name
        if quick:
            self.add_argument("--quick", action="store_true", help=quick)
        self.add_argument("--note", action="append", default=[], dest="notes", help="a line for the report")
        self.add_argument("--output", type=absolute, help="the results as JSON; Markdown goes beside it")

    def take(self, *names: str) -> None:
        """Have these of the shared options."""
        for name in names:
            flag, more = SHARED_OPTIONS[name]
            self.add_argument(flag, **more)

    def read(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """The options, with `command`: what runs, without its notes and the folders of its paths."""
        given = sys.argv[1:] if arguments is None else arguments
        options = self.parse_args(given)
        told = [word for word in given if word not in options.notes and not word.startswith("--note")]
        options.command = " ".join([self.prog, *(Path(w).name if os.sep in w else w for w in told)])
        is_quick = getattr(options, "quick", False)
        if is_quick:
            options.rounds = 1
        kind = self.name.rpartition(".")[2].replace("_", "-") + "-quick" * is_quick
        name = f"{datetime.date.today().isoformat()}-{kind}.json"
        options.output = options.output or ROOT / "benchmarks/results" / name
        return options
