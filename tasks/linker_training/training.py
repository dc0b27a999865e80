"""Fine-tunes a pretrained model to link: `train_linker` is all that a caller needs."""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from model.exchange.export import BESIDE_WEIGHTS, save_like
from model.exchange.load import fingerprint_model
from model.files import WEIGHTS, pretrained_words, write_aside
from model.luke.heads import LukeForPretraining
from model.training.metrics_log import find_tracker
from pipeline.lookup.mentions import MentionTable
from pipeline.sequences.tokenizer import WordTokenizer, tokenizer_contents
from pipeline.storage.files import file_sha256
from pipeline.storage.manifests import MANIFEST, read_manifest
from tasks.entities.annotations import METRICS, entities_sha256
from tasks.entities.candidates import MOST, CandidateFinder
from tasks.entities.disambiguation.entity_model import EntityModel, load_model, read_titles
from tasks.entities.documents.document import Document, LeftOut, to_json
from tasks.entities.documents.reading import read_documents
from tasks.finetuning import VERSION
from tasks.finetuning.epochs import EpochTraining, best_epoch
from tasks.finetuning.finetune import CHECKPOINTS
from tasks.finetuning.inference import predict, score
from tasks.finetuning.prepare import Run
from tasks.finetuning.results import digest, finished_metrics
from tasks.finetuning.variants import VARIANTS
from tasks.linker_training.inputs import MASKED_SHARE, inputs_of
from tasks.linker_training.task import Disambiguation
from tasks.task import Classifier, Hyperparameters, Task

logger = logging.getLogger(__name__)
TASK = "entity_disambiguation"
TRAIN, DEV, TEST = "train", "dev", "test"


@dataclass(frozen=True)
class LinkerSettings:
    """How a linker is trained; the values of the authors' code are the defaults, but for the prior.

    Attributes:
        masked_share: of the mentions of a window, those that are asked for; the others have their right entities.
        prior_weight: of the logarithm of the prior, beside the logit, as `link` takes them; 0 in the authors' code.
        softmax_weight: of the cross entropy over all entities of the model, beside that over the candidates; with it
            mentions are asked for, too, whose page the model knows and is no candidate. 0 in the authors' code.
        own_links: whether the documents are pages of the table's dump; what each links itself is not counted for it.
        most_candidates: of a mention, the commonest.
        patience: epochs in a row without a better score on dev that end training; 0: none do.
        skips_wrong: whether what is wrong in the documents is left out, and counted, or an error.
    """

    learning_rate: float = 2e-5
    batch_size: int = 8
    epochs: int = 2
    masked_share: float = MASKED_SHARE
    prior_weight: float = 1.0
    softmax_weight: float = 0.0
    own_links: bool = False
    most_candidates: int = MOST
    patience: int = 0
    skips_wrong: bool = False
    tokens_per_batch: int = 0
    precision: str = "float32"
    gradient_checkpointing: bool = False

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
            patience=self.patience,
            precision=self.precision,
            gradient_checkpointing=self.gradient_checkpointing,
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
    test: Path | None = None,
    seed: int = 42,
    device: str = "auto",
    checkpoint_minutes: float = 30.0,
    progress: bool = False,
    keeps_weights: bool = True,
    tracker: str = "",
) -> dict[str, Any]:
    """Trains on the documents of a file, keeps the epoch that is best on dev, and returns the metrics.

    The loss is the cross entropy over the candidates of each mention that is asked for. The entity table, the bias of
    the entity head and the head of words stay as they are. Writes into `output` a model of the kind of `weights`, its
    tokenizer's files, training.jsonl and, last, metrics.json. Another run's result is gone once this one's is written.

    Args:
        train, dev, test: documents with titles, in any of the formats. The last are scored, and change nothing.
        mentions: folder of the mention table.
        weights, tokenizer: folder of Pretrain, of a LukeForMaskedLM of transformers with its entity_vocab.json, or one
            that this wrote, and the folder of its tokenizer.
        checkpoint_minutes: between two checkpoints within an epoch (0: none); there is one after each epoch, and the
            same call goes on from it.
        keeps_weights: whether there is a model; without, the metrics alone are of use.
        tracker: the module:function that gets figures as they come.

    Raises:
        ValueError: for what cannot be read or does not fit together, where nothing can be learnt from `train` or
            judged on `dev`, where a checkpoint is another run's, and where `output` is the folder of `weights` or of
            `tokenizer`.
        Stopped: after SIGTERM.
    """
    if output.resolve() in (weights.resolve(), tokenizer.resolve()):
        raise ValueError(
            f"{output}: what training begins with is there; give another folder for what it writes"
        )
    if output.exists() and not output.is_dir():
        raise ValueError(f"{output}: a file; wanted a folder, which need not be there")
    titles = read_titles(weights)
    read_manifest(str(mentions))  # which says what is wrong with another folder
    files = tokenizer_contents(tokenizer)
    paths = {TRAIN: train, DEV: dev} | ({TEST: test} if test else {})
    sources = {split: Source.read(path, skips_wrong=settings.skips_wrong) for split, path in paths.items()}
    identity = {
        "version": VERSION,
        "settings": asdict(settings),
        "seed": seed,
        **fingerprints(sources, mentions, weights, files),
        **({} if keeps_weights else {"keeps_weights": False}),
    }
    if metrics := finished_metrics(output, identity):
        logger.info("%s: this training is finished already", output)
    else:
        track = find_tracker(tracker)
        table = MentionTable(str(mentions))
        model = load_model(weights, table, WordTokenizer.load(tokenizer), device=device)
        run = prepare(model, table, sources, tokenizer, settings, seed=seed, progress=progress)
        training = EpochTraining(run, output / CHECKPOINTS, identity, checkpoint_minutes, track)
        training.train()
        metrics = metrics_of(training) | ({} if titles else {"entities_sha256": entities_sha256(mentions)})
        if titles and tokenizer.resolve() == weights.resolve():  # save_like copies more than we read of it
            files = {name: each for name, each in files.items() if not (weights / name).is_file()}
        write(training, weights if keeps_weights else None, output, files, metrics)
    shutil.rmtree(output / CHECKPOINTS, ignore_errors=True)
    return metrics


