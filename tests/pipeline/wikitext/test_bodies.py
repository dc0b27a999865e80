"""The dump's own templates: what is transcluded, which bodies are simple, what they show, and in which time."""

import time

import pytest

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract
from pipeline.wikitext.templates.bodies import compile_body, transcluded
from pipeline.wikitext.templates.rules import Arguments
from pipeline.wikitext.templates.table import DumpTemplates

SITE = SiteInfo("en", "enwiki", "first-letter", ((0, ""), (6, "File"), (10, "Template"), (14, "Category")))
PAGES = {
    # name: (body, redirect)
    "motto": ("''[[{{{1}}}|{{{2|{{{1}}}}}}]]''", ""),
    "unit": ("{{{1}}}&nbsp;{{{name|m}}}", ""),
    "maybe": ("{{{1|}}}", ""),
    "note": ("", ""),
    "moto": ("", "motto"),
    "mto": ("", "moto"),
    "nb": ("", "nbsp"),
    "dead": ("", "nowhere"),
    "round": ("", "about"),
    "about": ("", "round"),
    "own": ("", "own"),
    "far 0": ("", "far 1"),
    **{f"far {number}": ("", f"far {number + 1}") for number in range(1, 9)},
    "far 9": ("far", ""),
    "frankish": ("", "lang-de"),
    "mumble": ("", "citation needed"),
    "said": ("", "iPA"),
    "steps": ("* a\n* [[b]]", ""),
    "often": ("{{{1}}}" * 200, ""),
    "endash": ("wrong", ""),
}


def shown(source: str, pages: DumpTemplates = PAGES.get) -> str:
    return "\n".join(extract(source, SITE, dumped=pages).texts)


@pytest.mark.parametrize(
    ("page", "body"),
    [
        ("a", "a"),
        ("a<noinclude>\n{{documentation}}\n</noinclude>", "a"),
        ("<NOINCLUDE >b</noinclude >a<noinclude/>", "a"),
        ("<includeonly>a</includeonly><noinclude>b</noinclude>", "a"),
        ("b <onlyinclude>a</onlyinclude> b <onlyinclude>c<noinclude>d</noinclude></onlyinclude>", "ac"),
        ("b <onlyinclude>a</onlyinclude> b <onlyinclude>c", "ac"),
        ("a<!-- b -->c<!-- never ends", "ac"),
        ("a\n <!-- b --> \nc", "a\nc"),
        ("a <!-- <noinclude> --> c", "a  c"),
        ("<noinclude><!-- </noinclude> -->a", " -->a"),
    ],
)
def test_what_is_transcluded(page: str, body: str) -> None:
    assert transcluded(page) == body


@pytest.mark.parametrize(
    "body",
    [
        "{{#if:{{{1|}}}|a}}",
        "{{#invoke:Lang|main}}",
        "{{nowrap|a}}",
        "{{{{{1}}}}}",
        "{{{a{{{b}}}}}}",
        "{{{1|{{PAGENAME}}}}}",
        "{{{1",
        "1}}}",
        "{|\n| a\n|}",
        "a<ref>b</ref>",
        "<div>a</div>",
        '<span style="display:none">a</span>b',
        "a < b",
        "<{{{1}}}>",
        "{{{1|" * 50 + "}}}" * 50,
    ],
)
def test_what_is_not_simple(body: str) -> None:
    with pytest.raises(ValueError, match=r"^a"):
        compile_body(body)


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("a", "", "a"),
        ("a {{{1}}}", "|b", "a b"),
        ("a {{{1}}}", "", None),
        ("a{{{1|}}}", "", "a"),
        ("{{{1|b}}}", "|1=", "\x03"),
        ("{{{ name |b}}}", "|name= c ", "c"),
        ("{{{a|{{{b|{{{c|d}}}}}}}}}", "", "d"),
        ("{{{a|{{{b}}}}}}", "|a=c", "c"),
        ("{{{1|b|c}}}", "", "b"),
        ("{{{1|[[b|c]]}}}", "", "[[b|c]]"),
        ("{{{1\n|b}}}", "", "b"),
        ('<span style="{{{style}}}">a</span><br/>b', "", "\x04a\x04\x05b"),
        ("# a", "", "\n# a"),
    ],
)
def test_what_a_body_shows(body: str, arguments: str, text: str | None) -> None:
    assert compile_body(body)(Arguments(f"name{arguments}")) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("The {{motto|Ape|apes}}, {{Moto|Ape}} and {{mto|Ape}}.", "The apes, Ape and Ape."),
        ("It is {{unit|5}} or {{unit|6|name=ft}} long.", "It is 5 m or 6 ft long."),
        ("5{{nb}}m {{endash}} 1", "5 m – 1"),
        ("a ({{maybe}}), b", "a, b"),
        ("a {{dead}}, {{round}}, {{own}}, {{far 0}}.", "a."),
        ("a {{far 5}}", "a far"),
        ("so ({{frankish|Land}})", "so (German: Land)"),
        ("Bonn ({{said|b}}) and {{said|b}}", "Bonn and b"),
        ("so:{{steps}}", "so:\na\nb"),
        ("{{nowrap|{{unit|{{unit|1}}}}}}", "1 m m"),
        ("{{motto|{{note}}}} a", "a"),
    ],
)
def test_what_pages_show(source: str, text: str) -> None:
    assert shown(source) == text


def test_links_of_bodies_are_annotations_and_losses_are_those_without_a_text() -> None:
    found = extract("a {{moto|Ape|apes}} b {{motto}} c {{dead}} d {{note}} e {{maybe}} f", SITE, dumped=PAGES.get)
    assert [(link.target, link.start) for link in found.paragraphs[0].links] == [("Ape", 2)]
    assert {name: loss.uses for name, loss in found.losses.items()} == {"Motto": 1, "Nowhere": 1}


def test_without_the_dump_nothing_changes() -> None:
    source = "The {{motto|Ape|apes}}, {{nb}} and {{endash}}."
    assert shown(source, lambda name: None) == "\n".join(extract(source, SITE).texts)


# Bounds


@pytest.mark.parametrize(
    "poison",
    ["<noinclude", "</noinclude   ", "<!--", "<!-- -->", "\n   <!-- --> x", "<onlyinclude>", "\n" + " " * 50, "{{{"],
)
def test_pages_are_read_in_linear_time(poison: str) -> None:
    started = time.monotonic()
    transcluded(poison * (2_000_000 // len(poison)))
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "source",
    [
        "{{motto|a}} " * 100_000,
        "{{round}} " * 100_000,
        "{{often|" + "a" * 1_000_000 + "}}",
        "{{often|" * 60 + "a" * 100 + "}}" * 60,
        "{{often|" * 50_000,
        "".join(f"{{{{own {number}}}}} " for number in range(100_000)),
    ],
    ids=lambda source: source[:12],
)
def test_pages_that_call_them_are_read_in_bounded_time(source: str) -> None:
    started = time.monotonic()
    found = extract(source, SITE, dumped=PAGES.get)
    assert time.monotonic() - started < 20
    assert sum(map(len, found.texts)) < 3 * len(source)
