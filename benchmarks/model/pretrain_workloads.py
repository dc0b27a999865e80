"""What `pretrain.py` measures inside of a process of its own."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.harness.workloads import Record, serve, timed
from benchmarks.model import workloads as step_workloads
from benchmarks.model.workloads import THEIRS, Sample, our_step, their_step
from model.data.masking import Masker
from model.data.shards import Corpus
from model.luke.config import LukeConfig, preset
from model.luke.heads import LukeForPretraining
from model.pretraining.loader import Loader, MicroBatch
from model.pretraining.phases import prepare, to_device
from model.pretraining.recipes import PAPER_RECIPE, Recipe
from model.pretraining.start import is_word_side
from model.pretraining.throughput import Work, matrix_rate, synchronize, training_flops, work_of
from model.training.checkpoints import latest_checkpoint, save_checkpoint
from model.training.loop import fit
from model.training.optimizer import make_optimizer, parameter_groups
from model.training.ranks import Ranks

VARIANT = {"ours": "ours original unpadded", THEIRS: f"{THEIRS} original padded"}
DROPOUT = 0.1
SEED = 1


def make_loader(sequences: str, recipe: Recipe, longest: bool = False) -> Loader:
    """The loader of pretraining."""
    kind = step_workloads.LongestLoader if longest else Loader
    return kind(Corpus(Path(sequences)), recipe, profile="fixed", seed=SEED, entities=True)


def train(
    *, who: str, size: str, phase: str, sequences: str, device: str, recipe: Record, first_step: int,
    warm_steps: int, steps: int, workers: int, threads: int, longest: bool, compare: bool,
) -> Record:  # fmt: skip
    """Seconds and work of each of `steps` steps of `model.training.loop.fit`: loader, all micro-batches, optimiser.

    `who` is "ours" or "transformers"; with `compare` both have the same first weights, and `loss` is that of the
    first micro-batch without dropout. `waits` are the seconds that a step waited for its batch. A step of one
    micro-batch and `warm_steps` whole ones come before what counts.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    own, where = Recipe(**{**vars(PAPER_RECIPE), **recipe}), torch.device(device)
    loader = make_loader(sequences, own, longest)
    config = config_of(size, who, loader.corpus.facts.entity_vocab_size)
    module = make_module(who, config, where, compare)
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(phase == "all" or not is_word_side(name))
    first = loader(first_step)
    loss = first_loss(who, module, first[0], loader.corpus.facts.pad_id) if compare else None
    end, is_pinned = first_step + warm_steps + steps, where.type == "cuda"
    clock = Clock(loader.stream(first_step, end, workers, pinned=is_pinned), where)
    rate = matrix_rate(where, torch.bfloat16 if own.precision == "bf16" else torch.float32)
    loaded = step_workloads.reset_peak(device)
    loop = Loop(who, module, own, where)
    loop.run(lambda step: first[:1], 1, lambda step, values: None)
    loop.run(clock.take, warm_steps + steps, clock.finish)
    works = clock.works[warm_steps:]
    flops = [training_flops(config, work, encoder_trains=phase == "all") for work in works]
    found: Record = {"seconds": clock.seconds[warm_steps:], "waits": clock.waits[warm_steps:]}
    found |= {"tokens": [work.words + work.entities for work in works], "flops": flops, "matrix_flops": rate}
    found |= {"micro_batches": len(first), "loss": loss, "loaded_mb": loaded}
    return found | {"peak_mb": step_workloads.peak(device)}


def config_of(size: str, who: str, entities: int = 0) -> LukeConfig:
    """The preset, with its own number of entities or, where these are more, `entities`."""
    config = step_workloads.make_config(size, VARIANT[who], DROPOUT)
    return replace(config, entity_vocab_size=max(preset(size).entity_vocab_size, entities))


def make_module(who: str, config: LukeConfig, device: torch.device, compare: bool) -> Any:
    """A model of that size, with the weights that both have or with any."""
    if compare:
        return step_workloads.same_weights(config, [VARIANT[who]], str(device))[VARIANT[who]][0]
    with torch.device(device):
        return LukeForPretraining(config)


@torch.no_grad()
def first_loss(who: str, module: nn.Module, part: MicroBatch, pad_id: int) -> float:
    """The loss of a micro-batch without dropout, by which both are seen to be the same model."""
    module.eval()
    step = our_step(module, VARIANT[who]) if who == "ours" else their_step(module)  # type: ignore[arg-type]
    return float(step(Sample.of(part.batch, pad_id)))


