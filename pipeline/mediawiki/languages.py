"""Differences between the languages of Wikipedia: link trails, magic words, prefixes, template names.

The tables are the files in `data/`, which say what they hold and where it is from.
"""

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(
        resources.files("pipeline.mediawiki").joinpath("data", f"{name}.toml").read_text("utf-8")
    )


FILE, TEMPLATE, CATEGORY = 6, 10, 14  # keys of namespaces

_links = _read("links")
LINK_TRAIL_LETTERS: dict[str, str] = _links["trail_letters"]
LINK_PREFIX_LETTERS: dict[str, str] = _links["prefix_letters"]
_LINK_TRAIL_WORDS: dict[str, str] = _links["trail_words"]

REDIRECT_WORDS: dict[str, list[str]] = _read("redirects")["words"]

_switches = _read("magic_words")
MAGIC_WORDS = frozenset(f"__{word}__" for word in _switches["words"]) | frozenset(
    f"＿＿{word}＿＿" for word in _switches["wide_words"]
)
VARIABLES: dict[str, list[str]] = _switches["variables"]

_namespaces = _read("namespaces")
CANONICAL_NAMESPACES: dict[str, int] = _namespaces["canonical"]


def _keys(names: dict[str, list[str]]) -> dict[str, int]:
    kinds = {"file": FILE, "category": CATEGORY}
    return {name: kinds.get(kind) or int(kind) for kind, names in names.items() for name in names}


NAMESPACE_ALIASES: dict[str, dict[str, int]] = {
    language: _keys({**_namespaces["aliases"].get(language, {}), **_namespaces["local"].get(language, {})})
    for language in sorted({*_namespaces["aliases"], *_namespaces["local"]})
}
WIKIPEDIA_ALIASES: dict[str, int] = _namespaces["wikipedia"]
WIKI_ALIASES: dict[str, dict[str, int]] = {wiki: _keys(names) for wiki, names in _namespaces["wikis"].items()}

DISAMBIGUATION_TEMPLATES: frozenset[str] = frozenset(_read("disambiguation")["templates"])

_prefixes = _read("interwiki")
LANGUAGE_CODES: frozenset[str] = frozenset(_prefixes["languages"])
INTERWIKI_PREFIXES: frozenset[str] = frozenset(_prefixes["projects"])
OWN_PREFIXES: dict[str, list[str]] = _prefixes["own"]

NUMBER_FORMATS: dict[str, dict[str, Any]] = _read("numbers")

_scripts = _read("scripts")
UNSPACED_LANGUAGES: frozenset[str] = frozenset(_scripts["unspaced"])
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


def own_prefixes(language: str, dbname: str) -> frozenset[str]:
    """The interwiki prefixes by which a wiki means itself."""
    codes = {language.lower(), *OWN_PREFIXES.get(wiki_name(language, dbname), ())}
    return LANGUAGE_CODES.intersection(codes) | INTERWIKI_PREFIXES.intersection(codes)


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
