"""The speed of a run: words a second, and the model's work as a share of the machine's peak."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from model.luke.batch import Shape
from model.luke.config import LukeConfig
from model.training.devices import Peaks

WINDOW = 50  # steps that a rate is the mean of


def training_flops(config: LukeConfig, shape: Shape, *, encoder_trains: bool = True) -> int:
    """Floating-point operations of a batch's forward and backward pass, a multiplication and an addition as two.

    Matrix products alone: the layers' projections (over words and entities), attention, the entities' projection
    and both heads at masked positions, where alone the last layer does what follows attention. Backward takes twice
    the forward pass; once where the encoder's weights and the word head are frozen (phase one), since gradients pass
    through them. What is computed twice to save memory, and padding, is no work of the model's.
    """
    hidden, width, narrow = config.hidden_size, config.intermediate_size, config.entity_emb_size
    queries = 2 if config.use_entity_aware_attention else 1  # of each token, each for its own kind of keys
    tokens, masked = shape.words + shape.entities, shape.masked_words + shape.masked_entities
    pairs = sum((words + entities) ** 2 for words, entities in shape.lengths)  # that attend to each other
    before = 2 * tokens * hidden * (2 + queries) * hidden  # a layer's attention
    after = 2 * hidden * (hidden + 2 * width)  # and what follows, of a token
    attention = 2 * pairs * hidden * 2
    word_head = 2 * shape.masked_words * hidden * (hidden + config.vocab_size)
    entity_input = 0 if narrow == hidden else 2 * shape.entities * narrow * hidden
    inner = hidden * hidden if config.entity_head == "paper" else 0
    entity_head = 2 * shape.masked_entities * (inner + narrow * (hidden + config.entity_vocab_size))
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
        self.encoder_trains = True
        self.work = np.zeros(3)  # sequences, words, operations of this step
        self.window: deque[tuple[float, ...]] = deque(maxlen=WINDOW)  # seconds and work of each
        self.seconds_aside: dict[str, float] = {}

    def add(self, shape: Shape) -> None:
        """Count a micro-batch."""
        flops = training_flops(self.config, shape, encoder_trains=self.encoder_trains)
        self.work += (len(shape.lengths), shape.words, flops)

    def step(self) -> None:
        """End a step."""
        now = self.clock()
        self.window.append((now - self.since, *self.work))
        self.since, self.work = now, np.zeros(3)

    @contextmanager
    def aside(self, name: str) -> Iterator[None]:
        """Time what is no part of a step."""
        began = self.clock()
        yield
        self.since = self.clock()
        self.seconds_aside[name] = self.seconds_aside.get(name, 0.0) + self.since - began

    def figures(self) -> dict[str, float]:
        """Rates over the last steps, and all seconds spent on something else."""
        seconds, *work = np.array([(0.0,) * 4, *self.window]).sum(axis=0).tolist()
        sequences, words, flops = (each / max(1e-9, seconds) for each in work)
        rates = {
            "seconds_per_step": seconds / max(1, len(self.window)),
            "sequences_per_second": self.ranks * sequences,
            "words_per_second": self.ranks * words,
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
