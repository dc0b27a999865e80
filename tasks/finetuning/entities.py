"""The entity table of a model that is fine-tuned: the rows that a task keeps, and those of a mention table."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from model.luke.config import PAD_ENTITY
from model.luke.encoder import LukeModel
from model.luke.titles import Titles, TitleWords, vectors_of_titles
from pipeline.lookup.entities import PAD, SPECIAL_ENTITIES
from pipeline.lookup.mentions import MentionTable
from pipeline.lookup.names import name_of
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.finetuning.variants import Variant
from tasks.io.annotations import Annotate
from tasks.task import Task

logger = logging.getLogger(__name__)
OUR_ROWS = {name: row for row, name in enumerate(SPECIAL_ENTITIES)}


def check_takes_entities(task: Task[Any, Any], annotate: Annotate | None) -> None:
    """Raises: ValueError for an annotator where the task takes no entities of Wikipedia."""
    if annotate and task.ENTITY_ROWS is not None:
        raise ValueError("an annotator finds Wikipedia's entities, which only extractive_qa takes; give none")


@torch.no_grad()
def add_entities(luke: LukeModel, words: WordTokenizer, table: MentionTable) -> None:
    """Gives a model that has special entities alone those of a mention table, too.

    Each begins as what its title says in the model's words, as in pretraining.
    """
    titles = [""] * table.manifest.facts["entities"]
    for entity_id, title in table.targets.entities():
        titles[entity_id] = title
    special = luke.entity_embeddings.token.weight
    rows = vectors_of_titles(luke.word_embeddings.token.weight, title_words(titles, words))
    rows[: len(special)] = special
    luke.replace_entities(rows)
    logger.info("%s: its %d entities start as what their titles say", table.folder, len(rows) - len(special))


def title_words(titles: Sequence[str], tokenizer: WordTokenizer) -> Titles:
    """Return the words of some titles, whole, and of their names alone."""

    def encoded(texts: Iterable[str]) -> TitleWords:
        given = [*texts]
        ids = tokenizer.encode(given, [True] * len(given))
        offsets = np.cumsum([0, *map(len, ids)])
        return TitleWords(np.array([one for each in ids for one in each], np.int64), offsets)

    return Titles(whole=encoded(titles), names=encoded(map(name_of, titles)))


def shrink_entities(
    luke: LukeModel, task: Task[Any, Any], variant: Variant, vocabulary: Mapping[str, int], source: str
) -> None:
    """Leaves of the entity table the task's rows or, where it takes all, freezes it; [PAD] where it has no use.

    `vocabulary` is that of `source`, empty where its rows stand as ours do.
    """
    if task.ENTITY_ROWS is None and variant.entities:
        check_order(vocabulary, source)
        luke.entity_embeddings.token.requires_grad_(False)
    else:
        names = [SPECIAL_ENTITIES[row] for row in task.ENTITY_ROWS or (PAD_ENTITY,)]
        keep_entities(luke, vocabulary or OUR_ROWS, names, source)


def keep_entities(luke: LukeModel, vocabulary: Mapping[str, int], names: Sequence[str], source: str) -> None:
    """Leaves these special entities of the table of `source`, [PAD] first. Raises: ValueError for one that it lacks."""
    if missing := [name for name in (PAD, *names) if name not in vocabulary]:
        raise ValueError(f"{source}: no entity {missing[0]} in entity_vocab.json or tokenizer_config.json")
    try:
        luke.keep_entities([vocabulary[name] for name in names], pad=vocabulary[PAD])
    except ValueError as error:
        raise ValueError(f"{source}: {error}; give the weights with their entity vocabulary") from error


def check_order(vocabulary: Mapping[str, int], source: str) -> None:
    """Raises: ValueError where a table that keeps all rows does not begin with the special entities as ours do."""
    found = {name: vocabulary.get(name) for name in SPECIAL_ENTITIES}
    if vocabulary and found != OUR_ROWS:
        raise ValueError(
            f"{source}: entity_vocab.json or tokenizer_config.json has the special entities at {found}; wanted "
            f"{OUR_ROWS}, since the task takes the whole table; give weights with that order"
        )


def kept_entities(rows: Sequence[int]) -> dict[str, int]:
    """Special entity -> its row in a table of which fine-tuning kept these; the first where one is there twice."""
    return {SPECIAL_ENTITIES[kept]: row for row, kept in reversed([*enumerate(rows)])}
