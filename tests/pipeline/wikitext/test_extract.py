import re
import resource
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import is_disambiguation, redirect_target
from pipeline.wikitext.cut import cut
from pipeline.wikitext.extract import extract
from pipeline.wikitext.link_rules import LinkRules
from pipeline.wikitext.links import mark_links
from pipeline.wikitext.links.paper import PARSER_LIMIT, TreeReader
from pipeline.wikitext.paragraphs import Extraction
from pipeline.wikitext.placeholders import CUT
from tests.support.real_pages import real_pages

NAMESPACES = ((0, ""), (1, "Talk"), (2, "User"), (6, "File"), (10, "Template"), (14, "Category"))
SITE = SiteInfo("en", "enwiki", "first-letter", NAMESPACES)
LOCAL = {
    "de": ("Datei", "Kategorie"),
    "fr": ("Fichier", "Catégorie"),
    "ja": ("ファイル", "Category"),
    "ar": ("ملف", "تصنيف"),
    "he": ("קובץ", "קטגוריה"),
}

Links = list[tuple[str, str]]


def site(language: str) -> SiteInfo:
    file, category = LOCAL.get(language, ("File", "Category"))
    return SiteInfo(language, f"{language}wiki", "first-letter", ((0, ""), (6, file), (14, category)))


def links_of(extraction: Extraction) -> Links:
    return [(p.text[link.start : link.end], link.target) for p in extraction.paragraphs for link in p.links]


