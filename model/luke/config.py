"""The sizes of a LUKE model: a validated, frozen configuration and the presets.

`python -m model.sizes large` prints the parameter count of a preset, part by part.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from model.presets import PRESET_TABLES, Tables

CHOICES = {
    "hidden_act": ("gelu", "gelu_new", "relu"),
    "entity_head": ("released", "paper"),
    "word_encoder": ("roberta", "bert"),
}
COUNTS = (
    *("vocab_size", "entity_vocab_size", "hidden_size", "entity_emb_size", "num_hidden_layers"),
    *("num_attention_heads", "intermediate_size", "type_vocab_size"),
)
# Fields of LukeConfig that transformers' has not.
TRANSFORMERS_LACK = ("entity_head", "word_encoder")
PAD_ENTITY, UNKNOWN_ENTITY, MASK_ENTITY = 0, 1, 2
SPECIAL_ENTITIES = 3
MASKED_SHARE = 0.15  # of words and of entities in pretraining (section 3.3)


@dataclass(frozen=True)
class LukeConfig:
    """The values that define a LUKE model; the field names are those of transformers' LukeConfig where one exists.

    `entity_head` is "released" (as in the public checkpoints) or "paper" (section 3.3, not exchangeable).
    `word_encoder` is "roberta" or "bert", by where word positions are counted from (after the padding id, or
    from 0) and the activation in the word head (gelu, or `hidden_act`).
    Raises ValueError for a value no model can have.
    """

    vocab_size: int = 50265
    entity_vocab_size: int = 500_000
    hidden_size: int = 768
    entity_emb_size: int = 256
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 514
    type_vocab_size: int = 1
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    layer_norm_eps: float = 1e-5
    initializer_range: float = 0.02
    pad_token_id: int = 1
    use_entity_aware_attention: bool = False
    entity_head: str = "released"
    word_encoder: str = "roberta"

    def __post_init__(self) -> None:
        for field in fields(self):
            check_type(field.name, getattr(self, field.name), type(field.default))

        def check(holds: bool, name: str, wanted: str) -> None:
            check_value(holds, name, getattr(self, name), wanted)

        for name in COUNTS:
            check(getattr(self, name) >= 1, name, "at least 1")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            check(0.0 <= getattr(self, name) < 1.0, name, "at least 0 and below 1")
        for name in ("layer_norm_eps", "initializer_range"):
            check(getattr(self, name) > 0, name, "above 0")
        for name, known in CHOICES.items():
            check(getattr(self, name) in known, name, f"one of {', '.join(known)}")
        in_table = 0 <= self.pad_token_id < self.vocab_size
        check(in_table, "pad_token_id", f"a word id below vocab_size {self.vocab_size}")
        first, heads = self.first_position, self.num_attention_heads
        least = f"above pad_token_id + 1 = {first}" if first else "at least 1"
        check(self.max_position_embeddings > first, "max_position_embeddings", least)
        is_even = self.hidden_size % heads == 0
        check(is_even, "hidden_size", f"a multiple of num_attention_heads {heads}")

    @property
    def first_position(self) -> int:
        """The row of the position table that the first word takes (RoBERTa counts from the padding id on)."""
        return self.pad_token_id + 1 if self.word_encoder == "roberta" else 0

    @property
    def max_words(self) -> int:
        """The longest word sequence, [CLS] and [SEP] included, for which there are positions."""
        return self.max_position_embeddings - self.first_position

    @property
    def attention_head_size(self) -> int:
        """L in the paper: the width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    def to_json(self) -> str:
        """Every field as JSON, in the order of their definition."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def of_values(cls, values: Mapping[str, Any], source: str = "config.json") -> "LukeConfig":
        """The configuration of the values that `to_json` writes; ValueError for unknown or missing keys.

        Only `word_encoder`, which older files lack, may be missing: they are RoBERTa's.
        """
        if {"task", "model"} <= values.keys():
            raise ValueError(
                f"{source}: the model was fine-tuned for {values['task']}; give the pretrained one that it was made of"
            )
        known = {field.name for field in fields(cls)}
        unknown, missing = sorted(set(values) - known), sorted(known - set(values) - {"word_encoder"})
        if unknown or missing:
            found = f"unknown keys {', '.join(unknown) or 'none'}; missing keys {', '.join(missing) or 'none'}"
            raise ValueError(f"{source}: {found}; use a config.json of the same version of this project")
        try:
            return cls(**values)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error


def check_value(holds: bool, name: str, value: object, wanted: str) -> None:
    """Raise a ValueError that names the field, what was found and what is wanted, unless this holds."""
    if not holds:
        raise ValueError(f"{name} is {value!r}, but must be {wanted}")


def check_type(name: str, value: object, wanted: type) -> None:
    """Raise a ValueError for a value of another type; a whole number is a float, too, and no bool is a number."""
    accepted: tuple[type, ...] = (int, float) if wanted is float else (wanted,)
    is_accepted = isinstance(value, accepted) and (wanted is bool or not isinstance(value, bool))
    check_value(is_accepted, name, value, f"of type {wanted.__name__}")


def _of_tables(tables: Tables) -> LukeConfig:
    """The sizes of a preset; what it does not name is the default."""
    names = {field.name for field in fields(LukeConfig)}
    sizes = {name: value for name, value in tables["pretraining"].items() if name in names}
    return LukeConfig(entity_vocab_size=tables["corpus"]["vocab_size"], **sizes)


PRESETS = {name: _of_tables(tables) for name, tables in PRESET_TABLES.items()}
BASE = PRESETS["base"]


def preset(name: str) -> LukeConfig:
    """The preset of that name; an unknown name is a ValueError that lists the known ones."""
    if name not in PRESETS:
        raise ValueError(f"preset {name!r} is unknown; use one of {', '.join(PRESETS)}")
    return PRESETS[name]
