"""Markup and characters inside a line, and the text that is left."""

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract

UNSEEN = "\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202d\u202e\u202c\u2060\u2066\u2067\u2068\u2069\ufeff"


def read(source: str, language: str = "en", profile: str = "fixed") -> tuple[list[str], list[tuple[str, str]]]:
    """(the texts, the links as (anchor, title))."""
    site = SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""), (6, "File")))
    paragraphs = extract(source, site, profile=profile).paragraphs
    links = [(text[start:end], title) for _, text, found in paragraphs for start, end, title in found]
    return [paragraph.text for paragraph in paragraphs], links


@pytest.mark.parametrize(
    ("language", "source", "texts", "links"),
    [
        ("en", "\ufeff'''Gull\u00adBay''' lies\u200b here\u2060.", ["GullBay lies here."], []),
        ("en", "[[Gull Bay|\u200eGull Bay\u200e]]", ["Gull Bay"], [("Gull Bay", "Gull Bay")]),
        ("en", "a&shy;b&lrm;c&#8203;d&#x200F;e&NoBreak;f&#65279;g", ["abcdefg"], []),
        ("en", "[[Gull Bay|\u200b]] b [[C|&lrm; ]] d", ["b d"], []),
        ("en", "a \u200e b\n\n\u200b\n\nc", ["a b", "c"], []),
        ("en", "* \u200e[[A]]\u200b\n* b", ["A", "b"], [("A", "A")]),
        ("de", "[[Ruhr|D\u00adampf]]schiff\u00adfahrt", ["Dampfschifffahrt"], [("Dampfschiff", "Ruhr")]),
        ("he", "[[נמל]]\u200f בים", ["נמל בים"], [("נמל", "נמל")]),
        # These change how letters join, so they are text.
        ("fa", "[[می\u200cرود]]", ["می\u200cرود"], [("می\u200cرود",) * 2]),
        ("hi", "[[क्\u200dष]] &zwnj;", ["क्\u200dष \u200c"], [("क्\u200dष",) * 2]),
    ],
)
def test_characters_that_no_reader_sees_are_no_text(
    language: str, source: str, texts: list[str], links: list[tuple[str, str]]
) -> None:
    assert read(source, language) == (texts, links)


@pytest.mark.parametrize("character", UNSEEN)
def test_each_of_them_goes(character: str) -> None:
    # U+2069 ends what the three before it begin.
    source = f"a{character}b [[C|d{character}e]]\u2069"
    assert read(source) == (["ab de"], [("de", "C")])
    assert read(f"a{character}b", profile="paper") == ([f"a{character}b"], [])
    assert read(f"== {character} ==\nb")[0] == ["b"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("&#x0000041;&#x00000000042;&#0000067;", "ABC"),
        (f"&#{'0' * 6000}65;&#x{'0' * 6000}42;", "AB"),
        ("&#x1F600;&#128512;", "😀😀"),
        ("a&#00032;b&#x000A0;c", "a b c"),
        ("&#0000000000; &#x110000; &#99999999999; &#x0;", "&#0000000000; &#x110000; &#99999999999; &#x0;"),
        ("[[A|&#000000066;]]", "B"),
    ],
)
def test_numeric_references_of_any_length(source: str, text: str) -> None:
    assert read(source)[0] == [text]