CASES: list[tuple[str, list[str], Links]] = [
    # links; what MediaWiki makes of each form is in link_cases.py
    ("<small>[[A]]</small><sub>[[B|2]]</sub>", ["A2"], [("A", "A"), ("2", "B")]),
    ("[[A|x<br>y]]", ["x y"], [("x y", "A")]),
    ("[[A|b\n\nc]] d", ["b c d"], [("b c", "A")]),
    ("[[A|'b']]''c'' '''[[D]]'''s", ["'b'c Ds"], [("'b'", "A"), ("D", "D")]),
    ("[[lista d''e paise]]", ["lista d''e paise"], [("lista d''e paise", "Lista d''e paise")]),
    ("😀[[A]]𝒜[[B]]", ["😀A𝒜B"], [("A", "A"), ("B", "B")]),
    # link trails
    ("[[A]]<nowiki/>s [[A]]<ref/>s [[A]]{{x}}s [[A]]<b>s</b>", ["As A s A s As"], [("A", "A")] * 4),
    # other namespaces and wikis
    ("[[Image:a.jpg|a\n\n* b [[C]]\n]]d", ["d"], []),
    ("[[File:a.jpg|thumb|no end [[A]]\n\nb", ["no end A", "b"], [("A", "A")]),
    ("a [[Image:b c.jpeg|thumb|200px|left\nd", ["a d"], []),
    ("[[File:a.jpg|thumb|alt=x|b {{c}} [[D|e]] f] g\nh", ["b e f] g h"], [("e", "D")]),
    ("[[File:a.png and b\n[[File:c|d]]\n\ne", ["and b", "e"], []),
    ("[[File:a\nb", ["b"], []),
    ("[[File:a.png|50px|left]\nb", ["b"], []),
    ("a [[B|[[File:c.png]]]]d [[File:e|[[File:f]]]] [[G|[[File:h]]]]", ["a d"], []),
    ("a [[File:b.jpg\n|thumb|c]] d", ["a d"], []),
    ("[[File:a.jpg|thumb|b [http://x c]]]d", ["d"], []),
    ("[[ image : a.jpg|b {{c|[[D]]}} <ref>]]</ref>]]e", ["e"], []),
    ("a\n[[Category:X]]\nb\n[[de:Y]]\nc", ["a b c"], []),
    ("[[Category:A|[[B]]]] c", ["c"], []),
    # external links
    ("a [http://x.org] b [//x.org/c ''d'']", ["a b d"], []),
    ("[not] a [link]", ["[not] a [link]"], []),
    ("''[http://x.org]'' b ''[http://x.org '' a ''] c", ["b a c"], []),
    ("[http://x.org''A'' b] [http://x.org\"c\"]", ['A b "c"'], []),
    ("[mailto:a@b.c d] [ftp://x e] [gopher f]", ["d e [gopher f]"], []),
    # templates, tables, references and other cuts
    ("a {{b|{{c|[[d]]}}}} e", ["a e"], []),
    ("a {{{b|c}}} {{ {{{d}}} }} e", ["a e"], []),
    ("{{a\n| b\n| c\n}}\nd", ["d"], []),
    ("a<ref>b [[c]]</ref>, d<ref name=e/> f<REF name='g'>h</REF>", ["a, d f"], []),
    ("a <math>b [[c]] {{</math> d", ["a d"], []),
    ("a\n<gallery>\nFile:b|[[c]]\n</gallery>\nd", ["a", "d"], []),
    ("a\n{|\n| b\n{|\n| c\n|}\n|}\nd", ["a", "d"], []),
    ("{{a|\n{|\n|b\n|}}}\nc", ["c"], []),
    ("{{a\n|b\n|}}\nc", ["c"], []),
    ("a <table><tr><td>b<table></table></td></tr></table> c", ["a", "c"], []),
    ("a<!-- b\n\n [[c]] -->d", ["ad"], []),
    ("a\n<!-- b -->\nc", ["a c"], []),
    ("a <!-- b", ["a"], []),
    ("<pre>a [[b]]</pre>c<syntaxhighlight lang=x>d</syntaxhighlight>", ["c"], []),
    ("__NOTOC__ a __KEIN_INHALTSVERZEICHNIS__ b_c __d__", ["a b_c __d__"], []),
    ("a<pre>x</pre>b<gallery>x</gallery>c<references/>d", ["a", "b", "c", "d"], []),
    ("a <syntaxhighlight lang=x inline>b</syntaxhighlight>c", ["a c"], []),
    ("a\n<math>x</math>\nb\n<ref>c</ref>\nd", ["a b d"], []),
    ("a\n<math>x</math>; b\n<math>y</math>| c", ["a; b | c"], []),
    ("a\n{{b}}\nc\n{{d}} {{e}}\nf", ["a", "c", "f"], []),
    ("{{a}} b\n{{c}}* d", ["b", "d"], []),
    ("a\n<!-- b --> <!-- c -->\nd\n  <!-- e -->\nf", ["a d f"], []),
    ("<!-- a -->* b\n<!-- c -->== d ==\ne", ["b", "e"], []),
    ("<!-- a -->{|\n|b\n|}\nc", ["c"], []),
    (":{|\n|a\n|}\n::{|\n|b\n|}\nc", ["c"], []),
    ("a {| b |} c", ["a {| b |} c"], []),
    ("{{office-table}}\n!align=left|[[A]]\n|[[B]]\n|}\n!Kung", ["!Kung"], []),
    ("''{{a}}'' b '''{{c}}'''", ["b"], []),
    ("a{{b|c}}d {{{e}}}", ["a d"], []),
    ("{{a|b=&}} c {{a|&|{{d}}}}", ["c"], []),
    ("<poem>\na\n:b\n</poem>c", ["a", "b", "c"], []),
    ("a <section begin=x/>b<br clear=all>c", ["a b", "c"], []),
    ("__BEGRIFFSKLÄRUNG__a __अनुक्रम__b __निःसंदिग्ध__c __بی\u200cبخش__", ["a b c"], []),
    ("a \u2039\u0131> \u2039\u017fmall>", ["a \u2039\u0131> \u2039\u017fmall>"], []),
    ("<h2>A</h2>\nb<h3 id=x>C</h3>d", ["b", "d"], []),
    # nowiki
    ("<nowiki>[[A]] {{b}} ''c'' <ref>d</ref></nowiki>", ["[[A]] {{b}} ''c'' <ref>d</ref>"], []),
    ("<nowiki>&lt;b&gt; &amp;</nowiki>", ["<b> &"], []),
    ("<nowiki>* a</nowiki>", ["* a"], []),
    # paragraphs, lists, breaks
    ("a\nb\n\nc", ["a b", "c"], []),
    ("* a\n** b\n# c\n:: d\n; e\ntext", ["a", "b", "c", "d", "e", "text"], []),
    ("a\n----\nb", ["a", "b"], []),
    ("a\n-5 b\nc\n--d", ["a -5 b c --d"], []),
    ("; term : def [[A: b]]\n; Places:\n: x", ["term", "def A: b", "Places", "x"], [("A: b", "A: b")]),
    ("* #1\n* *x\n: :-)\n*''*'' y", ["#1", "*x", ":-)", "* y"], []),
    (" # comment\n ------- x", ["# comment", "------- x"], []),
    ("a\n\tb\n \t\nc", ["a b", "c"], []),
    ("''a\nb'' c\n''d", ["a b c d"], []),
    ("a\n=b=c\nd", ["a =b=c d"], []),
    ("a<br>b<br/>c<BR />d", ["a", "b", "c", "d"], []),
    ("<div>a</div><p>b</p><blockquote>c</blockquote>", ["a", "b", "c"], []),
    ("a\n pre\nb", ["a", "pre", "b"], []),
    ("a\r\n\r\nb", ["a", "b"], []),
    # characters
    ("a&nbsp;&lt;b&gt; &#x41;&#66; &amp;lt;", ["a <b> AB &lt;"], []),
    ("a &unknown; &#0; &#xD800;", ["a &unknown; &#0; &#xD800;"], []),
    ("&#91;&#91;a&#93;&#93;", ["[[a]]"], []),
    ("1 < 2 > 1 <unknown>x</unknown> a<b", ["1 < 2 > 1 <unknown>x</unknown> a<b"], []),
    ("a \t\u00a0\u2003 b", ["a b"], []),
    ("\x01a\x05 \x1f\ufdd0", ["a \ufdd0"], []),
    # quotes
    ("''a'' '''b''' '''''c'''''", ["a b c"], []),
    ("l'''amour'' x", ["l'amour x"], []),
    ("''''a'''' ''''''b''''''", ["'a' 'b'"], []),
    ("it's 'a'", ["it's 'a'"], []),
    # broken markup
    ("a ]] }} b {{ [[C]]", ["a b C"], [("C", "C")]),
    ("a]], b}}. (c]]) d]]: e [[; f", ["a, b. (c) d: e ; f"], []),
    ("[[Test|[[File:x.png]]]] a [[B|[[File:y|z [[C]]]]]] [[D|{{e}}]]", ["a D"], [("D", "D")]),
    ("[[Test|[[File:x.png|20px]] a]] [[B|[[File:y]]<ref>c</ref>]]s", ["a Bs"], [("a", "Test"), ("Bs", "B")]),
    ("{{a [[B]]\n\nc }} d", ["d"], []),
    ("{|\n| a\n| [[b]]\n\nc", ["c"], []),
    ("a <ref>b [[C]]", ["a b C"], [("C", "C")]),
    ("", [], []),
    ("\n \n{{x}}\n", [], []),
]


