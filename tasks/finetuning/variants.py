"""The rows that the paper compares (section 5), as data: the weights, entity inputs or none, and the attention."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Variant:
    """One row: `weights` names the pretrained model that the caller has to give for it, one of WEIGHTS.

    Without `entities` a task classifies by words: entity recognition by the first and the last word of a span,
    entity typing and relation classification by the markers that open the mentions.
    """

    weights: str
    entities: bool
    entity_aware_attention: bool


WEIGHTS = ("luke", "roberta", "roberta_extra_training")
VARIANTS: dict[str, Variant] = {
    "luke": Variant("luke", entities=True, entity_aware_attention=True),
    "luke_original_attention": Variant("luke", entities=True, entity_aware_attention=False),
    "luke_no_entities": Variant("luke", entities=False, entity_aware_attention=False),
    "roberta": Variant("roberta", entities=False, entity_aware_attention=False),
    "roberta_extra_training": Variant("roberta_extra_training", entities=False, entity_aware_attention=False),
}
