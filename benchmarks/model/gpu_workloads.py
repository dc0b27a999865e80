"""What `gpu.py` measures inside of a process of its own: micro-batches of one model, and where their time goes."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness.workloads import Record, serve
from benchmarks.model import pretrain_workloads
from benchmarks.model.workloads import Sample, make_theirs, our_step, peak, reset_peak, their_step
from model.data.shards import Corpus
from model.luke.config import LukeConfig, preset
from model.luke.encoder import attention_kernel
from model.luke.heads import LukeForPretraining
from model.pretraining.loader import Loader
from model.pretraining.phases import prepare
from model.pretraining.recipes import PAPER_RECIPE, Recipe
from model.pretraining.throughput import (
    describe_device,
    matrix_rate,
    published_rate,
    synchronize,
    training_flops,
    work_of,
)
from model.training.optimizer import make_optimizer, parameter_groups

OURS, THEIRS = "ours", "transformers"
WARM = 3  # micro-batches before what is timed, the longest of which comes first
PARTS = ("attention", "heads", "optimiser")


@dataclass(frozen=True)
class Case:
    """A model, how it runs, and the most tokens (words and entities) of a micro-batch."""

    who: str
    size: str
    attention: str
    tokens: int
    compiled: bool
    precision: str
    device: str
    sequences: str
    batch_size: int
    rounds: int
    threads: int

    @property
    def place(self) -> torch.device:
        """Where it runs."""
        return torch.device(self.device)

    @property
    def dtype(self) -> torch.dtype:
        """The type of products."""
        return torch.bfloat16 if self.precision == "bf16" else torch.float32

    def config(self, entities: int) -> LukeConfig:
        """The preset, with as many entities as the sequences have at least."""
        own = preset(self.size)
        aware = self.attention == "entity-aware"
        rows = max(own.entity_vocab_size, entities)
        return replace(own, use_entity_aware_attention=aware, entity_vocab_size=rows)

    def recipe(self) -> Recipe:
        """How pretraining would be called."""
        return replace(
            PAPER_RECIPE,
            batch_size=self.batch_size,
            tokens_per_batch=self.tokens,
            precision=self.precision,
            compiled=self.compiled,
        )

    def samples(self, corpus: Corpus) -> list[Sample]:
        """The micro-batches of a step that are full, the longest sequences first."""
        parts = Loader(corpus, self.recipe(), profile="fixed", seed=0, entities=True)(0)
        full = parts[:-1] or parts
        return [Sample.of(part.batch, corpus.facts.pad_id) for part in reversed(full)]


class Runner:
    """A model with its optimiser, and a step of it."""

    def __init__(self, case: Case, config: LukeConfig) -> None:
        self.case = case
        is_ours = case.who == OURS
        torch.manual_seed(0)
        with torch.device(case.place):
            module: Any = LukeForPretraining(config) if is_ours else make_theirs(config)
        if is_ours:
            prepare(module, case.recipe(), case.place)
            self.layers: nn.ModuleList = module.luke.layers
        else:
            module.lm_head.decoder.weight = module.luke.embeddings.word_embeddings.weight
            self.layers = module.luke.encoder.layer
        self.module = module.train()
        called = torch.compile(module, dynamic=True) if case.compiled and not is_ours else module
        self.loss: Callable[[Sample], Tensor] = (
            our_step(module, "unpadded") if is_ours else their_step(called)
        )
        values = {"learning_rate": 1e-5, "betas": PAPER_RECIPE.betas, "epsilon": PAPER_RECIPE.epsilon}
        groups = parameter_groups(module, PAPER_RECIPE.weight_decay)
        self.optimizer = make_optimizer(groups, **values, bias_correction=True)

    def autocast(self) -> torch.autocast:
        """Products in the case's precision."""
        return torch.autocast(self.case.place.type, torch.bfloat16, enabled=self.case.precision == "bf16")

    def forward_and_backward(self, sample: Sample) -> Tensor:
        """A micro-batch; its gradients stay."""
        with self.autocast():
            loss = self.loss(sample)
        loss.backward()
        return loss.detach()

    def update(self) -> None:
        """The optimiser's step."""
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def attentions(self) -> list[nn.Module]:
        """The modules that compute attention, projections of queries, keys and values included."""
        is_ours = self.case.who == OURS
        return [layer.attention if is_ours else layer.attention.self for layer in self.layers]


