"""The oracle of the sequences: sentences, tokens and packing in plain Python, as ``oracle_tables`` does the tables.

Tokens come from a byte-level BPE spelled out here, not from the library that the pipeline uses.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from pathlib import Path

import regex
import sentencex

from pipeline.sequences.sentences import split
from tests.support.oracle_tables import Row

UNKNOWN_ENTITY = 1


# Tokens


class Tokenizer:
    """Byte-level BPE as RoBERTa's slow tokenizer did it: cut into words, bytes as characters, merges by rank."""

    PIECES = regex.compile(r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")

    def __init__(self, folder: str | Path) -> None:
        vocab = next(path for name in ("vocab.json", "vocab") if (path := Path(folder, name)).is_file())
        merges = next(path for name in ("merges.txt", "merges") if (path := Path(folder, name)).is_file())
        self.vocab: dict[str, int] = json.loads(vocab.read_text(encoding="utf-8"))
        lines = merges.read_text(encoding="utf-8").split("\n")
        pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self._words: dict[str, list[int]] = {}

    @cached_property
    def alphabet(self) -> list[str]:
        """A visible character for each byte: itself in Latin-1, else the next one from U+0100 on."""
        visible = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), 256)}
        hidden = [byte for byte in range(256) if byte not in visible]
        return [chr(byte if byte in visible else 256 + hidden.index(byte)) for byte in range(256)]

    def encode(self, text: str, leading_space: bool) -> list[int]:
        """Token ids of a stripped segment; words in it that look like special tokens are ordinary words."""
        text = text.strip()
        if leading_space and text:
            text = " " + text
        return [token_id for piece in self.PIECES.findall(text) for token_id in self._word(piece)]

    def _word(self, piece: str) -> list[int]:
        if piece not in self._words:
            parts = [self.alphabet[byte] for byte in piece.encode()]
            while known := [pair for pair in pairwise(parts) if pair in self.ranks]:
                best = min(known, key=self.ranks.__getitem__)
                at = list(pairwise(parts)).index(best)
                parts[at : at + 2] = ["".join(best)]
            self._words[piece] = [self.vocab[part] for part in parts]
        return self._words[piece]


# Sequences


@dataclass(frozen=True)
class Sentence:
    """Word ids, and annotations as (entity id, start, end)."""

    words: list[int]
    annotations: list[tuple[int, int, int]]


