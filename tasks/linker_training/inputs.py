"""Documents with titles as inputs of the model: windows with a masked entity at each mention that is asked for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from model.data.masking import MaskedSequence
from model.luke.batch import IGNORED
from pipeline.lookup.targets import Target
from tasks.entities.candidates import NO_LINKS, Asked, Candidate, CandidateFinder, OwnLinks
from tasks.entities.disambiguation.entity_model import EntityModel
from tasks.entities.disambiguation.windows import NO_ROW, Integers, Question, Window, questions_of
from tasks.entities.documents.document import Document, Mention
from tasks.task import Features

MASKED_SHARE = 0.9  # of the entities of an input, as in the paper's fine-tuning


@dataclass(frozen=True)
class Documents:
    """A split: its documents, their mentions with candidates, and the question of each.

    A question is None where a mention has no candidates or no tokens. `own` are links of each document's own, which do
    not count.
    """

    documents: Sequence[Document]
    asked: Sequence[Asked]
    questions: Sequence[Sequence[Question | None]]
    own: Sequence[OwnLinks]


class Right(NamedTuple):
    """The page that a mention stands for: its number among the known candidates, and its row in the model.

    They are None and NO_ROW where it is not there.
    """

    gold: int | None = None
    row: int = NO_ROW


@dataclass(frozen=True, eq=False)
class AskedMention:
    """A question in a window: its place among the window's entities, and what is right.

    Known candidates are those that the model has.
    """

    place: int
    question: Question
    right: Right

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
            ids[each.place], labels[each.place] = each.right.row, IGNORED
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
    beyond_candidates: bool = False,
    own_links: bool = False,
    counts: Mapping[str, int] | None = None,
) -> tuple[Documents, Features[Input]]:
    """The inputs of documents, and what of their mentions could not be used.

    Args:
        model, finder: of the candidates' rows, and of candidates.
        documents: with titles.
        learns: only those mentions are asked for whose page is among the candidates and has a row in the model, and
            windows are left out in which there is nothing to choose. Otherwise all that have candidates are asked for.
        share: see MaskedInputs.
        beyond_candidates: those are asked for, too, whose page has a row and is no candidate.
        own_links: the documents are pages of the finder's dump; what each links itself is not counted for it.
        counts: what was left out before.
    """
    own = finder.own_links(documents) if own_links else [NO_LINKS] * len(documents)
    counts = Counter(counts or {})
    counts.update(dict.fromkeys(("without_title", "title_not_in_dump", "without_candidates"), 0))
    counts.update(dict.fromkeys(("gold_not_a_candidate", "gold_not_in_model", "asked"), 0))
    split: list[tuple[Asked, list[Question | None]]] = []
    items: list[Input] = []
    for document, without in zip(documents, own, strict=True):
        mentions = document.mentions or ()
        texts = [document.text[each.start : each.end] for each in mentions]
        asked = Asked(document.text, mentions, finder.of_document(texts, longer=False, without=without))
        questions, windows = questions_of(model, asked)
        golds: dict[int, Right] = {}
        for number, each in enumerate(questions):
            target = finder.page_of(mentions[number])
            known = target if target and target.title not in without.alone else None
            candidates = [one.title for one in asked.candidates[number].items]
            reason, right = right_of(model, mentions[number], known, candidates, each)
            counts[reason] += 1
            if right.gold is not None or (beyond_candidates and right.row != NO_ROW):
                golds[id(each)] = right
        found = (input_of(window, golds, model.mask_row, learns=learns) for window in windows)
        items += [each for each in found if each]
        split.append((asked, questions))
    counts["windows"] = len(items)
    features: Features[Input] = MaskedInputs(items, counts, share) if learns else Features(items, counts)
    dataset = Documents(documents, [each for each, _ in split], [each for _, each in split], own)
    return dataset, features


def right_of(
    model: EntityModel,
    mention: Mention,
    target: Target | None,
    candidates: Sequence[str],
    question: Question | None,
) -> tuple[str, Right]:
    """What is right for a mention, and "asked"; or why that cannot be chosen.

    Args:
        model: of the rows.
        mention: with its page.
        target: that page, where the dump has it.
        candidates: titles of its candidates.
        question: of the mention.
    """
    if mention.optional:
        return "optional", Right()
    if not mention.page:
        return "without_title", Right()
    if not target:
        return "title_not_in_dump", Right()
    if question is None:
        return "without_candidates", Right()
    row = model.row_of(Candidate(target.title, target.entity_id, 1.0))
    if target.title not in candidates:
        return "gold_not_a_candidate", Right(row=row)
    if row == NO_ROW:
        return "gold_not_in_model", Right()
    column = candidates.index(target.title)
    return "asked", Right(int((question.rows[:column] >= 0).sum()), row)


def input_of(window: Window, golds: Mapping[int, Right], mask_row: int, *, learns: bool) -> Input | None:
    """The input of a window; None where there is nothing to learn from it: one candidate at most, and that is right."""
    own = set(map(id, window.own))
    asked = [
        AskedMention(place, each, golds.get(id(each), Right()))
        for place, each in enumerate(window.inside)
        if id(each) in own and (not learns or id(each) in golds)
    ]
    if learns and all(each.right.gold is not None and len(each.rows) < 2 for each in asked):
        return None
    sequence = window.masked(mask_row)
    labels = np.full_like(sequence.entity_labels, IGNORED)
    labels[[each.place for each in asked]] = mask_row
    return Input(replace(sequence, entity_labels=labels), asked)
