"""Cloze-style question answering: which entity of a passage a placeholder stands for (section 4.4 of the paper)."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import torch

from model.luke.encoder import LukeModel
from pipeline.sequences.tokenizer import WordTokenizer
from tasks.io.probabilities import Choices
from tasks.io.windows import CharacterSpan, Integers, boundaries, context_window, windows
from tasks.questions import answers as common
from tasks.questions import cloze_format
from tasks.questions.answers import Answer, Candidates, QuestionTask
from tasks.questions.cloze_format import PLACEHOLDER, Dataset, Example
from tasks.questions.windows import joined, passage_room, question_limit
from tasks.task import Features, InputSettings, Outputs, PlaceClassifier, PlacedBatch, inputs_of, presets

HIGHLIGHT = "@highlight"
MASK_ROW = 1  # where [MASK] stands once only ENTITY_ROWS are kept
MAX_QUESTION = 90


@dataclass(frozen=True, eq=False)
class ClozeFeature:
    """A question with a window of its passage that has at least one entity."""

    example: int
    word_ids: Integers  # (words) with special tokens and markers
    entities: Integers  # (entities) the numbers of those in the window
    ends: Integers  # (1 + entities, 2) half-open word positions of the placeholder and of each entity with its markers
    label: np.ndarray  # (entities) float32, 1 for entities with the text of an answer


def passage_input(example: Example, tokenizer: WordTokenizer, markers: Mapping[str, int]) -> tuple[Integers, Integers]:
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


class ClozeAnswering(QuestionTask):
    """The entity that a placeholder stands for."""

    PRESETS = presets("cloze_qa")
    WORD_MARKERS = MappingProxyType({"[HIGHLIGHT]": "@", "[PLACEHOLDER]": "#", "[ENTITY]": "*"})
    LABELS = ("answer",)
    WANTED = "an answer that is an entity of its passage; check their places"
    DEV_METRIC = "exact_match"
    BEST_EPOCH_IN_PAPER = True
    read = staticmethod(cloze_format.read)
    describe = staticmethod(cloze_format.describe)
    from_records = staticmethod(cloze_format.from_records)

    def featurize(self, dataset: Dataset, inputs: InputSettings) -> Features[ClozeFeature]:
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
        of_examples = []
        for number, example in enumerate(dataset.examples):
            before = counts.copy()
            key = example.passage, example.entities
            if key not in passages:
                passages[key] = passage_input(example, tokenizer, markers)
            question, place = question_input(example.question, tokenizer, markers, limit, counts)
            (passage_ids, entity_ends), right = passages[key], {text for _, text in example.answers}
            label = np.array([text in right for text in example.texts()], dtype=np.float32)
            found = []
            room = passage_room(len(question), inputs.max_words, tokenizer)
            for start, end in windows(len(passage_ids), room):
                [entities] = np.nonzero((entity_ends[:, 0] >= start) & (entity_ends[:, 1] <= end))
                if len(entities):
                    word_ids, first = joined(question, passage_ids[start:end], tokenizer)
                    ends = np.concatenate([[[place + 1, place + 2]], entity_ends[entities] - start + first])
                    found.append(ClozeFeature(number, word_ids, entities, ends, label[entities]))
            reached = {entity for item in found for entity in item.entities.tolist()}
            counts["entities_out_of_reach"] += len(example.entities) - len(reached)
            counts["questions_out_of_reach"] += not any(item.label.any() for item in found)
            items += found
            of_examples.append(counts - before)
        return Features(items, counts | Counter(windows=len(items)), of_examples)

    def loss_terms(self, feature: ClozeFeature) -> int:
        """Each entity is a term of the loss."""
        return len(feature.entities)

    def collate(self, features: Sequence[ClozeFeature], *, entities: bool) -> PlacedBatch:
        """Windows as one batch, whose items are their entities; these and the placeholder are [MASK] entities.

        The places of an entity are the placeholder's and its own: those of entities or, where the model is to see none,
        of the words where they begin.
        """
        sequences = ((each.word_ids, np.full(len(each.ends), MASK_ROW), each.ends) for each in features)
        inputs = inputs_of(sequences, entities=entities)
        begins = inputs.layout.entity_offsets + inputs.shape.words if entities else inputs.layout.word_offsets
        places = []
        for begin, each in zip(begins[:-1].tolist(), features, strict=True):
            own = begin + (np.arange(len(each.ends)) if entities else each.ends[:, 0])
            places.append(np.column_stack([np.full(len(own) - 1, own[0]), own[1:]]))
        labels = torch.from_numpy(np.concatenate([feature.label for feature in features]))
        sizes = tuple(map(self.loss_terms, features))
        return PlacedBatch(inputs, labels, sizes, torch.from_numpy(np.concatenate(places)))

    def head(self, luke: LukeModel, label_count: int, *, entities: bool) -> PlaceClassifier:
        """LUKE with a linear classifier over [h_placeholder; h_entity].

        Without entities these are the states of [PLACEHOLDER] and of the [ENTITY] before the entity.
        """
        return PlaceClassifier(luke, 2, label_count)

    def starting_bias(self, features: Sequence[ClozeFeature], label_count: int) -> np.ndarray:
        """The logarithm of the odds: of the entities that are an answer to those that are not."""
        labels = np.concatenate([feature.label for feature in features])
        return np.log([(1 + labels.sum()) / (1 + (1 - labels).sum())])

    def candidates(self, outputs: Outputs[Dataset, ClozeFeature]) -> Iterator[Candidates]:
        """Of each text the best of its entities that any window holds; an entity's score is its best in any window."""
        best = [np.full(len(example.entities), -np.inf, np.float32) for example in outputs.dataset.examples]
        for feature, scores in zip(outputs.features, outputs.logits, strict=True):
            found = best[feature.example]
            found[feature.entities] = np.maximum(found[feature.entities], scores)
        for example, scores in zip(outputs.dataset.examples, best, strict=True):
            spans = np.array(example.entities, dtype=np.int64).reshape(-1, 2)
            held = np.flatnonzero(np.isfinite(scores))
            entities = Candidates(example.passage, scores[held], spans[held])
            chosen = sorted(common.ranked(entities, len(held)))
            yield Candidates(example.passage, entities.scores[chosen], entities.spans[chosen])

    def choices(self, outputs: Outputs[Dataset, ClozeFeature]) -> Iterator[Choices]:
        """The answer to each question, of the texts of its entities; right are those of its answers."""
        for example, found in zip(outputs.dataset.examples, self.candidates(outputs), strict=True):
            right = {text for _, text in example.answers}
            texts = (found.answer(number).text for number in range(len(found.scores)))
            is_right = np.array([text in right for text in texts], bool)
            if is_right.any():
                yield found.scores[None], is_right[None]

    def prediction_lines(self, dataset: Dataset, predictions: Sequence[Sequence[Answer]]) -> list[str]:
        """In the layout of the release that the data set is of: answers by question id, or lines of idx and label."""
        if not dataset.is_superglue:
            return super().prediction_lines(dataset, predictions)
        texts = common.best_texts(common.gold_answers(dataset), predictions)
        return [json.dumps({"idx": int(name), "label": text}, ensure_ascii=False) for name, text in texts.items()]


TASK = ClozeAnswering()
