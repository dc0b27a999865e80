"""The workloads of `gpu.py`, each in a process of its own: micro-batches of one model."""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness.workloads import Record, serve
from benchmarks.model import pretrain_workloads
from benchmarks.model.workloads import AWARE, OURS, Sample, make_theirs, our_step, peak, reset_peak, their_step
from model.data.shards import Corpus
from model.kernels import narrow
from model.luke.config import LukeConfig, preset
from model.luke.heads import LukeForPretraining
from model.pretraining.loader import Loader
from model.pretraining.phases import prepare
from model.pretraining.recipes import PAPER_RECIPE, Recipe
from model.pretraining.throughput import training_flops
from model.training.devices import describe_device, matrix_rate, published_rate, synchronize
from model.training.optimizer import make_optimizer, parameter_groups
from tests.support.attention_kernels import attention_kernel

MODES = ("eager", "plain", "compiled")  # the second without Triton's kernels
WARM = 3  # micro-batches before what is timed, the longest of which comes first


@dataclass(frozen=True)
class Case:
    """A model, how it runs, and the most tokens (words and entities) of a micro-batch."""

    who: str
    size: str
    attention: str
    tokens: int
    mode: str
    precision: str
    device: str
    sequences: str
    batch_size: int
    rounds: int
    threads: int

    @property
    def place(self) -> torch.device:
        """The device that it runs on."""
        return torch.device(self.device)

    def config(self, entities: int) -> LukeConfig:
        """Return the preset, with as many entities as the sequences have at least."""
        rows = max(preset(self.size).entity_vocab_size, entities)
        changes = {"use_entity_aware_attention": self.attention == AWARE, "entity_vocab_size": rows}
        return replace(preset(self.size), **changes)

    def recipe(self) -> Recipe:
        """Return the recipe by which pretraining would be called."""
        changes = {"precision": self.precision, "compiled": self.mode == "compiled"}
        return replace(PAPER_RECIPE, batch_size=self.batch_size, tokens_per_batch=self.tokens, **changes)

    def samples(self, corpus: Corpus) -> list[Sample]:
        """Return the micro-batches of a step that are full, the longest sequences first."""
        parts = Loader(corpus, self.recipe(), profile="fixed", seed=0, entities=True)(0)
        full = parts[:-1] or parts
        return [Sample.of(part.batch, corpus.facts.pad_id) for part in reversed(full)]


class Runner:
    """A model with its optimiser, and a step of it."""

    def __init__(self, case: Case, config: LukeConfig) -> None:
        self.case = case
        torch.manual_seed(0)
        if case.mode == "plain":
            narrow.has_triton = lambda: False  # type: ignore[assignment]
        with torch.device(case.place):
            self.module: Any = LukeForPretraining(config) if case.who == OURS else make_theirs(config)
        self.module.train()
        if case.who == OURS:
            prepare(self.module, case.recipe(), case.place)
            self.loss = our_step(self.module)
        else:
            self.loss = their_step(torch.compile(self.module, dynamic=True) if case.mode == "compiled" else self.module)
        values = {"learning_rate": 1e-5, "betas": PAPER_RECIPE.betas, "epsilon": PAPER_RECIPE.epsilon}
        groups = parameter_groups(self.module, PAPER_RECIPE.weight_decay)
        self.optimizer = make_optimizer(groups, **values, bias_correction=True)

    def autocast(self) -> torch.autocast:
        """Have products in the case's precision."""
        return torch.autocast(self.case.place.type, torch.bfloat16, enabled=self.case.precision == "bf16")

    def forward_and_backward(self, sample: Sample) -> Tensor:
        """Compute a micro-batch; its gradients stay."""
        with self.autocast():
            loss = self.loss(sample)
        loss.backward()
        return loss.detach()

    def update(self) -> None:
        """Do the optimiser's step."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def micro_batch(**arguments: Any) -> Record:
    """Measure forward and backward passes of real sequences: seconds, work, memory; the optimiser's time apart."""
    case = Case(**arguments)
    torch.set_num_threads(case.threads)
    corpus = Corpus(Path(case.sequences))
    config, samples = case.config(corpus.facts.entity_vocab_size), case.samples(corpus)
    runner = Runner(case, config)
    loaded = reset_peak(case.device)
    for number in range(WARM):
        runner.forward_and_backward(samples[number % len(samples)].to(case.place))
        runner.update()
    step = max(1, len(samples) // case.rounds)
    rows = [measure(runner, config, sample) for sample in (samples[::step] * case.rounds)[: case.rounds]]
    found: Record = {"rows": rows, "peak_mb": peak(case.device), "loaded_mb": loaded, "kernel": None}
    if case.who == OURS:
        with runner.autocast():
            found["kernel"] = attention_kernel(runner.module.luke, case.place)
    if case.place.type == "cuda":
        found |= profile(runner, samples[len(samples) // 2].to(case.place))
    dtype = torch.bfloat16 if case.precision == "bf16" else torch.float32
    found["matrix_flops"] = matrix_rate(case.place, dtype)
    return found | {"published_flops": published_rate(describe_device(case.place))}


def profile(runner: Runner, sample: Sample) -> Record:
    """Count the kernels of a micro-batch, and the seconds in which they compute."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profiled:
        runner.forward_and_backward(sample)
        synchronize(runner.case.place)
    runner.optimizer.zero_grad(set_to_none=True)
    spent = [each.time_range.elapsed_us() for each in profiled.events() if each.device_type.name == "CUDA"]
    return {"kernels": len(spent), "busy_seconds": sum(spent) / 1e6}


def measure(runner: Runner, config: LukeConfig, sample: Sample) -> Record:
    """Measure a micro-batch that is on its device, with its gradients' update."""
    shape, place = sample.flat.shape, runner.case.place
    there = sample.to(place)
    synchronize(place)
    began = time.perf_counter()
    loss = runner.forward_and_backward(there)
    synchronize(place)
    ended = time.perf_counter()
    runner.update()
    synchronize(place)
    row: Record = {"seconds": ended - began, "optimiser_seconds": time.perf_counter() - ended}
    row |= {"tokens": shape.words + shape.entities, "places": sample.facts()["places"]}
    return row | {"sequences": len(shape.lengths), "flops": training_flops(config, shape), "loss": float(loss)}


if __name__ == "__main__":
    serve(micro_batch, pretrain_workloads.train)
