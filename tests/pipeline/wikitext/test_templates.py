"""Templates as readers see them: characters, text, measures, and templates in one another.

`test_template_tables.py` has those of other languages.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.mediawiki.languages import read_table
from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from pipeline.wikitext.templates.functions import FUNCTIONS
from pipeline.wikitext.templates.losses import Loss
from pipeline.wikitext.templates.rules import Arguments, compile_rule
from pipeline.wikitext.templates.table import TemplateTable, silent

TABLES = read_table("templates")


def site(language: str = "en") -> SiteInfo:
    return SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""), (6, "File"), (14, "Category")))


def text_of(source: str, language: str = "en", profile: str = "fixed") -> str:
    return "\n".join(extract(source, site(language), profile=profile).texts)


CHARACTERS = [
    ("(1417{{endash}}1701)", "(1417–1701)"),
    ("15{{nbsp}}September", "15 September"),
    ("a{{snd}}b", "a – b"),
    ("''GQ''{{'}}s", "GQ's"),
    ("[[Foo{{!}}bar]]", "bar"),
    ("a{{=}}b", "a=b"),
    ("{{(}}a{{)}}", "{a}"),
    ("a {{bull}} b{{·}} c", "a • b · c"),
    ("{{frac|1|2}} and {{frac|3}} and {{frac|2|3|4}}", "1⁄2 and 1⁄3 and 2 3⁄4"),
    ("{{sfrac|a|b}}", "a/b"),
    ("6.2{{e|24}} and 2{{e|-7}}", "6.2×10²⁴ and 2×10⁻⁷"),
    ("{{Nbsp}}a{{NBSP}}b", "a b"),  # the first letter alone may be a capital
    ("a{{ nbsp }}b{{Template:nbsp}}c", "a b c"),
]
TEXTS = [
    ("is {{convert|19000|sqft|m2}}, which", "is 19,000 square feet (1,800 m2), which"),
    ("({{lang-kw|Bosvena}})", "(Cornish: Bosvena)"),
    ("({{lang-kw|Bosvena|label=none}})", "(Bosvena)"),
    ("{{lang-ru|Москва|Moskva}}", "Russian: Москва, romanized: Moskva"),
    ("({{langx|el|Ἀθῆναι|lit=x}})", "(Greek: Ἀθῆναι, lit. 'x')"),
    ("the German {{lang|de|''Land''}}.", "the German Land."),
    ("''{{transl|ar|ALA|al-Jazā'ir}}''", "al-Jazā'ir"),
    ("{{nowrap|[[Pope Clement IV]]}} as", "Pope Clement IV as"),
    ("{{circa|1850}} and {{circa|1850|1860}}", "c. 1850 and c. 1850 – c. 1860"),
    ("{{as of|2014|lc=y}}, {{As of|2014|5}}", "as of 2014, As of May 2014"),
    ("{{as of|2014|5|3|since=y}}", "Since 3 May 2014"),
    ("{{start date|1993|02|24}} {{start date|1993|02|24|df=y}}", "February 24, 1993 24 February 1993"),
    ("alongside {{HMS|Ajax|22|6}} and {{USS|Nimitz|CVN-68}}", "alongside Ajax and USS Nimitz (CVN-68)"),
    ("{{ill|Foo|de|Bar}} {{ill|Foo|de|Bar|lt=baz}}", "Foo baz"),
    ("{{sortname|Ayn|Rand}}", "Ayn Rand"),
    ("{{val|6.241|e=18}}, {{val|1.5|0.2|u=kg}}", "6.241×10¹⁸, 1.5±0.2 kg"),
    ("{{chem|C|''n''|H|2''n''+2}}", "CnH2n+2"),
    ("so:\n{{quote|[[A]] said|B}}\nand", "so:\nA said — B\nand"),
    ("{{Nihongo|'''Aikido'''|合気道|Aikidō|lead=yes}} is", "Aikido (合気道, Aikidō) is"),
    ("recieve{{sic}} {{sic|teh}}", "recieve teh"),
    ("{{formatnum:12345}} m", "12,345 m"),
    ("the vowel {{IPA|/a/}}, and", "the vowel /a/, and"),
    ("{{zh|t=臺灣|p=Táiwān}}", "traditional Chinese: 臺灣; pinyin: Táiwān"),
]


@pytest.mark.parametrize(("source", "shown"), CHARACTERS + TEXTS, ids=lambda value: value[:30])
def test_what_a_template_shows(source: str, shown: str) -> None:
    assert text_of(source) == shown


def test_links_in_shown_text_are_annotations() -> None:
    source = "{{nowrap|a [[B|c]]}} {{ill|D|de|E}} {{HMS|Ajax|22|6}} {{sortname|F|G}}"
    [found] = extract(source, site()).paragraphs
    anchors = [(found.text[link.start : link.end], link.target) for link in found.links]
    assert anchors == [("c", "B"), ("D", "D"), ("Ajax", "HMS Ajax (22)"), ("F G", "F G")]


@pytest.mark.parametrize(
    ("arguments", "shown", "targets"),
    [
        ("Singe|en|Ape|texte=singe", "singe", ["Singe"]),
        ("fr=Singe|lang=en|trad=Ape|texte=singe", "singe", ["Singe"]),
        ("langue=en|trad=Ape|fr=Singe", "Singe", ["Singe"]),
        ("lang=en|trad=Ape", "Ape", []),  # which may be another page here
    ],
)
def test_a_link_is_to_the_title_of_its_own_wiki(arguments: str, shown: str, targets: list[str]) -> None:
    [found] = extract(f"{{{{Lien|{arguments}}}}}", site("fr")).paragraphs
    assert found.text == shown
    assert [link.target for link in found.links] == targets


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{{nowrap|{{convert|5|mi}} or {{lang|de|b}}}}", "5 miles (8.0 km) or b"),
        ("{{lang|de|a<ref>b</ref> ''c''<!-- d -->}}", "a c"),
        ("{{nowrap|1=a=b}} {{nowrap|[http://x.org c]}}", "a=b c"),
        ("{{nowrap|a{{=}}b}} {{nowrap|a{{!}}b}}", "a=b a|b"),
        ("{{nowrap\n|a\n}} b", "a b"),
        ("{{unknown|{{nowrap|a}}}} b", "b"),
        ("{{nowrap|{{unknown|a}} b}}", "b"),
        ("{|\n|{{nowrap|a}}\n|}\nb", "b"),
        ("{{nowrap|a", "a"),
        ("{{{nowrap|a}}} b", "b"),
        ("{{flatlist|\n* a\n* [[b]]\n}}\nc", "a\nb\nc"),
    ],
)
def test_templates_in_one_another(source: str, shown: str) -> None:
    assert text_of(source).replace("nowrap|", "") == shown


def test_the_papers_profile_shows_no_template() -> None:
    assert text_of("a {{nowrap|b}}, ({{IPA|c}}) d{{endash}}e", profile="paper") == "a , () de"


@pytest.mark.parametrize(
    ("source", "name"),
    [("{{eB1911|x}}", "EB1911"), ("{{EB1911}}", "EB1911"), ("{{xXe cycle}}", "XXe cycle"), ("{{é_t}}", "É t")],
)
def test_losses_have_the_titles_of_their_pages(source: str, name: str) -> None:
    assert [*extract(f"a {source} b", site("fr")).losses] == [name]


def test_losses_are_counted_by_name() -> None:
    source = "{{Infobox x|a=b}}\na {{Foo bar|[[B]] c}} d{{foo_bar|e}}.{{cn}} {{nowrap|f}}\n* {{cite book|title=g}}"
    assert extract(source, site()).losses == {"Foo bar": Loss(2, 3, 1, "{{Foo bar|[[B]] c}}")}


def test_forty_deep_is_shown_and_deeper_is_not() -> None:
    def nested(depth: int) -> str:
        return text_of("{{nowrap|" * depth + "a" + "}}" * depth + " b")

    assert nested(40) == "a b"
    assert nested(41) == "b"


def test_a_rule_that_doubles_its_text_stays_bounded() -> None:
    extraction = extract("{{ill|" * 39 + "a" * 50 + "}}" * 39, site())
    assert sum(map(len, extraction.texts)) < 10_000


# Rules and tables


def test_a_rule_fills_what_is_given() -> None:
    rule = compile_rule('{1}< – {2}>< [{x|3|"none"}]>')
    assert rule(Arguments("t|a|b|c")) == "a – b [c]"
    assert rule(Arguments("t|a")) == "a [none]"
    assert rule(Arguments("t||b")) is None


@pytest.mark.parametrize("rule", ["{1}<a", "{1}>a", "<{1}"])
def test_a_rule_with_a_lone_bracket_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match="without its partner"):
        compile_rule(rule)


@pytest.mark.parametrize("language", [code for code in TABLES if code != "any"])
def test_every_rule_of_a_language_compiles(language: str) -> None:
    table = TemplateTable(SiteInfo(language, "", "first-letter", ()))
    forms = [name for names in TABLES[language].get("forms", {}).values() for name in names]
    for name in [*forms, *TABLES[language].get("text", {})]:
        assert table.find(name)[1] not in (None, silent), name


def test_every_other_name_leads_to_a_rule() -> None:
    for language, tables in TABLES.items():
        table = TemplateTable(SiteInfo("en" if language == "any" else language, "", "first-letter", ()))
        missing = [name for name in tables.get("same", {}) if table.find(name)[1] is None]
        assert not missing


def test_every_function_is_used() -> None:
    rules = [
        rule
        for tables in TABLES.values()
        for group in ("text", "begins", "patterns", "forms")
        for rule in (tables.get(group, {}) if group == "forms" else tables.get(group, {}).values())
    ]
    used = {rule[1:].split()[0] for rule in rules if rule.startswith("=") and rule != "="}
    assert used | {function.split()[0] for function in read_table("magic_words")["variables"]} == set(FUNCTIONS)


NAMES = st.sampled_from(["nowrap", "convert", "lang", "lang-kw", "ill", "val", "USS", "as of", "age", "zh", "x"])
WORDS = st.text(st.sampled_from("aé1 -|=[]{}<'\n,.(:٣²"), max_size=20)


@given(NAMES, st.lists(WORDS, max_size=5), WORDS)
def test_no_arguments_raise_anything(name: str, arguments: list[str], behind: str) -> None:
    source = "{{" + "|".join([name, *arguments]) + "}}" + behind
    for paragraph in extract(source, site()).paragraphs:
        assert paragraph.text == paragraph.text.strip()
        assert all(0 <= link.start < link.end <= len(paragraph.text) for link in paragraph.links)


@pytest.mark.parametrize(
    ("language", "namespace", "source", "text"),
    [
        ("de", "Vorlage", "{{Vorlage:nowrap|a [[b]]}} c", "a b c"),
        ("de", "Vorlage", "{{vorlage: Nowrap |a}}{{Template:nbsp}}{{Vorlage:Unbekannt|b}}c", "a c"),
        ("fr", "Modèle", "{{Modèle:nowrap|a}} {{modèle:Lang|de|b}}", "a b"),
        ("fr", "Modèle", "{{MODÈLE:nowrap|a}}", "a"),
        ("ru", "Шаблон", "{{Шаблон:nowrap|а}} {{шаблон_:_nowrap|б}}", "а б"),
        ("ja", "Template", "{{テンプレート:nowrap|あ}}{{Template:nowrap|い}}", "あい"),
        ("es", "Plantilla", "{{Plantilla:nowrap|a}}", "a"),
        ("zh", "Template", "{{模板:nowrap|甲}}{{樣板:nowrap|乙}}", "甲乙"),
        ("uk", "Шаблон", "{{Шаблон:nowrap|а}}", "а"),
        ("en", "Template", "a {{Vorlage:nowrap|b}} {{User:nowrap|c}}", "a"),
    ],
)
def test_the_namespace_of_templates_has_the_wikis_name(language: str, namespace: str, source: str, text: str) -> None:
    found = extract(source, SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""), (10, namespace))))
    assert " ".join(found.texts) == text
    assert not [name for name in found.losses if "owrap" in name and language != "en"]
