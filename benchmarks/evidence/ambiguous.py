"""Held-out mentions whose texts link to two known entities or more: found in a mention table, and kept in a file.

A machine without the mention table needs no more than that file.
"""

import argparse
import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.arrays import read_arrays, write_arrays
from model.data.shards import Corpus
from model.luke.config import SPECIAL_ENTITIES, UNKNOWN_ENTITY

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Found = tuple[list["Mention"], Counter[str]]


@dataclass(frozen=True)
class Mention:
    """An annotation of a held-out sequence, its known candidates, and the logarithm of each one's share of links."""

    page_id: int
    index: int
    place: int
    label: int
    candidates: Integers
    log_prior: Floats

    @property
    def is_reachable(self) -> bool:
        """Whether its entity is among the candidates."""
        return self.label in self.candidates


def ambiguous_mentions(
    corpus: Corpus, *, links: str, mentions: str, tokenizer: str
) -> tuple[list[Mention], Counter[str]]:
    """The annotations of known entities whose texts link to two known entities or more, beside held-out links.

    Then how many annotations there are, and how many are left out, by reason.
    """
    # Imported here: it wants packages of the pipeline, which a machine with a GPU need not have.
    from pipeline.sequences.commonest import held_out_counts

    offsets, places, counts = held_out_counts(
        sequences=str(corpus.folder), links=links, mentions=mentions, tokenizer=tokenizer
    )
    tables = [{label: links for label, links in each.items() if label != UNKNOWN_ENTITY} for each in counts]
    found, annotations = list[Mention](), Counter[str]()
    for index in range(len(corpus)):
        sequence = corpus[index]
        for place, label in enumerate(sequence.entity_ids.tolist()):
            table = tables[places[offsets[index] + place]]
            annotations["held-out annotations"] += 1
            if label < SPECIAL_ENTITIES:
                annotations["left out: their entity is not in the vocabulary"] += 1
            elif len(table) < 2:
                annotations["left out: their text has one known target or none"] += 1
            else:
                links = np.array(list(table.values()), np.float64)
                prior = np.log(links / links.sum())
                candidates = np.array(list(table), np.int64)
                found.append(Mention(sequence.page_id, index, place, label, candidates, prior))
    return found, annotations


def mentions_of(corpus: Corpus, chosen: argparse.Namespace) -> Found:
    """The mentions of the file `found`, or else those that are found and, where a file is named, kept in it.

    Raises: ValueError where both or neither are given, or the file is of other sequences.
    """
    folders, is_kept = (chosen.links, chosen.mentions), bool(chosen.found and chosen.found.is_file())
    if is_kept and any(folders):
        raise ValueError(
            f"{chosen.found}: is there; leave --links and --mentions out, or give another --found"
        )
    if is_kept:
        return read_mentions(chosen.found, corpus)
    if not all(folders):
        raise ValueError(
            "there are no mentions yet: give --links and --mentions, or --found of a run that had them"
        )
    found = ambiguous_mentions(
        corpus, **{name: str(getattr(chosen, name)) for name in ("links", "mentions", "tokenizer")}
    )
    if chosen.found:
        write_mentions(chosen.found, found, corpus)
    return found


def write_mentions(path: Path, found: Found, corpus: Corpus) -> None:
    """Keep mentions, and what was counted, in a file."""
    mentions, annotations = found
    arrays = {
        "numbers": np.array([(m.page_id, m.index, m.place, m.label) for m in mentions], np.int64).reshape(
            -1, 4
        ),
        "sizes": np.array([len(m.candidates) for m in mentions], np.int64),
        "candidates": np.concatenate([np.zeros(0, np.int64), *(m.candidates for m in mentions)]),
        "log_prior": np.concatenate([np.zeros(0), *(m.log_prior for m in mentions)]),
        "annotations": np.array(json.dumps(annotations)),
        "sequences": np.array(manifest_sha256(corpus)),
    }
    write_arrays(path, arrays)


def read_mentions(path: Path, corpus: Corpus) -> Found:
    """What `write_mentions` kept. Raises: ValueError where it is of other sequences."""
    kept = read_arrays(path, "numbers", "sizes", "candidates", "log_prior", "annotations", "sequences")
    if str(kept["sequences"]) != manifest_sha256(corpus):
        raise ValueError(f"{path}: its mentions are not of {corpus.folder}; give another --found")
    ends = np.cumsum(kept["sizes"])[:-1]
    candidates, log_priors = np.split(kept["candidates"], ends), np.split(kept["log_prior"], ends)
    numbers, annotations = kept["numbers"].tolist(), Counter[str](json.loads(str(kept["annotations"])))
    mentions = [Mention(*own, *both) for own, *both in zip(numbers, candidates, log_priors, strict=True)]
    return mentions, annotations


def manifest_sha256(corpus: Corpus) -> str:
    """What tells these sequences from all others."""
    return hashlib.sha256((corpus.folder / "manifest.json").read_bytes()).hexdigest()
