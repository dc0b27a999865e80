"""Fine-tuning epoch by epoch: dev is scored after each, and checkpoints let a run go on from any step.

`model.training.loop.fit` does the steps; here is what comes between them.
A step's batch, its parts and its dropout are functions of the seed and the step alone, so that a run that goes on
from a checkpoint has the bits of an unbroken one.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer
from tqdm import tqdm

from model.data.batches import cut
from model.training.checkpoints import Checkpoints
from model.training.loop import fit
from model.training.metrics_log import Tracker
from model.training.optimizer import linear_schedule, make_optimizer, parameter_groups
from model.training.precision import autocast
from model.training.signals import on_sigterm
from tasks.finetuning.inference import collate, outputs_of
from tasks.finetuning.prepare import Prepared

logger = logging.getLogger(__name__)
KEPT = "kept"
_TELL_SECONDS = 60  # between two lines in the log where there is no bar

Made = TypeVar("Made")
Part = tuple[Any, float]
"""A part of a step's batch that is computed at once, and its share of the terms of the batch's loss."""


@dataclass
class EpochTraining:
    """One run from its last checkpoint or from the beginning."""

    run: Prepared
    checkpoints: Checkpoints
    tracker: Tracker | None = None  # gets each step's figures and each epoch's score
    history: list[dict[str, Any]] = field(default_factory=list)  # a record for each finished step
    epochs: list[dict[str, Any]] = field(default_factory=list)  # one for each epoch that was scored on dev
    kept: dict[str, Tensor] = field(default_factory=dict)  # the weights of the epoch that is kept so far

    def train(self) -> None:
        """Runs what is left, and leaves the weights of the kept epoch. Raises: Stopped after SIGTERM."""
        self.optimizer = optimizer_of(self.run)
        self.restore()
        per_epoch, total = self.run.steps_per_epoch, self.run.hyperparameters.epochs
        self.told_at = self.begun_at = time.monotonic()
        self.first = len(self.history)
        inputs = len(self.run.features["train"].items)
        examples = len(self.run.datasets["train"].examples)
        text = "fine-tuning: %d examples make %d inputs; %d steps in %d epochs"
        logger.info(text, examples, inputs, total * per_epoch - self.first, total - len(self.epochs))
        bar = tqdm(
            total=total * per_epoch, initial=self.first, desc="fine-tuning", disable=not self.run.settings.progress
        )
        with on_sigterm() as self.checkpoints.stop, bar as self.bar:
            while not self.is_over:
                epoch = len(self.epochs)
                self.train_epoch(epoch * per_epoch, (epoch + 1) * per_epoch, total * per_epoch)
                self.score_epoch(epoch + 1)
                self.save(is_due=True)
        self.run.module.load_state_dict(self.kept)

    @property
    def is_over(self) -> bool:
        """Return whether all epochs are done, or the last ones were no better on dev for longer than `patience`."""
        done, patience = len(self.epochs), self.run.hyperparameters.patience
        is_patient = not patience or not done or done - best_epoch(self.run, self.epochs)["epoch"] < patience
        return done == self.run.hyperparameters.epochs or not is_patient

    def train_epoch(self, start: int, end: int, total: int) -> None:
        """Trains the steps from `start` to `end` of `total` that are not yet finished."""
        run, first = self.run, max(start, len(self.history))
        steps = ahead(lambda step: parts_of_step(run, step), first, end)
        fit(
            run.module,
            partial(loss_of_part, run),
            lambda step: next(steps),
            self.optimizer,
            partial(linear_schedule, warmup_steps=int(run.hyperparameters.warmup_ratio * total), total_steps=total),
            first_step=first,
            steps=end,
            seed=run.settings.seed,
            on_step=partial(self.finish_step, end),
        )

    def finish_step(self, end: int, step: int, figures: dict[str, float]) -> None:
        """Records a step, and saves a checkpoint if one is due; that of an epoch's end waits for its score."""
        self.history.append({"step": step, **figures})
        self.track("training", figures)
        dev = {"dev_F1": f"{self.epochs[-1]['dev_f1']:.3f}"} if self.epochs else {}
        shown = {"loss": f"{figures['loss']:.3f}"} | dev
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update()
        now = time.monotonic()
        if self.bar.disable and now - self.told_at >= _TELL_SECONDS:
            self.told_at = now
            text = ", ".join(f"{name} {value}" for name, value in shown.items())
            total = int(self.bar.total or 0)
            done, left = step + 1 - self.first, total - step - 1
            minutes = left * (now - self.begun_at) / done / 60
            logger.info("fine-tuning: step %d of %d, %s, %.0f minutes left", step + 1, self.bar.total, text, minutes)
        if step + 1 < end:
            self.save(is_due=False)

    def score_epoch(self, number: int) -> None:
        """Scores dev, and keeps the weights if they are better, or if the last epoch's are wanted."""
        run = self.run
        predictions = run.task.decode(outputs_of(run, "dev"))
        scores = run.task.score(run.datasets["dev"], predictions, run.labels, run.negative)
        names = dict.fromkeys(("f1", run.task.DEV_METRIC))
        self.epochs.append({"epoch": number, **{f"dev_{name}": scores[name] for name in names}})
        if not run.keeps_best_epoch or best_epoch(run, self.epochs) is self.epochs[-1]:
            self.kept = {name: tensor.clone() for name, tensor in run.module.state_dict().items()}
        self.track("dev", {name: scores[name] for name in names})
        logger.debug("epoch %d of %d: dev F1 %.4f", number, run.hyperparameters.epochs, scores["f1"])

    def track(self, group: str, figures: Mapping[str, float]) -> None:
        """Give figures to the tracker, if there is one."""
        if self.tracker:
            self.tracker({f"{group}/{name}": value for name, value in figures.items()}, len(self.history))

    def restore(self) -> None:
        """Goes on from the last checkpoint, if any. Raises: ValueError where it is another run's."""
        if checkpoint := self.checkpoints.restore(self.run.module):
            checkpoint.restore_optimizer(self.optimizer)
            self.history, self.epochs = checkpoint.figures["history"], checkpoint.figures["epochs"]
            self.kept = checkpoint.tensors(KEPT) if self.epochs else {}

    def save(self, *, is_due: bool) -> None:
        """Adds a checkpoint of all that is done, if one is due or it is time. Raises: Stopped where SIGTERM came."""
        if self.checkpoints.is_time() or is_due:
            figures = {"history": self.history, "epochs": self.epochs}
            kept = {KEPT: self.kept} if self.kept else {}
            self.checkpoints.save(len(self.history), self.run.module, self.optimizer, figures, kept)


