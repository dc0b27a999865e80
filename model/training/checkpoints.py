"""Checkpoints of a training run: complete or absent, the last few kept, refused by any other run.

A checkpoint is a folder step-00000120/ with the model (as in every model folder), the optimiser's state, what other
tensors the run goes on with, and state.json, which is the promise: the finished steps, what run it belongs to, the
figures that are in no line yet, and the size of each file.
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from model.files import Configured, read_tensors, save_model, write_aside, write_tensors
from model.training.ranks import ALONE, Ranks
from model.training.signals import Stopped, StopRequest

logger = logging.getLogger(__name__)
CHECKPOINTS = "checkpoints"  # of a run, in its folder
MODEL, OPTIMIZER, STATE, LOCK = "model.safetensors", "optimizer", "state.json", ".lock"
PREFIX, PARTIAL = "step-", ".partial-"
KEPT = 2
NOTHING: Mapping[str, Mapping[str, Tensor]] = {}


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint: its folder, the number of finished steps, and the figures since the last line."""

    folder: Path
    step: int
    figures: Mapping[str, Any]

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Other tensors of that name."""
        return read_tensors(self.folder / f"{name}.safetensors")

    def restore_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Load the optimiser's state; its parameter groups are the caller's."""
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in self.tensors(OPTIMIZER).items():
            number, name = key.split(".", 1)
            state.setdefault(int(number), {})[name] = tensor
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold a folder of checkpoints against other runs, until this one ends, however it ends.

    Raises: ValueError: another run holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{folder.parent}: another run trains there; wait for it, or choose another folder"
            ) from None
        except OSError as error:
            logger.warning("%s: cannot be locked (%s); let no other run train there", folder, error.strerror)
        yield


def remove_leftover(folder: Path) -> None:
    """Remove the checkpoints of a run that was killed when it was done, unless another run trains there."""
    if folder.is_dir():
        with contextlib.suppress(ValueError), hold(folder):
            shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Checkpoints:
    """The checkpoints of one run in its folder `output`, of which all processes have the same.

    `run` is what they are recognised by, and `computing` what a warning names where it differs. One is also written
    when so many `minutes` have passed (0: never) since the last one, and at SIGTERM, which `stop` notes.
    """

    output: Path
    run: Mapping[str, Any]
    minutes: float = 0.0
    ranks: Ranks = ALONE
    computing: Mapping[str, Any] = field(default_factory=dict)
    stop: StopRequest = field(default_factory=StopRequest)

    def __post_init__(self) -> None:
        self.folder = self.output / CHECKPOINTS
        self.environment = {**environment(self.ranks), **self.computing}
        self.saved_at, self.is_stopped = time.monotonic(), False

    def restore(self, module: nn.Module) -> Checkpoint | None:
        """The last complete checkpoint, or None; its weights are in `module` then, which has its configuration.

        One that was made in another environment is taken, with a warning that names what differs.

        Raises: ValueError: it is another run's.
        """
        for path in checkpoint_folders(self.folder):
            state = read_state(path)
            if state is None:
                logger.warning("%s: incomplete, the checkpoint before it is used", path)
                continue
            refuse_other_run(path, state["run"], self.run)
            before = state["environment"]
            if changes := [
                f"{name} {before.get(name)!r}, now {value!r}"
                for name, value in self.environment.items()
                if before.get(name) != value
            ]:
                made = "; ".join(changes)
                logger.warning("%s: made with %s; the bits may differ from an unbroken run's", path, made)
            logger.info("%s: resumed after step %d", path, state["step"])
            module.load_state_dict(read_tensors(path / MODEL))
            return Checkpoint(path, state["step"], state["figures"])
        return None

    def is_time(self) -> bool:
        """Return whether one is due by the clock, or because SIGTERM came to any of the processes, which all ask."""
        self.is_stopped = bool(self.ranks.sum({"stop": self.stop.is_made})["stop"])
        return self.is_stopped or 0 < self.minutes <= (time.monotonic() - self.saved_at) / 60

    def save(
        self,
        step: int,
        module: Configured,
        optimizer: torch.optim.Optimizer,
        figures: Mapping[str, Any],
        tensors: Mapping[str, Mapping[str, Tensor]] = NOTHING,
    ) -> None:
        """Add a checkpoint after `step` finished steps, then drop all but the last whole ones; one process does.

        `tensors` are what else the run goes on with, by name. The checkpoint becomes visible by one rename, so an
        interruption leaves the earlier ones as they were; so does a full disk, which is an OSError.

        Raises: Stopped: SIGTERM had come when `is_time` was asked.
        """
        if self.ranks.is_first:
            state = {"step": step, "run": self.run, "figures": figures, "environment": self.environment}
            write(self.folder, state, module, {OPTIMIZER: optimizer_tensors(optimizer), **tensors})
        self.saved_at = time.monotonic()
        if self.is_stopped:
            raise Stopped(self.output, step)


