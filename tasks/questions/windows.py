"""A question and a passage as model input: their tokens, and how they are joined."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pipeline.sequences.tokenizer import ByteLevelBPE, WordTokenizer
from tasks.io.annotations import EntityMention
from tasks.io.windows import Integers, token_spans


def passage_room(question: int, max_words: int, tokenizer: WordTokenizer) -> int:
    """Return how many tokens of a passage fit beside `question` tokens. Raises: ValueError where none does."""
    room = max_words - question - 2 - tokenizer.pair_separators
    if room < 1:
        raise ValueError(f"max_words {max_words} leaves no room for a passage; wanted a longer model")
    return room


def question_limit(limit: int, max_words: int, tokenizer: WordTokenizer) -> int:
    """`limit`, or what leaves a short model half of its words for the passage."""
    return max(1, min(limit, (max_words - 2 - tokenizer.pair_separators) // 2))


def joined(
    question: Sequence[int], passage: Sequence[int] | Integers, tokenizer: WordTokenizer
) -> tuple[Integers, int]:
    """[CLS] question [SEP] passage [SEP], with two [SEP] in the middle where the tokenizer is RoBERTa's.

    Also where the passage begins.
    """
    separators = [tokenizer.sep_id] * tokenizer.pair_separators
    head = [tokenizer.cls_id, *question, *separators]
    return np.concatenate([head, passage, [tokenizer.sep_id]]).astype(np.int64), len(head)


@dataclass(frozen=True, eq=False)
class Text:
    """A question or a passage: token ids, the characters (tokens, 2) of each, mentions as tokens (mentions, 2)."""

    ids: Sequence[int]
    characters: Integers
    entity_ids: Integers
    entity_ends: Integers

    def entities(self, start: int, end: int, place: int) -> tuple[Integers, Integers]:
        """The entities within these tokens, and their word positions where the first of them is at `place`."""
        inside = (self.entity_ends[:, 0] >= start) & (self.entity_ends[:, 1] <= end)
        return self.entity_ids[inside], self.entity_ends[inside] - start + place


def encode(
    texts: Sequence[tuple[str, tuple[EntityMention, ...]]], tokenizer: WordTokenizer, *, profile: str
) -> dict[tuple[str, tuple[EntityMention, ...]], Text]:
    """The tokens of each text, once; a mention that shares characters with no token is left out."""
    encoded = {}
    for key in dict.fromkeys(texts):
        ids, characters = tokens_of(key[0], tokenizer, profile=profile)
        mentions = np.array(key[1], dtype=np.int64).reshape(-1, 3)
        ends = token_spans(characters, mentions[:, :2])
        kept = ends[:, 0] < ends[:, 1]
        encoded[key] = Text(ids, characters, mentions[kept, 2], ends[kept])
    return encoded


def tokens_of(text: str, tokenizer: WordTokenizer, *, profile: str) -> tuple[list[int], Integers]:
    """The token ids of a text and the characters (tokens, 2) of each, half open.

    In the profile `fixed` the text is tokenised as it is written, in `paper` as after a blank.
    """
    blank = "" if profile == "fixed" else " "
    given = text if profile == "fixed" else text.strip()
    shift = 0 if profile == "fixed" else len(text) - len(text.lstrip()) - 1
    ids, places = tokenizer.encode_with_offsets(f"{blank}{given}" if given else "")
    return ids, np.array(places, dtype=np.int64).reshape(-1, 2) + shift


@lru_cache(maxsize=2)
def marks_apart(tokenizer: WordTokenizer) -> WordTokenizer:
    """A tokenizer none of whose tokens holds punctuation marks that differ, so that an answer can end between them.

    BERT's has none to begin with.
    """
    return tokenizer.marks_apart() if isinstance(tokenizer, ByteLevelBPE) else tokenizer
