"""What `step.py` measures inside of a process of its own: steps of our models beside transformers'."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.harness.workloads import Record, kernel_size, serve, timed
from model.data.shards import Corpus
from model.exchange.keys import from_transformers
from model.luke.batch import Batch
from model.luke.config import LukeConfig, preset
from model.luke.encoder import attention_kernel
from model.luke.flat import FlatBatch, padded
from model.luke.heads import LukeForPretraining
from model.pretraining.loader import Loader
from model.pretraining.recipes import PAPER_RECIPE
from model.pretraining.throughput import matrix_rate, synchronize, training_flops, work_of

ENTITIES = 500_000
THEIRS, ATTENTIONS, LAYOUTS = "transformers", ("original", "entity-aware"), ("padded", "unpadded")


@dataclass(frozen=True)
class Sample:
    """The same sequences without padding and with it."""

    flat: FlatBatch
    padded: Batch

    @classmethod
    def of(cls, flat: FlatBatch, pad_id: int) -> "Sample":
        """Both forms of a batch that lies on the CPU."""
        return cls(flat, padded(flat, pad_id))

    def to(self, device: torch.device | str) -> "Sample":
        """The same on another device."""
        return Sample(self.flat.to(device), self.padded.to(device))


Step = Callable[[Sample], Tensor]


def variants(with_theirs: bool) -> list[str]:
    """The rows of the benchmark: who, attention, layout."""
    theirs = [f"{THEIRS} {attention} padded" for attention in ATTENTIONS]
    ours = [f"ours {attention} {layout}" for attention in ATTENTIONS for layout in LAYOUTS]
    return (theirs if with_theirs else []) + ours


def make_config(size: str, variant: str, dropout: float) -> LukeConfig:
    """The preset with the released vocabularies' sizes."""
    changes = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    changes["use_entity_aware_attention"] = "entity-aware" in variant
    return replace(preset(size), entity_vocab_size=ENTITIES, **changes)


def make_theirs(config: LukeConfig) -> nn.Module:
    """transformers' model; eager is the only attention that it has."""
    import transformers

    values = {name: value for name, value in asdict(config).items() if name != "entity_head"}
    return transformers.LukeForMaskedLM(transformers.LukeConfig(**values))


class LongestLoader(Loader):
    """A loader of the longest of the first thousands of sequences, the longest first, over and over."""

    @functools.cached_property
    def longest(self) -> list[int]:
        """Their indices."""
        length = {index: len(self.corpus[index].word_ids) for index in range(min(4096, len(self.corpus)))}
        return sorted(length, key=lambda index: -length[index])

    def indices(self, step: int) -> list[tuple[int, int]]:
        """The (epoch, index) of each sequence of a step."""
        size, length = self.recipe.batch_size, len(self.longest)
        places = [divmod(position, length) for position in range(step * size, (step + 1) * size)]
        return [(epoch, self.longest[place]) for epoch, place in places]


def set_dropout(module: nn.Module, dropout: float) -> None:
    """The same dropout everywhere."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = dropout
        elif isinstance(getattr(part, "dropout", None), float):
            part.dropout = dropout


def their_step(module: nn.Module) -> Step:
    """Loss of transformers' model on the padded batch."""

    def step(sample: Sample) -> Tensor:
        batch = sample.padded
        assert batch.entity_ids is not None
        assert batch.entity_mask is not None
        words = {"input_ids": batch.word_ids, "attention_mask": batch.word_mask.long()}
        words |= {"token_type_ids": torch.zeros_like(batch.word_ids), "labels": batch.word_labels}
        entities = {"entity_ids": batch.entity_ids, "entity_attention_mask": batch.entity_mask.long()}
        entities |= {"entity_token_type_ids": torch.zeros_like(batch.entity_ids)}
        entities |= {"entity_position_ids": batch.entity_positions, "entity_labels": batch.entity_labels}
        return module(**words, **entities).loss

    return step


def our_step(module: LukeForPretraining, variant: str) -> Step:
    """Loss of our model."""
    is_packed = variant.endswith("unpadded")

    def step(sample: Sample) -> Tensor:
        return sum(module(sample.flat if is_packed else sample.padded).losses.values())

    return step


def same_weights(config: LukeConfig, names: list[str], device: str) -> dict[str, tuple[nn.Module, Step]]:
    """Models for all variants that share one set of weights, so that they fit beside each other and agree."""
    found: dict[str, tuple[nn.Module, Step]] = {}
    theirs = make_theirs(replace(config, use_entity_aware_attention=True))
    theirs.lm_head.decoder.weight = theirs.luke.embeddings.word_embeddings.weight
    theirs.to(device)
    state = theirs.state_dict()
    for name in names:
        own = replace(config, use_entity_aware_attention="entity-aware" in name)
        if name.startswith(THEIRS):
            module = theirs if own.use_entity_aware_attention else make_theirs(own)
            if module is not theirs:
                module.load_state_dict({key: state[key] for key in module.state_dict()}, assign=True)
                module.lm_head.decoder.weight = module.luke.embeddings.word_embeddings.weight
            found[name] = (module, their_step(module))
        else:
            with torch.device("meta"):
                module = LukeForPretraining(own)
            weights = from_transformers(state, "transformers", with_heads=True)
            kept = {key: nn.Parameter(weights[key]) for key in module.state_dict()}
            module.load_state_dict(kept, assign=True)
            found[name] = (module, our_step(module, name))
        found[name][0].train()
    return found


