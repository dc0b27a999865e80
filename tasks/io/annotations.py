"""Wikipedia's entities in texts by a mention table, and whether a model numbers the same entities."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from model.files import CONFIG, read_json, read_optional
from pipeline.lookup.annotator import Annotator
from pipeline.storage.files import file_sha256
from pipeline.storage.manifests import MANIFEST, read_manifest

_OF_SEVERAL = "MergeEntities"  # the stage that numbers the entities of several wikis


class EntityMention(NamedTuple):
    """Characters of a text (half open), and the entity that they name; that of [UNK] for one outside the vocabulary."""

    start: int
    end: int
    entity_id: int


Annotate = Callable[[str, str | None], Sequence[EntityMention]]
"""The annotations of a text, from the Wikipedia page of this title where one is known."""


def open_annotator(mentions: Path, weights: Path) -> Annotate:
    """Annotations by the folder of a mention table; texts of pages that its dump lacks are annotated by commonness.

    `weights` is the folder of the model that the entities are for, whose vocabulary has to be the table's, or the name
    of one that is not here. Raises: ValueError naming both where it is another, and for no such table.
    """
    vocabulary = weights / "entity_vocab.json"  # as transformers' LUKE has
    annotator = Annotator.open(mentions, vocabulary=vocabulary if vocabulary.is_file() else None)
    check_same_entities(mentions, weights)

    def annotate(text: str, page: str | None) -> Sequence[EntityMention]:
        found = annotator.annotate(text, page if page and annotator.has_page(page) else None)
        return [EntityMention(each.start, each.end, each.entity_id) for each in found]

    return annotate


def entities_sha256(mentions: Path) -> str:
    """The digest of the vocabulary that a mention table's ids are for; of several wikis that of all together."""
    manifest = read_manifest(str(mentions))
    digest: str = manifest.inputs.get(_OF_SEVERAL) or manifest.facts["entities_sha256"]
    return digest


def check_same_entities(mentions: Path, weights: Path) -> None:
    """Raises: ValueError where our own weights, pretrained or fine-tuned, came from another vocabulary or table."""
    manifest = weights / MANIFEST
    trained_with = read_optional(weights / CONFIG).get("entities_sha256")
    if trained_with and trained_with != entities_sha256(mentions):
        raise ValueError(
            f"{mentions}: its vocabulary is {entities_sha256(mentions)[:12]}, but {weights} was fine-tuned with that "
            f"of {trained_with[:12]}; give the mention table of that run"
        )
    inputs = read_json(manifest).get("inputs", {}) if manifest.is_file() else {}
    table, merged = inputs.get("BuildMentionTable"), inputs.get(_OF_SEVERAL)
    is_other = table and "BuildSequences" in inputs and table != file_sha256(str(mentions / MANIFEST))
    if is_other or (merged and merged != entities_sha256(mentions)):
        raise ValueError(
            f"{mentions}: not the mention table beside which {weights} was pretrained, so that its entities may have "
            "other numbers; give the folder of BuildMentionTable of that run"
        )
