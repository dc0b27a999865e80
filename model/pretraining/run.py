"""Pretraining in phases (sections 3.3, 3.4 and the appendix of the paper), resumable at any step.

Every random choice (first weights, order, masks, dropout) is a function of the run's seed and the step. A run that is
killed and called again has the bits of an unbroken one on the same processor, or GPU with deterministic algorithms.
"""

import json
import logging
import os
import shutil
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from model.data.held_out import HeldOut
from model.data.shards import Corpus
from model.files import ANSWERS, PRETRAINING, WEIGHTS, save_model, write_aside, write_json
from model.hf.load import fingerprint_model
from model.luke.config import LukeConfig
from model.luke.heads import LukeForPretraining
from model.pretraining import VERSION
from model.pretraining.evaluation import sample_predictions
from model.pretraining.loader import Loader
from model.pretraining.phases import Execution, PhaseTraining
from model.pretraining.recipes import RANDOM, SCRATCH, Configuration, Recipe, values_text
from model.pretraining.start import begin_with_words, build_model
from model.training.checkpoints import CHECKPOINTS, Checkpoint, Checkpoints, digest, hold, remove_leftover
from model.training.devices import deterministic, gpu_memory, has_bf16, resolve_device
from model.training.loop import check_seed
from model.training.metrics_log import METRICS, Record, find_tracker, last_figures
from model.training.ranks import join
from model.training.signals import on_sigterm

logger = logging.getLogger(__name__)
DEFAULTS = Execution()


def pretrain(
    sequences: Path,
    output: Path,
    configuration: Configuration,
    *,
    profile: str,
    seed: int,
    device: str,
    progress: bool,
    base_name: str = "",
    commonest: Path | None = None,
    evaluate_every: int | None = None,
    execution: Execution = DEFAULTS,
) -> dict[str, float]:
    """Pretrain on a folder of sequences; `output` gets config.json, model.safetensors and the run's record.

    Processes that torchrun started share the work, and the folder. The configuration's base model is "scratch" or a
    model whose words (encoder and masked-word head) to start from; `base_name` is what the user calls it. A
    configuration without entities is the baseline that learns masked words alone; its entity table has the three
    special rows only.
    `profile` "paper" masks sub-words, and its optimiser and its mean loss are those of the authors' code. Called again
    it resumes from its last checkpoint. Held-out sequences, where there are any, are evaluated every `evaluate_every`
    steps (None: whenever a checkpoint is due; 0: never) and at the end, beside the labels of the file `commonest`; the
    model does not depend on it. Returns the last figures. Raises ValueError for what does not fit together, and where
    another run trains in `output`.
    """
    check_seed(seed)
    with join(resolve_device(device)) as ranks, deterministic(configuration.recipe.deterministic):
        tracker = find_tracker(execution.tracker) if ranks.is_first else None
        corpus = Corpus(sequences)
        module, new = build_model(corpus.facts, configuration, seed=seed)
        run = identity(configuration, corpus, module, profile, seed)
        recipe = resolved(configuration, module.config, ranks.device, profile)
        if is_finished(output, run):
            logger.info("%s: this pretraining is finished already", output)
            if ranks.is_first:
                remove_leftover(output / CHECKPOINTS)
            return last_figures(output)
        log_differences(configuration)
        loader = Loader(corpus, recipe, profile=profile, seed=seed, entities=configuration.entities, ranks=ranks)
        if loader.left_out and ranks.is_first:
            message = "%s: %d of %d sequences have fewer than %d known entities and are left out"
            logger.info(message, sequences, loader.left_out, len(corpus), recipe.min_entities)
        checkpoints = Checkpoints(output, run, execution.checkpoint_minutes, ranks, recipe.computing())
        with hold(checkpoints.folder) if ranks.is_first else nullcontext():
            checkpoint = start_or_resume(module, corpus, checkpoints, recipe)
            record = Record(output, checkpoint.step if checkpoint else 0, tracker) if ranks.is_first else None
            with closing(record) if record else nullcontext():
                held_out = HeldOut.open(sequences, commonest, seen=loader.chosen)
                settings = (ranks, execution, progress, held_out, record, evaluate_every)
                training = PhaseTraining(module, new, loader, checkpoints, *settings)
                with on_sigterm() as checkpoints.stop:
                    training.train(checkpoint)
            if ranks.is_first:
                write_result(training, configuration, base_name)
        ranks.wait()
        return last_figures(output)


