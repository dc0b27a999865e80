"""Show how far the run in a work directory is, until it ends. Its files are only read, and no run is held up."""

import argparse
import json
import logging
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from glob import escape, glob
from math import isfinite
from typing import Any

from pipeline import look, storage
from pipeline.dump.containers import plan_blocks
from pipeline.storage import locks
from workflows.base import outlook
from workflows.base.stage import RUN_RECORD, Stage
from workflows.report.rendering import duration
from workflows.report.training_curves import EVALUATION, METRICS, SPEED, read_lines
from workflows.run.document import NAME
from workflows.run.file import Run
from workflows.stages import fine_tuning, pages, pretraining, report, sequences, task_stage

_SECONDS, _PATIENCE = 5.0, 30.0  # between two looks; with nobody at work, as it is between two stages
_BARS, _ASCII = "▁▂▃▄▅▆▇█", "_.-=+*%#"
_ONE_LINE = {**look.UNPRINTABLE, 9: " ", 10: " "}
DONE, FAILED, RUNNING, STOPPED, WAITING = outlook.DONE, "failed", "running", "stopped", "waiting"
# Half-written, gone, or not there yet.
_UNREADABLE = (ValueError, OSError, LookupError, TypeError, ArithmeticError)
Row = tuple[str, str, str, str, str]  # a stage's title, state, time and progress, and its folder


def rows_of(workdir: str, stages: Sequence[Stage]) -> Iterator[Row]:
    """The stages of a run, of fine-tunings those at work or stopped, and what else the work directory has."""
    states: dict[str, str] = {}
    for stage in stages:
        try:
            row = _row(stage.title, stage.folder, states, stage)
        except _UNREADABLE as error:  # such as a dump that is not there
            row = (stage.title, WAITING, "", str(error), "")
        states[row[4]] = row[1]
        if row[1] in (RUNNING, STOPPED) or not isinstance(stage, task_stage.TaskStage):
            yield row
    titles = {folder: title for title, folder in storage.finished_stages(workdir).items()}
    others = {*titles.values()} - {stage.title for stage in stages}  # those have another folder by now
    for path in sorted(glob(storage.join(escape(os.path.abspath(workdir)), locks.LOCKS, "*-*"))):
        folder = storage.join(os.path.abspath(workdir), name := os.path.basename(path))
        if folder not in states:
            row = _row(titles.get(name, name), folder, states)
            if row[1] in (RUNNING, STOPPED) or (row[1] == DONE and row[0] in others):
                yield row


def _row(title: str, folder: str, states: dict[str, str], stage: Stage | None = None) -> Row:
    """The row of a stage whose inputs have these states; it is right, whatever begins or ends meanwhile."""
    is_begun = storage.file_size(storage.join(folder, storage.blocks.KEY)) is not None
    began, is_held = locks.maker(folder)  # after the key and before the manifest
    state, seconds, progress = RUNNING, time.time() - began if is_held else 0.0, ""
    if not is_held and storage.file_size(storage.join(folder, storage.MANIFEST)) is None:
        state = STOPPED if is_begun else WAITING
    elif not is_held:
        inputs = {states.get(each.folder, "") for each in stage.requires().values()} if stage else set()
        is_current = not stage or (inputs <= {DONE, FAILED} and stage.is_current())
        state = WAITING if not is_current else DONE if not stage or stage.is_done() else FAILED  # in part
    with suppress(*_UNREADABLE):
        if state == DONE:
            seconds = json.loads(storage.read_bytes(storage.join(folder, RUN_RECORD)))["seconds"]
        elif state == STOPPED:
            seconds = max(each.stat().st_mtime for each in os.scandir(folder)) - began
    with suppress(*_UNREADABLE):
        progress = _progress(folder, state, stage)
    return title, state, duration(seconds) if seconds > 0 else "", progress, folder


def _progress(folder: str, state: str, stage: Stage | None) -> str:
    """Return how much of a stage is done, of how much where that is known."""
    if parts := stage.trials() if isinstance(stage, fine_tuning.Tune) else stage.parts() if stage else ():
        return f"{sum(part.output().exists() for part in parts)} of {len(parts)} fine-tunings"
    if state not in (RUNNING, STOPPED):
        return ""
    if isinstance(stage, pretraining.PretrainingStage):
        steps, speeds = _lines(folder, METRICS), _lines(folder, SPEED)
        step, total = steps[-1]["step"] if steps else 0, sum(stage.configuration.recipe.table()["steps"])
        start = max((at for at, line in enumerate(speeds) if "words_per_second" not in line), default=0)
        said = f"step {step:,} of {total:,}"
        if state == STOPPED or not (since := speeds[start + 1 :]):
            return said
        aside = sum(value for name, value in since[-1].items() if name.startswith("seconds_of_"))
        pace = since[-1]["seconds_per_step"] + aside / (since[-1]["step"] - speeds[start]["step"])
        return f"{said}, {since[-1]['words_per_second']:,.0f} words/s, {duration(pace * (total - step))} left"
    if found := sorted(glob(storage.join(escape(folder), "checkpoints", "step-*", "state.json"))):
        record = json.loads(storage.read_bytes(found[-1]))
        return f"{len(record['figures']['epochs'])} of {record['run']['hyperparameters']['epochs']} epochs"
    count = len(glob(storage.join(escape(folder), storage.blocks.BLOCKS, "block-*.json")))
    if isinstance(stage, pages.DumpReader | sequences.BuildSequences):
        return f"{count:,} of {_blocks(stage):,} blocks"
    return f"{count:,} parts" if count else ""


