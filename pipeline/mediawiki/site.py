"""What a dump says about its wiki: language, namespaces, case of titles."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pipeline.mediawiki.characters import BLANKS, fold_name
from pipeline.mediawiki.languages import CANONICAL_NAMESPACES, NAMESPACE_ALIASES, base_language


@dataclass(frozen=True)
class SiteInfo:
    """What a dump's ``<siteinfo>`` says about its wiki.

    ``namespaces`` holds (key, local name); ``case`` is "first-letter" or "case-sensitive"; ``dbname`` is ""
    in old dumps.
    """

    language: str
    dbname: str
    case: str
    namespaces: tuple[tuple[int, str], ...]

    @cached_property
    def _keys(self) -> dict[str, int]:
        keys = dict(CANONICAL_NAMESPACES)
        keys.update(NAMESPACE_ALIASES.get(base_language(self.language), {}))
        keys.update({fold_name(name): key for key, name in self.namespaces if name})
        return keys

    @cached_property
    def _names(self) -> dict[int, str]:
        return {key: BLANKS.sub(" ", name) for key, name in self.namespaces if name}

    def namespace_of(self, title: str) -> int:
        """The namespace key of a title by its prefix, local or canonical English, in any case; else 0."""
        prefix, colon, _ = title.partition(":")
        return self._keys.get(fold_name(prefix), 0) if colon else 0

    def namespace_name(self, key: int) -> str | None:
        """The local name of a namespace, or None where ``<siteinfo>`` lists none."""
        return self._names.get(key)

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold."""
        return {
            "language": self.language,
            "dbname": self.dbname,
            "case": self.case,
            "namespaces": [[key, name] for key, name in self.namespaces],
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "SiteInfo":
        """The inverse of ``to_dict``."""
        namespaces = tuple((int(key), str(name)) for key, name in values["namespaces"])
        return cls(str(values["language"]), str(values["dbname"]), str(values["case"]), namespaces)
