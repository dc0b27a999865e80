"""A linker's answers to mentions beside the right ones, by which calibration chooses."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tasks.io.probabilities import Choices
from tasks.linking.candidates import Candidates, OwnLinks
from tasks.linking.certainty import Certainty, Floats
from tasks.linking.documents.document import Document
from tasks.linking.linker import Linker
from tasks.linking.scores.pairs import resolver


class NothingToLearnError(ValueError):
    """No mention of the documents has its page among its candidates."""


class Row(NamedTuple):
    """A mention and what a linker says of it."""

    title: str | None  # of its page; None where that is in no knowledge base
    candidates: Candidates
    shares: Floats | list[float]
    contexts: Floats  # of its candidates, 0 without contexts
    coherence: Floats  # likewise
    is_unknown: Sequence[bool]  # which of its candidates the model does not know


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Mentions that have candidates, and what was right. Tables (mentions, candidates) are 0 behind a mention's own."""

    shares: Floats  # (mentions, candidates) as the linker gave them, at temperature 1
    log_priors: Floats  # (mentions, candidates)
    contexts: Floats  # (mentions, candidates) their cosines; 0 where there are none
    coherence: Floats  # (mentions, candidates); 0 where there are no contexts
    is_guess: NDArray[np.bool_]  # (mentions, candidates)
    is_unknown: NDArray[np.bool_]  # (mentions, candidates) to the model; none where there is no model
    is_right: NDArray[np.bool_]  # (mentions, candidates) at most one of a mention
    is_known: NDArray[np.bool_]  # (mentions) whether the page is in the knowledge base
    open_shares: Floats  # (mentions) what their links leave open (`Candidates.open_share`); no number of guesses alone
    sizes: NDArray[np.int64]  # (mentions) how many candidates there are
    known: int  # how many mentions have a page in the knowledge base, those without candidates included
    total: int  # how many mentions there are

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Outcomes":
        """Of mentions."""
        some = [row for row in rows if row.candidates.items]
        sizes = np.array([len(row.candidates.items) for row in some], np.int64)
        is_own = np.arange(max(sizes, default=0)) < sizes[:, None]

        def filled(values: Iterable[Sequence[Any] | NDArray[Any]], kind: type) -> NDArray[Any]:
            table: NDArray[Any] = np.zeros(is_own.shape, kind)
            table[is_own] = [each for row in values for each in row]
            return table

        found = [row.candidates for row in some]
        return cls(
            shares=filled((row.shares for row in some), float),
            log_priors=filled((np.log([each.prior for each in of.items]) for of in found), float),
            contexts=filled((row.contexts for row in some), float),
            coherence=filled((row.coherence for row in some), float),
            is_guess=filled((of.guesses() for of in found), bool),
            is_unknown=filled((row.is_unknown for row in some), bool),
            is_right=filled(([each.title == row.title for each in row.candidates.items] for row in some), bool),
            is_known=np.array([row.title is not None for row in some], bool),
            open_shares=np.array([each.open_share for each in found], np.float64),
            sizes=sizes,
            known=sum(row.title is not None for row in rows),
            total=len(rows),
        )

    def reached(self) -> "Outcomes":
        """Those mentions where a candidate is right, and has others beside."""
        return self.only(self.is_right.any(axis=1) & (self.sizes > 1))

    def only(self, rows: NDArray[np.bool_]) -> "Outcomes":
        """Some of the mentions."""
        parts: dict[str, Any] = {
            name: value[rows] for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        return replace(self, **parts)

    def choices(self) -> Choices:
        """The logarithms of the shares, and what is right."""
        with np.errstate(divide="ignore"):
            return np.log(self.shares), self.is_right

    def answers(self, certainty: Certainty) -> tuple[Floats, NDArray[np.bool_]]:
        """(mentions): the probability of the best candidate, and whether it is right."""
        rows = zip(self.shares, self.sizes, self.open_shares.tolist(), strict=True)
        found = [
            certainty.probabilities(each[:size], None if math.isnan(share) else share) for each, size, share in rows
        ]
        best = np.array([int(each.argmax()) for each in found], np.int64)
        right = self.is_right[np.arange(len(best)), best]
        return np.array([each.max() for each in found]), right


def observe(linker: Linker, documents: Sequence[Document], own: Sequence[OwnLinks], at_once: int) -> Outcomes:
    """Return what the linker says of the mentions of documents, whose own links are not counted; of none optional.

    Raises: NothingToLearnError.
    """
    rows, row_of = list[Row](), linker.model.row_of if linker.model else None
    for first in range(0, len(documents), at_once):
        part = slice(first, first + at_once)
        asked = [
            linker.example(document.text, document.mentions or (), without)
            for document, without in zip(documents[part], own[part], strict=True)
        ]
        for each, without, scores in zip(asked, own[part], linker.scores(asked), strict=True):
            resolve = resolver(linker.finder, without)
            for mention, candidates, of in zip(each.mentions, each.candidates, scores, strict=True):
                if not mention.optional:
                    is_unknown = [bool(row_of and row_of(one) < 0) for one in candidates.items]
                    nothing = np.zeros(len(is_unknown))
                    cosine, coherence = (nothing if one is None else one for one in (of.cosine, of.coherence))
                    rows.append(Row(resolve(mention), candidates, of.shares, cosine, coherence, is_unknown))
    outcomes = Outcomes.of(rows)
    if not outcomes.is_right.any():
        raise NothingToLearnError(
            f"none of {outcomes.total:,} mentions has its page among its candidates; give documents of the table's wiki"
        )
    return outcomes
