"""The corpus, for the report: lost text, entities, names and sequences, read from the stages' folders.

Tables that grow with Wikipedia are read a batch at a time; what is kept is as large as what is shown.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain
from operator import add
from typing import Any

from pipeline import storage
from pipeline.lookup.entities import SPECIAL_ENTITIES
from pipeline.lookup.held_out import HELD_OUT
from workflows.base.stage import Stage

TOP_ENTITIES = 25
CHANGES_SHOWN = 10
COSTLIEST_TEMPLATES = 25

OF_LANGUAGES = ("count", "top_1", "title_top_1", "most_frequent_top_1")  # of held-out mentions of known entities

_TAG = re.compile("<[a-z0-9]+>")
_COSTS = ("uses", "words", "links")
Ranked = tuple[int, int, str]  # link count, id, title


def corpus_figures(stages: Mapping[str, Stage]) -> dict[str, Any] | None:
    """Figures of the corpus; None without a mention table."""
    if "BuildMentionTable" not in stages:
        return None
    fetched = stages["FetchDump"].manifest().facts
    extracted = stages["ExtractPages"]
    vocab, mentions = stages["BuildEntityVocab"], stages["BuildMentionTable"]
    sequences = stages.get("BuildSequences")
    return {
        "dump_parts": fetched["parts"],
        "language": fetched["site"]["language"],
        "pages": extracted.manifest().rows["pages"],
        "lost_text": lost_text(extracted.folder),
        "links_by_status": vocab.manifest().facts["links_by_status"],
        "links_in_vocab": vocab.manifest().facts["links_in_vocab"],
        "entities": entity_figures(ranked_entities(vocab.folder)),
        "changes": largest_changes(stages["DiffDumps"].folder) if "DiffDumps" in stages else {},
        "names": mentions.manifest().rows["names"],
        "sequences": sequence_rows(sequences.folder) if sequences else [],
    }


def wiki_rows(wikis: Sequence[Mapping[str, Stage]], evaluated: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The counts of each of several wikis, and the model's figures on its held-out mentions, by `EvaluateLanguages`."""
    facts = [stages["FetchDump"].manifest().facts for stages in wikis]
    return [
        {
            "language": (language := fetched["site"]["language"]),
            "files": [part["name"] for part in fetched["parts"]],
            "pages": stages["ExtractPages"].manifest().rows["pages"],
            "links_in_vocab": stages["BuildEntityVocab"].manifest().facts["links_in_vocab"],
            "sequences": stages["BuildSequences"].manifest().rows["sequences"],
            **{name: evaluated[language].get(f"known_entity_{name}") for name in OF_LANGUAGES},
        }
        for stages, fetched in zip(wikis, facts, strict=True)
    ]


def lost_text(folder: str) -> dict[str, Any]:
    """The text that was lost in templates without a rule, over all blocks in the folder of ExtractPages.

    That is the number of `templates`, their `uses`, `words` and `links`, and the `top`: `template`, `uses`, `words`,
    `links` and `example` of those with most words, ties by name; the example is that of the first block. And the `uses`
    of the `tags` that the project does not know, which stay in the text.
    """
    paths = storage.read_manifest(folder).paths(folder, "templates/")
    counts: dict[str, tuple[int, ...]] = {}
    for row in chain.from_iterable(storage.read_rows(path, ["template", *_COSTS]) for path in paths):
        known = counts.get(row["template"], (0,) * len(_COSTS))
        counts[row["template"]] = tuple(map(add, known, (row[name] for name in _COSTS)))
    tags = {name: counts.pop(name)[0] for name in sorted(counts) if _TAG.fullmatch(name)}
    order = sorted(counts, key=lambda name: (-counts[name][_COSTS.index("words")], name))
    top = dict.fromkeys(order[:COSTLIEST_TEMPLATES], "")
    for row in chain.from_iterable(storage.read_rows(path, ["template", "example"]) for path in paths):
        if top.get(row["template"]) == "":
            top[row["template"]] = row["example"]
    sums = {name: sum(each[place] for each in counts.values()) for place, name in enumerate(_COSTS)}
    costs = {name: dict(zip(_COSTS, counts[name], strict=True)) for name in top}
    rows = [{"template": name, **costs[name], "example": example} for name, example in top.items()]
    return {"templates": len(counts), **sums, "top": rows, "tags": tags}


def ranked_entities(folder: str) -> list[Ranked]:
    """The entities of a vocabulary's folder without the special ones, the most linked first, ties by title."""
    columns = ["entity_id", "title", "link_count"]
    batches = storage.read_batches(storage.join(folder, "entity_vocab.parquet"), columns)
    rows = [row for batch in batches for row in zip(*batch.to_pydict().values(), strict=True)]
    entities = [(count, number, title) for number, title, count in rows if number >= len(SPECIAL_ENTITIES)]
    return sorted(entities, key=lambda entity: (-entity[0], entity[2]))


def largest_changes(folder: str) -> dict[str, dict[str, Any]]:
    """By kind, what became of an earlier model's entities: the `count`, and the `top` ones by links of both dumps."""
    kinds: dict[str, dict[str, Any]] = {}
    for row in storage.read_rows(storage.join(folder, "entity_changes.parquet")):
        kind = kinds.setdefault(row["change"], {"count": 0, "top": []})
        kind["count"] += 1
        ranked = sorted([*kind["top"], row], key=lambda each: -each["old_link_count"] - each["link_count"])
        kind["top"] = ranked[:CHANGES_SHOWN]
    return dict(sorted(kinds.items()))


def entity_figures(ranked: Sequence[Ranked]) -> dict[str, Any]:
    """The number of `entities`, of those that are `never_linked`, and the `top`: the most linked ones."""
    return {
        "entities": len(ranked),
        "never_linked": sum(not count for count, _, _ in ranked),
        "top": [{"title": title, "link_count": count} for count, _, title in ranked[:TOP_ENTITIES]],
    }


def sequence_rows(folder: str) -> list[dict[str, Any]]:
    """The counts of BuildSequences' sequences that pretraining sees, and of those that are held out."""
    from pipeline.sequences.shards import SEEN, SIZES, STATISTICS

    statistics = json.loads(storage.read_bytes(storage.join(folder, STATISTICS)))
    return [
        {"part": title, **{name: value for name, value in statistics[part].items() if name not in SIZES}}
        for part, title in ((SEEN, "training"), (HELD_OUT, "held out"))
    ]
