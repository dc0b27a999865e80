"""The kernels that a micro-batch of pretraining launches on a GPU in bf16, and the bytes that they move.

    python -m tests.support.launches [SIZE ...]  # the counts of presets, large and base

No GPU is needed: torch runs the model on tensors that have shapes and no values. Each operation counts as a kernel
that reads its inputs and writes its outputs once, but the kernel of the loss reads its logits twice. A look-up moves
the rows that it finds.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from model.kernels import attention_cuda, narrow
from model.luke.batch import IGNORED, FlatBatch, collate
from model.luke.config import MASKED_SHARE, LukeConfig, preset
from model.luke.heads import LukeForPretraining
from tests.support.flat_batches import random_sequence

SEQUENCES, WORDS, ENTITIES = 32, 482, 30  # 16,384 tokens
_MOVE_NOTHING = {
    *("alias", "as_strided", "detach", "device", "empty", "empty_like", "empty_strided", "expand", "new_empty"),
    *("new_empty_strided", "permute", "promote_types", "select", "slice", "split", "split_with_sizes", "squeeze"),
    *("t", "transpose", "unbind", "unsqueeze", "view", "_unsafe_view"),
}
_LOOK_UPS = ("embedding", "index_add_")


class Launches(TorchDispatchMode):
    """Counts and bytes by the names of operations, of torch and of Triton."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name not in _MOVE_NOTHING:
            tensors = [each for each in tree_leaves((args, kwargs, output)) if isinstance(each, Tensor)]
            sizes = [size_of(each) for each in tensors if each.dim() > 1 or name not in _LOOK_UPS]
            self.add(name, 2 * min(sizes) if name in _LOOK_UPS else sum(sizes))
        return output

    def launch(self, name: str, programs: int, *arguments: Any, **constants: Any) -> None:
        """Count one of Triton's kernels."""
        sizes = [size_of(each) for each in arguments if isinstance(each, Tensor)]
        self.add(f"triton {name}", sum(sizes) + (2 * sizes[0] if name == "cross_entropy" else 0))

    def add(self, name: str, size: int) -> None:
        self.counts[name] += 1
        self.bytes[name] += size

    @property
    def gigabytes(self) -> float:
        """All bytes."""
        return sum(self.bytes.values()) / 1e9


def size_of(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def micro_batch(config: LukeConfig) -> FlatBatch:
    """A full micro-batch, of which as much is masked as in pretraining."""
    generator = np.random.default_rng(0)
    sequences = []
    for _ in range(SEQUENCES):
        sequence = random_sequence(WORDS, ENTITIES, config, generator)
        labels = {
            "word_labels": masked(sequence.word_ids, generator),
            "entity_labels": masked(sequence.entity_ids, generator),
        }
        sequences.append(replace(sequence, **labels))
    return collate(sequences, max_mention_words=30, entities=True)


def masked(ids: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """The labels of so many of these ids."""
    labels = np.full(len(ids), IGNORED)
    chosen = generator.choice(len(ids), size=int(MASKED_SHARE * len(ids)), replace=False)
    labels[chosen] = ids[chosen]
    return labels


@contextmanager
def as_on_a_gpu(counted: Launches, *, has_triton: bool) -> Iterator[None]:
    """Have tensors take the ways of a GPU."""
    patches = [
        mock.patch.object(torch.Tensor, "is_cuda", True),
        mock.patch.object(FlatBatch, "check"),
        mock.patch.object(attention_cuda, "takes", return_value=True),
        mock.patch.object(narrow, "has_triton", return_value=has_triton),
        mock.patch.object(narrow, "draw_seed", return_value=1),
        mock.patch.object(narrow, "launch", counted.launch),
    ]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


def count(size: str, *, entity_aware: bool, has_triton: bool = True) -> tuple[Launches, Launches]:
    """Those of the first micro-batch of a step, which copies weights, and of a later one, which adds to gradients."""
    config = replace(preset(size), use_entity_aware_attention=entity_aware)
    batch = micro_batch(config)
    found = Launches(), Launches()
    with FakeTensorMode() as mode:
        module = LukeForPretraining(config).train()
        for _, table in module.heads.values():
            table.adds_in_place = True
        there = FlatBatch(mode.from_tensor(batch.numbers), batch.shape)
        for counted in found:
            with as_on_a_gpu(counted, has_triton=has_triton), counted:
                with torch.autocast("cpu", torch.bfloat16):
                    total = torch.stack(list(module(there).losses.values())).sum()
                total.backward()
    return found


def main() -> None:
    print("preset attention    Triton  micro-batch  launches      GB")
    for size in sys.argv[1:] or ("large", "base"):
        for entity_aware in (True, False):
            for has_triton in (False, True):
                found = count(size, entity_aware=entity_aware, has_triton=has_triton)
                for name, counted in zip(("first", "later"), found, strict=True):
                    kind, mark = ("aware" if entity_aware else "original"), ("yes" if has_triton else "no")
                    launches = sum(counted.counts.values())
                    print(f"{size:<6} {kind:<12} {mark:<7} {name:<11} {launches:>9} {counted.gigabytes:>7.1f}")


if __name__ == "__main__":
    main()