@dataclass(frozen=True)
class Setting:
    """What all measurements of a run have in common; away from the CPU in bf16 and on the longest sequences."""

    size: str
    sequences: str
    batch_size: int
    device: str
    threads: int

    def autocast(self) -> torch.autocast:
        return torch.autocast(self.device, torch.bfloat16, enabled=self.device != "cpu")

    def batches(self) -> Iterator[Sample]:
        """Batches of real sequences as pretraining sees them, or the longest of the first thousands."""
        recipe = replace(PAPER_RECIPE, batch_size=self.batch_size, micro_batch_size=self.batch_size)
        make = Loader if self.device == "cpu" else LongestLoader
        loader = make(Corpus(Path(self.sequences)), recipe, profile="fixed", seed=0, entities=True)
        for step in range(len(loader.corpus) // self.batch_size):
            yield Sample.of(loader(step)[0].batch, loader.corpus.facts.pad_id).to(self.device)

    def step(self, module: nn.Module, step: Step, batch: Sample) -> float:
        """Forward, both losses, backward; the gradients are dropped, the optimiser is left out."""
        with self.autocast():
            loss = step(batch)
        loss.backward()
        synchronize(torch.device(self.device))
        for parameter in module.parameters():
            parameter.grad = None
        return float(loss.detach())


def speed(*, rounds: int, dropouts: list[float], names: list[str], **common: object) -> Record:
    """Seconds of each variant, round by round, in turn on the same batch."""
    setting = Setting(**common)
    torch.set_num_threads(setting.threads)
    torch.manual_seed(0)
    device, stream = torch.device(setting.device), setting.batches()
    models = same_weights(make_config(setting.size, "", 0.0), names, setting.device)
    turns = [(dropout, name, *models[name]) for dropout in dropouts for name in names]
    rows, kernels, warm = [], {}, next(stream)
    for dropout, name, module, step in turns:
        set_dropout(module, dropout)
        if isinstance(module, LukeForPretraining):
            with setting.autocast():
                kernels[f"{name}, dropout {dropout}"] = attention_kernel(module.luke, device)
        for _ in range(0 if setting.device == "cpu" else 3):
            setting.step(module, step, warm)
    for number in range(rounds):
        batch = next(stream)
        work = work_of(batch.flat.shape)
        places = batch.padded.word_ids.numel() + batch.padded.entity_ids.numel()
        for dropout, name, module, step in turns:
            set_dropout(module, dropout)
            torch.manual_seed(number)
            loss, seconds = timed(lambda m=module, s=step, b=batch: setting.step(m, s, b))
            row = {"round": number, "dropout": dropout, "variant": name, "loss": loss, **seconds}
            row |= {"words": work.words, "entities": work.entities, "places": places}
            flops = training_flops(make_config(setting.size, name, dropout), work)
            rows.append(row | {"flops": flops})
    rate = matrix_rate(device, torch.float32 if setting.device == "cpu" else torch.bfloat16)
    return {"rows": rows, "kernels": kernels, "product_flops": rate}


def memory(*, name: str, dropout: float, **common: object) -> dict[str, float]:
    """10^6 bytes of a process that has this variant alone: when the model is there, and at most in a step."""
    setting = Setting(**common)
    torch.set_num_threads(setting.threads)
    config, is_theirs = make_config(setting.size, name, dropout), name.startswith(THEIRS)
    with torch.device(setting.device):
        module = make_theirs(config) if is_theirs else LukeForPretraining(config)
    module.train()
    step = their_step(module) if is_theirs else our_step(module, name)
    batch = next(setting.batches())
    loaded = reset_peak(setting.device)
    setting.step(module, step, batch)
    return {"loaded_mb": loaded, "peak_mb": peak(setting.device)}


def reset_peak(device: str) -> float:
    """Start the high-water mark anew, and say what is taken now: on a GPU by torch, else by the process."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / 1e6
    Path("/proc/self/clear_refs").write_text("5")
    return kernel_size("VmRSS")


def peak(device: str) -> float:
    """The high-water mark in 10^6 bytes."""
    return torch.cuda.max_memory_allocated() / 1e6 if device != "cpu" else kernel_size("VmHWM")


if __name__ == "__main__":
    serve(speed, memory)
