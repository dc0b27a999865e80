"""Templates without a rule whose argument reads as running text."""

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract

SENTENCE = "the bridge was built by monks who lived at the ford"
SHOWN = [
    ("it", "Si dice{{Boh|che il ponte fu costruito dai monaci del posto}}.", "costruito dai monaci"),
    ("fr", "Il {{passage curieux|fut construit par des moines de l'abbaye|date=mai 2010}}.", "fut construit par"),
    ("de", "Er sei {{Kursivstück|von den Mönchen an der Furt erbaut worden}}.", "an der Furt erbaut"),
    ("ru", "Мост {{непонятно что|был построен монахами у брода через реку|2010}}.", "был построен"),
    ("ja", "橋は{{何か|修道士たちによって川の浅瀬のそばに建てられたものと伝えられている}}。", "川の浅瀬のそばに建て"),
    ("en", f"{{{{strange|{SENTENCE}.}}}}", f"{SENTENCE}."),
    ("en", f"So {{{{strange|x|{SENTENCE}}}}} it is", SENTENCE),
    ("en", "So {{strange|[[Bridge|a bridge]] was{{nbsp}}built by monks who lived|date=May}}", "built by monks"),
]
HIDDEN = [
    "{{see this|Bridges that were built by the monks}}",  # a title on a line of its own
    f"a {{{{strange|text={SENTENCE}}}}} b",
    f"a {{{{strange|{SENTENCE}|note={SENTENCE}}}}} b",
    f"a {{{{strange|{SENTENCE}|{SENTENCE}}}}} b",
    "a {{strange|the bridge at the ford}} b",
    "a {{strange|The Bridge By The Ford Of Monks}} b",
    f"a {{{{strange|Bridge.jpg {SENTENCE}}}}} b",
    f"a {{{{strange|http://x.org/a {SENTENCE}}}}} b",
    f"a {{{{strange|\n* {SENTENCE}\n* b}}}} b",
    f"a {{{{strange|width=5 {SENTENCE}}}}} b",
    f"a {{{{cite thing|{SENTENCE}}}}} b",  # known to show nothing
]


@pytest.mark.parametrize(("language", "source", "text"), SHOWN)
def test_running_text_is_shown_and_counted(language: str, source: str, text: str) -> None:
    found = extract(source, SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""),)))
    assert text in found.texts[0].replace("\u00a0", " ")
    assert found.drops["templates:shown_by_guess"] == 1
    assert not found.losses


@pytest.mark.parametrize("source", HIDDEN)
def test_what_is_no_running_text_stays_hidden(source: str) -> None:
    found = extract(source, SiteInfo("en", "enwiki", "first-letter", ((0, ""),)))
    assert not any("bridge" in text.lower() for text in found.texts)
    assert "templates:shown_by_guess" not in found.drops


def test_links_of_guessed_text_are_annotations() -> None:
    source = "It is {{strange|a [[bridge]] that was built by [[Monk|monks]] of the ford}}."
    found = extract(source, SiteInfo("en", "enwiki", "first-letter", ((0, ""),)))
    assert found.targets == ["Bridge", "Monk"]


def test_the_papers_profile_guesses_nothing() -> None:
    site = SiteInfo("en", "enwiki", "first-letter", ((0, ""),))
    assert extract(f"a {{{{strange|{SENTENCE}}}}} b", site, profile="paper").texts == ["a b"]
