"""A dump's words about its wiki: language, namespaces, case of titles."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from pipeline.mediawiki import languages
from pipeline.mediawiki.characters import BLANKS, fold_name
from pipeline.mediawiki.wiki_rules import parse_rules


@dataclass(frozen=True)
class SiteInfo:
    """The content of a dump's ``<siteinfo>``."""

    language: str
    dbname: str  # "" in old dumps of Wikimedia's, the host in those of others
    case: str  # "first-letter" or "case-sensitive"
    namespaces: tuple[tuple[int, str], ...]  # (key, local name)
    name: str = ""  # "" where the dump does not say it
    rules: str = ""  # the user's own for the wiki, as a file of ``wiki_rules`` has them

    @cached_property
    def _keys(self) -> dict[str, int]:
        keys = dict(languages.CANONICAL_NAMESPACES)
        project = fold_name(self.names.get(4, "project"))
        for alias, key in languages.namespace_aliases(self.language, self.dbname).items():
            keys[alias.replace("$1", project)] = key
        keys.update({fold_name(name): key for key, name in self.namespaces if name})
        own = languages.keys_of_names(parse_rules(self.rules).get("namespaces", {}))
        keys.update({fold_name(name): key for name, key in own.items()})
        return keys

    @cached_property
    def names(self) -> dict[int, str]:
        """The local names of namespaces, as far as ``<siteinfo>`` lists them."""
        return {key: BLANKS.sub(" ", name) for key, name in self.namespaces if name}

    def namespace_of(self, title: str) -> int:
        """The namespace key of a title by its prefix, local or canonical English, in any case; else 0."""
        prefix, colon, _ = title.partition(":")
        return self._keys.get(fold_name(prefix), 0) if colon else 0

    def spellings(self, key: int) -> frozenset[str]:
        """All names of a namespace, in lower case."""
        return frozenset(name for name, known in self._keys.items() if known == key)

    @cached_property
    def is_wikimedia(self) -> bool:
        """Return whether the wiki is one of Wikimedia's, which alone share the known prefixes of other wikis."""
        return languages.is_wikimedia(self.dbname)

    @cached_property
    def prefixes(self) -> tuple[frozenset[str], frozenset[str]]:
        """The prefixes of links to the same page in other languages, and those to all other wikis, in lower case."""
        codes, others = languages.LANGUAGE_CODES, languages.INTERWIKI_PREFIXES
        shared = (codes, others) if self.is_wikimedia else (frozenset[str](), frozenset[str]())
        return shared[0] | (self._interwiki & codes), shared[1] | (self._interwiki - codes)

    @cached_property
    def _interwiki(self) -> frozenset[str]:
        return frozenset(map(fold_name, parse_rules(self.rules).get("interwiki", ())))

    @cached_property
    def other_prefixes(self) -> frozenset[str]:
        """Return what stands before the colon of titles in other namespaces and wikis, in lower case."""
        names = {name for name, key in self._keys.items() if key}
        return frozenset(names.union(*self.prefixes))

    @cached_property
    def own_prefixes(self) -> frozenset[str]:
        """The interwiki prefixes by which the wiki means itself, in lower case."""
        own = languages.OWN_PREFIXES.get(languages.wiki_name(self.language, self.dbname), ())
        codes = {self.language.lower(), *own}
        return frozenset(codes.intersection(chain(*self.prefixes)) - self._interwiki)

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold."""
        values = {**asdict(self), "namespaces": list(map(list, self.namespaces))}
        return {name: value for name, value in values.items() if name != "rules" or value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "SiteInfo":
        """The inverse of ``to_dict``."""
        namespaces = tuple((int(key), str(name)) for key, name in values["namespaces"])
        return cls(**{**values, "namespaces": namespaces})


def check_languages(codes: Sequence[str]) -> None:
    """See that wikis can be told apart by their languages. Raises: ValueError: two are of one, or one has no code."""
    if len({*codes}) < len(codes):
        raise ValueError(f"corpus.dump: its wikis have the languages {', '.join(codes)}; wanted each once")
    if wrong := [language for language in codes if not re.fullmatch(r"\w[\w-]*", language)]:
        raise ValueError(f"corpus.dump: a dump's xml:lang is {wrong[0]!r}; wanted a language's code")
