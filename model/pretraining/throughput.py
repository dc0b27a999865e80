"""The speed of a run: words a second, and the model's work as a share of the machine's peak."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass

from model.luke.batch import Shape
from model.luke.config import LukeConfig
from model.training.devices import Peaks

WINDOW = 50  # steps that a rate is the mean of


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
