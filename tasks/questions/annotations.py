"""Wikipedia entities in texts, as an annotator finds them or a user gives them: input of question answering."""

from collections.abc import Sequence
from typing import NamedTuple

from model.luke.config import SPECIAL_ENTITIES
from tasks.io.annotations import Annotation
from tasks.io.records import Record, children


class EntityMention(NamedTuple):
    """Characters of a text (half open) that name an entity of the model's vocabulary."""

    start: int
    end: int
    entity_id: int


def known_mentions(annotations: Sequence[Annotation]) -> tuple[EntityMention, ...]:
    """The annotations whose entities are in the vocabulary; [UNK] and its like are not."""
    pairs = [(each, each.entity_id) for each in annotations]
    return tuple(
        EntityMention(each.start, each.end, entity_id)
        for each, entity_id in pairs
        if entity_id is not None and entity_id >= SPECIAL_ENTITIES
    )


def given_mentions(record: Record, name: str, text: str) -> tuple[EntityMention, ...]:
    """The mentions in a list of a record; those without an id, or with that of a special entity, are left out."""
    found = children(record, name) if name in record.values else []
    mentions = []
    for each in found:
        span = [each.values.get("start"), each.values.get("end")]
        start, end = each.span("start, end", span, len(text), "characters")
        entity_id = each.values.get("entity_id")
        if entity_id is not None and each.field("entity_id", int, "an entity's number") >= SPECIAL_ENTITIES:
            mentions.append(EntityMention(start, end, entity_id))
    return tuple(mentions)
