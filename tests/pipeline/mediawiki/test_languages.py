"""The tables of languages, as their data files give them."""

import re

import pytest

from pipeline import storage
from pipeline.mediawiki import languages
from pipeline.mediawiki.characters import fold_name

TABLES = {
    name: sorted(value) if isinstance(value, frozenset) else value
    for name, value in vars(languages).items()
    if name.isupper()
}


def test_tables_are_those_that_the_stages_were_made_with() -> None:
    """A table that changes changes the stages' bytes: their VERSIONs rise, and then this sum."""
    assert storage.digest(TABLES) == "66237547653a88cc8c9b500b008eb856c4b0cff7002d6f16b443282cfb752696"


@pytest.mark.parametrize("language", [*languages.LINK_TRAIL_LETTERS, "simple", "xx"])
def test_letters_around_links_are_patterns(language: str) -> None:
    assert languages.link_trail(language).match("]]") is not None
    prefix = languages.link_prefix(language)
    assert re.compile(f"[{prefix}]" if prefix else "")


@pytest.mark.parametrize(
    ("language", "trail", "rest"),
    [("en", "s", "é"), ("fr", "és", "\u0153"), ("br", "ec'h", "-"), ("ca", "'l", "''"), ("zh", "", "s")],
)
def test_what_a_trail_takes(language: str, trail: str, rest: str) -> None:
    match = languages.link_trail(language).match(trail + rest)
    assert match is not None
    assert match.group() == trail


@pytest.mark.parametrize(
    ("language", "dbname", "name", "key"),
    [
        ("jv", "jvwiki", "gambar", languages.FILE),
        ("map-bms", "map_bmswiki", "gambar", languages.FILE),
        ("nan", "zh_min_nanwiki", "分類", languages.CATEGORY),
        ("en", "enwiki", "wp", 4),
        ("en", "", "wt", 5),
        ("en", "enwikiquote", "wp", None),
        ("en", "commonswiki", "wp", None),
        ("be-tarask", "be_x_oldwiki", "вп", 4),
        ("xx", "", "wp", None),
    ],
)
def test_names_that_a_dump_does_not_list(language: str, dbname: str, name: str, key: int | None) -> None:
    assert languages.namespace_aliases(language, dbname).get(name) == key


def test_names_are_as_they_are_looked_up() -> None:
    tables = [languages.CANONICAL_NAMESPACES, languages.WIKIPEDIA_ALIASES]
    tables += [*languages.NAMESPACE_ALIASES.values(), *languages.WIKI_ALIASES.values()]
    assert all(name == fold_name(name) != "" for table in tables for name in table)
    prefixes = languages.LANGUAGE_CODES | languages.INTERWIKI_PREFIXES
    assert all(prefix == fold_name(prefix) for prefix in prefixes)
    assert languages.own_prefixes("en", "") == {"en", "w"}
    assert languages.own_prefixes("fr", "frwiki") == {"fr"}


def test_other_codes_of_a_language() -> None:
    codes = ["simple", "zh-hans", "be-x-old", "EN", "zh_min_nan"]
    assert [languages.base_language(code) for code in codes] == ["en", "zh", "be-tarask", "en", "zh-min-nan"]
