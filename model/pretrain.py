"""Pretraining in phases (sections 3.3, 3.4 and the appendix of the paper), resumable at any step.

Every random choice of a run (first weights, order, masks, dropout) is a function of its seed and the step, so
a run that is killed and called again ends with the same bits as an unbroken one on the same machine.
"""

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from model.checkpoint import fingerprint_model, save_model
from model.encoder import attention_kernel
from model.files import WEIGHTS, write_aside
from model.heads import LukeForPretraining
from model.initial import SCRATCH, build_model
from model.loader import Loader, MicroBatch
from model.recipes import RECIPES, Phase
from model.resume import Checkpoint, latest_checkpoint, save_checkpoint
from model.shards import Corpus
from model.train import fit, linear_schedule, make_optimizer, parameter_groups, resolve_device

logger = logging.getLogger(__name__)
METRICS, CHECKPOINTS = "metrics.jsonl", "checkpoints"


class Recorder:
    """Counts what a step predicts, and writes a line of means to metrics.jsonl every few steps."""

    def __init__(self, path: Path, module: LukeForPretraining, device: torch.device) -> None:
        self.path = path
        self.module = module
        self.device = device
        self.clear()

    def clear(self) -> None:
        """Begin a new stretch."""
        self.steps = 0
        self.losses: dict[str, float] = {}
        self.correct: dict[str, Tensor] = {}
        self.total: dict[str, int] = {}

    def loss(self, part: MicroBatch) -> dict[str, Tensor]:
        """The losses of a micro-batch; its predictions are counted."""
        if self.device.type != "cpu":  # where the model cannot look at ids without waiting
            part.batch.check(self.module.config, "ids")
            part.batch.check(self.module.config, "labels")
        output = self.module(part.batch.to(self.device), part.totals)
        for name, correct in output.correct.items():
            self.correct[name] = self.correct.get(name, 0) + correct
            self.total[name] = self.total.get(name, 0) + output.total[name]
        return output.losses

    def add(self, values: Mapping[str, float]) -> None:
        """Add the losses of a finished step."""
        self.steps += 1
        for name in self.total:
            self.losses[name] = self.losses.get(name, 0.0) + values.get(name, 0.0)

    def write(self, phase: int, step: int, learning_rate: float) -> None:
        """Append the means since the last line; `step` is the number of finished steps."""
        line: dict[str, float] = {"phase": phase, "step": step, "learning_rate": learning_rate}
        for name, total in self.total.items():
            line[f"{name}_loss"] = self.losses[name] / self.steps
            line[f"{name}_accuracy"] = int(self.correct[name]) / max(1, total)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.clear()


def pretrain(
    sequences: Path,
    output: Path,
    *,
    preset: str,
    base_model: str,
    entities: bool,
    profile: str,
    seed: int,
    device: str,
    progress: bool,
) -> dict[str, float]:
    """Pretrain on a folder of sequences; `output` gets config.json, model.safetensors and metrics.jsonl.

    `base_model` is "scratch" or a model whose words (encoder and masked-word head) to start from. Without
    `entities` it is the baseline that learns masked words alone; its entity table has the three special rows
    only. `profile` "paper" masks sub-words and leaves out Adam's bias correction. Called again it resumes
    from its last checkpoint. Returns the last line of metrics. Raises ValueError for what does not fit
    together.
    """
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed}, but must be at least 0 and below 2^63")
    target = resolve_device(device)
    corpus = Corpus(sequences)
    module, new = build_model(corpus.facts, preset, base_model, entities=entities, seed=seed)
    recipe = RECIPES[preset] if entities else RECIPES[preset].without_entities()
    run = {
        "sequences": corpus.fingerprint,
        "preset": preset,
        "entities": entities,
        "profile": profile,
        "seed": seed,
        "base_model": SCRATCH if base_model == SCRATCH else fingerprint_model(base_model),
        "recipe": asdict(recipe),
        "config": asdict(module.config),
    }
    if is_finished(output, run):
        logger.info("%s: this pretraining is finished already", output)
        return last_figures(output / METRICS)
    loader = Loader(corpus, recipe, profile=profile, seed=seed, entities=entities)
    output.mkdir(parents=True, exist_ok=True)
    checkpoint = latest_checkpoint(output / CHECKPOINTS, run)
    if checkpoint:
        logger.info("%s: resumed after step %d", checkpoint.folder, checkpoint.step)
        checkpoint.restore_model(module)
    cut_metrics(output / METRICS, checkpoint.step if checkpoint else 0)
    Training(module.to(target), new, loader, output, run, target, progress).train(checkpoint)
    save_model(output, module, ("run", digest(run)))
    shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)
    return last_figures(output / METRICS)


