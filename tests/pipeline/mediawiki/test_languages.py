"""The tables of languages, as their data files give them."""

import re

import pytest

from pipeline import storage
from pipeline.mediawiki import languages

TABLES = {
    name: sorted(value) if isinstance(value, frozenset) else value
    for name, value in vars(languages).items()
    if name.isupper()
}


def test_tables_are_those_that_the_stages_were_made_with() -> None:
    """A table that changes changes the stages' bytes: their VERSIONs rise, and then this sum."""
    assert storage.digest(TABLES) == "39dbe20a86ab8ca92e8dd3e4ae8d9ba9a0b9d4ae801710ddbaadd439007fe693"


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


def test_other_codes_of_a_language() -> None:
    codes = ["simple", "zh-hans", "be-x-old", "EN", "zh_min_nan"]
    assert [languages.base_language(code) for code in codes] == ["en", "zh", "be-tarask", "en", "zh-min-nan"]
