"""Fine-tunes a pretrained model to link: `train_linker` is all that a caller needs."""

import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from model.exchange.load import fingerprint_model, is_ours
from model.files import WEIGHTS, save_model, write_aside
from model.luke.heads import LukeForPretraining
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer, tokenizer_contents
from pipeline.storage.files import file_sha256
from pipeline.storage.manifests import MANIFEST, read_manifest
from tasks.entities.annotations import METRICS, entities_sha256
from tasks.entities.candidates import MOST, CandidateFinder
from tasks.entities.disambiguation import EntityModel, load_model
from tasks.entities.documents.reading import read_documents
from tasks.finetuning.epochs import EpochTraining, best_epoch
from tasks.finetuning.finetune import CHECKPOINTS
from tasks.finetuning.inference import predict, score
from tasks.finetuning.prepare import Run
from tasks.finetuning.results import digest, finished_metrics
from tasks.finetuning.variants import VARIANTS
from tasks.linking.inputs import MASKED_SHARE, inputs_of
from tasks.linking.task import Disambiguation
from tasks.task import Classifier, Hyperparameters, Task

logger = logging.getLogger(__name__)
SPLITS = ("train", "dev")


@dataclass(frozen=True)
class LinkerSettings:
    """How a linker is trained; the values of the authors' code are the defaults, but for the prior.

    Attributes:
        masked_share: of the mentions of a window, those that are asked for; the others have their right entities.
        prior_weight: of the logarithm of the prior, beside the logit, as `link` takes them; 0 in the authors' code.
        most_candidates: of a mention, the commonest.
        skips_wrong: whether mentions of JSON lines with a wrong place are left out, and counted, or an error.
    """

    learning_rate: float = 2e-5
    batch_size: int = 8
    epochs: int = 2
    masked_share: float = MASKED_SHARE
    prior_weight: float = 1.0
    most_candidates: int = MOST
    skips_wrong: bool = False
    tokens_per_batch: int = 0
    precision: str = "float32"

    def hyperparameters(self) -> Hyperparameters:
        """Those of the training loop."""
        return Hyperparameters(
            self.learning_rate,
            self.learning_rate,
            self.batch_size,
            self.epochs,
            warmup_ratio=0.1,
            betas=(0.9, 0.999),
            tokens_per_batch=self.tokens_per_batch,
            precision=self.precision,
        )


def train_linker(
    train: Path,
    dev: Path,
    mentions: Path,
    weights: Path,
    tokenizer: Path,
    output: Path,
    settings: LinkerSettings,
    *,
    seed: int = 42,
    device: str = "auto",
    checkpoint_minutes: float = 30.0,
    progress: bool = False,
) -> dict[str, Any]:
    """Trains on the documents of a file, keeps the epoch that is best on dev, and returns the metrics.

    The loss is the cross entropy over the candidates of each mention that is asked for. The entity table, the bias of
    the entity head and the head of words stay as they are. Writes into `output` a model as that of Pretrain, its
    tokenizer's files, training.jsonl and, last, metrics.json. Another run's result is gone once this one's is written.

    Args:
        train, dev: documents with titles, in any of the formats.
        mentions: folder of the mention table.
        weights, tokenizer: folder of Pretrain, or one that this wrote, and the folder of its tokenizer.
        checkpoint_minutes: between two checkpoints within an epoch (0: none); there is one after each epoch, and the
            same call goes on from it.

    Raises:
        ValueError: for what cannot be read or does not fit together, where nothing can be learnt from `train` or
            judged on `dev`, and where a checkpoint is another run's.
        Stopped: after SIGTERM.
    """
    if not is_ours(weights):
        raise ValueError(
            f"{weights}: no model of this project; training starts from a folder of Pretrain, not from its export"
        )
    read_manifest(str(mentions))  # which says what is wrong with another folder
    files = tokenizer_contents(tokenizer)
    identity = {
        "settings": asdict(settings),
        "seed": seed,
        **{name: file_sha256(str(path)) for name, path in (("train", train), ("dev", dev))},
        "mentions": file_sha256(str(mentions / MANIFEST)),
        "weights": fingerprint_model(str(weights)),
        "tokenizer": digest({name: content.hex() for name, content in files.items()}),
    }
    if metrics := finished_metrics(output, identity):
        logger.info("%s: this training is finished already", output)
    else:
        table = MentionTable(str(mentions))
        model = load_model(weights, table, WordTokenizer.load(tokenizer), device=device)
        paths = {"train": train, "dev": dev}
        run = prepare(model, table, paths, tokenizer, settings, seed=seed, progress=progress)
        training = EpochTraining(run, output / CHECKPOINTS, identity, checkpoint_minutes)
        training.train()
        metrics = metrics_of(training) | {"entities_sha256": entities_sha256(mentions)}
        write(model.module, output, files, training, metrics)
    shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)
    return metrics