@dataclass
class Training:
    """One run over all phases of a recipe, from a checkpoint or from the beginning."""

    module: LukeForPretraining
    new: frozenset[str]
    loader: Loader
    output: Path
    run: dict[str, Any]
    device: torch.device
    progress: bool

    def train(self, checkpoint: Checkpoint | None) -> None:
        """Run what is left of each phase."""
        logger.info("attention runs on %s", attention_kernel(self.module.luke.train(), self.device))
        start = 0
        for number, phase in enumerate(self.loader.recipe.phases, start=1):
            if checkpoint is None or checkpoint.step < start + phase.steps:
                is_inside = checkpoint is not None and checkpoint.step > start
                self.train_phase(number, phase, start, checkpoint if is_inside else None)
            start += phase.steps

    def train_phase(self, number: int, phase: Phase, start: int, checkpoint: Checkpoint | None) -> None:
        """Train one phase, which begins after `start` steps, with an optimiser and warm-up of its own."""
        from tqdm import tqdm

        recipe, end = self.loader.recipe, start + phase.steps
        optimizer = self.make_optimizer(phase)
        if checkpoint:
            checkpoint.restore_optimizer(optimizer)
        first = checkpoint.step if checkpoint else start
        recorder = Recorder(self.output / METRICS, self.module, self.device)
        began = time.monotonic()
        with tqdm(
            total=phase.steps,
            initial=first - start,
            desc=f"pretraining, phase {number}",
            unit="step",
            disable=not self.progress,
        ) as bar:

            def on_step(step: int, values: dict[str, float]) -> None:
                done = step + 1
                recorder.add(values)
                bar.set_postfix({name: f"{values[name]:.3f}" for name in recorder.total}, refresh=False)
                bar.update()
                if done % recipe.log_every == 0 or done == end:
                    recorder.write(number, done, values["learning_rate"])
                if done % recipe.checkpoint_every == 0 or done == end:
                    self.save_checkpoint(done, optimizer)

            fit(
                self.module,
                recorder.loss,
                self.loader,
                optimizer,
                lambda step: linear_schedule(
                    step - start, warmup_steps=phase.warmup_steps, total_steps=phase.steps
                ),
                steps=end,
                first_step=first,
                seed=self.run["seed"],
                on_step=on_step,
            )
        rate = (end - first) * recipe.batch_size / (time.monotonic() - began)
        logger.info(
            "pretraining, phase %d: steps %d to %d, %.1f sequences a second", number, first, end, rate
        )

    def save_checkpoint(self, step: int, optimizer: torch.optim.Optimizer) -> None:
        """Make what is needed to go on after `step` finished steps visible at once."""
        folder = self.output / CHECKPOINTS
        save_checkpoint(folder, step=step, module=self.module, optimizer=optimizer, run=self.run)

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


def is_finished(output: Path, run: Mapping[str, Any]) -> bool:
    """Whether `output` holds the result of this very run."""
    try:
        with safe_open(output / WEIGHTS, framework="pt") as file:
            return (file.metadata() or {}).get("run") == digest(run) and (output / METRICS).is_file()
    except (OSError, SafetensorError):
        return False


def digest(run: Mapping[str, Any]) -> str:
    """SHA-256 of what defines a run."""
    return hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()


def cut_metrics(path: Path, step: int) -> None:
    """Keep the lines up to `step`: a killed run may have written some beyond its last checkpoint."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
    # Lines are in the order of their steps, so a torn last line is never among those kept.
    kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
    write_aside(path, lambda aside: aside.write_text("".join(kept), encoding="utf-8"))


def last_figures(path: Path) -> dict[str, float]:
    """The last line of metrics."""
    figures: dict[str, float] = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    return figures
