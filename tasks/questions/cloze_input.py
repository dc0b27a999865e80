"""Questions with a placeholder as model input: tokens with markers, windows of the passage, padded batches."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from model.luke.batch import Batch, lengths_mask, mention_positions, pad
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.windows import CharacterSpan, boundaries, context_window, windows
from tasks.questions.cloze_format import PLACEHOLDER, Dataset, Example
from tasks.questions.windows import Integers, joined, passage_room, question_limit
from tasks.task import MAX_MENTION_POSITIONS, Features, InputSettings, LabelledBatch

HIGHLIGHT = "@highlight"
MASK_ROW = 1  # where [MASK] stands once only ENTITY_ROWS are kept
MAX_QUESTION = 90


@dataclass(frozen=True, eq=False)
class ClozeFeature:
    """A question with a window of its passage that has at least one entity.

    `word_ids` (words) with special tokens and markers; `entities` (entities), the numbers of those in the window;
    `ends` (1 + entities, 2), half-open word positions of the placeholder and of each entity with its markers;
    `label` (entities) float32, 1 for entities with the text of an answer.
    """

    example: int
    word_ids: Integers
    entities: Integers
    ends: Integers
    label: np.ndarray


def featurize(dataset: Dataset, inputs: InputSettings) -> Features[ClozeFeature]:
    """Each question with all windows of its passage that have an entity as a whole.

    [PLACEHOLDER] stands for the placeholder, [HIGHLIGHT] for each @highlight, [ENTITY] on both sides of an entity.
    Of a question of more than 90 tokens remains what is around the placeholder. The counts tell how often that was,
    how many entities no window holds, and which questions no entity answers.
    """
    counts = Counter(questions_cut=0, entities_out_of_reach=0, questions_out_of_reach=0)
    tokenizer, markers = inputs.tokenizer, inputs.markers
    limit = question_limit(MAX_QUESTION, inputs.max_words, tokenizer)
    passages: dict[tuple[str, tuple[CharacterSpan, ...]], tuple[Integers, Integers]] = {}
    items: list[ClozeFeature] = []
    for number, example in enumerate(dataset.examples):
        key = example.passage, example.entities
        if key not in passages:
            passages[key] = passage_input(example, tokenizer, markers)
        question, place = question_input(example.question, tokenizer, markers, limit, counts)
        room = passage_room(len(question), inputs.max_words, tokenizer)
        found = features_of(number, example, question, place, *passages[key], room, tokenizer)
        reached = {entity for item in found for entity in item.entities.tolist()}
        counts["entities_out_of_reach"] += len(example.entities) - len(reached)
        counts["questions_out_of_reach"] += not any(item.label.any() for item in found)
        items += found
    return Features(items, counts | Counter(windows=len(items)))


def passage_input(
    example: Example, tokenizer: WordTokenizer, markers: Mapping[str, int]
) -> tuple[Integers, Integers]:
    """The tokens of a passage with all markers, and those of each entity (entities, 2), half open."""
    marks = boundaries(example.entities)
    places = [0, *(place for place, _, _ in marks), len(example.passage)]
    pieces = [example.passage[start:end] for start, end in pairwise(places)]
    segments = [marked_words(piece, HIGHLIGHT, markers["[HIGHLIGHT]"], tokenizer) for piece in pieces]
    ids = [*segments[0]]
    ends = np.zeros((len(example.entities), 2), dtype=np.int64)
    for segment, (_, entity, side) in zip(segments[1:], marks, strict=True):
        ends[entity, side] = len(ids) + side
        ids += [markers["[ENTITY]"], *segment]
    return np.array(ids, dtype=np.int64), ends


def question_input(
    question: str, tokenizer: WordTokenizer, markers: Mapping[str, int], limit: int, counts: Counter[str]
) -> tuple[list[int], int]:
    """The tokens of a question, at most `limit`, and the place of the placeholder, the first of several."""
    marker = markers["[PLACEHOLDER]"]
    ids = marked_words(question, PLACEHOLDER, marker, tokenizer)
    place = ids.index(marker)
    if len(ids) > limit:
        counts["questions_cut"] += 1
        start, end = context_window(place, place + 1, len(ids), limit)
        ids, place = ids[start:end], place - start
    return ids, place


def marked_words(text: str, word: str, marker: int, tokenizer: WordTokenizer) -> list[int]:
    """The tokens of a text, with the marker in place of a word."""
    pieces = text.split(word)
    first, *others = tokenizer.encode(pieces, [True] * len(pieces))
    return [*first, *(token for ids in others for token in (marker, *ids))]


def features_of(
    number: int,
    example: Example,
    question: Sequence[int],
    place: int,
    passage_ids: Integers,
    entity_ends: Integers,
    room: int,
    tokenizer: WordTokenizer,
) -> list[ClozeFeature]:
    """The features of an example, one for each window that has an entity."""
    right = {text for _, text in example.answers}
    label = np.array([text in right for text in example.texts()], dtype=np.float32)
    items = []
    for start, end in windows(len(passage_ids), room):
        [entities] = np.nonzero((entity_ends[:, 0] >= start) & (entity_ends[:, 1] <= end))
        if len(entities):
            word_ids, first = joined(question, passage_ids[start:end], tokenizer)
            ends = np.concatenate([[[place + 1, place + 2]], entity_ends[entities] - start + first])
            items.append(ClozeFeature(number, word_ids, entities, ends, label[entities]))
    return items


def feature_size(feature: ClozeFeature) -> int:
    """Length of a window in words and entities together."""
    return len(feature.word_ids) + len(feature.ends)


def loss_terms(feature: ClozeFeature) -> int:
    """Each entity is a term of the loss."""
    return len(feature.entities)


@dataclass(frozen=True, eq=False)
class ClozeBatch(LabelledBatch):
    """Padded windows with where the placeholder and each entity begins, `starts` (batch, 1 + entities).

    `labels` (batch, entities) float32 is -1 at padding. `inputs` has no entities where the model is to see none.
    """

    starts: Tensor


def collate(features: Sequence[ClozeFeature], *, entities: bool, pad_id: int) -> ClozeBatch:
    """A padded batch; the placeholder and all entities are [MASK] entities."""
    inputs = Batch.of_words([feature.word_ids for feature in features], pad_id)
    places = [feature.ends for feature in features]
    ends, mask = pad(places, 0), lengths_mask(places)
    if entities:
        positions = mention_positions(ends[..., 0], ends[..., 1], MAX_MENTION_POSITIONS)
        inputs = replace(inputs, entity_ids=mask * MASK_ROW, entity_positions=positions, entity_mask=mask)
    labels = torch.full((len(features), ends.shape[1] - 1), -1.0)
    labels[mask[:, 1:]] = torch.from_numpy(np.concatenate([feature.label for feature in features]))
    return ClozeBatch(inputs.unpadded(), labels, ends[..., 0])
