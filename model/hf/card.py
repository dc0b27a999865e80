"""The model card of an export: README.md with the architecture, the parameters and the corpus."""

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from model.files import EVALUATION, PRETRAINING, read_json, read_optional
from model.luke.config import TRANSFORMERS_LACK, LukeConfig

PARTS = {"sequences": "trained on", "held_out": "held out"}
COUNTS = ("sequences", "words", "annotations", "unknown_entities")
SCRATCH, PIPELINE, STATES, DATASET = "scratch", "fill-mask", "feature-extraction", "wikipedia"
# Held-out figures that the head of a card has, with the hub's name of their kind.
SCORES = {
    "masked_word_perplexity": ("perplexity", "masked words"),
    "masked_word_accuracy": ("accuracy", "masked words"),
    "known_entity_top_1": ("accuracy", "masked entities"),
}
FROM_SCRATCH = "from-scratch"  # a tag
PAPER = "https://aclanthology.org/2020.emnlp-main.523/"
GIVEN_BY_HAND = """
BertTokenizer knows no entities. Give the model `entity_ids` of entity_vocab.json, and `entity_position_ids`: the places
of each mention's words, counted from 0 with [CLS], and -1 behind them.
"""
# What Markdown gives a meaning to inside a line; a point only in what would become a link.
SPECIAL_CHARACTERS = re.compile(r"[\\`*_{}\[\]()#!|~$@:]|(?<=www)\.")


def read_figures(path: Path) -> dict[str, Any]:
    """The figures of a corpus from its statistics.json: counts of `sequences` and `held_out`, and `drops`.

    Raises ValueError for a file of other content.
    """
    if not path.is_file():
        raise ValueError(f"{path}: no such file; give statistics.json of the sequences")
    figures = read_json(path)
    for name in (*PARTS, "drops"):
        counts = figures.get(name)
        if not isinstance(counts, dict):
            raise ValueError(f"{path}: no {name} in it; give statistics.json of the sequences")
        for key in COUNTS if name in PARTS else counts:
            if not isinstance(counts.get(key), int):
                raise ValueError(f"{path}: {name}: {key} is {counts.get(key)!r}, wanted a count")
    return figures


def read_training(folder: Path) -> dict[str, Any]:
    """What a pretrained model's folder says of its training: `pretraining`, and `evaluation` at its end."""
    path = folder / EVALUATION
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = {
        "pretraining": read_optional(folder / PRETRAINING),
        "evaluation": json.loads((lines or ["{}"])[-1]),
    }
    return {name: values for name, values in found.items() if values}


