"""A user's own rules for a wiki."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.wiki_rules import read_rules
from pipeline.wikitext.extract import extract

SITE = SiteInfo("en", "cooks", "first-letter", ((0, ""), (6, "File"), (10, "Template"), (108, "Recipe")))
RULES = """
namespaces = { 108 = ["Dish"], file = ["Pic"] }
variants = ["en", "en-x-old"]
interwiki = ["DE", "Old Pantry", "en"]

[templates]
silent = ["stock photo"]
text = { "dish" = "{1}", "lang" = "({1})" }
same = { "meal" = "dish" }

[tags]
shown = ["Hint"]
blocks = ["recipe-box"]
hidden = ["timer"]
"""


@pytest.mark.parametrize(
    ("wikitext", "without", "shown"),
    [
        ("Eat {{dish|the soup}} now.", "Eat now.", "Eat the soup now."),
        ("Eat {{Meal|the soup}} now.", "Eat now.", "Eat the soup now."),
        ("See {{stock photo|of the very large soup in a pot}} it.", None, "See it."),
        ("In {{lang|de|Brot}} it is.", "In Brot it is.", "In (de) it is."),
        ("A <hint>good</hint> soup.", None, "A good soup."),
        ("A <timer>ten minutes</timer> soup.", None, "A soup."),
        ("A <timer minutes=10 /> soup.", None, "A soup."),
        ("Boil it.<recipe-box name='x'>Take it.</recipe-box>Eat it.", None, "Boil it.|Take it.|Eat it."),
        ("It is -{en-x-old:olde; en:old}- soup.", None, "It is old soup."),
        ("A [[Pic:Soup.jpg|thumb|A soup of the day]] here.", None, "A here."),
    ],
)
def test_rules_hold_beside_the_projects(tmp_path: Path, wikitext: str, without: str | None, shown: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(RULES, encoding="utf-8")
    site = replace(SITE, rules=read_rules(str(path)))
    assert SiteInfo.from_dict(site.to_dict()) == site

    def texts(of: SiteInfo) -> str:
        return "|".join(paragraph.text for paragraph in extract(wikitext, of).paragraphs)

    assert texts(site) == shown
    assert without is None or texts(SITE) == without


@pytest.mark.parametrize(
    ("wikitext", "text", "targets", "drop"),
    [
        ("the [[pantry:Salt|salt]] jar", "the salt jar", ["Pantry:Salt"], ""),
        ("the [[old_pantry:Salt|salt]] jar", "the salt jar", [], "links:interwiki"),
        ("the [[ Old Pantry : salt]] jar", "the Old Pantry : salt jar", [], "links:interwiki"),
        ("the [[:de:Salz|salt]] jar", "the salt jar", [], "links:interwiki"),
        ("a jar\n[[De:Salz]]\n[[en:Salt]]", "a jar", [], "links:interlanguage"),
        ("the [[fr:Sel|salt]] jar", "the salt jar", ["Fr:Sel"], ""),
        ("the [[wikt:salt|salt]] jar", "the salt jar", ["Wikt:salt"], ""),
    ],
)
def test_prefixes_of_other_wikis(wikitext: str, text: str, targets: list[str], drop: str) -> None:
    extraction = extract(wikitext, replace(SITE, rules=RULES))
    assert extraction.texts == [text]
    assert extraction.targets == targets
    assert set(extraction.drops) == {drop} - {""}


def test_wikimedias_prefixes_stay_beside_the_users() -> None:
    site = SiteInfo("en", "enwiki", "first-letter", ((0, ""),), rules='interwiki = ["pantry"]')
    extraction = extract("[[wikt:a|b]] [[pantry:c|d]] [[en:e]] [[de:f]] [[g:h|i]]", site)
    assert (extraction.texts, extraction.targets) == (["b d en:e i"], ["E", "G:h"])


def test_links_to_own_namespaces_are_no_annotations(tmp_path: Path) -> None:
    extraction = extract("[[Dish:Soup|soup]], [[Farland]]", replace(SITE, rules=RULES))
    assert extraction.targets == ["Farland"]
    assert extraction.drops["links:other_namespace"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("templates = ", "cannot be read as TOML"),
        ("[template]\nsilent = []", "found the field template; wanted one of templates, tags, "),
        ("[templates]\nshow = []", "found the field templates.show; wanted one of .*silent"),
        ("[templates]\nsilent = 3", "found the field templates.silent; wanted a list of texts"),
        ("[templates]\ntext = { a = 3 }", "found the field templates.text; wanted a list of texts"),
        ("[tags]\ninline = ['a']", "found the field tags.inline; wanted one of blocks, hidden, shown"),
        ("[namespaces]\nimage = ['Pic']", "found the field namespaces.image; wanted one of a number, "),
        ("[namespaces]\n6 = 'Pic'", "found the field namespaces.6; wanted a list of texts"),
        ("interwiki = 'de'", "found the field interwiki; wanted a list of texts"),
        ("variants = 'xx'", "found the field variants; wanted a list of texts"),
    ],
)
def test_errors_name_the_field(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"^corpus.wiki_rules .*rules.toml: {message}"):
        read_rules(str(path))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^corpus.wiki_rules .*none.toml: cannot .*No such file"):
        read_rules(str(tmp_path / "none.toml"))
