"""Pages that mentions can stand for: the commonest targets of their text, with their share of its links, the prior.

A text is looked up as it is, then as a title or redirect, then by its letters, without case, accents and punctuation.
Then a mention can take over what longer mentions of its document stand for: "Turing" what "Alan Turing" does. Last come
guesses (`tasks.linking.guesses`).
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.lookup.mentions import MentionTable
from pipeline.lookup.names import acronym_of, longest_names, normalize_mention, page_title, words_of
from pipeline.lookup.targets import Target
from tasks.linking import guesses
from tasks.linking.certainty import Certainty
from tasks.linking.documents.document import Document, Mention
from tasks.linking.guesses import Candidate, Candidates
from tasks.linking.own import OwnEntities

MOST = 30
NO_ROW = -1  # the row of a candidate that a model does not know
_TEXTS_AT_HAND = 1 << 14
_MOST_GUESSES, _MOST_OF_PART = 10, 5  # of a way; of a name inside of a mention


class DetectedMention(NamedTuple):
    """A mention that was found in a text."""

    start: int
    end: int
    probability: float  # of a mention: how often a name of the table is a link, or that of the label
    label: str | None = None  # by a model of entity recognition


NOTHING = Candidates(guesses.NONE, ())
_Found = tuple[tuple[Candidate, ...], int]
Way = tuple[str, tuple[Candidate, ...]]  # a step, and what it guesses


class LinkingExample(NamedTuple):
    """A document with its mentions, and the candidates of each."""

    text: str
    mentions: Sequence[Mention]
    candidates: Sequence[Candidates]
    detected: Sequence[DetectedMention] | None = None  # None where mentions were given
    # The cosines of the candidates' contexts with the text, and how near candidates are to those of the other mentions.
    contexts: Sequence[NDArray[np.float64]] | None = None
    coherence: Sequence[NDArray[np.float64]] | None = None

    def log_priors(self, certainty: Certainty) -> list[NDArray[np.float64]]:
        """For each mention what counts say of its candidates: the logarithms of their priors, and what is added."""
        found = [
            np.log([each.prior for each in of.items]) + certainty.guess_offset * of.guesses() for of in self.candidates
        ]
        for weight, of_each in (
            (certainty.context_weight, self.contexts),
            (certainty.coherence_weight, self.coherence),
        ):
            if of_each is not None:
                found = [scores + weight * each for scores, each in zip(found, of_each, strict=True)]
        return found


class OwnLinks(NamedTuple):
    """The links of a page of the table's dump, which the table has counted among all others."""

    of_names: Mapping[int, Mapping[str, int]]  # by the number of a name's row, how many the page has to each title
    alone: Collection[str]  # titles without a page that no other page links to


NO_LINKS = OwnLinks({}, ())


