"""The workloads of `pretrain.py` and `gpu.py`, each in a process of its own: stretches of a pretraining."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness.workloads import Record, serve
from benchmarks.model import workloads as step_workloads
from benchmarks.model.workloads import OURS, THEIRS, Sample, our_step, their_step
from model.data.shards import Corpus
from model.luke.batch import Shape
from model.luke.config import preset
from model.luke.heads import LukeForPretraining
from model.pretraining.loader import Loader, MicroBatch
from model.pretraining.phases import prepare, to_device
from model.pretraining.recipes import PAPER_RECIPE, Recipe
from model.pretraining.throughput import training_flops
from model.training.devices import matrix_rate, synchronize
from model.training.loop import fit
from model.training.optimizer import make_optimizer, parameter_groups
from model.training.ranks import Ranks

VARIANT = {OURS: "ours original unpadded", THEIRS: f"{THEIRS} original padded"}
DROPOUT, SEED = 0.1, 1


def train(
    *, who: str, size: str, sequences: str, device: str, recipe: Record, first_step: int, warm_steps: int,
    steps: int, workers: int, threads: int, compare: bool,
) -> Record:  # fmt: skip
    """Measure seconds and work of `steps` steps of `model.training.loop.fit`: loader, all micro-batches, optimiser.

    `who` is "ours" or "transformers"; with `compare` both have the same first weights, and `loss` is that of the
    first micro-batch without dropout. `waits` are the seconds that a step waited for its batch. A step of one
    micro-batch and `warm_steps` whole ones come before what counts.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    own, where = Recipe(**{**vars(PAPER_RECIPE), **recipe}), torch.device(device)
    loader = Loader(Corpus(Path(sequences)), own, profile="fixed", seed=SEED, entities=True)
    entities = max(preset(size).entity_vocab_size, loader.corpus.facts.entity_vocab_size)
    config = replace(step_workloads.make_config(size, VARIANT[who], DROPOUT), entity_vocab_size=entities)
    if compare:
        module: Any = step_workloads.same_weights(config, [VARIANT[who]])[VARIANT[who]][0].to(where)
    else:
        with where:
            module = LukeForPretraining(config)
    first = loader(first_step)
    loss = first_loss(who, module, first[0], loader.corpus.facts.pad_id) if compare else None
    end, is_pinned = first_step + warm_steps + steps, where.type == "cuda"
    clock = Clock(loader.stream(first_step, end, workers, pinned=is_pinned), where)
    rate = matrix_rate(where, torch.bfloat16 if own.precision == "bf16" else torch.float32)
    loaded = step_workloads.reset_peak(device)
    loop = Loop(who, module, own, where)
    loop.run(lambda step: first[:1], 1, lambda step, values: None)
    loop.run(clock.take, warm_steps + steps, clock.finish)
    shapes = clock.shapes[warm_steps:]
    found: Record = {"seconds": clock.seconds[warm_steps:], "waits": clock.waits[warm_steps:]}
    found["tokens"] = [sum(shape.words + shape.entities for shape in step) for step in shapes]
    flops = [sum(training_flops(config, shape) for shape in step) for step in shapes]
    found |= {"flops": flops, "matrix_flops": rate, "micro_batches": len(first), "loss": loss, "loaded_mb": loaded}
    return found | {"peak_mb": step_workloads.peak(device)}


@torch.no_grad()
def first_loss(who: str, module: nn.Module, part: MicroBatch, pad_id: int) -> float:
    """Return the loss of a micro-batch without dropout, by which both are seen to be the same model."""
    module.eval()
    step = our_step(module) if who == OURS else their_step(module)  # type: ignore[arg-type]
    return float(step(Sample.of(part.batch, pad_id)))


class Loop:
    """The loop `model.training.loop.fit` around either model: the same optimiser, batches and masks."""

    def __init__(self, who: str, module: Any, recipe: Recipe, device: torch.device) -> None:
        self.module, self.recipe, self.device = module, recipe, device
        self.losses = self.ours if who == OURS else self.theirs
        if who == OURS:
            prepare(module, recipe, device)
        values = {"learning_rate": recipe.phases[-1].learning_rate, "betas": recipe.betas}
        values |= {"epsilon": recipe.epsilon, "bias_correction": True}
        self.optimizer = make_optimizer(parameter_groups(module, recipe.weight_decay), **values)

    def run(self, batches: Any, steps: int, on_step: Any) -> None:
        """Do so many steps, at a constant learning rate."""

        def counted(step: int) -> list[MicroBatch]:
            parts: list[MicroBatch] = batches(step)
            self.parts = len(parts)
            return parts

        settings = {"steps": steps, "seed": SEED, "on_step": on_step, "ranks": Ranks(device=self.device)}
        fit(self.module, self.losses, counted, self.optimizer, lambda step: 1.0, **settings)

    def ours(self, part: MicroBatch) -> dict[str, Tensor]:
        """Return each loss as a sum over the whole step's labels by their count."""
        batch = to_device(part.batch, self.module, self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            found: dict[str, Tensor] = self.module(batch, part.totals).losses
        return found

    def theirs(self, part: MicroBatch) -> dict[str, Tensor]:
        """Return, as gradient accumulation usually does, the mean over the means of micro-batches, padded here."""
        sample = Sample.of(part.batch, self.module.config.pad_token_id)
        return {"loss": their_step(self.module)(sample) / self.parts}


class Clock:
    """A clock of the steps of a loop that takes its batches here, and counts what is in them."""

    def __init__(self, batches: Iterator[list[MicroBatch]], device: torch.device) -> None:
        self.batches, self.device = batches, device
        self.seconds: list[float] = []
        self.waits: list[float] = []
        self.shapes: list[list[Shape]] = []

    def take(self, step: int) -> list[MicroBatch]:
        """Begin a step with the batch that comes next; the time until it is there is the wait."""
        self.began = time.perf_counter()
        parts = next(self.batches)
        self.waits.append(time.perf_counter() - self.began)
        self.shapes.append([part.batch.shape for part in parts])
        return parts

    def finish(self, step: int, values: dict[str, float]) -> None:
        """End a step when the device has done its work."""
        synchronize(self.device)
        self.seconds.append(time.perf_counter() - self.began)


if __name__ == "__main__":
    serve(train)
