"""One pretraining run over the phases of a recipe: what happens at every step, and what is written when."""

import logging
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from model.data.held_out import HeldOut
from model.luke.batch import FlatBatch
from model.luke.heads import ENTITY_LOSS, WORD_LOSS, LukeForPretraining
from model.pretraining.evaluation import Schedule, evaluate
from model.pretraining.loader import Loader, MicroBatch
from model.pretraining.recipes import Phase, Recipe
from model.pretraining.throughput import Meter, progress_text
from model.training.checkpoints import Checkpoint, Checkpoints
from model.training.devices import Peaks, describe_device, peak_memory
from model.training.loop import NotFiniteError, fit
from model.training.metrics_log import Line, Record, StepMeans
from model.training.optimizer import linear_schedule, make_optimizer, parameter_groups
from model.training.precision import autocast
from model.training.ranks import Ranks

logger = logging.getLogger(__name__)
GPU_WORKERS = 2  # of a loader
# The authors' code spared what is called LayerNorm.weight. RoBERTa's word head, unlike BERT's, has a layer_norm.weight.
DECAYED_IN_PAPER = ("word_head.norm.weight",)


@dataclass(frozen=True)
class Execution:
    """Options of a run that change none of its bits."""

    # Processes that prepare batches beside each training process; None: GPU_WORKERS where a GPU would wait, else 0.
    workers: int | None = None
    checkpoint_minutes: float = 0.0  # after which a checkpoint is written, too; 0: never
    tracker: str = ""  # the module:function that gets figures besides (`model.training.metrics_log.find_tracker`)

    def workers_on(self, device: torch.device) -> int:
        """The number of processes that prepare batches for that device."""
        if self.workers is None:
            return GPU_WORKERS if device.type == "cuda" else 0
        return self.workers


