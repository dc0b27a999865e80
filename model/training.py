"""One pretraining run over the phases of a recipe: what happens at every step, and what is written when."""

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from model.encoder import attention_kernel
from model.heads import ENTITY_LOSS, WORD_LOSS, LukeForPretraining
from model.loader import Loader, MicroBatch
from model.ranks import Ranks
from model.recipes import Phase
from model.resume import Checkpoint, save_checkpoint
from model.stopping import StopRequest
from model.train import NotFiniteError, fit, linear_schedule, make_optimizer, parameter_groups

logger = logging.getLogger(__name__)
METRICS, CHECKPOINTS = "metrics.jsonl", "checkpoints"


@dataclass(frozen=True)
class Settings:
    """What changes how a run is carried out, and none of its bits.

    `workers` prepare batches beside each training process. A checkpoint is also written when so many minutes have
    passed (0: never) since the last one; the last `checkpoints_kept` are kept.
    """

    workers: int = 0
    checkpoint_minutes: float = 0.0
    checkpoints_kept: int = 2


class Stopped(Exception):
    """The run was asked to stop, and has a checkpoint of all it did."""


class Recorder:
    """Counts what a step predicts, and writes a line of means to metrics.jsonl every few steps."""

    def __init__(
        self, path: Path, module: LukeForPretraining, names: tuple[str, ...], device: torch.device
    ) -> None:
        self.path = path
        self.module = module
        self.names = names
        self.device = device
        self.clear()

    def clear(self) -> None:
        """Begin a new stretch."""
        self.steps = 0
        self.losses, self.correct, self.total = (dict.fromkeys(self.names, 0.0) for _ in range(3))
        self.begin_step()

    def begin_step(self) -> None:
        """Nothing is predicted yet."""
        # Every process has every name, since they add up their values.
        self.step_correct: dict[str, Tensor | float] = dict.fromkeys(self.names, 0.0)
        self.step_total: dict[str, float] = dict.fromkeys(self.names, 0.0)

    def loss(self, part: MicroBatch) -> dict[str, Tensor]:
        """The losses of a micro-batch; its predictions are counted."""
        if self.device.type != "cpu":  # where the model cannot look at ids without waiting
            part.batch.check(self.module.config, "ids")
            part.batch.check(self.module.config, "labels")
        output = self.module(part.batch.to(self.device), part.totals)
        for name, correct in output.correct.items():
            self.step_correct[name] += correct
            self.step_total[name] += output.total[name]
        nothing = torch.zeros((), device=self.device)
        return {name: output.losses.get(name, nothing) for name in self.names}

    def add(self, values: Mapping[str, float], ranks: Ranks) -> None:
        """Add the losses of a finished step, and what all processes predicted in it."""
        self.steps += 1
        correct = ranks.sum({name: float(count) for name, count in self.step_correct.items()})
        total = ranks.sum(self.step_total)
        for name in self.names:
            self.losses[name] += values[name]
            self.correct[name] += correct[name]
            self.total[name] += total[name]
        self.begin_step()

    def state(self) -> dict[str, Any]:
        """What is in no line yet; `restore` takes it back."""
        return {"steps": self.steps, "losses": self.losses, "correct": self.correct, "total": self.total}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from where `state` was taken."""
        self.steps = state["steps"]
        self.losses, self.correct, self.total = (dict(state[name]) for name in ("losses", "correct", "total"))

    def write(self, phase: int, step: int, learning_rate: float) -> None:
        """Append the means since the last line; `step` is the number of finished steps."""
        line: dict[str, float] = {"phase": phase, "step": step, "learning_rate": learning_rate}
        for name in self.names:
            if self.total[name]:
                line[f"{name}_loss"] = self.losses[name] / self.steps
                line[f"{name}_accuracy"] = self.correct[name] / self.total[name]
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.clear()


@dataclass
class Training:
    """One run over all phases of a recipe, from a checkpoint or from the beginning."""

    module: LukeForPretraining
    new: frozenset[str]
    loader: Loader
    output: Path
    run: dict[str, Any]
    ranks: Ranks
    settings: Settings
    progress: bool
    stop: StopRequest = field(default_factory=StopRequest)

    def train(self, checkpoint: Checkpoint | None) -> None:
        """Run what is left of each phase."""
        recipe = self.loader.recipe
        self.module.luke.gradient_checkpointing = recipe.gradient_checkpointing
        if recipe.compiled:
            self.module.luke.compile(dynamic=True)
        logger.info("attention runs on %s", attention_kernel(self.module.luke.train(), self.ranks.device))
        names = (WORD_LOSS, ENTITY_LOSS) if self.run["entities"] else (WORD_LOSS,)
        self.recorder = Recorder(self.output / METRICS, self.module, names, self.ranks.device)
        if checkpoint:
            self.recorder.restore(checkpoint.figures)
        start = 0
        for number, phase in enumerate(recipe.phases, start=1):
            if checkpoint is None or checkpoint.step < start + phase.steps:
                is_inside = checkpoint is not None and checkpoint.step > start
                self.train_phase(number, phase, start, checkpoint if is_inside else None)
            start += phase.steps

    def train_phase(self, number: int, phase: Phase, start: int, checkpoint: Checkpoint | None) -> None:
        """Train one phase, which begins after `start` steps, with an optimiser and warm-up of its own."""
        recipe, end = self.loader.recipe, start + phase.steps
        optimizer = self.make_optimizer(phase)
        if checkpoint:
            checkpoint.restore_optimizer(optimizer)
        first = checkpoint.step if checkpoint else start
        steps = self.loader.stream(first, end, self.settings.workers)
        began = self.saved_at = time.monotonic()
        with self.bar(number, phase, first - start) as bar:

            def on_step(step: int, values: dict[str, float]) -> None:
                self.recorder.add(values, self.ranks)
                bar.set_postfix({name: f"{values[name]:.3f}" for name in self.recorder.names}, refresh=False)
                bar.update()
                self.finish_step(number, step + 1, end, values["learning_rate"], optimizer)

            self.finished = self.recorder.state()
            try:
                fit(
                    self.module,
                    self.loss,
                    lambda step: self.counted(next(steps)),
                    optimizer,
                    lambda step: linear_schedule(
                        step - start, warmup_steps=phase.warmup_steps, total_steps=phase.steps
                    ),
                    steps=end,
                    first_step=first,
                    seed=self.run["seed"],
                    on_step=on_step,
                    ranks=self.ranks,
                )
            except NotFiniteError as error:
                raise ValueError(self.explain(error, optimizer)) from error
        rate = (end - first) * recipe.batch_size / (time.monotonic() - began)
        logger.info(
            "pretraining, phase %d: steps %d to %d, %.1f sequences a second", number, first, end, rate
        )

    def loss(self, part: MicroBatch) -> dict[str, Tensor]:
        """The losses of a micro-batch, in the recipe's precision."""
        is_narrow = self.loader.recipe.precision == "bf16"
        with torch.autocast(self.ranks.device.type, torch.bfloat16, enabled=is_narrow):
            return self.recorder.loss(part)

    def bar(self, number: int, phase: Phase, done: int) -> Any:
        """The progress bar of a phase."""
        from tqdm import tqdm

        is_off = not (self.progress and self.ranks.is_first)
        return tqdm(
            total=phase.steps, initial=done, desc=f"pretraining, phase {number}", unit="step", disable=is_off
        )

    def counted(self, parts: list[MicroBatch]) -> list[MicroBatch]:
        """A step's micro-batches, with the totals of all processes."""
        totals = {name: int(total) for name, total in self.ranks.sum(parts[0].totals).items()}
        return [replace(part, totals=totals) for part in parts]

    def finish_step(
        self, phase: int, done: int, end: int, learning_rate: float, optimizer: torch.optim.Optimizer
    ) -> None:
        """Write what is due after `done` steps; end the run where it is asked to stop."""
        recipe = self.loader.recipe
        if done % recipe.log_every == 0 or done == end:
            self.recorder.write(phase, done, learning_rate) if self.ranks.is_first else self.recorder.clear()
        self.finished = self.recorder.state()
        is_stopped = bool(self.ranks.sum({"stop": self.stop.is_made})["stop"])
        minutes = (time.monotonic() - self.saved_at) / 60
        is_late = 0 < self.settings.checkpoint_minutes <= minutes
        if is_stopped or is_late or done % recipe.checkpoint_every == 0 or done == end:
            self.save_checkpoint(done, optimizer)
        if is_stopped:
            raise Stopped(
                f"{self.output}: stopped by SIGTERM after step {done}; the same call goes on from there"
            )

    def save_checkpoint(self, step: int, optimizer: torch.optim.Optimizer) -> None:
        """Make what is needed to go on after `step` finished steps visible at once; one process does."""
        if self.ranks.is_first:
            save_checkpoint(
                self.output / CHECKPOINTS,
                step=step,
                module=self.module,
                optimizer=optimizer,
                run=self.run,
                figures=self.finished,
                ranks=self.ranks.count,
                kept=self.settings.checkpoints_kept,
            )
        self.saved_at = time.monotonic()

    def explain(self, error: NotFiniteError, optimizer: torch.optim.Optimizer) -> str:
        """Save the state before the step that failed, and say what was in it."""
        self.save_checkpoint(error.step, optimizer)
        indices = ", ".join(f"{index}" for _, index in self.loader.indices(error.step))
        return f"{error}; its sequences are {indices}; the state before it is in {self.output / CHECKPOINTS}"

    def make_optimizer(self, phase: Phase) -> torch.optim.Optimizer:
        """AdamW over what the phase trains; the rest is frozen."""
        for name, parameter in self.module.named_parameters():
            parameter.requires_grad_(phase.trainable == "all" or name in self.new)
        recipe = self.loader.recipe
        return make_optimizer(
            parameter_groups(self.module, recipe.weight_decay),
            betas=recipe.betas,
            learning_rate=phase.learning_rate,
            epsilon=recipe.epsilon,
            bias_correction=self.run["profile"] != "paper",
        )