@dataclass
class Marks:
    """Moments on a device's own clock; elapsed time is known when the device has got there."""

    device: torch.device
    named: list[tuple[str, Any]] = field(default_factory=list)

    def mark(self, name: str) -> None:
        """Now, when all that was given to the device before is done."""
        if self.device.type != "cuda":
            self.named.append((name, time.perf_counter()))
            return
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self.named.append((name, event))

    def seconds(self, begin: str, end: str) -> float:
        """The sum of times from each mark `begin` to the mark `end` that follows."""
        synchronize(self.device)
        total, since = 0.0, None
        for name, moment in self.named:
            if name == begin:
                since = moment
            elif name == end and since is not None:
                is_event = self.device.type == "cuda"
                total += since.elapsed_time(moment) / 1e3 if is_event else moment - since
                since = None
        return total


@contextmanager
def marked(runner: Runner, marks: Marks) -> Iterator[None]:
    """Marks where each attention module and the last layer begin and end, forwards and backwards."""

    def when(name: str) -> Callable[..., None]:
        return lambda *of: marks.mark(name)

    last = runner.layers[-1]
    handles = [
        last.register_forward_hook(when("heads begin")),
        last.register_full_backward_pre_hook(when("heads end")),
    ]
    for module in runner.attentions():
        handles += [
            module.register_forward_pre_hook(when("attention begins")),
            module.register_forward_hook(when("attention ends")),
            module.register_full_backward_pre_hook(when("attention begins")),
            module.register_full_backward_hook(when("attention ends")),
        ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def shares(runner: Runner, sample: Sample) -> Record:
    """The parts' shares of a step of one micro-batch, with all that the device does from their begin to their end.

    Heads go from the last layer's output to its gradient: both losses, forwards and backwards.
    """
    marks = Marks(runner.case.place)
    with marked(runner, marks):
        marks.mark("step begins")
        runner.forward_and_backward(sample)
        marks.mark("optimiser begins")
        runner.update()
        marks.mark("optimiser ends")
        marks.mark("step ends")
    whole = marks.seconds("step begins", "step ends")
    ends = {"attention": ("attention begins", "attention ends"), "heads": ("heads begin", "heads end")}
    ends["optimiser"] = ("optimiser begins", "optimiser ends")
    return {part: marks.seconds(*ends[part]) / whole for part in PARTS}


def micro_batch(**arguments: Any) -> Record:
    """Seconds, work and memory of forward and backward passes of real sequences; the optimiser's time apart."""
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
    found: Record = {"rows": rows, "peak_mb": peak(case.device), "loaded_mb": loaded}
    found["kernel"] = None
    if case.who == OURS:
        with runner.autocast():
            found["kernel"] = attention_kernel(runner.module.luke, case.place)
    # Hooks inside of a compiled graph would break it.
    if case.who == OURS or not case.compiled:
        each = [shares(runner, sample.to(case.place)) for sample in samples[::step][:2]]
        found["shares"] = {part: statistics.mean(row[part] for row in each) for part in PARTS}
    found["matrix_flops"] = matrix_rate(case.place, case.dtype)
    return found | {"published_flops": published_rate(describe_device(case.place))}


def measure(runner: Runner, config: LukeConfig, sample: Sample) -> Record:
    """A micro-batch that is on its device, with its gradients' update."""
    work, place = work_of(sample.flat.shape), runner.case.place
    there = sample.to(place)
    synchronize(place)
    began = time.perf_counter()
    loss = runner.forward_and_backward(there)
    synchronize(place)
    ended = time.perf_counter()
    runner.update()
    synchronize(place)
    row: Record = {"seconds": ended - began, "optimiser_seconds": time.perf_counter() - ended}
    places = sample.padded.word_ids.numel()
    places += 0 if sample.padded.entity_ids is None else sample.padded.entity_ids.numel()
    row |= {"tokens": work.words + work.entities, "places": places, "sequences": work.sequences}
    return row | {"flops": training_flops(config, work), "loss": float(loss)}


if __name__ == "__main__":
    serve(micro_batch, pretrain_workloads.train)
