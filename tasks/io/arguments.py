"""Shared parts of the tasks' command lines: kinds of arguments, and how they end."""

import argparse
import io
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pipeline.storage import STAGES, finished_stages

# The name of a fine-tuning in the list of finished stages: "FineTune (ner, luke, seed 42)".
TASK_OF = re.compile(r"(Tuned)?FineTune \(")


def fine_tuned_folder(folder: Path, task: str = "") -> Path:
    """A model's folder; of a work directory that of its newest fine-tuning, of a task where one is named.

    Raises: ValueError where a work directory has none.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    if not (folder / STAGES).is_file():
        return folder
    found = finished_stages(str(folder))
    names = [name for name in found if TASK_OF.match(name) and f"({task}" in name]
    if not names:
        wanted = f" of {task}" if task else ""
        raise ValueError(f"{folder}: no finished fine-tuning{wanted} there; run FineTune first")
    print(f"{names[-1]}: {folder / found[names[-1]]}", file=sys.stderr)
    return folder / found[names[-1]]


def check_output(option: str, output: Path, inputs: Iterable[Path | None]) -> None:
    """Raises: ValueError where a file that will be written is a folder, or one of the inputs."""
    if output.is_dir():
        raise ValueError(f"{option} {output}: a folder; give a file in it")
    for each in inputs:
        if each and output.exists() and each.exists() and output.samefile(each):
            raise ValueError(f"{option} {output}: the input {each} would be overwritten; give another file")


def positive(text: str) -> int:
    """A number from 1 on, from the command line."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: wanted a number, 1 or more")
    return int(text)


def share(text: str) -> float:
    """Return a number between 0 and 1 from the command line."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: wanted a number from 0 to 1")
    return value


TYPES: Mapping[str, Callable[[str], Any]] = {"path": Path, "whole": int, "positive": positive, "share": share}
OPTIONS = tomllib.loads(Path(__file__).with_name("options.toml").read_text(encoding="utf-8"))


def add_options(command: argparse.ArgumentParser, *parts: str, **choices: Iterable[str]) -> None:
    """Add the options of parts of options.toml; `choices` are of those with these names.

    Of a part that is called `whole...` one alone may be given.
    """
    for part in parts:
        place = command.add_mutually_exclusive_group() if part.startswith("whole") else command
        for flag, told in OPTIONS[part].items():
            known = choices.get(flag.strip("-").replace("-", "_"))
            kind = {"type": TYPES[told["type"]]} if "type" in told else {}
            place.add_argument(flag, **({"choices": known} if known else {}) | told | kind)


def run(command: Callable[[], int | None]) -> None:
    """Run a command: its status ends the program, an error does in one line, and an interruption with 130.

    Where nobody reads any more it ends without a word.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        status = command()
    except BrokenPipeError:
        # What Python would flush at its end has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (ValueError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    if status:
        sys.exit(status)