def write(
    folder: Path, state: Mapping[str, Any], module: Configured, tensors: Mapping[str, Mapping[str, Tensor]]
) -> None:
    """Write a checkpoint; what an interruption has left half-written goes before."""
    for path in folder.glob(f"{PARTIAL}*"):
        shutil.rmtree(path, ignore_errors=True)
    step = state["step"]
    aside = folder / f"{PARTIAL}{step:08d}"
    aside.mkdir(parents=True)
    try:
        save_model(aside, module)
        for name, others in tensors.items():
            write_tensors(aside / f"{name}.safetensors", others)
        sizes = {path.name: path.stat().st_size for path in sorted(aside.iterdir())}
        text = json.dumps({**state, "files": sizes}, indent=1)
        write_aside(aside / STATE, lambda path: path.write_text(text, encoding="utf-8"))
        target = folder / f"{PREFIX}{step:08d}"
        shutil.rmtree(target, ignore_errors=True)
        aside.rename(target)
        sync_folder(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(aside, ignore_errors=True)
        remedy = "those before it are whole: make room, and the same call goes on from the last one"
        if not folder.is_dir():
            remedy = "somebody has removed its folder: the same call begins anew"
        raise OSError(f"{folder}: the checkpoint after step {step} cannot be written ({error}); {remedy}") from error
    prune(folder, target)


def prune(folder: Path, newest: Path) -> None:
    """Remove all checkpoints but `newest` and the last whole ones before it, KEPT in all.

    One with a later step is another run's, or damaged: `restore` would have gone on from it.
    """
    earlier = [path for path in checkpoint_folders(folder) if path.name < newest.name and read_state(path)]
    for path in set(checkpoint_folders(folder)) - {newest, *earlier[: KEPT - 1]}:
        shutil.rmtree(path)  # which is not whole, and so nothing, as soon as a file is missing


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state as tensors named by parameter number and part."""
    state = optimizer.state_dict()["state"]
    return {f"{number}.{name}": tensor for number, parts in state.items() for name, tensor in parts.items()}


def digest(run: Mapping[str, Any]) -> str:
    """SHA-256 of what defines a run."""
    return hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()


def checkpoint_folders(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the last first."""
    return sorted(folder.glob(f"{PREFIX}*"), reverse=True)


def read_state(path: Path) -> dict[str, Any] | None:
    """The state.json of a checkpoint, or None where it or a file that it promises is not whole."""
    try:
        state: dict[str, Any] = json.loads((path / STATE).read_text(encoding="utf-8"))
        complete = all((path / name).stat().st_size == size for name, size in state["files"].items())
    except (OSError, ValueError, KeyError):
        return None
    return state if complete else None


def refuse_other_run(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise a ValueError that names the first value in which the two runs differ."""
    old, new = flatten(found), flatten(wanted)
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            raise ValueError(
                f"{path}: {name} is {old.get(name)!r} in this checkpoint, but {new.get(name)!r} is asked "
                "for; ask for the same again, or remove the checkpoints to start anew"
            )


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values under dotted names, as JSON would give them back."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = json.loads(json.dumps(value))
    return flat


def environment(ranks: Ranks) -> dict[str, Any]:
    """The machine and versions, on which the last bit of a result may depend besides the run's own values."""
    device = ranks.device
    return {
        "processes": ranks.count,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "processor": processor(),
        # Kernels are chosen by it: those of two machines add up in another order.
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
    }


def processor() -> str:
    """The model of the CPU, empty where the system has no name for it."""
    facts = Path("/proc/cpuinfo")
    text = facts.read_text(encoding="utf-8", errors="replace") if facts.is_file() else ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else platform.processor()


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