def identity(
    configuration: Configuration, corpus: Corpus, module: LukeForPretraining, profile: str, seed: int
) -> dict[str, Any]:
    """The values that define a run; its recipe is the one that was given, on whatever device it goes on."""
    base_model = configuration.base_model
    return {
        "version": VERSION,
        "sequences": corpus.fingerprint,
        "preset": configuration.preset,
        "entities": configuration.entities,
        "profile": profile,
        "seed": seed,
        "base_model": SCRATCH if base_model == SCRATCH else fingerprint_model(base_model),
        "recipe": configuration.recipe.table(),
        "config": asdict(module.config),
    }


def resolved(configuration: Configuration, config: LukeConfig, device: torch.device, profile: str) -> Recipe:
    """The recipe with what it leaves open: to the device, to the base model and to the profile."""
    recipe = configuration.recipe.on_device(
        config, gpu_bytes=gpu_memory(device), has_bf16=has_bf16(device), profile=profile
    )
    start = recipe.start_of_entities(base_model=configuration.base_model, profile=profile)
    return replace(recipe, entity_start=start if configuration.entities else RANDOM)


def log_differences(configuration: Configuration) -> None:
    """Log the values that are not the preset's, and those that a base model changes."""
    if changes := configuration.changes():
        logger.info("preset %s with %s", configuration.preset, values_text(changes))
    if configuration.base_model != SCRATCH:
        logger.info(
            "%s: the sizes are the base model's, but the width of entities and dropout are the preset's",
            configuration.base_model,
        )
    elif any(phase.trainable == "new" for phase in configuration.recipe.phases):
        logger.info("without a base model everything is new: every phase trains the whole model")


def write_result(training: PhaseTraining, configuration: Configuration, base_name: str) -> None:
    """Write the model's answers, how it was trained, and last its weights, with which the run is done."""
    output, run, loader = training.checkpoints.output, training.checkpoints.run, training.loader
    with training.autocast():
        answers = sample_predictions(training.module, training.held_out)
    (output / ANSWERS).unlink(missing_ok=True)
    if answers:
        lines = "".join(f"{json.dumps(row)}\n" for row in answers)
        write_aside(output / ANSWERS, lambda aside: aside.write_text(lines, encoding="utf-8"))
    name = base_name or configuration.base_model
    is_folder = name != SCRATCH and os.path.isdir(name)
    record = {
        "preset": configuration.preset,
        "base_model": os.path.basename(os.path.normpath(name)) if is_folder else name,
        "base_model_is_folder": is_folder,
        "entities": configuration.entities,
        "profile": run["profile"],
        "seed": run["seed"],
        # Whether it was trained, here or in the base model.
        "word_head": loader.recipe.masked_word_share > 0 or "word_head.bias" not in training.new,
        "left_out": loader.left_out,
        "max_words": loader.corpus.facts.max_words,
        "recipe": replace(configuration, recipe=loader.recipe).table(),  # the resolved one
        "changes": configuration.changes(),
    }
    write_json(output / PRETRAINING, record)
    save_model(output, training.module, ("run", digest(run)))
    shutil.rmtree(training.checkpoints.folder, ignore_errors=True)


def start_or_resume(
    module: LukeForPretraining, corpus: Corpus, checkpoints: Checkpoints, recipe: Recipe
) -> Checkpoint | None:
    """Gives every process the model from which the run goes on: that of its last checkpoint, or the first one."""
    ranks, checkpoint = checkpoints.ranks, checkpoints.restore(module)
    if checkpoint is None and ranks.is_first and recipe.entity_start != RANDOM:  # the others get its weights
        begin_with_words(module, corpus)
    ranks.wait()  # all have looked at the checkpoints that the first one may now remove
    module.to(ranks.device)
    ranks.share(module.state_dict().values())
    return checkpoint


def is_finished(output: Path, run: Mapping[str, Any]) -> bool:
    """Return whether `output` holds the result of this very run."""
    try:
        with safe_open(output / WEIGHTS, framework="pt") as file:
            return (file.metadata() or {}).get("run") == digest(run) and (output / METRICS).is_file()
    except (OSError, SafetensorError):
        return False
