"""The first pass takes out of a page what is for other pages, what nobody sees, and what belongs to extensions."""

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract

SITES = {
    language: SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""), (6, file), (14, category)))
    for language, file, category in (
        ("en", "File", "Category"),
        ("de", "Datei", "Kategorie"),
        ("ru", "Файл", "Категория"),
        ("ja", "ファイル", "Category"),
    )
}

Shown = list[tuple[str, str, list[str]]]


def shown(source: str, language: str = "en", profile: str = "fixed") -> Shown:
    """The section, text and targets of each paragraph."""
    paragraphs = extract(source, SITES[language], profile=profile).paragraphs
    return [(each.section, each.text, [link.target for link in each.links]) for each in paragraphs]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("<onlyinclude>{| class=x\n! No.\n|-\n| [[Pier]]\n|}</onlyinclude>\n\nEnd.", [("", "End.", [])]),
        ("<noinclude>== Quay ==</noinclude>\nBoats.", [("Quay", "Boats.", [])]),
        ("<noinclude>* [[Pier]]\n* two</noinclude>", [("", "Pier", ["Pier"]), ("", "two", [])]),
        ("<includeonly>x [[Y]]</includeonly>{|\n| [[Pier]]\n|}\nEnd.", [("", "End.", [])]),
        ("<NOINCLUDE>; term : rest</NoInclude>", [("", "term", []), ("", "rest", [])]),
        ("<noinclude>:{|\n| [[Pier]]\n|}</noinclude>End.", [("", "End.", [])]),
        ("a<noinclude>\n</noinclude>\nb", [("", "a", []), ("", "b", [])]),
        ("{{box|<noinclude>x}}</noinclude>b", [("", "b", [])]),
        ("[[Pier<noinclude/>]]<onlyinclude>s</onlyinclude>", [("", "Piers", ["Pier"])]),
        ("[[Pier|a <includeonly>b</includeonly>c]]", [("", "a c", ["Pier"])]),
        ("a <includeonly>b [[C]]", [("", "a", [])]),  # MediaWiki lets it run to the page's end
        ("a</includeonly> b</noinclude>", [("", "a b", [])]),
        ("<nowiki><noinclude></nowiki>b", [("", "<noinclude>b", [])]),
        ("<!-- <includeonly> -->a", [("", "a", [])]),
        ("<syntaxhighlight lang=x><includeonly></syntaxhighlight>a", [("", "a", [])]),
        ("<nowiki>a <noinclude>* b</noinclude>", [("", "a * b", [])]),
        ("<translate>== Quay ==\nBoats.</translate>", [("Quay", "Boats.", [])]),
        ("<translate><!--T:1-->\n== Quay ==\n<!--T:2-->\nA.</translate>", [("Quay", "A.", [])]),
        ("<translate><tvar|1>[[Gull]]</>, <tvar name=n>42</tvar>.</translate>", [("", "Gull, 42.", ["Gull"])]),
        ("a </> b", [("", "a </> b", [])]),
    ],
)
def test_tags_of_the_preprocessor_leave_nothing(source: str, wanted: Shown) -> None:
    assert shown(source) == wanted


@pytest.mark.parametrize(
    ("language", "source", "wanted"),
    [
        ("de", "<noinclude>== Häfen ==</noinclude>\n[[Kiel]]er Hafen", [("Häfen", "Kieler Hafen", ["Kiel"])]),
        ("ru", "<onlyinclude>* [[Порт]]ы</onlyinclude>", [("", "Порты", ["Порт"])]),
        ("ja", "<noinclude>== 港 ==</noinclude>\n[[船]]が", [("港", "船が", ["船"])]),
        ("ja", "[[船]]が<includeonly>x</includeonly>\n来る", [("", "船が来る", ["船"])]),
    ],
)
def test_tags_of_the_preprocessor_in_other_languages(language: str, source: str, wanted: Shown) -> None:
    assert shown(source, language) == wanted


def test_what_is_for_other_pages_is_counted() -> None:
    assert extract("<includeonly>[[a]]</includeonly> b <includeonly>c", SITES["en"]).drops == {"extensions:cut": 2}


def test_profile_paper_reads_the_tags_as_before() -> None:
    assert shown("<noinclude>== Quay ==</noinclude>", profile="paper") == [("", "== Quay ==", [])]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('<span style="display:none">0042</span>42 m', ["42 m"]),
        ('<small style="color:red;display:none !important;">a</small>b', ["b"]),
        ('<SPAN class=x style="visibility: hidden" id=y>a</Span>b', ["b"]),
        ('<span style="display&#58;none">a</span>b', ["b"]),
        ("<i hidden>a</i>b", ["b"]),
        ('a<div style="display:none">b\n\n* c\n{|\n| [[D]]\n|}\n{{e}} [[F]]</div>g', ["a", "g"]),
        ("a<p hidden>b</p>\nc", ["a", "c"]),
        ('<span style="display:none">a <span>b</span> c</span>d', ["d"]),
        ('<b style="display:none">a <b style="display:none">b</b></b>c', ["c"]),
        ("<i hidden>a <!-- </i> --> b</i>c", ["c"]),
        ("[[A|<i hidden>x</i>y]]", ["y"]),
        ("{{nowrap|<i hidden>x</i>y}} z", ["y z"]),
        ("a <i hidden>b\nc", ["a c"]),  # it has no end, so its line is its end
        # shown
        ('<span style="display:inline">a</span>b', ["ab"]),
        ('<span style="display:none;display:inline">a</span>b', ["ab"]),
        ('<span style="overflow:hidden">a</span>b', ["ab"]),
        ('<span title="display:none" class="hidden" aria-hidden=true data-x="hidden">a</span>b', ["ab"]),
        ('<span style="x-display:none">a</span>b', ["ab"]),
        ("a<br hidden>b", ["a", "b"]),
        ('<span style="display:none"/>a', ["a"]),
        ("{{nowrap|a <i hidden>b}} c</i> d", ["a b c d"]),
        ("[[A|a <i hidden>b]] c</i> d", ["a b c d"]),
        ("<nowiki><i hidden>a</i></nowiki>", ["<i hidden>a</i>"]),
    ],
)
def test_hidden_elements_are_not_shown(source: str, wanted: list[str]) -> None:
    assert [text for _, text, _ in shown(source)] == wanted