def metadata(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The head of a card as the hub reads it; what is not known is not in it."""
    training, scores = figures.get("pretraining", {}), figures.get("evaluation", {})
    corpus = figures.get("corpus", {})
    base_model = training.get("base_model", SCRATCH)
    is_on_hub = base_model != SCRATCH and not training.get("base_model_is_folder")
    metrics = [
        {"type": kind, "name": f"{kind} of {what}", "value": round(scores[name], 4)}
        for name, (kind, what) in SCORES.items()
        if name in scores
    ]
    text = f"Wikipedia, {corpus['dump']}" if "dump" in corpus else "Wikipedia"
    pipeline = PIPELINE if training.get("word_head", True) else STATES
    result = {"task": {"type": pipeline}, "dataset": {"type": DATASET, "name": text}, "metrics": metrics}
    found: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": pipeline,
        "tags": ["luke", FROM_SCRATCH] if training and base_model == SCRATCH else ["luke"],
        "language": [corpus["language"]] if "language" in corpus else None,
        "datasets": [DATASET],
        "base_model": base_model.partition("@")[0] if is_on_hub else None,  # the hub takes no revision there
        "metrics": sorted({each["type"] for each in metrics}),
        "model-index": [{"name": "LUKE", "results": [result]}] if metrics else None,
    }
    return {name: value for name, value in found.items() if value}


def head(values: Mapping[str, Any]) -> str:
    """Values as a card's head: YAML, of which JSON is a part."""
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    return "\n".join(["---", *lines, "---", ""])


def fine_tuned_card(
    architecture: str, pipeline: str, values: Mapping[str, Any], scores: Mapping[str, Any], use: str
) -> str:
    """README.md of a fine-tuned model; `values` are its config.json, `scores` its metrics.json, of fine-tuning.

    `use` says in Markdown what a user gives to the model and how its answers are read.

    What it was fine-tuned on has no name there, so that no data set and no language stands in its head.
    """
    rows = [
        (split, name.replace("_", " "), plain(scores[split][name]))
        for split in ("dev", "test")
        for name in ("precision", "recall", "f1", "exact_match")
        if name in scores.get(split, {})
    ]
    kinds = sorted({name.replace(" ", "_") for _, name, _ in rows})
    said = {name: values[name] for name in ("task", "variant", "preset", "profile", "seed")}
    settings = {name: plain(value) for name, value in (said | values["hyperparameters"]).items()}
    labels = ", ".join(map(escape, values["labels"]))
    known = {"library_name": "transformers", "pipeline_tag": pipeline, "tags": ["luke"], "metrics": kinds}
    return f"""{head({name: value for name, value in known.items() if value})}
# LUKE, fine-tuned: {escape(values["task"].replace("_", " "))}

[LUKE]({PAPER}) with the head of transformers' {architecture}.

{table(("split", "score", "value"), rows)}
Labels: {labels or "none"}.

## Use

{use}
## Training

{table(("of", "value"), settings.items())}"""


def model_card(
    config: LukeConfig, parameters: int, figures: Mapping[str, Any], *, lite: bool, is_bert: bool = False
) -> str:
    """README.md of an exported model of these sizes, with `parameters` in all, tied ones once; BERT's words or not.

    `figures` holds what is known of the corpus: the content of statistics.json and, under `corpus`, names
    with their values; and of the training, as `read_training` gives it.
    """
    entities = f"{config.entity_vocab_size:,}" + (", the special ones alone" if lite else "")
    size = f"{config.num_hidden_layers} layers of width {config.hidden_size:,}"
    tokenizer = "BertTokenizer" if is_bert else "LukeTokenizer"
    training = figures.get("pretraining", {})
    has_words = training.get("recipe", {}).get("masked_word_share", 1) > 0
    learnt = "masked words and masked entities" if has_words else "masked entities alone, words whole"
    if not training.get("word_head", True):
        learnt += "; nothing ever trained its word head, so that what it says of words means nothing"
    text = f"""{head(metadata(figures))}
# LUKE, {size}

Contextualised representations of words and entities with entity-aware self-attention, after
[Yamada et al., EMNLP 2020]({PAPER}); pretrained on {learnt}.

| | |
|---|---|
| parameters | {parameters:,} |
| words in the vocabulary | {config.vocab_size:,} |
| entities in the vocabulary | {entities} |
| longest input in words | {config.max_words:,} |

## Use

```python
from transformers import LukeForMaskedLM, {tokenizer}

tokenizer = {tokenizer}.from_pretrained("this folder")
model = LukeForMaskedLM.from_pretrained("this folder")
```
{GIVEN_BY_HAND if is_bert else ""}
The query matrices of entity-aware attention start as copies of Q where pretraining used the original attention.

## Architecture

{table(("field", "value"), architecture(config).items())}{training_section(figures)}{corpus_section(figures)}
## Licence

The text of Wikipedia is under CC BY-SA, and part of it under the GFDL; its authors are named in each article's
history. What that means for weights that were trained on it is not settled; say where they come from.
"""
    return text


def architecture(config: LukeConfig) -> dict[str, Any]:
    """The configuration without what an export cannot vary."""
    return {name: value for name, value in asdict(config).items() if name not in TRANSFORMERS_LACK}


def training_section(figures: Mapping[str, Any]) -> str:
    """How the model was trained, and its held-out figures at the end; nothing where that is not known."""
    training, scores = figures.get("pretraining", {}), figures.get("evaluation", {})
    lines = []
    if training:
        if training["changes"]:
            text = ", ".join(f"{name} {plain(value)}" for name, value in training["changes"].items())
            lines.append(f"Other than the preset {training['preset']}: {escape(text)}.\n")
        said = {
            name.replace("_", " "): training[name] for name in ("preset", "base_model", "profile", "seed")
        }
        rows = said | training["recipe"]
        lines.append(table(("of", "value"), ((name, plain(value)) for name, value in rows.items())))
    if scores:
        rows = {name.replace("_", " "): plain(value) for name, value in scores.items()}
        lines.append(table(("held-out figure", "value"), rows.items()))
    return "\n".join(["", "## Training", "", *lines]) if lines else ""


def plain(value: Any) -> str:
    """A value for people; those of phases with a slash between them."""
    values = value if isinstance(value, list) else [value]
    return "/".join(f"{each:.5g}" if isinstance(each, float) else str(each) for each in values)


def corpus_section(figures: Mapping[str, Any]) -> str:
    """What is known of the corpus, or that nothing is."""
    lines = ["", "## Corpus", ""]
    if not {"corpus", *PARTS, "drops"} & set(figures):
        return "\n".join([*lines, "Nothing was said about the corpus when this folder was written.", ""])
    if corpus := figures.get("corpus"):
        lines.append(table(("of", "value"), corpus.items()))
    if "sequences" in figures:
        rows = [(name.replace("_", " "), *(f"{figures[part][name]:,}" for part in PARTS)) for name in COUNTS]
        lines.append(table(("count", *PARTS.values()), rows))
    if drops := figures.get("drops"):
        lines.append(
            table(("left out", "count"), ((reason, f"{drops[reason]:,}") for reason in sorted(drops)))
        )
    return "\n".join(lines)


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table, every cell escaped."""
    lines = [list(header)]
    lines += [[escape(str(cell)) for cell in row] for row in rows]
    texts = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([texts[0], "|---" * len(lines[0]) + "|", *texts[1:]]) + "\n"


def escape(text: str) -> str:
    """Text that Markdown and HTML show as it is, on one line."""
    return SPECIAL_CHARACTERS.sub(r"\\\g<0>", html.escape(" ".join(text.split()), quote=False))
