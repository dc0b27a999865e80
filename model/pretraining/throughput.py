"""The speed of a run: words a second, and the model's work as a share of the machine's peak."""

import functools
import platform
import re
import resource
import sys
import time
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

import torch

from model.luke.config import LukeConfig
from model.luke.flat import Shape

WINDOW = 50  # steps that a rate is the mean of
# Dense TFLOP/s by the makers' data sheets.
PUBLISHED = tomllib.loads(Path(__file__).with_name("peaks.toml").read_text(encoding="utf-8"))
PARTS = {"MIG", "Laptop"}  # words in names of what is less than the device


@dataclass(frozen=True)
class Work:
    """Processed sequences and tokens. `pairs`: pairs of tokens (words and entities) that attend to each other."""

    sequences: int = 0
    words: int = 0
    entities: int = 0
    pairs: int = 0
    masked_words: int = 0
    masked_entities: int = 0

    def __add__(self, other: "Work") -> "Work":
        return Work(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))


def work_of(shape: Shape) -> Work:
    """The work of a batch."""
    pairs = sum((words + entities) ** 2 for words, entities in shape.lengths)
    masked = shape.masked_words, shape.masked_entities
    return Work(len(shape.lengths), shape.words, shape.entities, pairs, *masked)


def training_flops(config: LukeConfig, work: Work, *, encoder_trains: bool = True) -> int:
    """Floating-point operations of a forward and backward pass, a multiplication and an addition as two.

    Matrix products alone: the layers' projections (over words and entities), attention, the entities' projection
    and both heads at masked positions, where alone the last layer does what follows attention. Backward takes twice
    the forward pass; once where the encoder's weights and the word head are frozen (phase one), since gradients pass
    through them. What is computed twice to save memory, and padding, is no work of the model's.
    """
    hidden, width, narrow = config.hidden_size, config.intermediate_size, config.entity_emb_size
    queries = 2 if config.use_entity_aware_attention else 1  # of each token, each for its own kind of keys
    tokens, masked = work.words + work.entities, work.masked_words + work.masked_entities
    before = 2 * tokens * hidden * (2 + queries) * hidden  # a layer's attention
    after = 2 * hidden * (hidden + 2 * width)  # and what follows, of a token
    attention = 2 * work.pairs * hidden * 2
    word_head = 2 * work.masked_words * hidden * (hidden + config.vocab_size)
    entity_input = 0 if narrow == hidden else 2 * work.entities * narrow * hidden
    inner = hidden * hidden if config.entity_head == "paper" else 0
    entity_head = 2 * work.masked_entities * (inner + narrow * (hidden + config.entity_vocab_size))
    layers = config.num_hidden_layers
    weighted = layers * before + ((layers - 1) * tokens + masked) * after + word_head
    others = layers * attention + entity_input + entity_head
    return (3 if encoder_trains else 2) * weighted + 3 * others


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


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def gpu_memory(device: torch.device) -> int:
    """All bytes of a GPU; 0 elsewhere."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else 0


def has_bf16(device: torch.device) -> bool:
    """Return whether a GPU computes products in bf16 itself, or a processor does (AVX512-BF16, AMX)."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    features: dict[str, object] = getattr(
        torch.cpu, "get_capabilities", dict
    )()  # not in every version of torch
    return bool(features.get("avx512_bf16") or features.get("amx_bf16"))


def peak_memory(device: torch.device) -> int:
    """The most bytes that tensors have taken on a GPU, or that the process has taken of the machine's memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


def describe_device(device: torch.device) -> str:
    """The name of a GPU, or the machine's type and the threads that torch uses."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {torch.get_num_threads()} threads"


class Meter:
    """Rates over the last steps, on this rank; words a second are those of all `ranks`, which share evenly.

    Evaluation and checkpoints (`aside`) do not count for the rates.
    """

    def __init__(
        self, config: LukeConfig, peaks: Peaks, ranks: int = 1, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.config = config
        self.peaks = peaks
        self.ranks = ranks
        self.clock = clock
        self.since = clock()
        self.work = Work()
        self.window: deque[tuple[float, Work, int]] = deque(maxlen=WINDOW)
        self.seconds_aside: dict[str, float] = {}

    def add(self, work: Work) -> None:
        """Count a micro-batch."""
        self.work += work

    def step(self, *, encoder_trains: bool = True) -> None:
        """End a step."""
        now = self.clock()
        flops = training_flops(self.config, self.work, encoder_trains=encoder_trains)
        self.window.append((now - self.since, self.work, flops))
        self.since, self.work = now, Work()

    @contextmanager
    def aside(self, name: str) -> Iterator[None]:
        """Time what is no part of a step."""
        began = self.clock()
        yield
        self.since = self.clock()
        self.seconds_aside[name] = self.seconds_aside.get(name, 0.0) + self.since - began

    def figures(self) -> dict[str, float]:
        """Rates over the last steps, and all seconds spent on something else."""
        seconds = max(1e-9, sum(each for each, _, _ in self.window))
        work = sum((each for _, each, _ in self.window), Work())
        flops = sum(each for _, _, each in self.window) / seconds
        rates = {
            "seconds_per_step": seconds / max(1, len(self.window)),
            "sequences_per_second": self.ranks * work.sequences / seconds,
            "words_per_second": self.ranks * work.words / seconds,
            "flops_per_second": self.ranks * flops,
            "share_of_measured_peak": flops / self.peaks.measured,
        }
        if self.peaks.published is not None:
            rates["share_of_published_peak"] = flops / self.peaks.published
        return rates | {f"seconds_of_{name}": value for name, value in self.seconds_aside.items()}


def progress_text(losses: Mapping[str, float], figures: Mapping[str, float]) -> str:
    """The text beside the progress bar: losses by name, speed and shares of the peaks."""
    parts = [f"{name.replace('_', ' ')} {value:.3f}" for name, value in losses.items()]
    parts.append(f"{figures['words_per_second']:,.0f} words/s")
    for name in ("measured", "published"):
        if (share := figures.get(f"share_of_{name}_peak")) is not None:
            parts.append(f"{share:.0%} of the {name} peak")
    return ", ".join(parts)
