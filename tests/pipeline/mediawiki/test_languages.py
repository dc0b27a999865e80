"""The tables of languages, as their data files give them."""

import re

import pytest

from pipeline import storage
from pipeline.mediawiki import languages
from pipeline.mediawiki.characters import fold_name
from pipeline.mediawiki.site import SiteInfo

TABLES = {
    name: sorted(value) if isinstance(value, frozenset) else value
    for name, value in vars(languages).items()
    if name.isupper()
}
DISAMBIGUATION = languages.read_table("disambiguation")
TABLES |= {
    "DISAMBIGUATION_SWITCHES": [f"__{word}__" for word in DISAMBIGUATION["switches"]],
    "DISAMBIGUATION_TEMPLATES": sorted({*DISAMBIGUATION["templates"]}),
    "NUMBER_FORMATS": languages.read_table("numbers"),
    "OWN_DISAMBIGUATION_TEMPLATES": DISAMBIGUATION["templates_of"],
    "PRONUNCIATION_WORDS": languages.read_table("pronunciation"),
    "REDIRECT_WORDS": languages.read_table("redirects")["words"],
    "VARIABLES": languages.read_table("magic_words")["variables"],
}


def test_tables_are_those_that_the_stages_were_made_with() -> None:
    """A table that changes changes the stages' bytes: their VERSIONs rise, and then this sum."""
    assert storage.digest(TABLES) == "416ca55dded4974e7b5c9f05e2e652eb5d0603e2ca51edfdd24a7818988c52dc"


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
        ("en", "enwiki", "wp", 4),
        ("en", "", "wt", 5),
        ("en", "enwikiquote", "wp", None),
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
    assert SiteInfo("en", "", "first-letter", ()).own_prefixes == {"en", "w"}
    assert SiteInfo("fr", "frwiki", "first-letter", ()).own_prefixes == {"fr"}


@pytest.mark.parametrize(
    ("language", "dbname", "base", "name", "is_one"),
    [
        *(("en", name, "", name, True) for name in ("enwiki", "enwiktionary", "enwikivoyage", "commonswiki", "")),
        *(("en", name, "https://quay.example/w", name, True) for name in ("simplewiki", "enwiki", "metawiki")),
        *(("nb", name, "//fork.example/w", name, True) for name in ("nowiki", "nowikinews")),
        ("lzh", "zh_classicalwiki", "http://fork.example/w", "zh_classicalwiki", True),
        ("be-tarask", "be_x_oldwiki", "http://fork.example/w", "be_x_oldwiki", True),
        ("crh-latn", "crhwiki", "http://fork.example/w", "crhwiki", True),
        ("ike-cans", "iuwiki", "http://iu.wikipedia.org/wiki/X", "iuwiki", True),
        ("ja", "enwiki", "https://en.wikipedia.org/wiki/X", "enwiki", True),
        ("en", "", "http://en.wikipedia.org/wiki/Main_Page", "", True),
        ("en", "", "https://commons.wikimedia.org/wiki/Main_Page", "", True),
        ("en", "mywiki", "http://localhost:8080/index.php/Main_Page", "localhost", False),
        ("de", "itwiki", "https://quay.example/wiki/Main", "quay.example", False),
        ("en", "", "http://mywikipedia.org/wiki/Main", "mywikipedia.org", False),
        *(("en", name, "", name, False) for name in ("my_wiki", "gamewiki", "wiki", "starwars")),
        ("en", "starwars", "https://x.example/wiki/Main", "x.example", False),
        ("de", "wikidb", "", "wikidb", False),
    ],
)
def test_wikimedias_wikis_are_told_by_their_databases(
    language: str, dbname: str, base: str, name: str, is_one: bool
) -> None:
    assert languages.database_name(language, dbname, base) == name
    assert languages.is_wikimedia(name) is is_one


def test_other_codes_of_a_language() -> None:
    codes = ["simple", "zh-hans", "be-x-old", "EN", "zh_min_nan"]
    assert [languages.base_language(code) for code in codes] == ["en", "zh", "be-tarask", "en", "zh-min-nan"]
