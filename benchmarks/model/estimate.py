"""What a micro-batch would take on a GPU: operations, bytes and kernels, counted without one.

    python -m benchmarks.model.estimate --size large --tokens 32768

The model runs on tensors without values (torch's fake tensors), in bf16, by the GPU's form of attention. Each operation
that torch dispatches counts as a kernel, which reads its inputs and writes its outputs once. Its least time is the
larger of its operations by the product rate and its bytes by the memory's rate; kernels follow one another. Attention
counts half of its rate, which is what flash attention reaches on heads of 64.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from model.kernels import attention_cuda
from model.kernels.cross_entropy import LinearCrossEntropy
from model.kernels.tied_tables import Table
from model.luke.config import LukeConfig, preset
from model.luke.flat import FlatBatch, Shape
from model.luke.heads import Head, LukeForPretraining
from model.pretraining.throughput import training_flops, work_of

PRODUCTS, BYTES = 791e12, 4.0e12  # an H200: what its products reach of 989e12, and its memory of 4.8e12
LAUNCH = 4e-6  # seconds that the host takes for a kernel
ATTENTION_SHARE = 0.5
WORDS, ENTITIES = 480, 32  # of a sequence, about those of Wikipedia's
# What moves no byte: views, and space that is not written yet.
_FREE = {
    *(
        "view",
        "_unsafe_view",
        "slice",
        "select",
        "split",
        "split_with_sizes",
        "detach",
        "transpose",
        "permute",
        "t",
    ),
    *(
        "expand",
        "unsqueeze",
        "squeeze",
        "alias",
        "as_strided",
        "unbind",
        "empty",
        "empty_like",
        "empty_strided",
    ),
    *("new_empty", "new_empty_strided", "unfold"),
}


@dataclass
class Counts(TorchDispatchMode):
    """Operations, bytes and kernels by what they belong to."""

    part: str = "input"
    found: dict[str, list[float]] = field(default_factory=lambda: defaultdict(lambda: [0.0, 0.0, 0.0, 0.0]))

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        library, name, *_ = str(function).split(".")
        if library != "prim" and name not in _FREE:
            tensors = {id(each): each for each in _tensors([args, kwargs or {}, result])}
            moved = sum(each.numel() * each.element_size() for each in tensors.values())
            flops = self.flops(function, name, args, kwargs or {}, result)
            rate = PRODUCTS * (ATTENTION_SHARE if "flash" in name else 1)
            row = self.found["attention kernel" if "flash" in name else self.part]
            for column, value in enumerate((flops, moved, 1, max(flops / rate, moved / BYTES))):
                row[column] += value
        return result

    def flops(self, function: Any, name: str, args: Any, kwargs: Any, result: Any) -> float:
        """Of a product; attention's are counted by the lengths of its sequences."""
        if "_flash_attention_forward" in name:
            return self.attention(args[0], args[6], 2)
        if "_flash_attention_backward" in name:
            return self.attention(args[1], args[9], 5)
        counter = flop_registry.get(function.overloadpacket)
        return float(counter(*args, **kwargs, out_val=result)) if counter else 0.0

    @staticmethod
    def attention(query: Tensor, keys: int, products: int) -> float:
        """So many products of each query with the keys of its sequence; all sequences are equally long."""
        return 2.0 * products * query.shape[0] * keys * query.shape[1] * query.shape[2]


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)


@contextmanager
def as_on_a_gpu() -> Iterator[None]:
    """Attention in the GPU's form, and no looking at ids."""
    with mock.patch.object(attention_cuda, "takes", return_value=True), mock.patch.object(FlatBatch, "check"):
        yield


def shape_of(tokens: int) -> Shape:
    """Sequences of one length, with so many tokens together."""
    sequences = max(1, tokens // (WORDS + ENTITIES))
    return Shape(((WORDS, ENTITIES),) * sequences, 2 * ENTITIES * sequences, 72 * sequences, 5 * sequences)


def count(config: LukeConfig, tokens: int) -> dict[str, list[float]]:
    """Operations, bytes, kernels and least seconds of a forward and backward pass, by part."""
    shape, counts = shape_of(tokens), Counts()
    with FakeTensorMode(), as_on_a_gpu():
        module = LukeForPretraining(config).train()
        numbers = torch.zeros(sum(shape.sizes), dtype=torch.int32)
        mark(module, counts)
        with counts:
            with torch.autocast("cpu", torch.bfloat16):
                asked = module.masked_states(FlatBatch(numbers, shape))
                counts.part = "heads"
                losses = [loss(*module.heads[name], *of) for name, of in asked.items()]
            counts.part = "backward"
            torch.stack(losses).sum().backward()
    return counts.found


def loss(head: Head, table: Table, states: Tensor, wanted: Tensor) -> Tensor:
    """A head's loss as on a GPU: of products in bf16."""
    hidden = head.transform(states)
    found: Tensor = LinearCrossEntropy.apply(hidden, table.weight, head.bias, wanted, torch.bfloat16, False)[
        0
    ]
    return found


def mark(module: LukeForPretraining, counts: Counts) -> None:
    """Have the counts know which part of the forward pass is under way."""

    def enter(part: str) -> Any:
        def hook(*of: Any) -> None:
            counts.part = part

        return hook

    for layer in module.luke.layers:
        layer.register_forward_pre_hook(enter("layers"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", default="large", choices=("tiny", "base", "large"))
    parser.add_argument("--tokens", type=int, default=32768, help="of the micro-batch (default: %(default)s)")
    options = parser.parse_args()
    for attention in ("original", "entity-aware"):
        config = replace(
            preset(options.size),
            entity_vocab_size=500_000,
            use_entity_aware_attention=attention != "original",
        )
        found = count(config, options.tokens)
        print(f"\n{options.size}, {attention} attention, {options.tokens} tokens")
        print(f"{'part':18} {'TFLOP':>8} {'GB':>8} {'kernels':>8} {'least ms':>9}")
        total = [math.fsum(column) for column in zip(*found.values(), strict=True)]
        for part, (flops, moved, kernels, seconds) in [*found.items(), ("all", total)]:
            print(f"{part:18} {flops / 1e12:8.2f} {moved / 1e9:8.2f} {kernels:8.0f} {seconds * 1e3:9.2f}")
        work = training_flops(config, work_of(shape_of(options.tokens)))
        rate = work / max(total[3], total[2] * LAUNCH)
        print(
            f"the model's own work {work / 1e12:.2f} TFLOP: at best {rate / 1e12:.0f} TFLOP/s, "
            f"{rate / PRODUCTS:.0%} of the product rate; the host needs {total[2] * LAUNCH * 1e3:.1f} ms to launch"
        )


if __name__ == "__main__":
    main()
