"""The record of a run: what it learnt, step by step, and how fast.

metrics.jsonl, metrics.csv and evaluation.jsonl hold no times, so that a run repeats to the byte; a resumed run goes
on where its checkpoint stands. log/ holds what differs from run to run: speed.jsonl and TensorBoard's events.
"""

import csv
import importlib
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from model.files import EVALUATION, write_aside
from model.training.ranks import ALONE, Ranks

logger = logging.getLogger(__name__)
METRICS, TABLE = "metrics.jsonl", "metrics.csv"
LOG, SPEED = "log", "speed.jsonl"
NORM = "gradient_norm"
Line = dict[str, Any]
Tracker = Callable[[dict[str, float], int], object]
"""A user's function: it gets figures by name, and the number of finished steps."""


class Record:
    """The files of a run in its folder, from `step` finished steps on; lines of later steps are cut off.

    A `tracker` gets what TensorBoard gets.
    """

    def __init__(self, folder: Path, step: int, tracker: Tracker | None = None) -> None:
        self.folder = folder
        self.tracker = tracker
        cut_lines(folder / METRICS, step)
        if step == 0:
            (folder / EVALUATION).unlink(missing_ok=True)
        elif (folder / EVALUATION).is_file():
            cut_lines(folder / EVALUATION, step)
        write_table(folder / TABLE, read_lines(folder / METRICS))
        (folder / LOG).mkdir(exist_ok=True)
        self.board = open_board(folder / LOG, step)

    def metrics(self, line: Line) -> None:
        """Add the means of a stretch of steps."""
        append_line(self.folder / METRICS, line)
        write_table(self.folder / TABLE, read_lines(self.folder / METRICS))
        self.show("training", line)

    def evaluation(self, line: Line) -> None:
        """Add the figures of a held-out evaluation."""
        append_line(self.folder / EVALUATION, line)
        self.show("held_out", line)

    def speed(self, line: Line) -> None:
        """Add what depends on time and machine."""
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        append_line(self.folder / LOG / SPEED, {"time": now} | line)
        self.show("speed", line)

    def show(self, group: str, line: Line) -> None:
        """Give the numbers to TensorBoard, where it is installed, and to the tracker, if there is one."""
        found = {name: value for name, value in line.items() if isinstance(value, int | float)}
        numbers = {f"{group}/{name}": value for name, value in found.items() if name not in ("step", "phase")}
        if self.board:
            for name, value in numbers.items():
                self.board.add_scalar(name, value, line["step"])
        if self.tracker and numbers:
            self.tracker(numbers, line["step"])

    def close(self) -> None:
        """Write what TensorBoard still holds."""
        if self.board:
            self.board.close()


class StepMeans:
    """Sums up steps between two lines of metrics: mean losses and gradient norm, shares of right predictions.

    Every process calls `add` after each step, and has the same sums then. Predictions have the same `names`
    everywhere, also in a process whose part of a step holds none. The sums can be saved and restored.
    """

    def __init__(self, names: tuple[str, ...], ranks: Ranks = ALONE) -> None:
        self.names = names
        self.ranks = ranks
        self.clear()

    def clear(self) -> None:
        """Begin a new stretch."""
        self.steps = 0
        self.sums = dict.fromkeys((*self.names, NORM), 0.0)
        self.correct, self.total = (dict.fromkeys(self.names, 0) for _ in range(2))
        self.begin_step()

    def begin_step(self) -> None:
        """Nothing is predicted yet."""
        self.step_correct: dict[str, Tensor | int] = dict.fromkeys(self.names, 0)
        self.step_total = dict.fromkeys(self.names, 0)

    def count(self, correct: Mapping[str, Tensor], total: Mapping[str, int]) -> None:
        """Count the predictions of a micro-batch."""
        for name, count in correct.items():
            self.step_correct[name] += count
            self.step_total[name] += total[name]

    def add(self, values: Mapping[str, float]) -> None:
        """Add the losses and the gradient norm of a finished step, and what all processes predicted in it."""
        self.steps += 1
        for name in self.sums:
            self.sums[name] += values.get(name, 0.0)
        for sums, counts in ((self.correct, self.step_correct), (self.total, self.step_total)):
            for name, count in self.ranks.sum({name: float(count) for name, count in counts.items()}).items():
                sums[name] += int(count)
        self.begin_step()

    def line(self, phase: int, step: int, learning_rate: float) -> Line:
        """The means since the last line, after `step` finished steps; then a new stretch begins."""
        line: Line = {"phase": phase, "step": step, "learning_rate": learning_rate}
        line[NORM] = self.sums[NORM] / max(1, self.steps)
        for name in self.names:
            if self.total[name]:
                line[f"{name}_loss"] = self.sums[name] / self.steps
                line[f"{name}_accuracy"] = self.correct[name] / self.total[name]
        self.clear()
        return line

    def state(self) -> dict[str, Any]:
        """The sums, as plain numbers."""
        counted = {name: dict(getattr(self, name)) for name in ("sums", "correct", "total")}
        return {"steps": self.steps} | counted

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from the sums of a checkpoint."""
        self.clear()
        self.steps = state["steps"]
        for name in ("sums", "correct", "total"):
            getattr(self, name).update(state[name])


def open_board(folder: Path, step: int) -> Any:
    """TensorBoard's writer, which hides what an interrupted run wrote after `step`; None without tensorboard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ModuleNotFoundError:
        return None
    return SummaryWriter(str(folder), purge_step=step + 1)


def find_tracker(name: str) -> Tracker | None:
    """The function that `module:function` names, None for an empty name; ValueError where it cannot be had.

    An error of its own ends no training: the log has it once, and the figures are in the run's files.
    """
    if not name:
        return None
    module, colon, function = name.partition(":")
    if not colon:
        raise ValueError(f"--tracker {name}: wanted module:function")
    try:
        found = getattr(importlib.import_module(module), function)
    except Exception as error:  # whatever a module of the user's does
        raise ValueError(f"--tracker {name}: cannot be imported ({error})") from None
    if not callable(found):
        raise ValueError(f"--tracker {name}: is a {type(found).__name__}; wanted a function")
    failures = 0

    def track(figures: dict[str, float], step: int) -> None:
        nonlocal failures
        try:
            found(figures, step)
        except Exception as error:
            failures += 1
            if failures == 1:
                logger.warning("--tracker %s: %s: %s; training goes on", name, type(error).__name__, error)

    return track


def append_line(path: Path, line: Line) -> None:
    """Add a line of JSON to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def read_lines(path: Path) -> list[Line]:
    """The lines of a file of JSON lines; none where there is no file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def last_figures(folder: Path) -> dict[str, float]:
    """The last line of metrics, and the last held-out figures under the names held_out_*."""
    evaluations = read_lines(folder / EVALUATION)
    held_out = {f"held_out_{name}": value for name, value in (evaluations or [{}])[-1].items()}
    return read_lines(folder / METRICS)[-1] | held_out


def cut_lines(path: Path, step: int) -> None:
    """Keep the lines up to `step`: a killed run may have written some beyond its last checkpoint."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
    # Lines are in the order of their steps, so a torn last line is never among those kept.
    kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
    write_aside(path, lambda aside: aside.write_text("".join(kept), encoding="utf-8"))


def write_table(path: Path, lines: Sequence[Line]) -> None:
    """Write lines as CSV, with a column for every name in any of them."""
    columns = list(dict.fromkeys(name for line in lines for name in line))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        if columns:
            writer.writeheader()
        writer.writerows(lines)