def fingerprints(
    sources: Mapping[str, "Source"], mentions: Path, weights: Path, tokenizer: Mapping[str, bytes]
) -> dict[str, Any]:
    """What tells the inputs of a training from others."""
    return {
        "documents": {split: source.digest() for split, source in sources.items()},
        "mentions": file_sha256(str(mentions / MANIFEST)),
        "weights": fingerprint_model(str(weights)),
        "max_words": pretrained_words(weights),
        "tokenizer": digest({name: content.hex() for name, content in tokenizer.items()}),
    }


class Source(NamedTuple):
    """A split's file, its documents, and how much of the file was left out."""

    path: Path
    documents: Sequence[Document]
    left_out: Mapping[str, int]

    @classmethod
    def read(cls, path: Path, *, skips_wrong: bool) -> "Source":
        """The documents of a file. Raises: ValueError naming what cannot be read, unless what is wrong is skipped."""
        left_out = LeftOut()
        documents = read_documents(path, left_out if skips_wrong else None)
        for each in left_out.told():
            logger.warning("left out: %s", each)
        counts = {"wrong_place": len(left_out.mentions)}
        if left_out.documents:
            counts["documents_left_out"] = left_out.documents.total()
        return cls(path, documents, counts)

    def digest(self) -> str:
        """What tells its documents from others, whatever the format."""
        return digest({"documents": list(map(to_json, self.documents))})


def prepare(
    model: EntityModel,
    table: MentionTable,
    sources: Mapping[str, Source],
    tokenizer: Path,
    settings: LinkerSettings,
    *,
    seed: int,
    progress: bool,
) -> Run:
    """A run with its inputs. Raises: ValueError where nothing can be learnt or judged."""
    finder = CandidateFinder(table, settings.most_candidates)
    datasets, features = {}, {}
    for split, source in sources.items():
        datasets[split], features[split] = inputs_of(
            model,
            finder,
            source.documents,
            learns=split == TRAIN,
            share=settings.masked_share,
            beyond_candidates=settings.softmax_weight > 0,
            own_links=settings.own_links,
            counts=source.left_out,
        )
        if not features[split].items or not features[split].counts["asked"]:
            raise ValueError(
                f"{source.path}: no mention with its page among several candidates that the model knows "
                f"({json.dumps(features[split].counts)}); give documents of the mention table's wiki"
            )
    module = model.module
    for frozen in (module.luke.entity_embeddings.token.weight, module.entity_head.bias):
        frozen.requires_grad_(False)
    module.word_head.requires_grad_(False)
    module.luke.gradient_checkpointing = settings.gradient_checkpointing
    return Run(
        # Training asks of a task and of its model what these two have.
        task=cast(
            Task[Any, Any], Disambiguation(model, finder, settings.prior_weight, settings.softmax_weight)
        ),
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
        "task": TASK,
        "seed": run.seed,
        "settings": training.identity["settings"],
        **{split: score(run, split, predict(run, split)) for split in run.datasets if split != TRAIN},
        "kept_epoch": best_epoch(run, training.epochs)["epoch"],
        "epochs": training.epochs,
        "data": {split: dict(each.counts) for split, each in run.features.items()},
        "run": digest(training.identity),
    }


def write(
    training: EpochTraining,
    like: Path | None,
    output: Path,
    tokenizer: Mapping[str, bytes],
    metrics: Mapping[str, Any],
) -> None:
    """Writes the folder, the metrics last: each file appears complete or not at all.

    The model is of the kind of that in the folder `like`; None: there is none.
    """
    for name in (METRICS, WEIGHTS, *BESIDE_WEIGHTS):
        (output / name).unlink(
            missing_ok=True
        )  # another run's: of two tokenizers that of RoBERTa would be read
    output.mkdir(parents=True, exist_ok=True)
    if like:
        save_like(like, output, cast(LukeForPretraining, training.run.module))
    texts = {
        "training.jsonl": "".join(json.dumps(record) + "\n" for record in training.history),
        METRICS: json.dumps(metrics, indent=2) + "\n",
    }
    for name, content in {**tokenizer, **{name: text.encode() for name, text in texts.items()}}.items():
        write_aside(output / name, partial(Path.write_bytes, data=content))
