"""Functions and variables of a wiki in its own language: numbers, dates, page and site."""

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract


def text_of(source: str, language: str, title: str = "Gull Bay") -> str:
    site = SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""), (4, "Wikipedia")), "Shore Wiki")
    return "\n".join(extract(source, site, title=title).texts)


NUMBERS = [
    ("en", "{{formatnum:1234567}} or {{FORMATNUM:-12.50}}", "1,234,567 or −12.50"),
    ("de", "{{formatnum:1234567}}, {{ZAHLENFORMAT:4711}}, {{zahlenformat:12.5}}", "1.234.567, 4.711, 12,5"),
    ("fr", "{{FORMATNOMBRE:1234567}} {{formatnum:0.5}}", "1 234 567 0,5"),
    ("hi", "{{संख्या_रूप:1234567}} {{formatnum:1234567}}", "12,34,567 12,34,567"),
    ("nl", "{{formatteernum:12345}}", "12.345"),
    ("de", "{{formatnum:1.234.567,5|R}} {{formatnum:12345.5|NOSEP}}", "1234567.5 12345.5"),
    ("en", "{{formatnum:1,234,567|r}}", "1234567"),
    ("de", "{{formatnum:rund 12345.5 m}}", "rund 12.345,5 m"),
    ("en", "{{formatnum:}}a {{formatnum:x}}", "a x"),
    ("de", "{{nowrap|{{formatnum:{{formatnum:1.234|R}}}} km}}", "1.234 km"),
    ("de", "{{val|1234.5|u=kg}}", "1.234,5 kg"),
    ("de", "{{convert|1500|km|mi}}", "1.500 km (930 mi)"),
    ("fr", "{{unité|892|km|2}}, {{unité|3|e=6|km}}", "892 km², 3×10⁶ km"),
    ("fr", "{{unité|8.3|J|mol|-1|K|-1}}", "8,3 J mol⁻¹ K⁻¹"),
    ("fr", "{{unité|5|à|10000|km}} {{unité|1500 étudiants}}", "5 à 10 000 km 1 500 étudiants"),
    ("fr", "{{nombre|75000|emplois}}, {{tmp|-2.5|°C}}", "75 000 emplois, -2,5 °C"),
    ("fr", "{{nobr|4,4|millions}}", "4,4 millions"),
]
DATES = [
    ("fr", "le {{date|1|5|1990|en sport}} et le {{date-|05|mai}}", "le 1er mai 1990 et le 5 mai"),
    ("fr", "en {{date||avril|1697}}, le {{date-|1 avril 1990}}", "en avril 1697, le 1er avril 1990"),
    ("fr", "au {{s-|XVIII}}, au {{-s|III|e}}", "au XVIIIe siècle, au IIIe siècle av. J.-C."),
    ("fr", "aux {{sp-|XI|et|XII}}, {{sp|VI|e|-|VII|e|s}}", "aux XIe et XIIe siècles, VIe - VIIe siècles"),
    ("fr", "{{-sp|III|e|-|I|er}}", "IIIe - Ier siècle av. J.-C."),
    ("fr", "aux {{s2-|I|II}} puis {{XXe siècle}}", "aux Ier et IIe siècles puis XXe siècle"),
    ("fr", "François {{Ier}}, le {{1er}} {{2e|étage}}", "François Ier, le 1er 2e étage"),
    ("fr", "au {{-IIe siècle}}, {{Ve siècle av. J.-C.}}", "au IIe siècle av. J.-C., Ve siècle av. J.-C."),
    ("fr", "{{heure|3|15}}, {{heure||7|35}}, {{heure|20}}", "3 h 15 min, 7 min 35 s, 20 h"),
    ("fr", "mort{{incise|en 1496}} puis{{incise|ici|fin}}.", "mort– en 1496 – puis– ici."),
]
VARIABLES = [
    ("en", "'''{{PAGENAME}}''' is a town.", "Gull Bay is a town."),
    ("en", "{{SITENAME}} has {{FULLPAGENAME}}.", "Shore Wiki has Gull Bay."),
    ("en", "{{NAMESPACE}}{{BASEPAGENAME}}, {{SUBPAGENAME}}", "Gull Bay, Gull Bay"),
    ("en", "near {{ROOTPAGENAME}}", "near Gull Bay"),
    ("en", "{{PAGENAME:Help:Foo bar}} {{nowrap|in {{PAGENAME}}}}", "Foo bar in Gull Bay"),
    ("en", "[[{{PAGENAME}} (north)|north]] {{CONTENTLANGUAGE}}", "north en"),
    ("de", "{{SEITENNAME}}, {{VOLLER SEITENNAME}}, {{PROJEKTNAME}}", "Gull Bay, Gull Bay, Shore Wiki"),
    ("fr", "{{NOMPAGE}} {{NOMSITE}} {{LANGUECONTENU}}", "Gull Bay Shore Wiki fr"),
    ("ja", "{{ページ名}}は{{サイト名}}", "Gull BayはShore Wiki"),
    ("en", "{{lc:ABC}} {{UC:abc}} {{ucfirst:abc d}} {{lcfirst:ABC}}", "abc ABC Abc d aBC"),
    ("en", "{{pagename}} b", "b"),
]


@pytest.mark.parametrize(("language", "source", "shown"), NUMBERS + DATES + VARIABLES, ids=lambda value: value[:30])
def test_what_a_wiki_shows(language: str, source: str, shown: str) -> None:
    assert text_of(source, language) == shown


@pytest.mark.parametrize(
    "template", ["formatnum:", "formatnum:-", "convert|", "val|", "age|", "unité|", "frac|1|", "e|", "date|1|"]
)
@pytest.mark.parametrize(
    "number", ["9" * 5000, "1e999999999", "1/" + "9" * 9000, "-" * 3000, "1,2," * 900, "²٣", "99999999999"]
)
def test_absurd_numbers_are_bounded(template: str, number: str) -> None:
    for language in ("en", "fr"):
        arguments = f"{template}{number}|{number}|km|{number}|e={number}|sigfig={number}"
        assert text_of(f"a {{{{{template}{number}|1|1|{number}|1|1}}}} b", language).startswith("a")
        assert text_of(f"a {{{{{arguments}}}}} b", language).startswith("a")


def test_a_variable_in_a_title_is_the_pages() -> None:
    site = SiteInfo("en", "enwiki", "first-letter", ((0, ""),))
    found = extract("a [[{{PAGENAME}} (north)|north]] {{SITENAME}}", site, title="Gull Bay")
    assert (found.texts, found.targets) == (["a north"], ["Gull Bay (north)"])
