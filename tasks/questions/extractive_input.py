"""Questions about a passage as model input: windows with their entities, the tokens of answers, batches."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from model.luke.batch import IGNORED
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.windows import Integers, token_spans, widest_windows, windows
from tasks.questions.extractive_format import Dataset, Example
from tasks.questions.windows import Text, encode, joined, marks_apart, passage_room, question_limit
from tasks.task import Features, InputSettings, LabelledBatch, inputs_of

MAX_QUESTION = 64
MAX_ANSWER = 30
MAX_ENTITIES = 128


@dataclass(frozen=True, eq=False)
class WindowFeature:
    """A question with a window of its passage."""

    example: int
    word_ids: Integers  # (words) with special tokens
    first: int  # the word at which the window's tokens begin
    characters: Integers  # (tokens, 2) of the window's tokens
    is_start: np.ndarray  # (tokens) where an answer may start
    entity_ids: Integers  # (entities)
    ends: Integers  # (entities, 2) their word positions, half open
    # (2): the answer's first and last word position; 0 where the window has none of it, IGNORED where it is not known.
    label: Integers


def featurize(dataset: Dataset, inputs: InputSettings) -> Features[WindowFeature]:
    """Each question with all windows of its passage.

    Questions are cut after 64 tokens. In the profile `fixed` no token holds different punctuation marks, so that an
    answer can end between two of them; in `paper` the tokens are the tokenizer's own. The counts tell how often
    questions were cut and which answers are out of reach: those of more than 30 tokens, those that begin or end
    inside a token, and those that are not where they are said to be.
    """
    counts = Counter(
        windows=0, questions_cut=0, questions_without_span=0, answers_too_long=0, answers_inside_tokens=0,
        entities_cut=0,
    )  # fmt: skip
    tokenizer = marks_apart(inputs.tokenizer) if inputs.profile == "fixed" else inputs.tokenizer
    limit = question_limit(MAX_QUESTION, inputs.max_words, tokenizer)
    encode_texts = partial(encode, tokenizer=tokenizer, profile=inputs.profile)
    asked = encode_texts([(each.question, each.question_mentions) for each in dataset.examples])
    passages = encode_texts([(each.passage, each.passage_mentions) for each in dataset.examples])
    items: list[WindowFeature] = []
    of_examples = []
    for number, example in enumerate(dataset.examples):
        before = counts.copy()
        question = asked[example.question, example.question_mentions]
        passage = passages[example.passage, example.passage_mentions]
        counts["questions_cut"] += len(question.ids) > limit
        gold = gold_tokens(example, passage, counts)
        room = passage_room(min(limit, len(question.ids)), inputs.max_words, tokenizer)
        items.extend(features_of(number, question, passage, gold, limit, room, tokenizer, counts))
        of_examples.append(counts - before)
    return Features(items, counts | Counter(windows=len(items)), of_examples)


def gold_tokens(example: Example, passage: Text, counts: Counter[str]) -> tuple[int, int] | None:
    """The tokens (half open) of the first answer that is at its offset, as training wants them."""
    if not example.spans:
        counts["questions_without_span"] += bool(example.answers)
        return None
    characters = np.array(example.spans[:1])
    [(first, last)] = token_spans(passage.characters, characters).tolist()
    if first >= last:  # blanks alone
        counts["questions_without_span"] += 1
        return None
    counts["answers_too_long"] += last - first > MAX_ANSWER
    found = passage.characters[first, 0], passage.characters[last - 1, 1]
    counts["answers_inside_tokens"] += found != example.spans[0]
    return first, last


def features_of(
    number: int,
    question: Text,
    passage: Text,
    gold: tuple[int, int] | None,
    limit: int,
    room: int,
    tokenizer: WordTokenizer,
    counts: Counter[str],
) -> list[WindowFeature]:
    """The features of an example, one for each window."""
    if not (spans := windows(len(passage.ids), room)):
        return []
    widest = widest_windows(spans)
    passage_ids = np.array(passage.ids, dtype=np.int64)
    items = []
    for window, (start, end) in enumerate(spans):
        word_ids, first = joined(question.ids[:limit], passage_ids[start:end], tokenizer)
        parts = question.entities(0, limit, 1), passage.entities(start, end, first)
        entity_ids, ends = (np.concatenate(both) for both in zip(*parts, strict=True))
        counts["entities_cut"] += max(0, len(entity_ids) - MAX_ENTITIES)
        label = (IGNORED, IGNORED) if gold is None else (0, 0)
        if gold and start <= gold[0] and gold[1] <= end:
            label = gold[0] - start + first, gold[1] - 1 - start + first
        items.append(
            WindowFeature(
                example=number,
                word_ids=word_ids,
                first=first,
                characters=passage.characters[start:end],
                is_start=widest[start:end] == window,
                entity_ids=entity_ids[:MAX_ENTITIES],
                ends=ends[:MAX_ENTITIES],
                label=np.array(label, dtype=np.int64),
            )
        )
    return items


def collate(features: Sequence[WindowFeature], *, entities: bool) -> LabelledBatch:
    """Windows as one batch, with the entities that each has.

    Their items are their words; `labels` (batch, 2) are the first and last word of each answer.
    """
    inputs = inputs_of(((each.word_ids, each.entity_ids, each.ends) for each in features), entities=entities)
    labels = torch.from_numpy(np.stack([each.label for each in features]))
    return LabelledBatch(inputs, labels, tuple(words for words, _ in inputs.shape.lengths))
