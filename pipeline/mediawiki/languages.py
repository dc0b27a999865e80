"""Differences between the languages of Wikipedia: link trails, magic words, prefixes, template names.

The tables are the files in `data/`, which say what they hold and where it is from.
"""

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlsplit


@cache
def read_table(name: str) -> dict[str, Any]:
    """One of the tables in `data/`."""
    return tomllib.loads(resources.files("pipeline.mediawiki").joinpath("data", f"{name}.toml").read_text("utf-8"))


FILE, TEMPLATE, CATEGORY = 6, 10, 14  # keys of namespaces

_links = read_table("links")
LINK_TRAIL_LETTERS: dict[str, str] = _links["trail_letters"]
LINK_PREFIX_LETTERS: dict[str, str] = _links["prefix_letters"]
_LINK_TRAIL_WORDS: dict[str, str] = _links["trail_words"]

_switches = read_table("magic_words")
_tags = read_table("tags")
_words = (*_switches["words"], *_tags["switches"], *map(str.lower, read_table("disambiguation")["switches"]))
ANY_CASE_WORDS = frozenset(f"__{word}__" for word in _tags["any_case"])
_wide = (f"＿＿{word}＿＿" for word in _switches["wide_words"])
MAGIC_WORDS = frozenset(f"__{word}__" for word in _words).union(_wide)

_namespaces = read_table("namespaces")
CANONICAL_NAMESPACES: dict[str, int] = _namespaces["canonical"]


def keys_of_names(names: dict[str, list[str]]) -> dict[str, int]:
    """The key of each name in lists of names by key, or by file or category."""
    kinds = {"file": FILE, "category": CATEGORY}
    return {name: kinds.get(kind) or int(kind) for kind, names in names.items() for name in names}


NAMESPACE_ALIASES: dict[str, dict[str, int]] = {
    language: keys_of_names({**_namespaces["aliases"].get(language, {}), **_namespaces["local"].get(language, {})})
    for language in sorted({*_namespaces["aliases"], *_namespaces["local"]})
}
WIKIPEDIA_ALIASES: dict[str, int] = _namespaces["wikipedia"]
WIKI_ALIASES: dict[str, dict[str, int]] = {wiki: keys_of_names(names) for wiki, names in _namespaces["wikis"].items()}

_prefixes = read_table("interwiki")
LANGUAGE_CODES: frozenset[str] = frozenset(_prefixes["languages"])
INTERWIKI_PREFIXES: frozenset[str] = frozenset(_prefixes["projects"])
OWN_PREFIXES: dict[str, list[str]] = _prefixes["own"]
WIKIMEDIA: dict[str, list[str]] = _prefixes["wikimedia"]

_scripts = read_table("scripts")
UNSPACED_LANGUAGES: frozenset[str] = frozenset(_scripts["unspaced"])
# The inside of a character class.
UNSPACED_SCRIPTS = "".join(f"\\p{{{script}}}" for script in _scripts["unspaced_scripts"])
VARIANTS: dict[str, list[str]] = _scripts["variants"]
VARIANT_NAMES: dict[str, str] = _scripts["variant_names"]
_OTHER_CODES: dict[str, str] = _scripts["other_codes"]


def base_language(language: str) -> str:
    """The code under which the tables file a language: "simple" is English, "zh-hans" is "zh"."""
    code = language.lower().replace("_", "-")
    if code in LINK_TRAIL_LETTERS:
        return code
    return _OTHER_CODES.get(code, code.split("-")[0])


def wiki_name(language: str, dbname: str) -> str:
    """A wiki's database name; that of the language's Wikipedia where the dump is so old that it names none."""
    return dbname or f"{language.lower().replace('-', '_')}wiki"


def namespace_aliases(language: str, dbname: str) -> dict[str, int]:
    """Return other names of a wiki's namespaces than those in its site information, in lower case, with their keys.

    "$1" stands for the name of the project.
    """
    code, wiki = language.lower().replace("_", "-"), wiki_name(language, dbname)
    aliases = dict(NAMESPACE_ALIASES.get(code if code in NAMESPACE_ALIASES else base_language(code), {}))
    if wiki.endswith("wiki") and wiki.removesuffix("wiki").replace("_", "-") in LANGUAGE_CODES:
        aliases.update(WIKIPEDIA_ALIASES)
    aliases.update(WIKI_ALIASES.get(wiki, {}))
    return aliases


def is_wikimedia(dbname: str, language: str = "") -> bool:
    """Return whether a database is one of Wikimedia's, or none is named; with a language, one in that language."""
    names = [dbname.removesuffix(family) for family in WIKIMEDIA["families"] if dbname.endswith(family)]
    codes = LANGUAGE_CODES.intersection(name.replace("_", "-") for name in names)
    in_language = any(not language or base_language(code) == base_language(language) for code in codes)
    return not dbname or dbname in WIKIMEDIA["names"] or in_language


def database_name(language: str, dbname: str, base: str) -> str:
    """The name by which a dump's wiki is known: its database's; its main page's host if that is none of Wikimedia's."""
    host = urlsplit(base).hostname or ""
    is_foreign = host and ".".join(host.split(".")[-2:]) not in WIKIMEDIA["domains"]
    return host if is_foreign and not (dbname and is_wikimedia(dbname, language)) else dbname


@cache
def link_trail(language: str) -> re.Pattern[str]:
    """The pattern of the letters after a link that belong to it; it matches the empty string, too."""
    code = base_language(language)
    letters = LINK_TRAIL_LETTERS.get(code, "a-z")
    if code in _LINK_TRAIL_WORDS:
        return re.compile(f"(?:{_LINK_TRAIL_WORDS[code]}|[{letters}])*")
    return re.compile(f"[{letters}]*" if letters else "")


def link_prefix(language: str) -> str:
    """The letters before a link that belong to it, as the inside of a character class; "" for none."""
    return LINK_PREFIX_LETTERS.get(base_language(language), "")