def best_epoch(run: Prepared, epochs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first of the epochs with the best score on dev; the last one where none has a score, and so none is best."""
    metric = f"dev_{run.task.DEV_METRIC}"
    best = max(epochs, key=lambda epoch: epoch[metric])
    return best if best[metric] else epochs[-1]


def optimizer_of(run: Prepared) -> Optimizer:
    """AdamW for the pretrained part and the classifier, each with its learning rate."""
    hyper = run.hyperparameters
    head = nn.ModuleList(child for name, child in run.module.named_children() if name != "luke")
    groups = [
        {**group, "lr": learning_rate}
        for part, learning_rate in ((run.module.luke, hyper.learning_rate), (head, hyper.head_learning_rate))
        for group in parameter_groups(part, hyper.weight_decay)
    ]
    return make_optimizer(
        groups,
        learning_rate=hyper.learning_rate,
        betas=hyper.betas,
        epsilon=hyper.epsilon,
        bias_correction=run.settings.profile == "fixed",
    )


def ahead(make: Callable[[int], Made], first: int, end: int) -> Iterator[Made]:
    """Yield what is made of each number from `first` up to, not including, `end`, one ahead in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(make, first) if first < end else None
        for number in range(first + 1, end + 1):
            assert waiting
            made = waiting.result()
            waiting = pool.submit(make, number) if number < end else None
            yield made


def groups_of_step(run: Prepared, step: int) -> list[list[Any]]:
    """The features of an optimiser step, in groups whose mean losses count alike; each epoch has an order of its own.

    There is one group, and the last one of an epoch may be short. In profile `paper` there are the micro-batches of the
    authors' code; those that make no whole batch at the end of an epoch come before the next one's first, since their
    gradients were not cleared.
    """
    epoch, batch = divmod(step, run.steps_per_epoch)
    count = run.parts_per_step
    groups = groups_of_epoch(run, epoch, batch * count, (batch + 1) * count)
    is_first = batch == 0 and epoch > 0
    left = groups_of_epoch(run, epoch - 1, run.steps_per_epoch * count, None) if is_first else []
    return left + groups


def groups_of_epoch(run: Prepared, epoch: int, first: int, end: int | None) -> list[list[Any]]:
    """The features of an epoch in its order, `part_size` at a time: the groups from `first` up to `end`."""
    features, size = run.features["train"], run.part_size
    order = np.random.default_rng([run.settings.seed, epoch]).permutation(len(features.items)).tolist()
    starts = range(0, len(order), size)[first:end]
    return [[features.items[index] for index in order[start : start + size]] for start in starts]


def parts_of_step(run: Prepared, step: int) -> Sequence[Part]:
    """The batch of a step, in parts that the budget of tokens allows."""
    hyper = run.hyperparameters
    parts = []
    for group in groups_of_step(run, step):
        terms = sum(map(run.task.loss_terms, group)) or 1  # none: no answer of the group is known
        for part in cut(group, run.task.feature_size, hyper.tokens_per_batch, len(group)):
            share = sum(map(run.task.loss_terms, part)) / terms / run.parts_per_step
            parts.append((collate(run, part), share))
    return parts


def loss_of_part(run: Prepared, part: Part) -> dict[str, Tensor]:
    """Return what a part adds to the loss of its step: the mean over all terms of a group, or of the groups' means."""
    batch, share = part
    with autocast(run.device, run.hyperparameters.precision):
        losses = run.task.loss(run.module, batch.to(run.device))
    return {name: loss * share for name, loss in losses.items()}
