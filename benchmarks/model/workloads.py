"""Models of both implementations, and the steps of them that `step.py` measures in a process of its own."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.harness.workloads import Record, kernel_size, serve, timed
from model.data.shards import Corpus
from model.hf.keys import from_transformers
from model.luke.batch import FlatBatch
from model.luke.config import LukeConfig, preset
from model.luke.heads import LukeForPretraining
from model.pretraining.loader import Loader
from model.pretraining.recipes import PAPER_RECIPE
from tests.support.attention_kernels import attention_kernel
from tests.support.padded import PaddedBatch, padded

ENTITIES = 500_000
OURS, THEIRS = "ours", "transformers"
AWARE, ORIGINAL = "entity-aware", "original"


@dataclass(frozen=True)
class Sample:
    """The same sequences without padding and with it."""

    flat: FlatBatch
    padded: PaddedBatch

    @classmethod
    def of(cls, flat: FlatBatch, pad_id: int) -> "Sample":
        """Return both forms of a batch that lies on the CPU."""
        return cls(flat, padded(flat, pad_id))

    def to(self, device: torch.device | str) -> "Sample":
        return Sample(self.flat.to(device), self.padded.to(device))

    def facts(self) -> Record:
        """Return the real words and entities, and the places of the padded form."""
        shape, entities = self.flat.shape, self.padded.entity_ids
        places = self.padded.word_ids.numel() + (0 if entities is None else entities.numel())
        return {"words": shape.words, "entities": shape.entities, "places": places}


Step = Callable[[Sample], Tensor]


def variants() -> list[str]:
    """Return the rows of the benchmark: who, attention, layout."""
    attentions = (ORIGINAL, AWARE)
    theirs = [f"{THEIRS} {attention} padded" for attention in attentions]
    return theirs + [f"{OURS} {attention} unpadded" for attention in attentions]


def make_config(size: str, variant: str, dropout: float) -> LukeConfig:
    """Return the preset with the released vocabularies' sizes."""
    changes = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    changes["use_entity_aware_attention"] = AWARE in variant
    return replace(preset(size), entity_vocab_size=ENTITIES, **changes)


def make_theirs(config: LukeConfig) -> nn.Module:
    """Return transformers' model, with the tied table that it wants; eager is the only attention that it has."""
    import transformers

    values = {name: value for name, value in asdict(config).items() if name != "entity_head"}
    module = transformers.LukeForMaskedLM(transformers.LukeConfig(**values))
    module.lm_head.decoder.weight = module.luke.embeddings.word_embeddings.weight
    return module


def set_dropout(module: nn.Module, dropout: float) -> None:
    """Set the same dropout everywhere."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = dropout
        elif isinstance(getattr(part, "dropout", None), float):
            part.dropout = dropout


def their_step(module: nn.Module) -> Step:
    """Return the loss of transformers' model on the padded batch."""

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


def our_step(module: LukeForPretraining) -> Step:
    """Return the loss of our model."""
    return lambda sample: sum(module(sample.flat).losses.values())


def same_weights(config: LukeConfig, names: list[str]) -> dict[str, tuple[nn.Module, Step]]:
    """Return models for all variants that share one set of weights, so that they fit beside each other and agree."""
    found: dict[str, tuple[nn.Module, Step]] = {}
    theirs = make_theirs(replace(config, use_entity_aware_attention=True))
    state = theirs.state_dict()
    for name in names:
        own = replace(config, use_entity_aware_attention=AWARE in name)
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
            found[name] = (module, our_step(module))
        found[name][0].train()
    return found


def batches(sequences: str, size: int) -> Iterator[Sample]:
    """Yield batches of real sequences as pretraining sees them."""
    recipe = replace(PAPER_RECIPE, batch_size=size, micro_batch_size=size)
    loader = Loader(Corpus(Path(sequences)), recipe, profile="fixed", seed=0, entities=True)
    for step in range(len(loader.corpus) // size):
        yield Sample.of(loader(step)[0].batch, loader.corpus.facts.pad_id)


def whole_step(module: nn.Module, step: Step, batch: Sample) -> float:
    """Go forward, through both losses, and backward; the gradients are dropped, the optimiser is left out."""
    loss = step(batch)
    loss.backward()
    for parameter in module.parameters():
        parameter.grad = None
    return float(loss.detach())


def speed(
    *, size: str, sequences: str, batch_size: int, threads: int, rounds: int, dropouts: list[float],
    names: list[str],
) -> Record:  # fmt: skip
    """Measure the seconds of each variant, round by round, in turn on the same batch."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    models = same_weights(make_config(size, "", 0.0), names)
    turns = [(dropout, name, *models[name]) for dropout in dropouts for name in names]
    rows, kernels = [], {}
    for number, batch in zip(range(rounds), batches(sequences, batch_size), strict=False):
        for dropout, name, module, step in turns:
            set_dropout(module, dropout)
            if name.startswith(OURS) and not number:
                kernels[f"{name}, dropout {dropout}"] = attention_kernel(module.luke, torch.device("cpu"))
            torch.manual_seed(number)
            loss, seconds = timed(lambda m=module, s=step, b=batch: whole_step(m, s, b))
            row = {"round": number, "dropout": dropout, "variant": name, "loss": loss}
            rows.append(row | seconds | batch.facts())
    return {"rows": rows, "kernels": kernels}


def memory(*, size: str, sequences: str, batch_size: int, threads: int, name: str, dropout: float) -> dict[str, float]:
    """Measure 10^6 bytes of a process that has this variant alone: when the model is there, and at most in a step."""
    torch.set_num_threads(threads)
    config = make_config(size, name, dropout)
    module = make_theirs(config) if name.startswith(THEIRS) else LukeForPretraining(config)
    step = their_step(module) if name.startswith(THEIRS) else our_step(module)
    batch = next(batches(sequences, batch_size))
    loaded = reset_peak("cpu")
    whole_step(module.train(), step, batch)
    return {"loaded_mb": loaded, "peak_mb": peak("cpu")}


def reset_peak(device: str) -> float:
    """Start the high-water mark anew, and say what is taken now: on a GPU by torch, else by the process."""
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / 1e6
    Path("/proc/self/clear_refs").write_text("5")
    return kernel_size("VmRSS")


def peak(device: str) -> float:
    """Return the high-water mark in 10^6 bytes."""
    return torch.cuda.max_memory_allocated() / 1e6 if device != "cpu" else kernel_size("VmHWM")


if __name__ == "__main__":
    serve(speed, memory)