@pytest.mark.parametrize(("source", "lines", "links"), CASES, ids=[case[0][:30] for case in CASES])
def test_text_and_links(source: str, lines: list[str], links: Links) -> None:
    extraction = extract(source, SITE)
    assert (extraction.texts, links_of(extraction)) == (lines, links)


@pytest.mark.parametrize(
    ("language", "source", "lines", "links"),
    [
        ("de", "[[Haus|Häus]]erößä2", ["Häuserößä2"], [("Häuserößä", "Haus")]),
        ("de", "[[Datei:a.jpg|mini|[[B]]]][[Bild:a.jpg]][[File:a.jpg]][[Kategorie:C]]d", ["d"], []),
        ("de", "a [[en:X]] [[:en:X|b]] [[de:Y|c]]", ["a b c"], [("c", "Y")]),
        ("fr", "l'''[[école]]s'' à", ["l'écoles à"], [("écoles", "École")]),
        ("fr", "à l'[[élève]]és", ["à l'élèveés"], [("élèveés", "Élève")]),
        ("fr", "[[Fichier:a.jpg|vignette|b]]c[[Catégorie:D]]", ["c"], []),
        ("ja", "[[港]]町abc\n続き。[[ファイル:a.jpg|thumb|港]]", ["港町abc続き。"], [("港", "港")]),
        ("ja", "'''港'''（[[みなと]]）", ["港（みなと）"], [("みなと", "みなと")]),
        ("ar", "ال[[ميناء]]ات كبير [[ملف:a.jpg|تصغير|ب]]", ["الميناءات كبير"], [("الميناءات", "ميناء")]),
        ("zh", "[[港口]]abc", ["港口abc"], [("港口", "港口")]),
        ("de", "* ''[[Élan|élan]]s'' [[Datei:x.png]]\n; a: b", ["élans", "a", "b"], [("élans", "Élan")]),
        ("de", "__KEIN_INHALTSVERZEICHNIS__a [[Spezial:B|c]]", ["a c"], [("c", "Spezial:B")]),
        ("de", "a [[:Bild:D]]", ["a Bild:D"], []),
        ("ja", "a　b[[en:X]][[:en:X|y]]", ["a by"], []),
        ("tr", "[[istanbul]]da", ["istanbulda"], [("istanbulda", "İstanbul")]),
        ("ka", "[[თბილისი]]ს", ["თბილისის"], [("თბილისის", "თბილისი")]),
        ("zh", "-{zh-hant:軟體; zh-hans:软件;}-和-{A|zh-cn:计算机;zh-tw:電腦}-", ["软件和计算机"], []),
        ("zh", "[[-{zh-tw:甲;zh-cn:乙}-|-{丙}-]]", ["丙"], [("丙", "乙")]),
        ("zh", "-{[[甲|乙]]}-", ["乙"], [("乙", "甲")]),
        ("zh", "-{H|zh-cn:甲;zh-tw:乙}-\n-{T|丁}-丙-{}-丁-{R|zh-cn:戊}-", ["丙丁zh-cn:戊"], []),
        ("zh", "-{甲=>zh-cn:a&nbsp;;zh-tw:c}- -{甲=>zh-cn:a&quot;;乙}-", ['c a";乙'], []),
        ("zh", "-{zh-cn;zh-sg|戊}- -{zh-cn:A&nbsp;;zh-tw:B}-", ["戊 A"], []),
        ("zh", "该-{zh-hans:;zh-hant:條}-文 -{甲;ZH-Hant-TW:乙}-", ["该條文 乙"], []),
        ("zh", "-{a|zh-cn:甲;zh-tw:乙}- -{A;H|zh-cn:甲}-丙", ["甲 丙"], []),
        ("zh", "-{R;H|zh-cn:a}- -{zh-hans:a{b}c;d}-", ["zh-cn:a a{b}c;d"], []),
        ("zh", "甲\n-{H|zh-cn:a}-\n乙 -{H|丁}- -{D|zh-cn:a}--{N|zh-cn}-", ["甲乙 丁"], []),
        ("zh", "-{zh-cn:外-{zh-hans:内;zh-hant:內}-;zh-tw:丁}-", ["外内"], []),
        ("zh", "a-{{{b}}}-c -{ d", ["a--c -{ d"], []),
        ("sr", "-{sr-Latn:a;sr-Cyrl:б}- -{sr-el:a}- -{Windows}-", ["б a Windows"], []),
        ("ja", "-{zh-cn:a}-", ["-{zh-cn:a}-"], []),
    ],
)
def test_languages(language: str, source: str, lines: list[str], links: Links) -> None:
    extraction = extract(source, site(language))
    assert (extraction.texts, links_of(extraction)) == (lines, links)


