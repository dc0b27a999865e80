"""The kernel that attention runs on, found by running it."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from model.kernels.packing import Packed
from model.luke.encoder import EncoderLayer, LukeModel
from tests.support.flat_batches import layout_of

# What an operator of torch has in its name, and what its kernel is called.
KERNELS = {
    "flash_attention_for_cpu": "the CPU's flash attention",
    "cudnn_attention": "cuDNN",
    "efficient_attention": "memory-efficient attention",
    "flash_attention": "flash attention",
}


def kernel_of(attention: Callable[[Tensor, Packed], Tensor], layout: Packed, width: int, device: torch.device) -> str:
    """The kernel that an attention module over states of that width runs on there, found by running it."""
    calls: list[str] = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(str(function))
            return function(*args, **(kwargs or {}))

    states = torch.zeros(len(layout.order), width, device=device)
    with Recorder():
        attention(states, layout)
    found = (name for part, name in KERNELS.items() if any(part in call for call in calls))
    return next(found, "plain products")


def attention_kernel(module: LukeModel, device: torch.device) -> str:
    """The kernel of attention over a batch there, in the module's present mode: training or not."""
    layout = layout_of([(16, 4), (16, 4)], device)
    attention = cast(EncoderLayer, module.layers[0]).attention
    return kernel_of(attention, layout, module.config.hidden_size, device)
