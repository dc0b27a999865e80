"""Wikipedia's entities in any text, by the mention table (the paper's appendix on the annotations of SQuAD).

In a text that comes from a page, the names by which that page links mean what they link to there, unless they link
to several pages. In any other text a name means the page that most of its links go to, where these are most of them.
Names that are rarely links are left out in both.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pipeline.lookup.entities import UNK_ID, EntityVocab
from pipeline.lookup.mentions import MentionTable
from pipeline.lookup.names import NameSet, longest_names, page_title

MIN_LINK_PROBABILITY = 0.01
MIN_COMMONNESS = 0.5
_PAGES_AT_HAND, _NAMES_AT_HAND = 64, 1 << 16


@dataclass(frozen=True)
class Annotation:
    """A name in a text with the entity that it stands for."""

    start: int  # its place in characters (code points), half open
    end: int  # likewise
    title: str  # of the Wikipedia page, after redirects; of a page that the dump lacks, too
    entity_id: int  # in the vocabulary; that of [UNK] where the page is outside of it
    link_probability: float  # share of the name's occurrences in Wikipedia that are links
    commonness: float  # share of the name's links that go to this page


Sense = tuple[str, int, float, float]  # the fields of an annotation behind its place


@dataclass(eq=False)
class Annotator:
    """Finds entities in texts. Names do not overlap: from left to right, the longest first, between word boundaries.

    A table of the profile `fixed` tells case, one of `paper` does not.
    """

    table: MentionTable
    min_link_probability: float = MIN_LINK_PROBABILITY  # names with a lower one are left out
    # Without a page, names whose commonest page has a lower one are left out.
    min_commonness: float = MIN_COMMONNESS

    def __post_init__(self) -> None:
        self._sense = lru_cache(_NAMES_AT_HAND)(self._find_sense)
        self._on_page = lru_cache(_PAGES_AT_HAND)(self.table.pages.get)

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        vocabulary: Path | None = None,
        min_link_probability: float = MIN_LINK_PROBABILITY,
        min_commonness: float = MIN_COMMONNESS,
    ) -> "Annotator":
        """Annotate by the folder of the stage BuildMentionTable, whose table is memory-mapped.

        `vocabulary` is the one that the ids are for, as `EntityVocab.load` takes it. Raises: ValueError: it is no such
        folder, not whole, or made with another vocabulary; or marisa-trie is missing.
        """
        if importlib.util.find_spec("marisa_trie") is None:
            raise ValueError(f"{folder}: mention tables are read with marisa-trie; pip install marisa-trie")
        table = MentionTable(str(folder))
        if vocabulary is not None:
            check_vocabulary(table, vocabulary)
        return cls(table, min_link_probability=min_link_probability, min_commonness=min_commonness)

    def has_page(self, page: str) -> bool:
        """Return whether the table knows the names of a page, by its title or a redirect to it."""
        return page_title(page) in self.table.pages

    def annotate(self, text: str, page: str | None = None) -> list[Annotation]:
        """The entities of any text, in its order.

        `page` is the title of the Wikipedia page that it comes from, or of a redirect to it. Raises: ValueError: the
        dump has no such page.
        """
        names: NameSet = self.table
        titles: Mapping[str, str] = {}  # of the names that the page links
        if page is not None:
            linked = self._on_page(title := page_title(page))
            if linked is None:
                raise ValueError(
                    f"{self.table.folder}: {_dump(self.table)} has no article or redirect {title!r}; "
                    "without a page names are taken by their commonness"
                )
            names, titles = linked, linked.titles
        named, places = self.table.as_named(text) if page is None else self.table.as_written(text)
        sense_of = lambda name: self._sense(name, titles.get(name))  # noqa: E731
        found = ((start, end, sense_of(name)) for start, end, name in longest_names(named, names, sense_of))
        return [Annotation(places[start], places[end], *sense) for start, end, sense in found if sense]

    def _find_sense(self, name: str, title: str | None) -> Sense | None:
        """The page of a name; `title` is where it links on its text's page, if the text comes from one.

        None for a name that is rarely a link, and without a page for one whose links go to many pages.
        """
        mention = self.table.get(name)
        if mention is None or mention.link_probability < self.min_link_probability:
            return None
        target = next(each for each in mention.candidates if title in (None, each.title))
        if title is None and target.commonness < self.min_commonness:
            return None
        entity_id = UNK_ID if target.entity_id is None else target.entity_id
        return target.title, entity_id, mention.link_probability, target.commonness


def _dump(table: MentionTable) -> str:
    return ", ".join(table.manifest.facts["dump"])


def check_vocabulary(table: MentionTable, path: Path) -> None:
    """See that a table's ids are those of a vocabulary. Raises: ValueError naming both where they are not."""
    facts = table.manifest.facts
    vocab = EntityVocab.load(str(path), facts["language"])
    if vocab.digest() != facts["entities_sha256"]:
        raise ValueError(
            f"{table.folder}: made from {_dump(table)} with another vocabulary ({facts['entities']:,} entities) than "
            f"{path} ({len(vocab):,}); give the table that BuildMentionTable makes with corpus.entity_vocab={path}"
        )
