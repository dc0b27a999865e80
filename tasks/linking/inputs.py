"""Documents with titles as inputs of the model: windows with a masked entity at each mention that is asked for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model.data.masking import MaskedSequence
from model.luke.batch import IGNORED
from tasks.entities.candidates import CandidateFinder
from tasks.entities.disambiguation import Asked, EntityModel, Integers, Question, Window, questions_of
from tasks.entities.documents.document import Document
from tasks.entities.scores import resolver
from tasks.task import Features

MASKED_SHARE = 0.9  # of the entities of an input, as in the paper's fine-tuning


@dataclass(frozen=True)
class Documents:
    """A split: its documents, their mentions with candidates, and the question of each.

    A question is None where a mention has no candidates or no tokens.
    """

    documents: Sequence[Document]
    asked: Sequence[Asked]
    questions: Sequence[Sequence[Question | None]]


@dataclass(frozen=True, eq=False)
class AskedMention:
    """A question in a window: its place among the window's entities, and which of the known candidates is right.

    Known are those that the model has. `gold` counts among them; None where the right one is not there.
    """

    place: int
    question: Question
    gold: int | None

    @property
    def is_known(self) -> np.ndarray:
        """Which of its candidates the model has."""
        return self.question.rows >= 0

    @property
    def rows(self) -> Integers:
        """The rows of the known candidates."""
        return self.question.rows[self.is_known]


@dataclass(frozen=True, eq=False)
class Input:
    """A window, and the mentions that are asked for in it, whose entities are [MASK]."""

    sequence: MaskedSequence
    asked: Sequence[AskedMention]

    def showing(self, shown: Sequence[int]) -> "Input":
        """The same with the right entities of some mentions, by their numbers in `asked`, which are not asked for."""
        ids, labels = self.sequence.entity_ids.copy(), self.sequence.entity_labels.copy()
        for number in shown:
            each = self.asked[number]
            assert each.gold is not None
            ids[each.place], labels[each.place] = each.rows[each.gold], IGNORED
        kept = [self.asked[number] for number in sorted(set(range(len(self.asked))) - set(shown))]
        return Input(replace(self.sequence, entity_ids=ids, entity_labels=labels), kept)


@dataclass(frozen=True)
class MaskedInputs(Features[Input]):
    """Inputs of training: of each, `share` of the mentions are asked for, in every epoch others; at least one."""

    share: float = MASKED_SHARE

    def drawn(self, index: int, seed: int, epoch: int) -> Input:
        """The input in that epoch; the other mentions have their right entities."""
        item = self.items[index]
        order = np.random.default_rng([seed, epoch, index]).permutation(len(item.asked))
        return item.showing(order[max(1, round(len(order) * self.share)) :].tolist())


def inputs_of(
    model: EntityModel,
    finder: CandidateFinder,
    documents: Sequence[Document],
    *,
    learns: bool,
    share: float = MASKED_SHARE,
    counts: Mapping[str, int] | None = None,
) -> tuple[Documents, Features[Input]]:
    """The inputs of documents, and what of their mentions could not be used.

    With `learns` only those mentions are asked for whose page is among the candidates and has a row in the model, and
    windows without any that has another known candidate are left out. Otherwise all that have candidates are. `counts`
    is what was left out before.
    """
    resolve, counts = resolver(finder), Counter(counts or {})
    counts.update(dict.fromkeys(("without_title", "title_not_in_dump", "without_candidates"), 0))
    counts.update(dict.fromkeys(("gold_not_a_candidate", "gold_not_in_model", "asked"), 0))
    split: list[tuple[Asked, list[Question | None]]] = []
    items: list[Input] = []
    for document in documents:
        mentions = document.mentions or ()
        texts = [document.text[each.start : each.end] for each in mentions]
        asked = Asked(document.text, mentions, finder.of_document(texts, longer=False))
        questions, windows = questions_of(model, asked)
        golds: dict[int, int] = {}
        for number, each in enumerate(questions):
            title = mentions[number].title
            reason, gold = gold_of(title, title and resolve(title), asked, number, each)
            counts[reason] += 1
            if gold is not None:
                golds[id(each)] = gold
        found = (input_of(window, golds, model.mask_row, learns=learns) for window in windows)
        items += [each for each in found if each]
        split.append((asked, questions))
    counts["windows"] = len(items)
    features: Features[Input] = MaskedInputs(items, counts, share) if learns else Features(items, counts)
    return Documents(documents, [each for each, _ in split], [each for _, each in split]), features


def gold_of(
    title: str | None, resolved: str | None, asked: Asked, number: int, question: Question | None
) -> tuple[str, int | None]:
    """Which of the known candidates of a mention is right, and "asked"; or why there is none."""
    if not title:
        return "without_title", None
    if not resolved:
        return "title_not_in_dump", None
    if question is None:
        return "without_candidates", None
    titles = [each.title for each in asked.candidates[number].items]
    if resolved not in titles:
        return "gold_not_a_candidate", None
    column = titles.index(resolved)
    if question.rows[column] < 0:
        return "gold_not_in_model", None
    return "asked", int((question.rows[:column] >= 0).sum())


def input_of(window: Window, golds: Mapping[int, int], mask_row: int, *, learns: bool) -> Input | None:
    """The input of a window; None where there is nothing to learn from it."""
    own = set(map(id, window.own))
    asked = [
        AskedMention(place, each, golds.get(id(each)))
        for place, each in enumerate(window.inside)
        if id(each) in own and (not learns or id(each) in golds)
    ]
    if learns and all(len(each.rows) < 2 for each in asked):
        return None
    sequence = window.masked(mask_row)
    labels = np.full_like(sequence.entity_labels, IGNORED)
    labels[[each.place for each in asked]] = mask_row
    return Input(replace(sequence, entity_labels=labels), asked)