@pytest.mark.parametrize(
    ("source", "lines", "links"),
    [
        ("[[boat]]s", ["boats"], [("boat", "Boat")]),
        ("[[Bay#North_end|n]]", ["n"], [("n", "Bay#North end")]),
        ("a\nb", ["a", "b"], []),
        ("x [[File:a.jpg|thumb|left|the [[A]]]] y", ["x", "the A", "y"], [("A", "A")]),
        ("x [[File:a.jpg|thumb|200px]] y", ["x", "y"], []),
        ("x [[Category:Y]]", ["x"], []),
    ],
)
def test_paper_profile(source: str, lines: list[str], links: Links) -> None:
    extraction = extract(source, SITE, profile="paper")
    assert (extraction.texts, links_of(extraction)) == (lines, links)


def test_sections() -> None:
    source = "a\n== B [[c]] ==\nd\n=== ''E'' &amp; F ===<!-- x -->\n* g\n=h=\ni\n== not a heading\nj"
    source += "\n=='''''==\nk\n=='''''=="
    sections = [(paragraph.section, paragraph.text) for paragraph in extract(source, SITE).paragraphs]
    assert sections == [("", "a"), ("B c", "d"), ("E & F", "g"), ("h", "i == not a heading j"), ("", "k")]


def test_forms_that_are_not_shown_are_counted() -> None:
    source = "-{zh-cn:[[甲]];zh-tw:[[乙]]和[[丙]]}- -{H|zh-cn:[[丁]]}- -{[[戊]]}- -{zh-cn:-{zh-cn:己;zh-tw:[[庚]]}-}-"
    extraction = extract(source, site("zh"))
    assert links_of(extraction) == [("甲", "甲"), ("戊", "戊")]
    assert extraction.drops == {"links:in_variants": 4, "markup:variants": 4}


