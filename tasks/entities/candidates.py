"""What mentions can stand for: the commonest targets of their text, with their share of its links, the prior.

A text is looked up as it is, then as a title or redirect, then by its letters, without case, accents and punctuation.
Last, a mention can take over what longer mentions of its document stand for: "Turing" what "Alan Turing" does.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from pipeline.lookup.mentions import MentionTable
from pipeline.lookup.names import letters_of, tokens
from tasks.entities.documents.document import Mention

MOST = 30
TITLE, EXACT, LETTERS, DOCUMENT, NONE = "title", "exact", "letters", "document", "none"
STEPS = (EXACT, TITLE, LETTERS, DOCUMENT, NONE)
_TEXTS_AT_HAND = 1 << 14
_LONGEST_ACRONYM = 8


class Candidate(NamedTuple):
    """A page that a mention can stand for.

    Attributes:
        title: after redirects; also of a page that the dump lacks.
        entity_id: in the table's vocabulary; None for a page outside of it.
        prior: share of the links of the mention's text that go there.
    """

    title: str
    entity_id: int | None
    prior: float


class Candidates(NamedTuple):
    """The candidates of a mention, the commonest first, and the step that found them."""

    step: str
    items: tuple[Candidate, ...]


NOTHING = Candidates(NONE, ())


class Asked(NamedTuple):
    """A document whose mentions are asked for, with the candidates of each."""

    text: str
    mentions: Sequence[Mention]
    candidates: Sequence[Candidates]


class CandidateFinder:
    """Finds the candidates of mentions in a mention table, which stays on disk."""

    def __init__(self, table: MentionTable, most: int = MOST) -> None:
        """Find the `most` common ones. Raises: ValueError for a table of an earlier version, which has no targets."""
        self.table, self.targets, self.most = table, table.targets, most
        self.of = lru_cache(_TEXTS_AT_HAND)(self._of)

    def of_document(self, texts: Sequence[str], *, longer: bool) -> list[Candidates]:
        """The candidates of the mentions of a document, whose texts are given; `longer` mentions help shorter ones."""
        found = {text: self.of(text) for text in dict.fromkeys(texts)}
        if longer:
            for text, others in longer_mentions(found).items():
                found[text] = taken_over(found[text], [self.of(other) for other in others], self.most)
        return [found[text] for text in texts]

    def _of(self, text: str) -> Candidates:
        for step, items in ((EXACT, self._exact), (TITLE, self._title), (LETTERS, self._letters)):
            if candidates := items(text):
                return Candidates(step, candidates)
        return NOTHING

    def _exact(self, text: str) -> tuple[Candidate, ...]:
        number = self.table.number(self.table.as_named(text)[0])
        if number is None:
            return ()
        found = self.table.candidates(number, self.most)
        return tuple(Candidate(each.title, each.entity_id, each.commonness) for each in found)

    def _title(self, text: str) -> tuple[Candidate, ...]:
        """A title has no underscores; what follows a "#" is part of a name, though not of a title: "C#" is not "C"."""
        target = self.targets.get(" ".join(text.replace("_", " ").split()))
        return (Candidate(target.title, target.entity_id, 1.0),) if target else ()

    def _letters(self, text: str) -> tuple[Candidate, ...]:
        """The links of all names that have the same letters together; a title counts as a link."""
        links, ids, total = Counter[str](), dict[str, int | None](), 0
        for number in self.table.alike(text):
            total += self.table.total_links(number)
            for each in self.table.candidates(number):
                links[each.title] += each.link_count
                ids[each.title] = each.entity_id
        for target in self.targets.alike(text):
            total += 1
            links[target.title] += 1
            ids[target.title] = target.entity_id
        return commonest({title: count / total for title, count in links.items()}, ids, self.most)


def commonest(priors: Mapping[str, float], ids: Mapping[str, int | None], most: int) -> tuple[Candidate, ...]:
    """The candidates of the highest priors, ties by title."""
    ranked = sorted(priors, key=lambda title: (-priors[title], title))
    return tuple(Candidate(title, ids[title], priors[title]) for title in ranked[:most])


def longer_mentions(texts: Iterable[str]) -> dict[str, list[str]]:
    """For each mention text the others that have all its words in a row, or whose initials it is, if there are any.

    "UN" and "U.N." are the initials of "United Nations": of its words that begin with a capital.
    """
    words = {text: [each.group() for each in tokens(text) if each.group()[0].isalnum()] for text in texts}
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
        letters = "".join(own)
        is_acronym = letters.isupper() and 1 < len(letters) <= _LONGEST_ACRONYM
        initials = with_initials.get(letters, []) if is_acronym else []
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
    theirs, ids = defaultdict[str, float](float), {each.title: each.entity_id for each in own.items}
    is_name = own.step in (EXACT, TITLE)
    for candidates in longer:
        for each in candidates.items:
            if not is_name or each.title in ids:
                theirs[each.title] += each.prior / len(longer)
                ids.setdefault(each.title, each.entity_id)
    if not theirs:
        return own
    part = 0.5 if own.items else 0.0
    mixed = defaultdict[str, float](float, {each.title: part * each.prior for each in own.items})
    for title, prior in theirs.items():
        mixed[title] += (1 - part) * prior / sum(theirs.values())
    return Candidates(DOCUMENT, commonest(mixed, ids, most))
