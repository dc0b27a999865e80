"""What `model.py` measures inside of a process: `python model_workloads.py WORKLOAD JSON` prints a line of JSON."""

import functools
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model.luke.batch import Batch
from model.luke.config import LukeConfig, preset
from model.luke.encoder import attention_kernel
from model.luke.heads import LukeForPretraining
from model.exchange.keys import from_transformers
from model.pretraining.loader import Loader
from model.pretraining.recipes import PAPER_RECIPE
from model.data.shards import Corpus

ENTITIES = 500_000
THEIRS, ATTENTIONS, LAYOUTS = "transformers", ("original", "entity-aware"), ("padded", "unpadded")
Step = Callable[[Batch], Tensor]


def variants(with_theirs: bool) -> list[str]:
    """The rows of the benchmark: who, attention, layout."""
    theirs = [f"{THEIRS} {attention} padded" for attention in ATTENTIONS]
    ours = [f"ours {attention} {layout}" for attention in ATTENTIONS for layout in LAYOUTS]
    return (theirs if with_theirs else []) + ours


def make_config(size: str, variant: str, dropout: float) -> LukeConfig:
    """The preset with the released vocabularies' sizes."""
    return replace(
        preset(size),
        entity_vocab_size=ENTITIES,
        use_entity_aware_attention="entity-aware" in variant,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )


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