def test_every_drop_is_counted() -> None:
    source = """{{a|[[b]]}}<ref>[[c]] [[d]]</ref><!-- e -->[[File:f.jpg|[[g]]]] [[Category:h]] [[i]]
[[A|{{j}}]] [[#k]] [[de:l]] [[wikt:m]] [[User:n]] [[o|p [[q]]]] [[r<s>]] ]]

== [[t]] ==
{|
| [[u]]
|}
| v
<math>w</math><gallery>[[x]]</gallery><score>y</score> {{z"""
    once = """comments:cut extensions:cut galleries:cut math:cut references:cut tables:cut links:around_link
    links:category links:file links:in_files links:in_galleries links:in_heading links:in_tables links:in_templates
    links:interlanguage links:interwiki links:invalid_title links:other_namespace links:same_page
    markup:stray_brackets markup:unclosed_template"""
    twice = {"links:in_references": 2, "templates:cut": 2}
    assert extract(source, SITE).drops == dict.fromkeys(once.split(), 1) | twice


@pytest.mark.parametrize(
    ("profile", "anchor", "drops"), [("fixed", "the bays", {}), ("paper", "the bay", {"parser:paragraph_too_long": 1})]
)
def test_long_lines_with_an_open_bracket_keep_their_links(profile: str, anchor: str, drops: dict[str, int]) -> None:
    """The linear scan reads them; in profile paper, whose parser would have to, they are counted."""
    source = "see [[Gull Bay|the bay]]s and ''[http://x.org more]'' " * 100
    extraction = extract(source + "[[", SITE, profile=profile)
    assert extraction.drops == {"markup:stray_brackets": 1} | drops
    assert extraction.texts == [("see the bays and more " * 100).strip()]
    assert links_of(extraction) == [(anchor, "Gull Bay")] * 100


def test_pages_with_many_open_brackets_are_scanned_and_counted() -> None:
    source = (("[[A|" * 600) + "[[B]]\n\n") * 20
    extraction = extract(source, SITE, profile="paper")
    assert extraction.drops["parser:page_over_budget"] > 0
    assert links_of(extract(source, SITE)) == [("B", "B")] * 20
    assert links_of(extraction) == [("B", "B")] * 20


@pytest.mark.parametrize("opening", ["[[http://a ", "_[[//a=", "[[mailto:a|b ", "[[ftp://a [[b]] "])
@pytest.mark.parametrize(("depth", "dropped"), [(2, 0), (8, 0), (20, 1), (200, 1)])
def test_nested_addresses_are_counted_where_the_parser_would_take_too_long(
    opening: str, depth: int, dropped: int
) -> None:
    source = f"a [[B]] c\n\n{opening * depth}{']]' * depth} d"
    extraction = extract(source, SITE, profile="paper")
    assert extraction.drops.get("parser:page_over_budget", 0) == dropped
    assert links_of(extraction)[0] == ("B", "B")
    assert "parser:page_over_budget" not in extract(source, SITE).drops


# Anything at all

MARKS = """[[ ]] [[[ { } {{ }} {{{ }}} | [ ] [http://x.org '' ''' ' a bc [[A]] [[B|c]] [[File:x|
[[Category:y]] <ref> </ref> <ref/> <!-- --> <nowiki/> <b> </b> <br> <div <table> </table> {| |} |-
== = * # : ; & é 😀 日 _ __ __A__ </ > < ! -{ }- zh-cn: zh-tw: H|"""
FRAGMENTS = st.sampled_from([*MARKS.split(), " ", "\n", "\n\n", "\u00a0", *map(chr, range(32))])


