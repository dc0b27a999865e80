"""Gold mentions of a document beside those that are scored, whose titles went through redirects."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pipeline.lookup.names import page_title
from tasks.linking.candidates import NO_LINKS, CandidateFinder, OwnLinks
from tasks.linking.documents.document import Document, Mention

Resolve = Callable[[Mention], str | None]
"""The title of a mention's page, after redirects; None where it has none, or one that the dump lacks."""


@dataclass(frozen=True)
class Pair:
    """A document with its gold mentions and those that are scored, whose titles went through redirects."""

    gold: Sequence[Mention]  # those that are scored, without a title where the dump lacks the page
    found: Sequence[Mention]
    text: str
    names: Sequence[str] = ()  # the texts of all gold mentions, which `link` was given
    without: OwnLinks = NO_LINKS  # links of the document's own, which do not count

    @classmethod
    def of(cls, gold: Document, found: Sequence[Mention], resolve: Resolve, without: OwnLinks = NO_LINKS) -> "Pair":
        """The mentions of both inside the annotated part; a page of `found` that the dump lacks stays as it is told.

        A page that the dump lacks, and that the document alone links to, is not in the knowledge base. Optional
        mentions are not scored, and answers at their places do not count.
        """
        wanted, given = scored(gold), gold.mentions or ()
        ignored = {(m.start, m.end) for m in given if m.optional} - {(m.start, m.end) for m in wanted}
        answered = [m for m in annotated(gold, found) if (m.start, m.end) not in ignored]
        return cls(
            [Mention(m.start, m.end, None if (end := resolve(m)) in without.alone else end) for m in wanted],
            [replace(m, title=resolve(m) or m.page, qid=None, optional=False) for m in answered],
            gold.text,
            [gold.text[m.start : m.end] for m in given],
            without,
        )


def scored(gold: Document) -> list[Mention]:
    """The gold mentions that are scored: those in the annotated part that are not optional."""
    return [each for each in annotated(gold, gold.mentions or ()) if not each.optional]


def annotated(gold: Document, mentions: Sequence[Mention]) -> list[Mention]:
    """Those of some mentions that stand in the part of a document where mentions are annotated."""
    first, last = gold.annotated
    return [each for each in mentions if first <= each.start and each.end <= last]


def resolver(finder: CandidateFinder | None, without: OwnLinks = NO_LINKS) -> Resolve:
    """Return a function to the ends of mentions; without a finder these are titles as they are, or else QIDs.

    A page that the dump lacks, and that a document alone links to whose links are `without`, is no end.
    """

    def resolve(mention: Mention) -> str | None:
        if finder is None:
            return page_title(mention.title) if mention.title else mention.qid
        target = finder.page_of(mention)
        return target.title if target and target.title not in without.alone else None

    return resolve
