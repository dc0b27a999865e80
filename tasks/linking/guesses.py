"""Candidates of a mention beyond the links of its text: by longer mentions of its document, and guesses.

Guesses are pages of other forms of a mention ("the Alps", "Lille, France"), those whose title has its initials or all
of its words, and those of names inside of it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.lookup.names import FORMS, acronym_of, letters_of, without_article, words_of

TITLE, EXACT, LETTERS, DOCUMENT, NONE = "title", "exact", "letters", "document", "none"
FORM, INITIALS, PART, WORDS = "form", "initials", "part", "words"
STEPS = (EXACT, TITLE, LETTERS, DOCUMENT, FORM, INITIALS, PART, WORDS, NONE)
LONGEST = 100  # characters of a mention that is guessed at, as of a name
OPEN = 0.05  # of what a name's links leave open, the part that guesses get
LEAST_OPEN = 1e-3  # below it the links say enough
_COMMA = re.compile(r"(?<=\S)(?:,\s|\uff0c)")


class Candidate(NamedTuple):
    """A page that a mention can stand for."""

    title: str  # that after redirects, also of a page that the dump lacks
    entity_id: int | None  # None for a page outside of the vocabulary
    prior: float  # the share of the links of the mention's text that go there
    guess: str = ""  # the step that has guessed it; empty where links or a title of the text say so


class Candidates(NamedTuple):
    """The pages that a mention can stand for."""

    step: str  # which has found them
    items: tuple[Candidate, ...]  # the commonest is the first
    links: int = 0  # with the mention's text, those to other pages included; 1 where a title was found

    def guesses(self) -> NDArray[np.bool_]:
        """Return which candidates are guesses."""
        return np.array([bool(each.guess) for each in self.items], np.bool_)

    def step_of(self, number: int | None) -> str:
        """The step that has found a candidate; that of all where there is none."""
        return self.step if number is None else self.items[number].guess or self.step

    @property
    def open_share(self) -> float | None:
        """The share that absolute discounting leaves open: c / n of n links to c pages; None of guesses alone."""
        own = sum(not each.guess for each in self.items)
        return own / max(own, self.links) if own else None


def commonest(priors: Mapping[str, float], known: Mapping[str, Candidate], most: int) -> tuple[Candidate, ...]:
    """The candidates of the highest priors, ties by title; `known` has what else there is of each."""
    ranked = sorted(sorted(priors), key=priors.__getitem__, reverse=True)
    found = ((known[title], priors[title]) for title in ranked[:most])
    return tuple(Candidate(each.title, each.entity_id, prior, each.guess) for each, prior in found)


# Longer mentions of a document


def longer_mentions(texts: Iterable[str]) -> dict[str, list[str]]:
    """For each mention text the others that have all its words in a row, or whose initials it is, if there are any.

    "UN" and "U.N." are the initials of "United Nations": of its words that begin with a capital.
    """
    words = {text: words_of(text) for text in texts}
    with_word, with_initials = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for text, own in words.items():
        for word in dict.fromkeys(own):
            with_word[word].append(text)
        if len(own) > 1:
            with_initials["".join(word[0] for word in own if word[0].isupper())].append(text)
    found = {}
    for text, own in words.items():
        rarest = min((with_word[word] for word in own), key=len, default=[])
        inside = [other for other in rarest if len(words[other]) > len(own) and _has(words[other], own)]
        initials = with_initials.get(acronym, []) if (acronym := acronym_of(own)) else []
        if others := [*inside, *(other for other in initials if letters_of(other) != letters_of(text))]:
            found[text] = others
    return found


def _has(words: Sequence[str], part: Sequence[str]) -> bool:
    size = len(part)
    return any(words[first : first + size] == part for first in range(len(words) - size + 1))


def taken_over(own: Candidates, longer: Sequence[Candidates], most: int) -> Candidates:
    """A mention's candidates where longer mentions of its document have some: half its own prior, half theirs.

    Where its text as it is is a name or a title, of theirs those count alone that are also its own: "China" does not
    become the sea of "South China Sea", but "Turing" the man of "Alan Turing".
    """
    longer = [each for each in longer if each.items]
    theirs, known = defaultdict[str, float](float), {each.title: each for each in own.items}
    is_name = own.step in (EXACT, TITLE)
    for candidates in longer:
        for each in candidates.items:
            if not is_name or each.title in known:
                theirs[each.title] += each.prior / len(longer)
                known.setdefault(each.title, each)
    if not theirs:
        return own
    part = 0.5 if own.items else 0.0
    mixed = defaultdict[str, float](float, {each.title: part * each.prior for each in own.items})
    for title, prior in theirs.items():
        mixed[title] += (1 - part) * prior / sum(theirs.values())
    links = own.links + sum(each.links for each in longer)
    return Candidates(DOCUMENT, commonest(mixed, known, most), links)


# Guesses


def with_guesses(own: Candidates, ways: Iterable[tuple[str, Sequence[Candidate]]], most: int) -> Candidates:
    """A mention's candidates with pages that are guessed beside them.

    To these its links leave a part, and everything where it has no candidates of its own. Each way to guess, a step
    with its candidates, gets half as much as the one before it.
    """
    known = {each.title: each for each in own.items}
    ways = [(step, [each for each in items if each.title not in known]) for step, items in ways]
    found = [(step, items) for step, items in ways if items]
    if not found:
        return own
    share = 1.0 if own.open_share is None else OPEN * own.open_share
    priors = defaultdict[str, float](float, {each.title: (1 - share) * each.prior for each in own.items})
    whole = sum(0.5**number for number in range(len(found)))
    for number, (step, items) in enumerate(found):
        scale = share * 0.5**number / (whole * sum(each.prior for each in items))
        for each in items:
            priors[each.title] += scale * each.prior
            if each.title not in known:
                known[each.title] = Candidate(each.title, each.entity_id, each.prior, step)
    return Candidates(own.step if own.items else found[0][0], commonest(priors, known, most), own.links)


def forms(text: str, language: str) -> list[str]:
    """Other forms of a name: without its article, with another ending, and without what follows a comma."""
    bare = without_article(text, language)
    endings = FORMS.get(language, {}).get("endings", {}).items()
    changed = (bare.removesuffix(end) + other for end, other in endings if bare.endswith(end))
    found = dict.fromkeys((bare, *changed, bare[: comma.start()] if (comma := _COMMA.search(bare)) else bare))
    return [each for each in found if len(each) > 1 and each != text]