@dataclass
class SequenceMaker:
    """Makes the rows of shards from blocks of paragraphs, and counts what is dropped.

    A link outside of the vocabulary is [UNK]; profile "paper" drops it.
    """

    tokenizer: Tokenizer
    aliases: Mapping[str, int]
    language: str
    profile: str
    max_words: int = 512
    max_entities: int = 128
    max_mention_words: int = 30
    min_sentence_words: int = 5
    held_out: float = 0.0
    drops: Counter[str] = field(default_factory=Counter)

    def block(self, paragraphs: Iterable[Row]) -> dict[str, list[Row]]:
        """The rows of a block's pages by the folder of the shard: "sequences" or "held_out"."""
        shards: dict[str, list[Row]] = {"sequences": [], "held_out": []}
        for page_id, page in groupby(paragraphs, key=lambda row: row["page_id"]):
            folder = "held_out" if is_held_out(page_id, self.held_out) else "sequences"
            shards[folder] += self._page(page_id, page)
        return shards

    def _page(self, page_id: int, paragraphs: Iterable[Row]) -> list[Row]:
        sentences = [
            sentence
            for row in paragraphs
            for sentence in self._sentences(row["text"], self._without_own(row), row["links"])
        ]
        fitting = [sentence for sentence in sentences if self._fits(sentence)]
        return [self._row(page_id, pack) for pack in self._packs(fitting) if self._has_links(pack)]

    def _without_own(self, row: Row) -> list[Row]:
        """The links but those that lead back to the page, in `fixed`, where the page is an entity, and no document."""
        own = self.aliases.get(row["title"]) if self.profile == "fixed" and row["page_id"] > 0 else None
        kept = [link for link in row["links"] if own is None or self.aliases.get(link["target"]) != own]
        self.drops["links:same_page"] += len(row["links"]) - len(kept)
        return kept

    def _sentences(self, text: str, links: Sequence[Row], anchors: Sequence[Row]) -> Iterator[Sentence]:
        """No sentence ends inside an anchor, wherever that leads."""
        known = [
            (link, self.aliases.get(link["target"], UNKNOWN_ENTITY))
            for link in links
            if self.profile != "paper" or link["target"] in self.aliases
        ]
        self.drops["links:out_of_vocabulary"] += len(links) - len(known)
        held = 0
        for start, end in self._spans(text, anchors):
            inside = [(link, entity) for link, entity in known if start <= link["start"] < link["end"] <= end]
            held += len(inside)
            yield self._sentence(text, start, end, inside)
        self.drops["links:crosses_sentence"] += len(known) - held

    def _spans(self, text: str, links: Sequence[Row]) -> list[tuple[int, int]]:
        """In `paper` what sentencex gives; the rules of `fixed` have tests of their own."""
        if self.profile != "paper":
            return split(text, self.language, links=[(link["start"], link["end"]) for link in links])
        found = sentencex.get_sentence_boundaries(self.language, text)
        return [(each["start_index"], each["end_index"]) for each in found if each["text"].strip()]

    def _sentence(self, text: str, start: int, end: int, links: Iterable[tuple[Row, int]]) -> Sentence:
        sentence = Sentence([], [])
        at = start
        for link, entity in links:
            sentence.words.extend(self._segment(text, at, link["start"]))
            words = self._segment(text, link["start"], link["end"])
            first, kept = len(sentence.words), min(len(words), self.max_mention_words)
            self.drops["mentions:cut_to_limit"] += kept < len(words)
            self.drops["links:empty_after_tokenising"] += not words
            if words:
                sentence.annotations.append((entity, first, first + kept))
            sentence.words.extend(words)
            at = link["end"]
        sentence.words.extend(self._segment(text, at, end))
        return sentence

    def _segment(self, text: str, start: int, end: int) -> list[int]:
        begins_with_space = text[start:end][:1].isspace()
        return self.tokenizer.encode(text[start:end], start == 0 or begins_with_space or text[start - 1].isspace())

    def _fits(self, sentence: Sentence) -> bool:
        if len(sentence.words) < self.min_sentence_words:
            reason = "too_short"
        elif len(sentence.words) > self.max_words - 2:
            reason = "too_long"
        else:
            return True
        self.drops[f"sentences:{reason}"] += 1
        self.drops[f"links:sentence_{reason}"] += len(sentence.annotations)
        return False

    def _packs(self, sentences: Iterable[Sentence]) -> list[list[Sentence]]:
        packs: list[list[Sentence]] = []
        for sentence in sentences:
            room = self.max_words - 2 - sum(len(other.words) for other in packs[-1]) if packs else 0
            if len(sentence.words) <= room:
                packs[-1].append(sentence)
            else:
                packs.append([sentence])
        return packs

    def _has_links(self, pack: Sequence[Sentence]) -> bool:
        if any(sentence.annotations for sentence in pack):
            return True
        self.drops["sequences:no_links"] += 1
        self.drops["sentences:no_links"] += len(pack)
        return False

    def _row(self, page_id: int, pack: Iterable[Sentence]) -> Row:
        words: list[int] = []
        annotations: list[tuple[int, int, int]] = []
        for sentence in pack:
            offset = len(words)
            annotations += [(entity, start + offset, end + offset) for entity, start, end in sentence.annotations]
            words += sentence.words
        self.drops["entities:over_limit"] += max(0, len(annotations) - self.max_entities)
        kept = annotations[: self.max_entities]
        return {
            "word_ids": words,
            "entity_ids": [entity for entity, _, _ in kept],
            "entity_starts": [start for _, start, _ in kept],
            "entity_ends": [end for _, _, end in kept],
            "page_id": page_id,
        }


def is_held_out(page_id: int, share: float) -> bool:
    """Return whether the page's sequences are kept from training: by a hash of its id."""
    digest = hashlib.blake2b(str(page_id).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64 < share
