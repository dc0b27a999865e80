"""The options that benchmarks share."""

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


def absolute(text: str) -> Path:
    """Return a path that holds in any folder; links stay."""
    return Path(text).absolute()


def python_of(text: str) -> Path:
    """Return an interpreter, or the one of a folder; a link stays one, as it tells the environment."""
    place = absolute(text)
    found = [path for path in (place, place / "python", place / "bin/python") if path.is_file()]
    if not found:
        raise argparse.ArgumentTypeError(f"no python in {text}")
    return found[0]


def count(text: str) -> int:
    """Return a number above zero."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError("wanted 1 or more")
    return int(text)


def _folder(stage: str, **more: Any) -> dict[str, Any]:
    return {"type": absolute, "help": f"folder of {stage}", **more}


# The options that several benchmarks have, by the names by which they take them.
_PYTHON = "Python, or its environment, that has wikipedia2vec"
_MODELS = {"type": absolute, "nargs": "+", "default": [], "help": "folders of pretraining"}
SHARED_OPTIONS: dict[str, dict[str, Any]] = {
    "data": {"type": absolute, "default": DATA / "wikipedia", "help": "folder of the dumps"},
    "device": {"default": "cpu", "help": "cpu or cuda (default: %(default)s)"},
    "links": _folder("ResolveLinks", required=True),
    "mentions": _folder("BuildMentionTable", required=True),
    "models": _MODELS,
    "peers": {"type": python_of, "help": _PYTHON},
    "rounds": {"type": count, "default": 3, "help": "repetitions (default: %(default)s)"},
    "scratch": {"type": absolute, "help": "folder for what is removed again"},
    "sequences": _folder("BuildSequences", required=True),
    "threads": {"type": count, "default": os.cpu_count(), "help": "of torch"},
    "tokenizer": {"type": absolute, "default": DATA / "roberta-tokenizer", "help": "RoBERTa's, a folder"},
}


class Options(argparse.ArgumentParser):
    """The command line of `benchmarks.<name>`; `quick` says what --quick does beside one round."""

    def __init__(self, name: str, description: str | None, *shared: str, quick: str = "") -> None:
        kind = argparse.RawDescriptionHelpFormatter
        super().__init__(f"python -m benchmarks.{name}", description=description, formatter_class=kind)
        self.name = name
        if quick:
            self.add_argument("--quick", action="store_true", help=quick)
        self.add_argument("--note", action="append", default=[], dest="notes", help="a line for the report")
        self.add_argument("--output", type=absolute, help="the results as JSON; Markdown goes beside it")
        for each in shared:
            self.add_argument(f"--{each}", **SHARED_OPTIONS[each])

    def read(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """Return the options, with `command`: the words that ran, without notes and the folders of paths."""
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
