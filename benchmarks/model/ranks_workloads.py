"""What `ranks.py` has torchrun start: steps of one process of several, by each way to add up gradients."""

import json
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as messages
from torch.nn.parallel import DistributedDataParallel

from benchmarks.harness.workloads import Record
from model.luke.config import preset
from model.luke.flat import FlatBatch
from model.luke.heads import LukeForPretraining
from model.training.ranks import Ranks, join
from tests.support.flat_batches import random_flat

WORDS, ENTITIES = 120, 8  # of a sequence


def backward(module: nn.Module, batches: list[FlatBatch], synchronised: bool) -> None:
    """The gradients of all micro-batches; DistributedDataParallel sends them within the last one."""
    for number, batch in enumerate(batches):
        is_silent = synchronised and number + 1 < len(batches)
        with module.no_sync() if is_silent else nullcontext():  # type: ignore[operator]
            loss: Tensor = sum(module(batch).losses.values())  # type: ignore[assignment]
            loss.backward()


def one_by_one(parameters: Iterable[nn.Parameter]) -> None:
    """A message for each gradient."""
    for work in [messages.all_reduce(parameter.grad, async_op=True) for parameter in parameters]:
        work.wait()


def norm(parameters: list[nn.Parameter]) -> float:
    """The norm of all gradients."""
    return float(nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None]))


def steps(ranks: Ranks, arguments: Record) -> Record:
    """Seconds and the gradients' norm of a step, by way and round; the ways take turns."""
    device, config = ranks.device, preset(arguments["size"])
    torch.set_num_threads(arguments["threads"])
    torch.manual_seed(0)
    module = LukeForPretraining(config).eval().to(device)  # without dropout all ways have the same gradients
    parameters = list(module.parameters())
    several = DistributedDataParallel(module, gradient_as_bucket_view=True)
    lengths = [(WORDS, ENTITIES)] * max(1, arguments["tokens"] // (WORDS + ENTITIES))
    first = ranks.rank * arguments["parts"]
    batches = [
        random_flat(lengths, config, seed=first + number).to(device) for number in range(arguments["parts"])
    ]
    ways: dict[str, tuple[nn.Module, Callable[[], Any]]] = {
        "no message": (module, lambda: None),
        "ours": (module, lambda: ranks.add_gradients(parameters)),
        "one by one": (module, lambda: one_by_one(parameters)),
        "DistributedDataParallel": (several, lambda: None),
    }
    found: Record = {name: [] for name in ways}
    for number in range(arguments["rounds"] + 1):
        for name, (called, add_up) in ways.items():
            module.zero_grad(set_to_none=True)
            ranks.wait()
            began = time.perf_counter()
            backward(called, batches, synchronised=called is several)
            add_up()
            ranks.wait()
            seconds = time.perf_counter() - began
            if number:  # the first round is for the machine to get ready
                # A mean of all processes, where ours is a sum.
                scale = ranks.count if called is several else 1
                found[name].append({"seconds": seconds, "norm": scale * norm(parameters)})
    megabytes = sum(parameter.numel() * parameter.element_size() for parameter in parameters) / 1e6
    return {"ways": found, "gradients": len(parameters), "megabytes": megabytes}


def main() -> None:
    arguments = json.loads(sys.argv[1])
    with join(torch.device(arguments["device"])) as ranks:
        found = steps(ranks, arguments)
        if ranks.is_first:
            print(json.dumps(found))


if __name__ == "__main__":
    main()
