"""Devices of torch: which there are, what they have, and how fast they are at most."""

import functools
import os
import platform
import re
import resource
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

# Dense TFLOP/s by the makers' data sheets.
PUBLISHED = tomllib.loads(Path(__file__).with_name("peaks.toml").read_text(encoding="utf-8"))
PARTS = {"MIG", "Laptop"}  # words in names of what is less than the device


def resolve_device(name: str) -> torch.device:
    """The device of that name; "auto" is the GPU where there is one. ValueError for one that is not there."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device {name!r} is unknown; use auto, cpu, cuda or cuda:N") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {name!r} is not there ({torch.cuda.device_count()} GPUs found); use cpu or auto")
    return device


def describe_device(device: torch.device) -> str:
    """The name of a GPU, or the machine's type and the threads that torch uses."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {torch.get_num_threads()} threads"


@contextmanager
def deterministic(is_asked: bool) -> Iterator[None]:
    """Have a GPU add up in an order that does not change from run to run, if that is asked for.

    torch warns of operations that have no such order; tests/gpu shows that none of them changes a training.
    """
    if not is_asked:
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read at the first product
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fills = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # nothing reads it
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.utils.deterministic.fill_uninitialized_memory = fills  # type: ignore[attr-defined]


def gpu_memory(device: torch.device) -> int:
    """All bytes of a GPU; 0 elsewhere."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else 0


def peak_memory(device: torch.device) -> int:
    """The most bytes that tensors have taken on a GPU, or that the process has taken of the machine's memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def has_bf16(device: torch.device) -> bool:
    """Return whether a GPU computes products in bf16 itself, or a processor does (AVX512-BF16, AMX)."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # Not in every version of torch.
    features: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(features.get("avx512_bf16") or features.get("amx_bf16"))


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


@dataclass(frozen=True)
class Peaks:
    """FLOP/s that a device reaches at most: `measured` in a product of matrices, `published` in its data sheet."""

    measured: float
    published: float | None = None

    @classmethod
    def of(cls, device: torch.device, *, narrow: bool) -> "Peaks":
        """Of products in bf16, or else in float32, for which no published rate is held."""
        published = published_rate(describe_device(device)) if narrow else None
        return cls(matrix_rate(device, torch.bfloat16 if narrow else torch.float32), published)


@functools.cache
def matrix_rate(device: torch.device, dtype: torch.dtype, seconds: float = 0.3) -> float:
    """Measure the rate of a product of two square matrices, in FLOP/s: the best in `seconds`, once a process."""
    size = 8192 if device.type == "cuda" else 1024
    generator = torch.Generator(device).manual_seed(0)  # one of its own: the run's draws are not disturbed
    left = torch.randn(size, size, generator=generator, device=device).to(dtype)
    right = torch.randn(size, size, generator=generator, device=device).to(dtype)
    best, end = float("inf"), time.monotonic() + seconds
    while best == float("inf") or time.monotonic() < end:
        left @ right  # the device is awake when the clock starts
        synchronize(device)
        began = time.perf_counter()
        left @ right
        synchronize(device)
        best = min(best, time.perf_counter() - began)
    del left, right
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)  # the matrices are no part of the run
    return 2 * size**3 / best


def published_rate(name: str) -> float | None:
    """A device's dense bf16 rate in FLOP/s by its data sheet, of the name that torch gives; None if it is unknown."""
    words = set(re.findall(r"\w+", name))
    known = (key for key in PUBLISHED if words.issuperset(key.split()) and not words & PARTS)
    key = max(known, key=len, default=None)
    return None if key is None else PUBLISHED[key] * 1e12
