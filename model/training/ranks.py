"""The processes of one training run, as torchrun starts them: each takes its share of every step's batch.

Losses and gradients are sums, so the processes add them up and all hold the same parameters at every step. A run of one
process is the same run without messages.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as messages
from torch.nn.utils import parameters_to_vector, vector_to_parameters

# How long a process waits for another: loading a large model or writing a checkpoint are well below it.
_TIMEOUT = timedelta(minutes=10)
_SMALL = 1 << 16  # numbers of a gradient that is sent along with others


@dataclass(frozen=True)
class Ranks:
    """This process's number among `count`, and where its part of the model lies."""

    rank: int = 0
    count: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @property
    def is_first(self) -> bool:
        """Return whether this process writes the files, which only one may."""
        return self.rank == 0

    def sum(self, values: Mapping[str, float]) -> dict[str, float]:
        """The sum over all processes of each named value; every process gives the same names."""
        if self.count == 1:
            return dict(values)
        added = torch.tensor([values[name] for name in sorted(values)], dtype=torch.float64, device=self.device)
        messages.all_reduce(added)
        return dict(zip(sorted(values), added.tolist(), strict=True))

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Add up the gradients of all processes; one that nobody has stays absent.

        They are sent once a step, when all its micro-batches are done: the small ones, which are most, in one message.
        """
        if self.count == 1:
            return
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        has_gradient = torch.tensor([parameter.grad is not None for parameter in trained], device=self.device)
        anywhere = has_gradient.int()
        messages.all_reduce(anywhere)
        gradients = []
        for parameter, holders in zip(trained, anywhere.tolist(), strict=True):
            if holders:
                gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                parameter.grad = gradient.contiguous()
                gradients.append(parameter.grad)
        small = [gradient for gradient in gradients if gradient.numel() < _SMALL]
        together = parameters_to_vector(small) if small else torch.zeros(0, device=self.device)
        large = [gradient for gradient in gradients if gradient.numel() >= _SMALL]
        for work in [messages.all_reduce(each, async_op=True) for each in (*large, together)]:
            work.wait()
        vector_to_parameters(together, small)

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Give every process the first one's values."""
        if self.count > 1:
            for tensor in tensors:
                messages.broadcast(tensor, src=0)

    def gather(self, parts: dict[int, Any]) -> dict[int, Any]:
        """The parts of all processes, each by its own number."""
        if self.count == 1:
            return parts
        found: list[Any] = [None] * self.count
        messages.all_gather_object(found, parts)
        return {number: part for each in found for number, part in each.items()}

    def wait(self) -> None:
        """Go on when all processes are here."""
        if self.count > 1:
            messages.barrier()


ALONE = Ranks()


@contextlib.contextmanager
def join(device: torch.device) -> Iterator[Ranks]:
    """The process group that torchrun's environment describes, on this device or, of several GPUs, on its own.

    Raises: ValueError: fewer GPUs than processes on this machine.
    """
    count, local = int(os.environ.get("WORLD_SIZE", 1)), int(os.environ.get("LOCAL_RANK", 0))
    if count == 1:
        yield Ranks(device=device)
        return
    if device.type == "cuda":
        if local >= torch.cuda.device_count():
            raise ValueError(
                f"process {local} of this machine has no GPU ({torch.cuda.device_count()} found); "
                "start as many processes as there are GPUs (torchrun --nproc-per-node)"
            )
        device = torch.device("cuda", local)
        torch.cuda.set_device(device)
    messages.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_TIMEOUT)
    try:
        yield Ranks(messages.get_rank(), count, device)
    finally:
        messages.destroy_process_group()