def check(extraction: Extraction) -> None:
    for paragraph in extraction.paragraphs:
        assert paragraph.text == " ".join(paragraph.text.split()) != ""
        edges = [edge for link in paragraph.links for edge in (link.start, link.end)]
        assert edges == sorted(edges)
        for link in paragraph.links:
            assert 0 <= link.start < link.end <= len(paragraph.text)
            assert paragraph.text[link.start : link.end].strip() == paragraph.text[link.start : link.end]
            assert link.target


@settings(max_examples=400)
@given(
    st.lists(FRAGMENTS, max_size=40).map("".join),
    st.sampled_from(["fixed", "paper"]),
    st.sampled_from(["en", "ja", "zh"]),
)
def test_any_mix_of_markup_leaves_clean_paragraphs(source: str, profile: str, language: str) -> None:
    extraction = extract(source, site(language), profile=profile)
    check(extraction)
    for line in extraction.texts:
        assert not any(mark in line for mark in ("[[", "]]", "{{", "}}", *map(chr, range(32))))


@given(st.text(max_size=200))
def test_any_text_gives_valid_paragraphs(source: str) -> None:
    check(extract(source, SITE))


POISON = {
    "open variants": "-{" * 200_000,
    "nested variants": "-{" * 100_000 + "}-" * 100_000,
    "variants of much": "-{zh-cn:a" + ";b" * 500_000 + "}-",
    "open tags": '<div a="' * 50_000,
    "open templates": "{{a|b=&c" * 50_000,
    "open links": "[[a|" * 50_000,
    "bold tags": "<b>" * 50_000,
    "nested links": "[[" * 20_000,
    "nested closed links": "[[" * 20_000 + "a" + "]]" * 20_000,
    "references": "<ref>" * 100_000,
    "open parameters": "{{{" * 100_000,
    "closed parameters": "{{{" * 50_000 + "}}}" * 50_000,
    "a line of 5 MB": "word [[a|b]] '''c''' [http://x.org d] &amp; " * 120_000,
    "lines with open brackets": ("[[a [[b]] " * 20 + "\n") * 22_500,
    "brackets that close far away": "[[a|b\n" * 200_000 + "]]" * 10,
    "ampersands in templates": "{{a|b=&}}" * 100_000 + "{{a|&" * 100_000 + "}}" * 100_000,
    "templates in templates": ("{{nowrap|" * 40 + "a" * 1000 + "}}" * 40) * 500,
    "open templates that show text": "{{nowrap|a [[b]] " * 60_000,
    "characters": "{{nbsp}}" * 100_000,
    "a template in itself": "{{ill|" * 60_000 + "}}" * 60_000,
    "spoken templates": "{{IPA|x}} " * 60_000,
    "measures": "{{convert|10|to|20|km|mi}} " * 30_000,
    "holes": "a {{x}}, " * 100_000,
    "a line of holes": "{{x}}" * 100_000 + " {{x}}" * 100_000 + "a",
    "brackets with holes": "({{x}}," * 60_000 + "(a{{x}}" * 60_000 + ")" * 60_000,
    "references in a bracket": "(" + "<ref>a</ref> " * 60_000,
    "comments before a table": "<!---->" * 300_000 + "{|",
    "tables behind comments": "<!---->{|" * 200_000,
    "open poems": "<poem>\n" * 200_000,
    "heading tags": ("<h2>" + "a" * 499) * 10_000,
    "files around files": "[[File:a|" * 20_000 + "]]" * 20_000,
    "terms": ";" + "[[a|:]]" * 200_000,
    "titles to decode": "".join(f"[[{number}_%20]] " for number in range(200_000)),
    "character references": "&nbsp;" * 500_000,
    "open files": "[[File:x|" * 50_000,
    "lines of open links": ("[[a|" * 990 + "\n\n") * 200,
    "external links": "[http://a " * 50_000,
    "quotes": "'''a ''b " * 50_000,
    "open comments": "<!--" * 50_000,
    "nested tables": "{|\n" * 50_000 + "|}\n" * 50_000,
    "magic words": "__A_" * 100_000,
    "ampersands": "&" * 500_000,
    "own prefixes": "[[" + "en:" * 300_000 + "a]]" + "[[" + "en:" * 160 + "b]]",
    "open links with brackets": "[[a|[" * 100_000,
    "links with brackets": "[[a|[b]]]" * 100_000,
    "links around links": "[[a|" * 50_000 + "b" + "]]" * 50_000,
    "categories around links": "[[Category:a|[[b]] " * 50_000 + "]]" * 50_000,
    "external links with brackets": "[http://a [" * 100_000,
    "bars": "|\n" * 300_000,
    "bars behind a template": "{{a}}\n" + "|\n" * 300_000,
    "quoted terms": ";'''" * 100_000,
    "lines of quoted terms": ";''':\n" * 100_000,
    "terms with brackets": ";" + "[[a{{-{" * 100_000 + ":",
    "list marks": ("*" * 500 + ":\n") * 1_000,
    "comments in open tags": '<div class="<!--' * 100_000,
    "comments in tags": '<div class="<!---->' * 100_000,
    "tags of comments": "<div " + "<!---->" * 200_000,
    "templates in open tags": "<div {{" * 100_000,
    "templates in tags": '<div class="{{a|<b>}}' * 100_000,
    "headings": "=" * 500_000,
    "hidden elements": "<i hidden>" * 50_000 + "<b hidden>a</b>" * 50_000,
    "hidden elements around an open link": "<i hidden>" * 50_000 + "[[" + "</i>" * 50_000,
    "hidden elements around comments": "<i hidden><!--" * 50_000,
    "styles": "<i " + "style display:none = " * 30_000 + ">" + "<i style='" + "display:" * 50_000 + "'>",
    "open tabs": "<tabber>" * 100_000 + "|-|" * 100_000,
    "tabs": ("<tabber>" + "a" * 199 + "|-|" * 500 + "</tabber>") * 200,
    "unknown tags": "<aside>" * 100_000,
    "properties": "[[" + "a::" * 200_000 + "b]]",
    "long references": "&#" + "0" * 500_000 + "&#000" * 100_000,
    "hosts in brackets": "[http://[" * 50_000 + "[http://[::1]" * 50_000,
    "marks of tables": "{{(!}}\n" * 50_000 + "{{!)}}" * 50_000,
    "tags of other pages": "<noinclude>" * 100_000 + "<includeonly>",
    "literal tags before others": "<nowiki>" * 100_000 + "<pre><math>" * 50_000 + "<noinclude/>",
    "open tags of other pages": "<noinclude " * 100_000 + "<noinclude/>",
    "blanks": " " * 500_000 + "\n" * 500_000,
    "an address": "[http://" + "a" * 100_000,
    "an address and blanks": "[http://a" + " " * 100_000,
    "an address of apostrophes": "[http://" + "a'" * 50_000,
    "an address in a term": ";[http://" + "a" * 100_000 + ":",
    "addresses around addresses": ("[[http://a " * 30 + "]]" * 30 + "\n\n") * 500,
    "addresses around addresses with one bracket": ("[[ftp://a|" * 30 + "]" * 60 + "\n\n") * 500,
    "words before addresses around addresses": ("_[[//a=" * 30 + "]]" * 30 + "\n\n") * 500,
    "links around addresses": ("[[news:a [[b]] " * 30 + "]]" * 30 + "\n\n") * 500,
    "bars behind addresses": ("http://a[[" * 30 + "]]|" * 30 + "\n\n") * 500,
    "a number": "{{formatnum:" + "1" * 500_000 + "x}}" + "{{formatnum:" + "1," * 100_000 + "x}}",
    "marks in a title": "[[a" + "\u0315\u0316" * 50_000 + "]]",
    "marks in a section": "[[a#" + "\u0315\u0316" * 50_000 + "|b]]",
    "marks in titles": ("[[a" + "\u0315\u0316" * 250 + "]]") * 500,
    "tags in templates": "{{<b }}" * 100_000,
}
# Found by a fuzzer over the tokens of wikitext: what stands once, many times, many times behind that, and once.
FUZZED = [
    ("", "[//", "</includeonly>", ""),
    ("", "\u0316<poem></p>\u0315}}}<ol><small>[[http://a", "e9acre;a", ""),
    ("[[Category:y]]", "[http://", "<translate>1", ""),
    ("[http://a", "<onlyinclude>{）", "", ""),
    ("", "\u0301!'''''[[Category:y|½ [[http://a=", "{{sp|XI\u0301[http://[::1]a", ""),
    ("²[http://a", "=</table>", "a", "<!---->>"),
    ("[mailto:a</includeonly>", "}<blockquote>", "", ""),
    ("|-|[http://a", "؛<center>", "", ""),
    ("", "×{{[http://", "<ref/>", ""),
    ("==", "[//(&#0", "----", "{{chinese|t="),
    ("{{chinese|t=", "<s>|| [[http://a=}<h2>", "{{IPA|x}}>{{PAGENAME}}", ""),
    ("[[a::", "<ref/>[mailto:a!", "/1.5", ""),
    ("[mailto:a%5B", "0%5B", "", "<ref"),
    ("<ref", "[[mailto:a", "}-", ""),
    (";[[//a%20", "{{#tag:ref|{{quote|", "", ""),
]
for number, (before, unit, other, behind) in enumerate(FUZZED):
    times = 100_000 // len(unit + other)
    POISON[f"fuzzed {number}"] = before + unit * times + other * times + behind


