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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from model.files import Configured, read_tensors, save_model, write_aside, write_tensors

logger = logging.getLogger(__name__)
MODEL, OPTIMIZER, STATE, LOCK = "model.safetensors", "optimizer.safetensors", "state.json", ".lock"
PREFIX, PARTIAL, REMOVED = "step-", ".partial-", ".removed-"
KEPT = 2
NOTHING: Mapping[str, Mapping[str, Tensor]] = {}


@dataclass(frozen=True)
class Checkpoint:
    """A complete checkpoint: its folder, the number of finished steps, and the figures since the last line."""

    folder: Path
    step: int
    figures: Mapping[str, Any]

    def restore_model(self, module: nn.Module) -> None:
        """Load the weights into a module of the same configuration."""
        module.load_state_dict(read_tensors(self.folder / MODEL))

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Other tensors of that name."""
        return read_tensors(self.folder / f"{name}.safetensors")

    def restore_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Load the optimiser's state; its parameter groups are the caller's."""
        state: dict[int, dict[str, Tensor]] = {}
        for key, tensor in read_tensors(self.folder / OPTIMIZER).items():
            number, name = key.split(".", 1)
            state.setdefault(int(number), {})[name] = tensor
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold a folder of checkpoints against other runs, until this one ends, however it ends.

    Raises:
        ValueError: another run holds it.
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
            logger.warning(
                "%s: cannot be locked (%s); see that no other run trains there", folder, error.strerror
            )
        yield


def remove_leftover(folder: Path) -> None:
    """Remove the checkpoints of a run that was killed when it was done, unless another run trains there."""
    if folder.is_dir():
        with contextlib.suppress(ValueError), hold(folder):
            shutil.rmtree(folder, ignore_errors=True)


def save_checkpoint(
    folder: Path,
    *,
    step: int,
    module: Configured,
    optimizer: torch.optim.Optimizer,
    run: Mapping[str, Any],
    figures: Mapping[str, Any],
    tensors: Mapping[str, Mapping[str, Tensor]] = NOTHING,
    ranks: int = 1,
    device: str | torch.device = "cpu",
    computing: Mapping[str, Any] = NOTHING,
    kept: int = KEPT,
) -> None:
    """Add a checkpoint after `step` finished steps to `folder`, then drop all but the last `kept` whole ones.

    `tensors` are what else the run goes on with, by name; `computing` is what a warning names where it differs.
    The checkpoint becomes visible by one rename, so an interruption leaves the earlier ones as they were; so does a
    full disk, which is an OSError. What an interruption has left half-written or half-removed goes before.
    """
    for name in (PARTIAL, REMOVED):  # of an interruption
        for path in folder.glob(f"{name}*"):
            shutil.rmtree(path, ignore_errors=True)
    aside = folder / f"{PARTIAL}{step:08d}"
    aside.mkdir(parents=True)
    try:
        save_model(aside, module)
        write_tensors(aside / OPTIMIZER, optimizer_tensors(optimizer))
        for name, others in tensors.items():
            write_tensors(aside / f"{name}.safetensors", others)
        sizes = {path.name: path.stat().st_size for path in sorted(aside.iterdir())}
        state = {
            "step": step,
            "run": run,
            "figures": figures,
            "environment": {**environment(ranks, device), **computing},
            "files": sizes,
        }
        text = json.dumps(state, indent=1)
        write_aside(aside / STATE, lambda path: path.write_text(text, encoding="utf-8"))
        target = folder / f"{PREFIX}{step:08d}"
        discard(target)
        aside.rename(target)
        sync_folder(folder)
    except (OSError, SafetensorError) as error:
        discard(aside)
        remedy = "those before it are whole: make room, and the same call goes on from the last one"
        if not folder.is_dir():
            remedy = "somebody has removed its folder: the same call begins anew"
        raise OSError(
            f"{folder}: the checkpoint after step {step} cannot be written ({error}); {remedy}"
        ) from error
    prune(folder, target, kept)


def prune(folder: Path, newest: Path, kept: int) -> None:
    """Remove all checkpoints but `newest` and the last whole ones before it, `kept` in all.

    One with a later step is another run's, or damaged: `latest_checkpoint` would have gone on from it.
    """
    earlier = [path for path in checkpoint_folders(folder) if path.name < newest.name and read_state(path)]
    for path in set(checkpoint_folders(folder)) - {newest, *earlier[: kept - 1]}:
        discard(path)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's state as tensors named by parameter number and part."""
    state = optimizer.state_dict()["state"]
    return {f"{number}.{name}": tensor for number, parts in state.items() for name, tensor in parts.items()}


def latest_checkpoint(
    folder: Path,
    run: Mapping[str, Any],
    ranks: int = 1,
    device: str | torch.device = "cpu",
    computing: Mapping[str, Any] = NOTHING,
) -> Checkpoint | None:
    """The last complete checkpoint, or None; ValueError, with both values, when it is another run's.

    One that was made in another environment is taken, with a warning that names what differs.
    """
    for path in checkpoint_folders(folder):
        state = read_state(path)
        if state is None:
            logger.warning("%s: incomplete, the checkpoint before it is used", path)
            continue
        refuse_other_run(path, state["run"], run)
        before, now = state["environment"], {**environment(ranks, device), **computing}
        if changes := [
            f"{name} {before.get(name)!r}, now {value!r}"
            for name, value in now.items()
            if before.get(name) != value
        ]:
            logger.warning(
                "%s: made with %s; the bits may differ from those of an unbroken run",
                path,
                "; ".join(changes),
            )
        return Checkpoint(path, state["step"], state["figures"])
    return None


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


def environment(ranks: int, device: str | torch.device) -> dict[str, Any]:
    """The machine and versions, on which the last bit of a result may depend besides the run's own values."""
    kind = torch.device(device)
    return {
        "processes": ranks,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "threads": torch.get_num_threads(),
        "machine": platform.machine(),
        "processor": processor(),
        # Kernels are chosen by it: those of two machines add up in another order.
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "device": torch.cuda.get_device_name(kind) if kind.type == "cuda" else kind.type,
    }


def processor() -> str:
    """The model of the CPU, empty where the system has no name for it."""
    facts = Path("/proc/cpuinfo")
    text = facts.read_text(encoding="utf-8", errors="replace") if facts.is_file() else ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return found[1] if found else platform.processor()


def discard(folder: Path) -> None:
    """Remove a folder; renamed first, so that no half-removed checkpoint is ever seen."""
    if folder.exists():
        doomed = folder.with_name(f"{REMOVED}{folder.name.removeprefix('.')}")
        shutil.rmtree(doomed, ignore_errors=True)
        folder.rename(doomed)
        shutil.rmtree(doomed)


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