@dataclass
class PhaseTraining:
    """One run over all phases of a recipe, from a checkpoint or from the beginning; `fit` does the steps."""

    module: LukeForPretraining
    new: frozenset[str]
    loader: Loader
    checkpoints: Checkpoints
    ranks: Ranks
    execution: Execution
    progress: bool
    held_out: HeldOut
    record: Record | None  # of several processes the first alone has one
    evaluate_every: int | None

    def __post_init__(self) -> None:
        recipe, every = self.loader.recipe, self.evaluate_every
        every = recipe.checkpoint_every if every is None else every
        steps = sum(phase.steps for phase in recipe.phases)
        self.schedule = Schedule(every if len(self.held_out) else 0, steps, recipe.batch_size)
        peaks = Peaks.of(self.ranks.device, narrow=recipe.precision == "bf16")
        self.meter = Meter(self.module.config, peaks, self.ranks.count)

    def train(self, checkpoint: Checkpoint | None) -> None:
        """Run what is left of each phase."""
        recipe = self.loader.recipe
        prepare(self.module, recipe, self.ranks.device)
        shares = {WORD_LOSS: recipe.masked_word_share, ENTITY_LOSS: recipe.masked_entity_share}
        names = tuple(name for name in shares if shares[name] and (name == WORD_LOSS or self.loader.entities))
        self.means = StepMeans(names, self.ranks)
        if checkpoint:
            self.means.restore(checkpoint.figures)
        self.record_machine(checkpoint.step if checkpoint else 0)
        start = 0
        for number, phase in enumerate(recipe.phases, start=1):
            if checkpoint is None or checkpoint.step < start + phase.steps:
                is_inside = checkpoint is not None and checkpoint.step > start
                self.train_phase(number, phase, start, checkpoint if is_inside else None)
            start += phase.steps

    def train_phase(self, number: int, phase: Phase, start: int, checkpoint: Checkpoint | None) -> None:
        """Train one phase, which begins after `start` steps, with an optimiser and warm-up of its own."""
        end = start + phase.steps
        optimizer = self.make_optimizer(phase)
        if checkpoint:
            checkpoint.restore_optimizer(optimizer)
        first = checkpoint.step if checkpoint else start
        device = self.ranks.device
        workers = self.execution.workers_on(device)
        steps = self.loader.stream(first, end, workers, pinned=device.type == "cuda")
        meter = self.meter
        meter.encoder_trains = any(parameter.requires_grad for parameter in self.module.luke.layers.parameters())
        with self.bar(number, first) as bar:

            def on_step(step: int, values: dict[str, float]) -> None:
                self.means.add(values)
                meter.step()
                losses = {name: values[name] for name in self.means.names}
                bar.set_postfix_str(progress_text(losses, meter.figures()), refresh=False)
                bar.update()
                self.finish_step(number, step + 1, end, values["learning_rate"], optimizer)

            self.finished = self.means.state()
            try:
                fit(
                    self.module,
                    self.loss,
                    lambda step: self.with_totals(next(steps)),
                    optimizer,
                    lambda step: linear_schedule(
                        step - start, warmup_steps=phase.warmup_steps, total_steps=phase.steps
                    ),
                    steps=end,
                    first_step=first,
                    seed=self.loader.seed,
                    on_step=on_step,
                    ranks=self.ranks,
                )
            except NotFiniteError as error:
                raise ValueError(self.failure_text(error, optimizer)) from error
        rate = meter.figures()["words_per_second"]
        logger.info("pretraining, phase %d: steps %d to %d, %.0f words a second", number, first, end, rate)

    def loss(self, part: MicroBatch) -> dict[str, Tensor]:
        """The losses of a micro-batch; its predictions are with_totals."""
        self.meter.add(part.batch.shape)
        with self.autocast():
            output = self.module(to_device(part.batch, self.module, self.ranks.device), part.totals)
        self.means.count(output.correct, output.total)
        # Every process has every loss, since they add them up.
        nothing = torch.zeros((), device=self.ranks.device)
        return {name: output.losses.get(name, nothing) for name in self.means.names}

    def autocast(self) -> torch.autocast:
        """Matrix products in the recipe's precision."""
        return autocast(str(self.ranks.device), self.loader.recipe.precision)

    def bar(self, number: int, done: int) -> Any:
        """The progress bar of the whole run, in a phase."""
        from tqdm import tqdm

        is_off = not (self.progress and self.ranks.is_first)
        return tqdm(
            total=self.schedule.steps,
            initial=done,
            desc=f"pretraining, phase {number}",
            unit="step",
            disable=is_off,
            bar_format="{desc} |{bar}| {n_fmt} of {total_fmt}{postfix}, {remaining} left",
            smoothing=0,  # the time left has evaluations and checkpoints in it
        )

    def with_totals(self, parts: list[MicroBatch]) -> list[MicroBatch]:
        """A step's micro-batches, with the totals of all processes."""
        if self.loader.averages_parts:
            count = int(self.ranks.sum({"parts": len(parts)})["parts"])
            return [
                replace(part, totals={name: count * total for name, total in part.totals.items()}) for part in parts
            ]
        totals = {name: int(total) for name, total in self.ranks.sum(parts[0].totals).items()}
        return [replace(part, totals=totals) for part in parts]

    def finish_step(
        self, phase: int, done: int, end: int, learning_rate: float, optimizer: torch.optim.Optimizer
    ) -> None:
        """Write what is due after `done` steps; end the run after SIGTERM."""
        recipe = self.loader.recipe
        if done % recipe.log_every == 0 or done == end:
            self.record_means(self.means.line(phase, done, learning_rate))
        # Before the checkpoint: a run that goes on from it does not evaluate its step again.
        if self.schedule.is_due(done):
            self.evaluate(done)
        self.finished = self.means.state()
        if self.checkpoints.is_time() or done % recipe.checkpoint_every == 0 or done == end:
            with self.meter.aside("checkpoint"):
                self.checkpoints.save(done, self.module, optimizer, self.finished)

    def record_machine(self, step: int) -> None:
        """Record where the run goes on, and on what."""
        if self.record:
            machine = {"device": describe_device(self.ranks.device), "torch": torch.__version__}
            peaks = {f"{name}_flops_per_second": value for name, value in asdict(self.meter.peaks).items()}
            self.record.speed({"step": step, **machine, **peaks})

    def record_means(self, line: Line) -> None:
        """Record the means of a stretch of steps, and its speed."""
        if self.record:
            self.record.metrics(line)
            memory = {"memory_bytes": peak_memory(self.ranks.device)}
            self.record.speed({"step": line["step"]} | self.meter.figures() | memory)

    def evaluate(self, step: int) -> None:
        """Record held-out figures after `step` finished steps."""
        recipe = self.loader.recipe
        with self.meter.aside("evaluation"), self.autocast():
            figures = evaluate(
                self.module,
                self.held_out,
                sequences=self.schedule.sequences(step),
                batch_size=recipe.micro_batch_size,
                ranks=self.ranks,
                masks_words=recipe.masked_word_share > 0,
            )
            if self.record:
                self.record.evaluation({"step": step} | figures)

    def failure_text(self, error: NotFiniteError, optimizer: torch.optim.Optimizer) -> str:
        """Save the state before the step that failed, and return the error's text with its sequences."""
        self.checkpoints.save(error.step, self.module, optimizer, self.finished)
        indices = ", ".join(f"{index}" for _, index in self.loader.indices(error.step))
        return f"{error}; its sequences are {indices}; the state before it is in {self.checkpoints.folder}"

    def make_optimizer(self, phase: Phase) -> torch.optim.Optimizer:
        """AdamW over what the phase trains; the rest is frozen."""
        for name, parameter in self.module.named_parameters():
            parameter.requires_grad_(phase.trainable == "all" or name in self.new)
        recipe, is_paper = self.loader.recipe, self.checkpoints.run["profile"] == "paper"
        is_roberta = self.module.config.word_encoder == "roberta"
        return make_optimizer(
            parameter_groups(self.module, recipe.weight_decay, DECAYED_IN_PAPER if is_paper and is_roberta else ()),
            betas=recipe.betas,
            learning_rate=phase.learning_rate,
            epsilon=recipe.epsilon,
            bias_correction=not is_paper,
            decays_old=is_paper,
        )


def prepare(module: LukeForPretraining, recipe: Recipe, device: torch.device) -> None:
    """Set the module up for the recipe, its tables' gradients in place where that pays."""
    module.luke.gradient_checkpointing = recipe.gradient_checkpointing
    if recipe.compiled:
        module.luke.compile_layers()
    for _, table in module.heads.values():
        table.adds_in_place = True


def to_device(batch: FlatBatch, module: LukeForPretraining, device: torch.device) -> FlatBatch:
    """The batch on the device of its model, which could not look at its ids there without waiting."""
    if device.type == "cpu":
        return batch
    batch.check(module.config)
    return batch.to(device, non_blocking=True)