@pytest.fixture(scope="module")
def ordinary_seconds() -> float:
    """CPU seconds of this machine for a page as long as the poison that is nothing but plain links."""
    page = "".join(f"[[{number} a]] " for number in range(200_000))

    def seconds() -> float:
        start = time.process_time()
        extract(page, SITE)
        return time.process_time() - start

    return statistics.median(seconds() for _ in range(3))


@pytest.mark.parametrize("profile", ["fixed", pytest.param("paper", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", POISON)
def test_poison_ends_in_time_and_memory(name: str, profile: str, ordinary_seconds: float) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    extraction = extract(POISON[name], site("zh") if "variants" in name else SITE, profile=profile)
    redirect_target(POISON[name], SITE)
    is_disambiguation(POISON[name], SITE)
    # The slowest takes about ten times an ordinary page's time; a pass that is not linear takes hundreds.
    assert time.process_time() - start < 20 * ordinary_seconds
    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 500e6
    check(extraction)


# Real pages


@pytest.mark.parametrize(
    ("dump", "language"), [("enwiki-2016-206", "en"), ("dewiki-mini", "de"), ("arwiki-mini", "ar")]
)
def test_the_regular_expression_and_the_parser_agree_on_real_lines(shared: Path, dump: str, language: str) -> None:
    compared = 0
    for page_site, text in real_pages(shared / "data" / "wikipedia" / f"{dump}.xml.bz2", language):
        rules = LinkRules(page_site, "fixed")
        rules.prefix = None  # the letters before a link join it in a later pass
        plain, _, _ = cut(text, rules.tokens, rules.templates)
        for line in plain.split("\n"):
            if "[" not in line or len(line) > PARSER_LIMIT:
                continue
            fast: Counter[str] = Counter()
            slow: Counter[str] = Counter()
            read = [mark_links(line, rules, fast), TreeReader(rules, slow).read(line)]
            # MediaWiki takes the blanks behind an address for no part of its label.
            marked = [re.sub(f"{CUT} +", CUT, text) for text, _ in read]
            assert (marked[0], read[0][1]) == (marked[1], read[1][1])
            assert +fast == +slow
            compared += 1
    assert compared > 40


def test_real_pages_leave_no_markup(shared: Path) -> None:
    marks = ("[[", "]]", "{{", "}}", "''", "<ref", "&nbsp;", "<br", "{|")
    links = left = 0
    for page_site, text in real_pages(shared / "data" / "wikipedia" / "enwiki-2016-206.xml.bz2", "en"):
        extraction = extract(text, page_site)
        check(extraction)
        links += len(links_of(extraction))
        left += sum(line.count(mark) for line in extraction.texts for mark in marks)
    assert links > 20_000
    assert left == 0
