"""The model card of an export, README.md: what the model is, from what it was made, and a program that uses it.

Its words, and which of them are for which model, stand in the templates of cards/. What is not known is left out.
"""

import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader

from model.files import EVALUATION, PRETRAINING, read_optional
from model.luke.config import LukeConfig

MASKED = "LukeForMaskedLM"
KNOWN = ("pretraining", "evaluation", "corpus", "sequences", "held_out")
# What Markdown gives a meaning to inside a line; a point only in what would become a link.
SPECIAL_CHARACTERS = re.compile(r"[\\`*_{}\[\]()#!|~$@:]|(?<=www)\.")


def model_card(config: LukeConfig, parameters: int, figures: Mapping[str, Any], *, lite: bool, **kind: bool) -> str:
    """README.md of an exported model of these sizes, with `parameters` in all, tied ones once; `kind` as in `card`.

    `figures` holds, as far as it is known, the content of statistics.json, names with values under `corpus`, and what
    `read_training` gives.
    """
    known = {name: figures.get(name, {}) for name in KNOWN}
    return card("pretrained", MASKED, MASKED, config=config, parameters=parameters, lite=lite, **known, **kind)


def fine_tuned_card(
    architecture: str, name: str, values: Mapping[str, Any], scores: Mapping[str, Any], **kind: bool
) -> str:
    """README.md of a fine-tuned model; `values` are its config.json, `scores` its metrics.json, of fine-tuning.

    `architecture`, `name` and `kind` are as in `card`.
    """
    return card("fine_tuned", architecture, name, values=values, scores=scores, **kind)


def card(template: str, architecture: str, name: str, **values: Any) -> str:
    """A card of a folder that transformers' class `name` loads; `values` say of its tokenizer `is_bert`, `is_unigram`.

    `architecture` is transformers' LUKE for the task, the same as `name` where the model has entities.
    """
    folder = FileSystemLoader(Path(__file__).with_name("cards"))
    environment = Environment(loader=folder, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    filters = {"escaped": escape, "named": named, "shown": lambda value: escape(plain(value)), "counted": "{:,}".format}
    environment.filters |= filters
    known = {"architecture": architecture, "name": name, "metadata": metadata, "is_bert": False, "is_unigram": False}
    text = environment.get_template(f"{template}.md").render({**known, "has_entities": True, **values})
    return re.sub("\n{3,}", "\n\n", text)


def metadata(**values: Any) -> str:
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


def named(name: str) -> str:
    """A name for people, escaped."""
    return escape(name.replace("_", " "))


def escape(text: str) -> str:
    """Text that Markdown and HTML show as it is, on one line."""
    return SPECIAL_CHARACTERS.sub(r"\\\g<0>", html.escape(" ".join(text.split()), quote=False))
