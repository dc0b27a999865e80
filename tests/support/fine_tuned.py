"""Tiny fine-tuned models of every task, made of the example data.

Their weights are large and all but random, so that they predict a lot.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import torch

from model.files import save_model
from model.luke.config import PRESETS, LukeConfig
from model.luke.heads import LukeForPretraining
from pipeline.sequences.tokenizer_training import train_tokenizer
from tasks.finetuning import finetune as finetuning
from tasks.finetuning.prepare import FineTuningSettings, Prepared, prepare
from tasks.finetuning.registry import TASKS
from tasks.finetuning.variants import VARIANTS
from tasks.io.records import read_records
from tasks.task import Hyperparameters
from tests.support import ROOT

EXAMPLES = ROOT / "examples"
Record = dict[str, Any]
CONFIG: LukeConfig = replace(
    PRESETS["tiny"], vocab_size=600, entity_vocab_size=6, hidden_size=32, entity_emb_size=16,
    num_hidden_layers=1, intermediate_size=64, max_position_embeddings=98, initializer_range=0.4,
)  # fmt: skip
QUICK = Hyperparameters(learning_rate=1e-4, head_learning_rate=1e-4, batch_size=16, epochs=1)

# Four steps of an epoch, twelve in all; NER's features of a step have some 900 words and entities.
THREE = Hyperparameters(learning_rate=2e-3, head_learning_rate=5e-3, batch_size=16, epochs=3)


def name_of(task: object) -> str:
    """The registry's name of a task."""
    return next(name for name, each in TASKS.items() if each is task)


def pretrained(folder: Path) -> None:
    """Random weights (`weights`) and a tokenizer of the example data (`tokenizer`)."""
    texts = (EXAMPLES / "relation_classification" / "train.json").read_text().splitlines()
    train_tokenizer(texts, folder / "tokenizer", CONFIG.vocab_size)
    words = len(json.loads((folder / "tokenizer" / "vocab.json").read_text()))
    torch.manual_seed(0)
    save_model(folder / "weights", LukeForPretraining(replace(CONFIG, vocab_size=words)))


def word_pieces(texts: Iterable[str], size: int) -> list[str]:
    """BERT's special words, all letters, then the pieces that cover most: always the same, as a trainer's are not."""
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer

    plain, splitter = BertNormalizer(), BertPreTokenizer()
    counts = Counter(word for text in texts for word, _ in splitter.pre_tokenize_str(plain.normalize_str(text)))
    letters = sorted(set("".join(counts)))
    covered: Counter[str] = Counter()
    for word, count in counts.items():
        for start, end in combinations(range(len(word) + 1), 2):
            if 2 <= end - start <= 5:
                covered[f"{'##' if start else ''}{word[start:end]}"] += count * (end - start)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = sorted(covered, key=lambda piece: (-covered[piece], piece))
    return [*special, *letters, *(f"##{letter}" for letter in letters), *pieces][:size]


def bert(folder: Path, positions: int = 96) -> None:
    """A random BERT of transformers with a WordPiece vocabulary of the example data."""
    from transformers import BertConfig, BertModel

    texts = [(EXAMPLES / name).read_text() for name in ("ner/train.txt", "relation_classification/train.json")]
    words = {word: number for number, word in enumerate(word_pieces(["@ #", *texts], 700))}
    folder.mkdir()
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    names = (
        "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "initializer_range",
    )  # fmt: skip
    sizes = {name: getattr(CONFIG, name) for name in names}
    torch.manual_seed(0)
    config = BertConfig(**sizes, vocab_size=len(words), pad_token_id=words["[PAD]"], max_position_embeddings=positions)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)


def fine_tuned(folder: Path, tasks: Iterable[str]) -> Path:
    """The folder, with what `pretrained` writes and a model of each task."""
    pretrained(folder)
    for task in tasks:
        fine_tune(task, folder)
    return folder


def fine_tune(task: str, folder: Path, variant: str = "luke") -> Path:
    """Fine-tunes what `pretrained` wrote into `folder` and returns the new folder."""
    output = folder / f"{task}-{variant}"
    finetune(folder, output, QUICK, task=task, variant=variant)
    return output


def finetune(
    folder: Path, output: Path, hyperparameters: Hyperparameters = THREE, *, task: str = "ner", **given: Any
) -> dict[str, Any]:
    """Fine-tunes what `pretrained` wrote into `folder`; `given` are settings and, if not the example's, the data."""
    data = given.pop("data", EXAMPLES / task)
    changes = asdict(hyperparameters) | given.pop("changes", {})
    return finetuning.finetune(task, data, output, settings(folder, changes=changes, **given))


def prepared(folder: Path, hyperparameters: Hyperparameters = QUICK, *, task: str = "ner", **given: Any) -> Prepared:
    """The same before the first step."""
    data, chosen = given.pop("data", EXAMPLES / task), settings(folder, **given)
    return prepare(TASKS[task], VARIANTS[chosen.variant], hyperparameters, data, chosen)


def settings(folder: Path, **given: Any) -> FineTuningSettings:
    """Those of the tests, unless others are given; weights and tokenizer are folders in `folder`."""
    usual = {"weights": "weights", "tokenizer": "tokenizer", "preset": "tiny", "seed": 1, "device": "cpu"}
    values = {**usual, "allow_no_predictions": True, **given}
    paths = {name: folder / values[name] for name in ("weights", "tokenizer")}
    return FineTuningSettings(**{**values, **paths})


def written(folder: Path, *records: Any) -> Path:
    """A file of JSON, an object a line."""
    path = folder / "data.json"
    path.write_text("\n".join(map(json.dumps, records)))
    return path


def reconfigured(model: Path, copy: Path, **values: Any) -> Path:
    """A copy of a model's folder, in whose `config.json` these values stand."""
    shutil.copytree(model, copy)
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, **values}))
    return copy


def written_answers(model: Path, field: str) -> tuple[list[Record], list[Record]]:
    """The questions about marked mentions of the test set, and the answers that fine-tuning wrote, in this field."""
    rows = [record.values for record in read_records(model / "predictions-test.jsonl")]
    questions = [{name: row[name] for name in row if name not in (field, "prediction")} for row in rows]
    return questions, [{field: row["prediction"]} for row in rows]


def bare(answer: Any) -> Any:
    """An answer, or several, without probabilities."""
    if isinstance(answer, list):
        return [bare(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    return {name: bare(value) for name, value in answer.items() if not name.startswith("probabilit")}


def contents(output: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path there."""
    files = sorted(path for path in output.rglob("*") if path.is_file())
    return {str(path.relative_to(output)): path.read_bytes() for path in files}