def batches(sequences: str, size: int, longest: bool) -> Iterator[Batch]:
    """Batches of real sequences as pretraining sees them, or the longest of the first thousands."""
    recipe = replace(PAPER_RECIPE, batch_size=size, micro_batch_size=size)
    make = LongestLoader if longest else Loader
    loader = make(Corpus(Path(sequences)), recipe, profile="fixed", seed=0, entities=True)
    for step in range(len(loader.corpus) // size):
        yield loader(step)[0].batch


def set_dropout(module: nn.Module, dropout: float) -> None:
    """The same dropout everywhere."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = dropout
        elif isinstance(getattr(part, "dropout", None), float):
            part.dropout = dropout


def their_step(module: nn.Module) -> Step:
    """Loss of transformers' model on the padded batch."""

    def step(batch: Batch) -> Tensor:
        return module(
            input_ids=batch.word_ids,
            attention_mask=batch.word_mask.long(),
            token_type_ids=torch.zeros_like(batch.word_ids),
            entity_ids=batch.entity_ids,
            entity_attention_mask=batch.entity_mask.long(),
            entity_token_type_ids=torch.zeros_like(batch.entity_ids),
            entity_position_ids=batch.entity_positions,
            labels=batch.word_labels,
            entity_labels=batch.entity_labels,
        ).loss

    return step


def our_step(module: LukeForPretraining, variant: str) -> Step:
    """Loss of our model."""
    is_packed = variant.endswith("unpadded")

    def step(batch: Batch) -> Tensor:
        return sum(module(batch if is_packed else replace(batch, packed=None)).losses.values())

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
        with torch.device("meta"):
            module = make_theirs(own) if name.startswith(THEIRS) else LukeForPretraining(own)
        if name.startswith(THEIRS):
            module = theirs if own.use_entity_aware_attention else make_theirs(own)
            if module is not theirs:
                module.load_state_dict({key: state[key] for key in module.state_dict()}, assign=True)
                module.lm_head.decoder.weight = module.luke.embeddings.word_embeddings.weight
            found[name] = (module, their_step(module))
        else:
            weights = from_transformers(state, "transformers", with_heads=True)
            kept = {key: weights[key] for key in module.state_dict()}
            module.load_state_dict({key: nn.Parameter(value) for key, value in kept.items()}, assign=True)
            found[name] = (module, our_step(module, name))
        found[name][0].train()
    return found


def synchronise(device: str) -> None:
    """Wait for the device."""
    if device != "cpu":
        torch.cuda.synchronize()


def train_step(module: nn.Module, step: Step, batch: Batch, device: str, bf16: bool) -> float:
    """Forward, both losses, backward; the gradients are dropped, the optimiser is left out."""
    with torch.autocast(device, torch.bfloat16, enabled=bf16):
        loss = step(batch)
    loss.backward()
    synchronise(device)
    for parameter in module.parameters():
        parameter.grad = None
    return float(loss.detach())


def speed(
    *,
    size: str,
    sequences: str,
    batch_size: int,
    rounds: int,
    device: str,
    bf16: bool,
    longest: bool,
    dropouts: list[float],
    names: list[str],
    threads: int,
    record: str,
) -> dict[str, Any]:
    """Seconds of each variant, round by round, in turn on the same batch; each is appended to `record`, too."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    models = same_weights(make_config(size, "", 0.0), names, device)
    stream = batches(sequences, batch_size, longest)
    rows: list[dict[str, Any]] = []
    kernels: dict[str, str] = {}
    warm = next(stream).to(device)
    for dropout in dropouts:
        for name, (module, step) in models.items():
            set_dropout(module, dropout)
            if isinstance(module, LukeForPretraining):
                with torch.autocast(device, torch.bfloat16, enabled=bf16):
                    kernel = attention_kernel(module.luke, torch.device(device))
                kernels[f"{name}, dropout {dropout}"] = kernel
            if device != "cpu":
                for _ in range(3):
                    train_step(module, step, warm, device, bf16)
    for number in range(rounds):
        batch = next(stream).to(device)
        for dropout in dropouts:
            for name, (module, step) in models.items():
                set_dropout(module, dropout)
                torch.manual_seed(number)
                begin, cpu = time.perf_counter(), time.process_time()
                loss = train_step(module, step, batch, device, bf16)
                row = {"round": number, "dropout": dropout, "variant": name, "loss": loss}
                row |= {"seconds": time.perf_counter() - begin, "cpu_seconds": time.process_time() - cpu}
                row |= describe(batch) | {"flops": flops(models[name][0], batch, name)}
                rows.append(row)
                with Path(record).open("a") as file:
                    file.write(json.dumps(row) + "\n")
    return {"rows": rows, "kernels": kernels, "product_flops": product_rate(device, bf16)}


def describe(batch: Batch) -> dict[str, int]:
    """Sizes of a batch: real tokens, and all places of the padded one."""
    assert batch.entity_ids is not None
    assert batch.entity_mask is not None
    words, entities = int(batch.word_mask.sum()), int(batch.entity_mask.sum())
    places = batch.word_ids.numel() + batch.entity_ids.numel()
    return {"words": words, "entities": entities, "places": places}


def flops(module: nn.Module, batch: Batch, variant: str) -> float:
    """What the equations need for a step: products alone, no padding, no second computation of anything."""
    c = module.config
    hidden, layers = c.hidden_size, c.num_hidden_layers
    assert batch.packed is not None
    tokens = sum(words + entities for words, entities in batch.packed.lengths)
    inputs = (tokens - batch.packed.word_count) * c.entity_emb_size * hidden
    squares = sum((words + entities) ** 2 for words, entities in batch.packed.lengths)
    queries = 2 if "entity-aware" in variant else 1
    linear = tokens * ((3 + queries) * hidden**2 + 2 * hidden * c.intermediate_size) * layers
    masked_words = int((batch.word_labels != -100).sum())
    masked_entities = int((batch.entity_labels != -100).sum())
    heads = masked_words * hidden * (hidden + c.vocab_size)
    heads += masked_entities * c.entity_emb_size * (hidden + c.entity_vocab_size)
    return 6.0 * (inputs + linear + 2 * squares * hidden * layers + heads)


def product_rate(device: str, bf16: bool, size: int = 0) -> float:
    """Floating point operations a second of a large matrix product, the median of ten."""
    size = size or (8192 if device != "cpu" else 2048)
    left = torch.randn(size, size, device=device, dtype=torch.bfloat16 if bf16 else torch.float32)
    seconds = []
    for _ in range(13):
        synchronise(device)
        begin = time.perf_counter()
        left @ left
        synchronise(device)
        seconds.append(time.perf_counter() - begin)
    return 2 * size**3 / statistics.median(seconds[3:])


def memory(
    *,
    size: str,
    sequences: str,
    batch_size: int,
    device: str,
    bf16: bool,
    longest: bool,
    dropout: float,
    name: str,
    threads: int,
) -> dict[str, float]:
    """10^6 bytes of a process that has this variant alone: when the model is there, and at most in a step.

    On the CPU it is the resident size by the kernel's high-water mark, reset when the model is there; on a GPU
    what torch has allocated.
    """
    torch.set_num_threads(threads)
    config = make_config(size, name, dropout)
    with torch.device(device):
        module = make_theirs(config) if name.startswith(THEIRS) else LukeForPretraining(config)
    module.train()
    step = their_step(module) if name.startswith(THEIRS) else our_step(module, name)
    stream = batches(sequences, batch_size, longest)
    batch = next(stream).to(device)
    loaded = reset_peak(device)
    train_step(module, step, batch, device, bf16)
    return {"loaded_mb": loaded, "peak_mb": peak(device)}


def reset_peak(device: str) -> float:
    """Start the high-water mark anew, and say what is taken now."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / 1e6
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def peak(device: str) -> float:
    """The high-water mark."""
    return torch.cuda.max_memory_allocated() / 1e6 if device != "cpu" else status("VmHWM")


def status(name: str) -> float:
    """A size of this process in 10^6 bytes."""
    text = Path("/proc/self/status").read_text()
    return int(re.search(rf"{name}:\s*(\d+) kB", text)[1]) * 1024 / 1e6


if __name__ == "__main__":
    print(json.dumps({"speed": speed, "memory": memory}[sys.argv[1]](**json.loads(sys.argv[2]))))
