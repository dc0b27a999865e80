"""The model card of an export: README.md with the architecture, the parameters and the corpus."""

import html
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from model.files import read_json
from model.luke.config import TRANSFORMERS_LACK, LukeConfig

PARTS = {"sequences": "trained on", "held_out": "held out"}
COUNTS = ("sequences", "words", "annotations", "unknown_entities")
PAPER = "https://aclanthology.org/2020.emnlp-main.523/"
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


def model_card(config: LukeConfig, parameters: int, figures: Mapping[str, Any], *, lite: bool) -> str:
    """README.md of an exported model of these sizes, with `parameters` in all, tied ones once.

    `figures` holds what is known of the corpus: the content of statistics.json and, under `corpus`, names
    with their values.
    """
    entities = f"{config.entity_vocab_size:,}" + (", the special ones alone" if lite else "")
    size = f"{config.num_hidden_layers} layers of width {config.hidden_size:,}"
    text = f"""---
library_name: transformers
pipeline_tag: fill-mask
tags:
- luke
---

# LUKE, {size}

Contextualised representations of words and entities with entity-aware self-attention, after
[Yamada et al., EMNLP 2020]({PAPER}); pretrained on masked words and masked entities.

| | |
|---|---|
| parameters | {parameters:,} |
| words in the vocabulary | {config.vocab_size:,} |
| entities in the vocabulary | {entities} |
| longest input in words | {config.max_words:,} |

## Use

```python
from transformers import LukeForMaskedLM, LukeTokenizer

tokenizer = LukeTokenizer.from_pretrained("this folder")
model = LukeForMaskedLM.from_pretrained("this folder")
```

The query matrices of entity-aware attention start as copies of Q where pretraining used the original attention.

## Architecture

{table(("field", "value"), architecture(config).items())}{corpus_section(figures)}
## Licence

The text of Wikipedia is under CC BY-SA, and part of it under the GFDL; its authors are named in each article's
history. What that means for weights that were trained on it is not settled; say where they come from.
"""
    return text


def architecture(config: LukeConfig) -> dict[str, Any]:
    """The configuration without what an export cannot vary."""
    return {name: value for name, value in asdict(config).items() if name not in TRANSFORMERS_LACK}


def corpus_section(figures: Mapping[str, Any]) -> str:
    """What is known of the corpus, or that nothing is."""
    lines = ["", "## Corpus", ""]
    if not figures:
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
