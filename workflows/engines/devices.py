"""The torch devices that `--device` means."""

import gc

from workflows.run.kinds import AUTO


def torch_device(name: str) -> str:
    """The torch device that `--device` means.

    Raises:
        ValueError: this machine has no such device.
    """
    import torch

    if name == AUTO:
        return "cuda" if torch.cuda.is_available() else "cpu"
    index = int(name.partition(":")[2] or 0)
    if name.startswith("cuda") and index >= torch.cuda.device_count():
        raise ValueError(
            f"--device {name}: torch finds {torch.cuda.device_count()} CUDA devices here; pass cpu or auto"
        )
    return name


def torch_devices(name: str) -> list[str]:
    """The devices that work may be shared out to: all of CUDA's for `auto`, or else the one.

    Raises:
        ValueError: this machine has no such device.
    """
    import torch

    if name == AUTO and torch.cuda.is_available():
        return [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    return [torch_device(name)]


def free_device_memory() -> None:
    """Give back what torch keeps of a GPU's memory for its next use, since that will be in another process."""
    import torch

    if torch.cuda.is_initialized():
        gc.collect()
        torch.cuda.empty_cache()