class Loop:
    """`model.training.loop.fit` around either model: the same optimiser, batches and masks."""

    def __init__(self, who: str, module: Any, recipe: Recipe, device: torch.device) -> None:
        self.module, self.recipe, self.device = module, recipe, device
        self.losses = self.ours if who == "ours" else self.theirs
        if who == "ours":
            prepare(module, recipe, device)
        values = {"learning_rate": recipe.phases[-1].learning_rate, "betas": recipe.betas}
        values |= {"epsilon": recipe.epsilon, "bias_correction": True}
        self.optimizer = make_optimizer(parameter_groups(module, recipe.weight_decay), **values)

    def run(self, batches: Any, steps: int, on_step: Any) -> None:
        """So many steps, at a constant learning rate."""

        def counted(step: int) -> list[MicroBatch]:
            parts: list[MicroBatch] = batches(step)
            self.parts = len(parts)
            return parts

        settings = {"steps": steps, "seed": SEED, "on_step": on_step, "ranks": Ranks(device=self.device)}
        fit(self.module, self.losses, counted, self.optimizer, lambda step: 1.0, **settings)

    def ours(self, part: MicroBatch) -> dict[str, Tensor]:
        """Each loss is a sum over the whole step's labels by their count."""
        batch = to_device(part.batch, self.module, self.device)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bf16"):
            found: dict[str, Tensor] = self.module(batch, part.totals).losses
        return found

    def theirs(self, part: MicroBatch) -> dict[str, Tensor]:
        """As gradient accumulation is usually done: the mean over the micro-batches' means, each padded here."""
        sample = Sample.of(part.batch, self.module.config.pad_token_id)
        return {"loss": their_step(self.module)(sample) / self.parts}


class Clock:
    """Times the steps of a loop that takes its batches here, and counts what is in them."""

    def __init__(self, batches: Iterator[list[MicroBatch]], device: torch.device) -> None:
        self.batches, self.device = batches, device
        self.seconds: list[float] = []
        self.waits: list[float] = []
        self.works: list[Work] = []

    def take(self, step: int) -> list[MicroBatch]:
        """Begin a step with the batch that comes next; the time until it is there is the wait."""
        self.began = time.perf_counter()
        parts = next(self.batches)
        self.waits.append(time.perf_counter() - self.began)
        self.works.append(sum((work_of(part.batch.shape) for part in parts), Work()))
        return parts

    def finish(self, step: int, values: dict[str, float]) -> None:
        """End a step when the device has done its work."""
        synchronize(self.device)
        self.seconds.append(time.perf_counter() - self.began)


def mask(*, sequences: str, count: int) -> Record:
    """Tokens (words and entities) that are masked, and the seconds: sequences are in memory before and after."""
    corpus = Corpus(Path(sequences))
    masker = Masker(corpus.facts, corpus.word_starts, profile="fixed", seed=SEED)
    read = [corpus[index] for index in range(min(count, len(corpus)))]
    _, seconds = timed(lambda: [masker.mask(one, epoch=0, index=index) for index, one in enumerate(read)])
    return {"tokens": sum(len(one.word_ids) + len(one.entity_ids) for one in read), **seconds}


def load(*, sequences: str, workers: int, steps: int, recipe: Record) -> Record:
    """Tokens from Arrow to tensors (order, masks, collation) by so many processes, after the first step's arrival."""
    torch.set_num_threads(1)
    loader = make_loader(sequences, Recipe(**{**vars(PAPER_RECIPE), **recipe}))
    # What workers have prepared when the first step arrives must not count as made in no time.
    ahead = max(1, 3 * workers)
    stream = loader.stream(0, ahead + steps, workers)
    for _ in range(ahead):
        next(stream)
    work, seconds = timed(
        lambda: sum((work_of(part.batch.shape) for parts in stream for part in parts), Work())
    )
    return {"tokens": work.words + work.entities, **seconds}


def checkpoint(*, size: str, device: str, scratch: str | None) -> Record:
    """Seconds to write a checkpoint and to read it again (from the page cache), and its bytes."""
    with torch.device(device):
        module = LukeForPretraining(config_of(size, "ours"))
    loop = Loop("ours", module, PAPER_RECIPE, torch.device(device))
    for parameter in module.parameters():
        parameter.grad = torch.zeros_like(parameter)
    loop.optimizer.step()
    loop.optimizer.zero_grad()
    synchronize(loop.device)

    def restore(folder: Path) -> Path:
        found = latest_checkpoint(folder, {})
        assert found is not None
        found.restore_model(module)
        found.restore_optimizer(loop.optimizer)
        synchronize(loop.device)
        return found.folder

    with tempfile.TemporaryDirectory(dir=scratch) as name:
        state = {"module": module, "optimizer": loop.optimizer, "run": {}, "figures": {}}
        _, write = timed(lambda: save_checkpoint(Path(name), step=1, **state))
        folder, read = timed(lambda: restore(Path(name)))
        size_bytes = sum(path.stat().st_size for path in folder.iterdir())
    return {"write_seconds": write["seconds"], "read_seconds": read["seconds"], "bytes": size_bytes}


if __name__ == "__main__":
    serve(train, mask, load, checkpoint)