def test_hidden_elements_and_their_links_are_counted() -> None:
    source = 'a <div style="display:none">[[b]] {{c|[[d]]}}</div> <i hidden>e</i> [[F]]'
    extraction = extract(source, SITES["en"])
    assert (extraction.targets, extraction.drops) == (["F"], {"hidden:cut": 2, "links:in_hidden": 2})
    assert shown("<i hidden>a</i>b", profile="paper") == [("", "ab", [])]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        # Translate
        ("<languages />\n<translate>\nThe <tvar|1>[[Gull]]</> flies.\n</translate>", ["The Gull flies."]),
        # tabs show their text without their names
        ("a\n<tabber>\nOne=A [[tab]].\n|-|\nTwo=B.\n</tabber>\nb", ["a", "A tab.", "B.", "b"]),
        ("<tabber>\n|-|One=\n* a\n* b\n|-|Two=\nc\n</tabber>", ["a", "b", "c"]),
        ("<TABBER>One=a|-|b [[C|d=e]]</Tabber>f", ["a", "b d=e", "f"]),
        ("<tabber>\nOne=\n{|\n|-\n| x\n|}\nText.\n|-|Two={{box|a=b}}c\n</tabber>", ["Text.", "c"]),
        ('<tabs><tab name="One">a [[B]]</tab><tab name="Two">c</tab></tabs>d', ["a B", "c", "d"]),
        # text
        ("a <spoiler>b ''c''</spoiler> <tooltip text=x>d</tooltip>", ["a b c d"]),
        # no text
        ('<youtube width="300">abc123</youtube>a', ["a"]),
        ("<infobox>\n<title source=n><default>Box</default></title>\n<data source=h/>\n</infobox>\na", ["a"]),
        ('<pages index="Book.djvu" from=1 to=2 />\na', ["a"]),
        ("a\n<dpl>\ncategory=B\nmode=ordered\n</dpl>\nc", ["a", "c"]),
        ('<quiz display=simple>\n{Who?\n|type="()"}\n+ I.\n- You.\n</quiz>\na', ["a"]),
        ("<html><script>a [[b]]</script></html>c", ["c"]),
        # switches
        ("__NOWYSIWYG__ a __NOFACTBOX__ __SHOWFACTBOX__ __NORICHEDIT__ b", ["a b"]),
        ("a __nowysiwyg__ __WYSIWYG__", ["a __nowysiwyg__ __WYSIWYG__"]),
    ],
)
def test_extensions_show_text_where_they_have_some(source: str, wanted: list[str]) -> None:
    assert [text for _, text, _ in shown(source)] == wanted


def test_tags_that_are_not_known_stay_and_are_counted_by_name() -> None:
    source = "a <aside class=x>b [[C]]</aside> <Aside/> {{nowrap|<gauge>d</gauge>}} {{no|<hid>}} <nowiki><f></nowiki>"
    extraction = extract(f"{source} <john@x.org> 1 <2 <i>g</i> <!-- <k> --> <b title={{{{l}}}}>m</b>", SITES["en"])
    assert extraction.texts[0].startswith("a <aside class=x>b C</aside> <Aside/> <gauge>d</gauge>")
    assert extraction.targets == ["C"]
    assert extraction.drops["markup:unknown_tag"] == 3
    tags = {name: loss for name, loss in extraction.losses.items() if name.startswith("<")}
    assert {name: loss.uses for name, loss in tags.items()} == {"<aside>": 2, "<gauge>": 1}
    assert tags["<aside>"].example.startswith("<aside class=x>b [[C]]</aside>")
    assert "markup:unknown_tag" not in extract(source, SITES["en"], profile="paper").drops


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("{{(!}} class=x\n{{!}} a [[B]]\n{{!-}}\n{{!}} c\n{{!)}}\nd", ["d"]),
        (":{{(!}}\n{{!}} a\n{{!)}}b", ["b"]),
        ("{{(!}}\n{{!}} a\n|}\nb", ["b"]),
        ("{|\n{{!}} a\n{{!)}}\nb", ["b"]),
        ("{{box|\n{{(!}}\n{{!}} a\n{{!)}}}}b", ["b"]),
        ("a {{(!}} b {{!)}}", ["a {| b |}"]),
    ],
)
def test_tables_in_templates_of_their_marks(source: str, wanted: list[str]) -> None:
    assert [text for _, text, _ in shown(source)] == wanted