class CandidateFinder:
    """Finds the candidates of mentions in a mention table, which stays on disk."""

    def __init__(self, table: MentionTable, most: int = MOST, own: OwnEntities | None = None) -> None:
        """Find the `most` common ones, beside them entities of the user's own."""
        self.table, self.targets, self.most, self.own = table, table.targets, most, own
        self.language: str = table.manifest.facts["language"]
        self._remembered = lru_cache(_TEXTS_AT_HAND)(self._of)
        self._guessed = lru_cache(_TEXTS_AT_HAND)(self._guesses)

    def of(self, text: str, without: OwnLinks = NO_LINKS) -> Candidates:
        """The candidates of a text; what is longer than all names is not remembered, nor what lacks own links."""
        is_remembered = without is NO_LINKS and len(text) <= self.table.longest
        return self._remembered(text) if is_remembered else self._of(text, without)

    def page_of(self, mention: Mention) -> Target | None:
        """The page that a mention names, after redirects; None where it names none, or one that the dump lacks.

        A QID decides where the table knows any: the title beside it may be Wikidata's label, which is another page's
        title often enough.
        """
        titled = self.targets.get(page_title(mention.title)) if mention.title else None
        if mention.qid is None or (titled and titled.qid == mention.qid) or not self.targets.has_qids:
            return titled
        return self.targets.of_qid(mention.qid)

    def of_document(self, texts: Sequence[str], without: OwnLinks = NO_LINKS) -> list[Candidates]:
        """The candidates of the mentions of a document; shorter mentions take over what longer ones stand for.

        Where links and titles say little, there are guesses beside, and where they say nothing, guesses alone.

        Args:
            texts: of the mentions.
            without: links of the document's own, which are not counted: it is as if the dump had never had the page.
        """
        own = {text: self.of(text, without) for text in dict.fromkeys(texts)}
        found = dict(own)
        for text, others in guesses.longer_mentions(own).items():
            found[text] = guesses.taken_over(own[text], [own[other] for other in others], self.most)
        found = {text: self._with_guesses(text, each, without) for text, each in found.items()}
        return [found[text] for text in texts]

    def own_links(self, documents: Sequence[Document]) -> list[OwnLinks]:
        """Return the links of each document, a page of the dump, that are among those of the table.

        Raises: ValueError naming a document that links a name to a title more often than the whole dump does.
        """
        counts = [self._counted(document) for document in documents]
        ends = [sum((Counter(each) for each in of_names.values()), Counter[str]()) for of_names in counts]
        links = self.table.links_to({title for own in ends for title in own})
        alone = [map(self.targets.get, [end for end, count in own.items() if links[end] == count]) for own in ends]
        return [
            OwnLinks(of_names, {each.title for each in pages if each and each.page_id is None})
            for of_names, pages in zip(counts, alone, strict=True)
        ]

    def _counted(self, document: Document) -> dict[int, Counter[str]]:
        """A document's links as the table counts them; it has no names that are too long or linked too rarely."""
        found, names = defaultdict[int, Counter[str]](Counter), dict[int, str]()
        for mention in document.mentions or ():
            anchor = document.text[mention.start : mention.end]
            name = normalize_mention(anchor) if self.table.profile == "paper" else anchor
            number = self.table.number(name)
            target = self.page_of(mention)
            if number is not None and target:
                found[number][target.title] += 1
                names[number] = name
        for number, own in found.items():
            links = {each.title: each.link_count for each in self.table.candidates(number)}
            for title, count in own.items():
                if count > links.get(title, 0):
                    raise document.error(
                        f"{document.id!r} links {names[number]!r} to {title!r} {count} times, all of "
                        f"{self.table.folder} {links.get(title, 0)} times; own links are those of pages of the table's "
                        "dump: leave out --own-links for other documents"
                    )
        return dict(found)

    def _of(self, text: str, without: OwnLinks = NO_LINKS) -> Candidates:
        steps = {guesses.EXACT: self._exact, guesses.TITLE: self._title, guesses.LETTERS: self._letters}
        looks = (Candidates(step, *find(text, without)) for step, find in steps.items())
        found = next((each for each in looks if each.items), NOTHING)
        return self.own.beside(found, text, self.most) if self.own else found

    def _exact(self, text: str, without: OwnLinks) -> _Found:
        number = self.table.number(self.table.as_named(text)[0])
        if number is None:
            return (), 0
        if number in without.of_names:
            return self._together([number], [], without)
        found = self.table.candidates(number, self.most)  # of names with many, those that are wanted alone
        items = tuple(Candidate(each.title, each.entity_id, each.commonness) for each in found)
        return items, self.table.total_links(number)

    def _title(self, text: str, without: OwnLinks) -> _Found:
        """A title has no underscores; what follows a "#" is part of a name, though not of a title: "C#" is not "C"."""
        target = self.targets.get(" ".join(text.replace("_", " ").split()))
        if target is None or target.title in without.alone:
            return (), 0
        return (Candidate(target.title, target.entity_id, 1.0),), 1

    def _letters(self, text: str, without: OwnLinks) -> _Found:
        return self._together(self.table.alike(text), self.targets.alike(text), without)

    def _with_guesses(self, text: str, own: Candidates, without: OwnLinks) -> Candidates:
        open_share = own.open_share
        if len(text) > guesses.LONGEST or (open_share is not None and guesses.OPEN * open_share < guesses.LEAST_OPEN):
            return own
        guess = self._guessed if without is NO_LINKS else partial(self._guesses, without=without)
        return guesses.with_guesses(own, guess(text, bool(own.items)), self.most)

    def _guesses(self, text: str, is_named: bool, without: OwnLinks = NO_LINKS) -> list[Way]:
        """The candidates by each way to guess, the surest first; of names inside of it only where it is none itself."""
        words = words_of(text)
        looks = ((guesses.TITLE, self._title), (guesses.LETTERS, self._letters)) if is_named else ()
        ways = [(step, look(text, without)[0]) for step, look in looks]  # nothing, where it has no name
        ways += ((guesses.FORM, self.of(form, without).items) for form in guesses.forms(text, self.language))
        ways.append((guesses.INITIALS, _ranked(self.targets.with_initials(acronym_of(words)), without)))
        if not is_named:
            inside = longest_names(
                self.table.as_named(text)[0],
                self.table,
                lambda name: len(name) > 2 and (without is NO_LINKS or self._exact(name, without)[0]),
            )
            ways += ((guesses.PART, self.of(name, without).items[:_MOST_OF_PART]) for *_, name in inside)
        return [*ways, (guesses.WORDS, _ranked(self.targets.with_words(words), without))]

    def _together(self, names: Iterable[int], targets: Iterable[Target], without: OwnLinks) -> _Found:
        """The links of all these names together, by the numbers of their rows; a title counts as a link."""
        links, known = defaultdict[str, int](int), dict[str, Candidate]()
        for number in names:
            own = without.of_names.get(number, {})
            for each in self.table.candidates(number):
                links[each.title] += each.link_count - own.get(each.title, 0)
                known[each.title] = Candidate(each.title, each.entity_id, 0.0)
        for target in targets:
            if target.title not in without.alone:
                links[target.title] += 1
                known[target.title] = Candidate(target.title, target.entity_id, 0.0)
        total = sum(links.values())
        priors = {title: count / total for title, count in links.items() if count}
        return guesses.commonest(priors, known, self.most), total


def _ranked(targets: Iterable[Target], without: OwnLinks) -> tuple[Candidate, ...]:
    """Candidates of targets, the commonest first, whose priors fall with their rank."""
    kept = (each for each in targets if each.title not in without.alone)
    return tuple(
        Candidate(each.title, each.entity_id, 1 / rank) for rank, each in enumerate(islice(kept, _MOST_GUESSES), 1)
    )
