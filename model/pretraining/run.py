"""Pretraining in phases (sections 3.3, 3.4 and the appendix of the paper), resumable at any step.

Every random choice of a run (first weights, order, masks, dropout) is a function of its seed and the step, so
a run that is killed and called again ends with the same bits as an unbroken one on the same machine.
"""

import hashlib
import json
import logging
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from model.data.held_out import HeldOut
from model.data.shards import Corpus
from model.exchange.load import fingerprint_model
from model.files import WEIGHTS, save_model
from model.luke.heads import LukeForPretraining
from model.pretraining.evaluation import Schedule
from model.pretraining.loader import Loader
from model.pretraining.phases import CHECKPOINTS, PhaseTraining, Settings, Watched
from model.pretraining.recipes import RECIPES, Recipe
from model.pretraining.start import SCRATCH, build_model
from model.pretraining.throughput import Meter, matrix_rate
from model.training.checkpoints import Checkpoint, latest_checkpoint
from model.training.loop import resolve_device
from model.training.metrics_log import METRICS, Record, last_figures
from model.training.ranks import Ranks, join
from model.training.signals import on_sigterm

logger = logging.getLogger(__name__)
DEFAULTS = Settings()


def pretrain(
    sequences: Path,
    output: Path,
    *,
    preset: str,
    base_model: str,
    entities: bool,
    profile: str,
    seed: int,
    device: str,
    progress: bool,
    tokens_per_batch: int = 0,
    precision: str = "float32",
    gradient_checkpointing: bool = False,
    compiled: bool = False,
    commonest: Path | None = None,
    evaluate_every: int | None = None,
    settings: Settings = DEFAULTS,
) -> dict[str, float]:
    """Pretrain on a folder of sequences; `output` gets config.json, model.safetensors and the run's record.

    Processes that torchrun started share the work, and the folder. `base_model` is "scratch" or a model whose
    words (encoder and masked-word head) to start from. Without `entities` it is the baseline that learns masked
    words alone; its entity table has the three special rows only. `profile` "paper" masks sub-words and leaves
    out Adam's bias correction. `Recipe` says what `tokens_per_batch` to `compiled` mean. Called again it resumes
    from its last checkpoint. Held-out sequences, where there are any, are evaluated every `evaluate_every` steps
    (None: whenever a checkpoint is due; 0: never) and at the end, beside the labels of the file `commonest`; the
    model does not depend on it. Returns the last figures. Raises ValueError for what does not fit together.
    """
    if not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed}, but must be at least 0 and below 2^63")
    with join(resolve_device(device)) as ranks:
        corpus = Corpus(sequences)
        module, new = build_model(corpus.facts, preset, base_model, entities=entities, seed=seed)
        recipe = replace(
            RECIPES[preset],
            tokens_per_batch=tokens_per_batch,
            precision=precision,
            gradient_checkpointing=gradient_checkpointing,
            compiled=compiled,
            begins_at_own_place=RECIPES[preset].begins_at_own_place and base_model == SCRATCH,
        )
        recipe = recipe if entities else recipe.without_entities()
        run = {
            "sequences": corpus.fingerprint,
            "preset": preset,
            "entities": entities,
            "profile": profile,
            "seed": seed,
            "base_model": SCRATCH if base_model == SCRATCH else fingerprint_model(base_model),
            "recipe": asdict(recipe),
            "config": asdict(module.config),
        }
        if is_finished(output, run):
            logger.info("%s: this pretraining is finished already", output)
            return last_figures(output)
        loader = Loader(corpus, recipe, profile=profile, seed=seed, entities=entities, ranks=ranks)
        checkpoint = set_out(module, output, run, ranks)
        with open_record(output, checkpoint.step if checkpoint else 0, ranks) as record:
            watched = watch(recipe, HeldOut.open(sequences, commonest), module, ranks, record, evaluate_every)
            training = PhaseTraining(module, new, loader, output, run, ranks, settings, progress, watched)
            with on_sigterm() as training.stop:
                training.train(checkpoint)
        if ranks.is_first:
            save_model(output, module, ("run", digest(run)))
            shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)
        ranks.wait()
        return last_figures(output)


def set_out(
    module: LukeForPretraining, output: Path, run: Mapping[str, Any], ranks: Ranks
) -> Checkpoint | None:
    """Gives every process the model from which the run goes on: that of its last checkpoint, if there is one."""
    checkpoint = latest_checkpoint(output / CHECKPOINTS, run, ranks.count, ranks.device)
    if checkpoint:
        logger.info("%s: resumed after step %d", checkpoint.folder, checkpoint.step)
        checkpoint.restore_model(module)
    ranks.wait()  # all have looked at the checkpoints that the first one may now remove
    if ranks.is_first:
        output.mkdir(parents=True, exist_ok=True)
    module.to(ranks.device)
    ranks.share(module.state_dict().values())
    return checkpoint


def open_record(output: Path, step: int, ranks: Ranks) -> AbstractContextManager[Record | None]:
    """The record of a run that goes on after `step` steps; the first process has it."""
    return closing(Record(output, step)) if ranks.is_first else nullcontext()


def watch(
    recipe: Recipe,
    held_out: HeldOut,
    module: LukeForPretraining,
    ranks: Ranks,
    record: Record | None,
    evaluate_every: int | None,
) -> Watched:
    """What goes beside a run of that recipe."""
    every = recipe.checkpoint_every if evaluate_every is None else evaluate_every
    steps = sum(phase.steps for phase in recipe.phases)
    schedule = Schedule(every if len(held_out) else 0, steps, recipe.batch_size)
    peak = matrix_rate(ranks.device, torch.bfloat16 if recipe.precision == "bf16" else torch.float32)
    return Watched(held_out, schedule, record, Meter(module.config, peak, ranks.count))


def is_finished(output: Path, run: Mapping[str, Any]) -> bool:
    """Whether `output` holds the result of this very run."""
    try:
        with safe_open(output / WEIGHTS, framework="pt") as file:
            return (file.metadata() or {}).get("run") == digest(run) and (output / METRICS).is_file()
    except (OSError, SafetensorError):
        return False


def digest(run: Mapping[str, Any]) -> str:
    """SHA-256 of what defines a run."""
    return hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()
