"""The model card of an export, README.md: what the model is, from what it was made, and a program that uses it."""

import html
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from model.files import EVALUATION, PRETRAINING, read_optional
from model.luke.config import LukeConfig

TEXTS = tomllib.loads(Path(__file__).with_name("card.toml").read_text(encoding="utf-8"))
PARTS = {"sequences": "trained on", "held_out": "held out"}
COUNTS = ("sequences", "words", "annotations", "unknown_entities")
SCRATCH, MASKED, QUESTIONS = "scratch", "LukeForMaskedLM", "LukeForQuestionAnswering"
# What Markdown gives a meaning to inside a line; a point only in what would become a link.
SPECIAL_CHARACTERS = re.compile(r"[\\`*_{}\[\]()#!|~$@:]|(?<=www)\.")


def program(architecture: str, name: str, *, is_bert: bool, is_unigram: bool = False, has_entities: bool = True) -> str:
    """Markdown of a program for a folder that the class `name` loads, and how entities are given to it.

    `architecture` is transformers' LUKE for the task, the same as `name` where the model has entities.
    """
    note = f"\n{TEXTS['unigram']}" * (is_unigram and has_entities)
    is_plain = architecture == QUESTIONS or not (architecture == MASKED or is_bert or not has_entities)
    code = TEXTS["load"].format(name=name, plain=TEXTS["plain"] * is_plain)
    if architecture != MASKED and not is_plain:
        return f"```python\n{code}```\n\n{TEXTS['bert' if has_entities else 'words']}"
    if whole := TEXTS["whole"].get(architecture):
        return f"```python\n{code}{whole}```\n{note}"
    more, example = "", dict(TEXTS["examples"][architecture])
    if architecture == MASKED:
        more = "entities = tokenizer.entity_vocab\n"
        example["answer"] = example["titles" if is_unigram else "answer"]
        if is_bert:
            code, more = f"import json\n{code}", TEXTS["by_hand"]
            example["given"] = example["given"].partition(", entity_spans")[0]
    return f"```python\n{code}{TEXTS['use'].format(more=more, **example)}```\n{note}"


def model_card(
    config: LukeConfig, parameters: int, figures: Mapping[str, Any], *, lite: bool, is_bert: bool = False, **kind: bool
) -> str:
    """README.md of an exported model of these sizes, with `parameters` in all, tied ones once; `kind` as in `program`.

    `figures` holds, as far as it is known, the content of statistics.json, names with values under `corpus`, and what
    `read_training` gives.
    """
    training, corpus = figures.get("pretraining", {}), figures.get("corpus", {})
    base_model, changes = training.get("base_model", SCRATCH), training.get("changes", {})
    is_on_hub = base_model != SCRATCH and not training.get("base_model_is_folder")
    has_words = training.get("recipe", {}).get("masked_word_share", 1) > 0
    learnt = "masked words and masked entities" if has_words else "masked entities alone, words whole"
    if not (has_head := training.get("word_head", True)):
        learnt += ". Its word head was never trained: its predictions of words mean nothing"
    sizes = {
        "parameters": f"{parameters:,}",
        "words in the vocabulary": f"{config.vocab_size:,}",
        "entities in the vocabulary": f"{config.entity_vocab_size:,}{', the special ones alone' * lite}",
        "longest input in words": f"{config.max_words:,}",
    }
    made = {name: training[name] for name in ("preset", "base_model", "profile", "seed") if name in training} | corpus
    counts = [(name, *(f"{figures[part][name]:,}" for part in PARTS)) for name in COUNTS if "sequences" in figures]
    scores = {name: each for name, each in figures.get("evaluation", {}).items() if "_seen_" not in name}
    differs = ", ".join(f"{name} {plain(value)}" for name, value in changes.items())
    head = {
        "pipeline_tag": "fill-mask" if has_head else "feature-extraction",
        "language": corpus["language"].split(", ") if "language" in corpus else None,
        "datasets": ["wikipedia"],
        "base_model": base_model.partition("@")[0] if is_on_hub else None,  # the hub takes no revision there
    }
    parts = {
        "head": metadata(head),
        "layers": config.num_hidden_layers,
        "width": config.hidden_size,
        "learnt": learnt,
        "sizes": table(("size", "value"), sizes.items()),
        "program": program(MASKED, MASKED, is_bert=is_bert, **kind),
        "made": table(("made from", "value"), (made or {"corpus": "unknown"}).items()),
        "counts": table(("count", *PARTS.values()), counts),
        "changes": f"Other than the preset {training['preset']}: {escape(differs)}.\n" if changes else "",
        "scores": table(("held-out figure", "value"), scores.items()),
    }
    return re.sub("\n{3,}", "\n\n", TEXTS["pretrained"].format(**TEXTS | parts))


def fine_tuned_card(
    architecture: str, name: str, values: Mapping[str, Any], scores: Mapping[str, Any], **kind: bool
) -> str:
    """README.md of a fine-tuned model; `values` are its config.json, `scores` its metrics.json, of fine-tuning.

    `architecture`, `name` and `kind` are as in `program`. What it was fine-tuned on has no name there, so that no data
    set and no language stands in its head.
    """
    splits = [split for split in ("dev", "test") if split in scores]
    names = [name for name in ("precision", "recall", "f1", "exact_match") if name in scores.get("dev", {})]
    rows = [(name, *(scores[split].get(name, "") for split in splits)) for name in names]
    settings = {name: values[name] for name in ("task", "variant", "preset", "profile", "seed")}
    parts = {
        "head": metadata({"metrics": names}),
        "task": escape(values["task"].replace("_", " ")),
        "name": name,
        "labels": escape(", ".join(values["labels"])) or "none",
        "scores": table(("score", *splits), rows),
        "program": program(architecture, name, **kind),
        "made": table(("of", "value"), (settings | values["hyperparameters"]).items()),
    }
    return str(TEXTS["fine_tuned"].format(**TEXTS | parts))


def metadata(values: Mapping[str, Any]) -> str:
    """The head of a card as the hub reads it, without what is not known: YAML, of which JSON is a part."""
    known = {"library_name": "transformers", "tags": ["luke"], **values}
    return "\n".join(["---", *(f"{name}: {json.dumps(value)}" for name, value in known.items() if value), "---", ""])


def read_training(folder: Path) -> dict[str, Any]:
    """The records in a pretrained model's folder: `pretraining`, and `evaluation` at its end."""
    path = folder / EVALUATION
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    last = json.loads(lines[-1]) if lines else {}
    return {"pretraining": read_optional(folder / PRETRAINING), "evaluation": last}


def plain(value: Any) -> str:
    """A value for people; those of phases with a slash between them."""
    values = value if isinstance(value, list) else [value]
    return "/".join(f"{each:.5g}" if isinstance(each, float) else str(each) for each in values)


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table, every cell escaped; nothing without rows."""
    lines = [
        [escape(str(first).replace("_", " ")), *(escape(plain(each)) for each in others)] for first, *others in rows
    ]
    whole = [names := [*header], ["---"] * len(names), *lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in whole) if lines else ""


def escape(text: str) -> str:
    """Text that Markdown and HTML show as it is, on one line."""
    return SPECIAL_CHARACTERS.sub(r"\\\g<0>", html.escape(" ".join(text.split()), quote=False))