@cache
def _blocks(stage: pages.DumpReader | sequences.BuildSequences) -> int:
    if isinstance(stage, sequences.BuildSequences):
        return len(stage.texts()[0])
    return len(plan_blocks(stage.fetched().paths(), stage.block_bytes()))


def _lines(folder: str, name: str) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines, up to one that is half-written."""
    found: list[dict[str, Any]] = []
    with suppress(ValueError, OSError):
        found.extend(read_lines(storage.join(folder, name)))
    return [line for line in found if isinstance(line, dict)]


def _curves(folder: str, width: int, bars: str) -> Iterator[str]:
    """The figures of a pretraining, a line each: the first and the last value, and the course."""
    for name in pretraining.HEADLINE[1:]:
        key = name.removeprefix("held_out_")
        found = [line.get(key) for line in _lines(folder, METRICS if key == name else EVALUATION)]
        if values := [value for value in found if isinstance(value, int | float) and isfinite(value)]:
            scale = (len(bars) - 1) / ((max(values) - min(values)) or 1)
            count = min(len(values), max(1, width - 65))
            shown = [values[(at + 1) * len(values) // count - 1] for at in range(count)]
            course = "".join(bars[round((value - min(values)) * scale)] for value in shown)
            yield f"  {name:<41} {values[0]:>8.4g} -> {values[-1]:<8.4g} {course}"


def show(workdir: str, *, is_once: bool) -> None:
    """Print the state of a run; on a terminal until all is done, or nobody has been at work for a while."""
    encoding, up, busy, stages = sys.stdout.encoding, "", time.monotonic(), list[Stage]()
    bars = _BARS if _BARS.encode(encoding, "replace").decode(encoding) == _BARS else _ASCII
    while True:
        with suppress(*_UNREADABLE if stages else ()):  # somebody may be writing the file
            stages = outlook.stages_of(report.RunAll(settings=Run.read(workdir)))
        rows, size = list(rows_of(workdir, stages)), shutil.get_terminal_size()
        states = Counter(row[1] for row in rows)
        busy = time.monotonic() if RUNNING in states else busy
        is_over = is_once or {*states} == {DONE} or time.monotonic() - busy > _PATIENCE
        table = look.aligned([[cell.translate(_ONE_LINE) for cell in row[:4]] for row in rows])
        curves = [line for row in rows if row[1] != WAITING for line in _curves(row[4], size.columns, bars)]
        lines = [*table, *curves][0 if is_once else 4 - size.lines :]
        if is_over and RUNNING not in states:
            is_done = {*states} == {DONE}
            lines += ["all is done" if is_done else "nobody is at work; the same command goes on from here"]
        counts = ", ".join(f"{count} {state}" for state, count in states.items())
        text = "\n".join([f"{workdir}: {counts}".translate(_ONE_LINE), *lines])
        text = text.encode(encoding, "backslashreplace").decode(encoding)
        print(text if is_once else f"{up}\033[?7l{text}\033[?7h", flush=True)  # no line wraps
        if is_over:
            return
        up = f"\033[{1 + len(lines)}F\033[J"
        time.sleep(_SECONDS)


def main(arguments: list[str] | None = None) -> int:
    """Show what the command line asks for; gives the exit status."""
    parser = argparse.ArgumentParser(prog="luke watch", description=__doc__, allow_abbrev=False)
    parser.add_argument("workdir", metavar="WORKDIR", help="the work directory of a run")
    parser.add_argument("--once", action="store_true", help="show the state of this moment, and end")
    options = parser.parse_args(arguments)
    logging.getLogger("workflows").addHandler(logging.NullHandler())  # or a broken folder has a line besides
    place = options.workdir
    try:
        if not os.path.isfile(storage.join(place, NAME)) and not look.is_workdir(place):
            is_empty = os.path.isdir(place) and not os.listdir(place)
            found = "an empty folder" if is_empty else f"no folder with a {NAME}"
            raise ValueError(f"{place}: {found}; wanted a work directory: give the --workdir of a run")
        show(place, is_once=options.once or not sys.stdout.isatty())
    except KeyboardInterrupt:
        pass
    except (ValueError, OSError) as error:
        print(f"error: {error}".translate(_ONE_LINE), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
