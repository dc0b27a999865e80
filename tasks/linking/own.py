"""Entities of one's own, beside those of the dump: a file of names and descriptions.

Their names are found in texts and stand for them; where these are names of the dump's pages, too, either has half of
the prior. Contexts compare a description with the text, and a model knows them by the words of their names.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.lookup.contexts import ContextTable, Floats, WordVector, cosine
from pipeline.lookup.mentions import MentionTable
from pipeline.lookup.names import letters_of, longest_names
from tasks.io.records import read_records
from tasks.linking.guesses import EXACT, LETTERS, Candidate, Candidates, commonest

SHARE = 0.5  # of the prior of a name that stands for pages of the dump, too


@dataclass(frozen=True)
class OwnEntity:
    """An entity that is no page of the dump. `title` tells it apart from all pages, and from others of its name."""

    id: str
    title: str
    names: Sequence[str]
    description: str


class OwnEntities:
    """Entities by their names and titles."""

    def __init__(self, entities: Iterable[OwnEntity], table: MentionTable) -> None:
        """Look names up as those of a mention table are."""
        import marisa_trie

        self._table = table
        self.by_title = {each.title: each for each in entities}
        self._vectors = dict[str, WordVector]()  # of descriptions, by title
        self._by_name = defaultdict[str, dict[str, None]](dict)  # titles, each once
        self._by_letters = defaultdict[str, dict[str, None]](dict)
        for each in self.by_title.values():
            for name in each.names:
                self._by_name[table.as_named(name)[0]][each.title] = None
                self._by_letters[letters_of(name)][each.title] = None
        self._trie = marisa_trie.Trie(self._by_name.keys())
        self.longest = max(map(len, self._by_name), default=0)

    def prefixes(self, text: str) -> list[str]:
        """Return the names with which the text begins, the shortest first."""
        found: list[str] = self._trie.prefixes(text)
        return found

    def find(self, text: str) -> list[tuple[int, int]]:
        """The places of names in a text, as those of a mention table are found."""
        named, places = self._table.as_named(text)
        return [(places[start], places[end]) for start, end, _ in longest_names(named, self)]

    def beside(self, found: Candidates, text: str, most: int) -> Candidates:
        """Candidates of a text with the entities that have it as a name, or else one of the same letters."""
        step, titles = EXACT, self._by_name.get(self._table.as_named(text)[0])
        if not titles and not found.items and (letters := letters_of(text)):
            step, titles = LETTERS, self._by_letters.get(letters)
        if not titles:
            return found
        share = SHARE if found.items else 1.0
        known = {title: Candidate(title, None, share / len(titles)) for title in titles}
        known |= {each.title: each._replace(prior=(1 - share) * each.prior) for each in found.items}
        items = commonest({title: each.prior for title, each in known.items()}, known, most)
        return Candidates(found.step if found.items else step, items, max(found.links, len(titles)))

    def add_cosines(
        self, cosines: Sequence[Floats], titles: Sequence[Sequence[str]], text: str, contexts: ContextTable
    ) -> None:
        """Put the cosines of descriptions with a text in the places of their titles, which contexts do not know."""
        own = {title for of_each in titles for title in of_each if title in self.by_title}
        vector = contexts.vector(text if own else "")
        for title in own - self._vectors.keys():
            self._vectors[title] = contexts.vector(self.by_title[title].description)
        values = {title: cosine(vector, self._vectors[title]) for title in own}
        for row, of_each in zip(cosines, titles, strict=True):
            for place, title in enumerate(of_each):
                row[place] = values.get(title, row[place])


def read_own(path: Path, table: MentionTable) -> OwnEntities:
    """Read entities of `id`, `name` and, where these are told, `aliases` and `description`.

    Raises: ValueError naming the line of a wrong field, of an empty name, or of an id that was there before.
    """
    found, ids = dict[str, OwnEntity](), dict[str, str]()
    for record in read_records(path):
        given = {name for name, value in record.values.items() if value is not None}
        names = [record.text("name"), *(record.texts("aliases") if "aliases" in given else ())]
        if not all(map(letters_of, names)):
            raise record.error("a name or alias has no letter and no digit; wanted names as they stand in texts")
        description, identity = record.text("description") if "description" in given else "", record.identifier()
        if identity in ids:
            raise record.error(f"id {identity!r} was there before, at {ids[identity]}; wanted one for each entity")
        ids[identity], names = record.where, [" ".join(name.split()) for name in names]
        title = names[0]
        while title in found or table.targets.get(title):
            title += f" ({identity})"
        found[title] = OwnEntity(identity, title, names, description)
    return OwnEntities(found.values(), table)
