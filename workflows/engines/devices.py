"""The torch devices that work may be shared out to, and their memory."""

import gc

from workflows.run.kinds import AUTO


def torch_devices(name: str) -> list[str]:
    """The devices that work may be shared out to: all of CUDA's for `auto`, or else the one.

    Raises: ValueError: this machine has no such device.
    """
    import torch

    from model.training.devices import resolve_device

    if name == AUTO and torch.cuda.is_available():
        return [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    return [str(resolve_device(name))]


def free_device_memory() -> None:
    """Give back what torch keeps of a GPU's memory for its next use, since that will be in another process."""
    import torch

    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()