def prepare(
    model: EntityModel,
    table: MentionTable,
    paths: Mapping[str, Path],
    tokenizer: Path,
    settings: LinkerSettings,
    *,
    seed: int,
    progress: bool,
) -> Run:
    """A run with its inputs. Raises: ValueError where nothing can be learnt or judged."""
    finder = CandidateFinder(table, settings.most_candidates)
    datasets, features = {}, {}
    for split in SPLITS:
        left_out: list[str] | None = [] if settings.skips_wrong else None
        documents = read_documents(paths[split], left_out)
        datasets[split], features[split] = inputs_of(
            model,
            finder,
            documents,
            learns=split == "train",
            share=settings.masked_share,
            counts={"wrong_place": len(left_out or ())},
        )
        if not features[split].items or not features[split].counts["asked"]:
            raise ValueError(
                f"{paths[split]}: no mention with its page among several candidates that the model knows "
                f"({json.dumps(features[split].counts)}); give documents of the mention table's wiki"
            )
    module = model.module
    for frozen in (module.luke.entity_embeddings.token.weight, module.entity_head.bias):
        frozen.requires_grad_(False)
    module.word_head.requires_grad_(False)
    return Run(
        # Training asks of a task and of its model what these two have.
        task=cast(Task[Any, Any], Disambiguation(finder, settings.prior_weight)),
        module=cast(Classifier, module),
        variant=VARIANTS["luke"],
        hyperparameters=settings.hyperparameters(),
        profile="fixed",
        labels=(),
        negative=None,
        tokenizer=tokenizer,
        datasets=datasets,
        features=features,
        pad_id=model.tokenizer.pad_id,
        seed=seed,
        device=model.device,
        progress=progress,
    )


def metrics_of(training: EpochTraining) -> dict[str, Any]:
    """The scores of the epoch that is kept, those of all, and what could not be used."""
    run = training.run
    return {
        "task": "entity_disambiguation",
        "seed": run.seed,
        "settings": training.identity["settings"],
        "dev": score(run, "dev", predict(run, "dev")),
        "kept_epoch": best_epoch(run, training.epochs)["epoch"],
        "epochs": training.epochs,
        "data": {split: dict(run.features[split].counts) for split in SPLITS},
        "run": digest(training.identity),
    }


def write(
    module: LukeForPretraining,
    output: Path,
    tokenizer: Mapping[str, bytes],
    training: EpochTraining,
    metrics: Mapping[str, Any],
) -> None:
    """Writes the folder, the metrics last: each file appears complete or not at all."""
    for name in (METRICS, WEIGHTS):
        (output / name).unlink(missing_ok=True)  # another run's
    save_model(output, module)
    texts = {
        "training.jsonl": "".join(json.dumps(record) + "\n" for record in training.history),
        METRICS: json.dumps(metrics, indent=2) + "\n",
    }
    for name, content in {**tokenizer, **{name: text.encode() for name, text in texts.items()}}.items():
        write_aside(output / name, partial(Path.write_bytes, data=content))
