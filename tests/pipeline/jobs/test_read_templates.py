"""The dump's template pages, from XML to what articles show of them."""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from pipeline import storage
from pipeline.dump.pages import Rejected, read_pages, read_site_info
from pipeline.jobs import read_templates
from pipeline.jobs.read_templates import TemplatePages, TemplateReader, template_row
from pipeline.storage.blocks import Block, PageMarker
from pipeline.wikitext.extract import extract
from tests.support.stages import changed, run_in_process, run_of
from workflows import ExtractPages, ReadTemplates

HEAD = """<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="{language}">
<siteinfo><dbname>{language}wiki</dbname><case>first-letter</case><namespaces><namespace key="0" />
<namespace key="10">{template}</namespace><namespace key="828">Module</namespace></namespaces></siteinfo>
"""
LANGUAGES = {"en": "Template", "de": "Vorlage"}
# Pages of templates, and the row or the reason that each gives.
TEMPLATES = {
    "Motto": ("''[[{{{1}}}]]''<noinclude>{{documentation}}</noinclude>", ("motto", "''[[{{{1}}}]]''", "")),
    "Short_motto": ("#REDIRECT [[{template}:Motto]]", ("short motto", "", "motto")),
    "Round": ("#REDIRECT [[Template:Round]]", ("round", "", "round")),
    "Elsewhere": ("#REDIRECT [[Ape]]", "redirect_elsewhere"),
    "Itself": ("a {{itself}}", "not_simple"),
    "Infobox": ("{{#if:{{{1|}}}|b}}", "not_simple"),
    "Module call": ("{{#invoke:X|y}}", "not_simple"),
    "Long": ("a" * 2001, "too_long"),
    "Just short": ("a<!-- " + "b" * 3000 + " -->", ("just short", "a", "")),
}
ARTICLE = "Its {{motto|Ape}}, {{short motto|Bee}}{{round}} and {{itself}}, {{just short}}."
SHOWN = "Its Ape, Bee and, a."


def page(title: str, namespace: int, number: int, text: str) -> str:
    return (
        f"<page><title>{escape(title)}</title><ns>{namespace}</ns><id>{number}</id><revision><id>{number}</id>"
        f"<model>wikitext</model><text>{escape(text)}</text></revision></page>\n"
    )


def write_dump(path: Path, language: str, articles: int = 1) -> str:
    template = LANGUAGES[language]
    pages = [
        page(f"{template}:{name.replace('_', ' ')}", 10, number, text.replace("{template}", template))
        for number, (name, (text, _)) in enumerate(TEMPLATES.items(), start=100)
    ]
    pages += [page(f"Article {number}", 0, 1000 + number, ARTICLE) for number in range(articles)]
    pages += [page("Module:X", 828, 99, "return 1"), page("Module:<ns>10</ns>", 828, 98, "<ns>10</ns>")]
    random.Random(1).shuffle(pages)
    path.write_text(
        HEAD.format(language=language, template=template) + "".join(pages) + "</mediawiki>", encoding="utf-8"
    )
    return str(path)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_page_gives_its_row_or_its_reason(language: str, tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump.xml", language)
    site, counts = read_site_info(dump), Counter[str]()
    found = {
        found.title.partition(":")[2].replace(" ", "_"): template_row(found, site)
        for found in read_pages(Block(0, dump, 0, 1 << 30), site, counts, wanted=10)
    }
    assert found == {name.replace(" ", "_"): row for name, (_, row) in TEMPLATES.items()}
    assert counts["pages:other_namespace"] == 3
    assert template_row(Rejected(1, "", "broken_xml"), site) == "broken_xml"


def test_pages_of_other_namespaces_are_not_parsed(tmp_path: Path) -> None:
    broken = "<page><title>A</title><ns>0</ns><id>1</id><revision><text>&broken;</text></revision></page>"
    dump = tmp_path / "dump.xml"
    for text, rejected in ((broken, 0), (broken.replace("<ns>0", "<ns>10"), 1)):
        dump.write_text(HEAD.format(language="en", template="Template") + text + "</mediawiki>")
        site = read_site_info(str(dump))
        found = list(read_pages(Block(0, str(dump), 0, 1 << 30), site, Counter(), wanted=10))
        assert len(found) == rejected


def test_a_dump_that_says_no_namespaces_is_read_by_titles(tmp_path: Path) -> None:
    dump = Path(write_dump(tmp_path / "dump.xml", "de"))
    dump.write_text(dump.read_text().replace("<ns>10</ns>", "").replace("<ns>0</ns>", ""))
    site = read_site_info(str(dump))
    titles = {page.title for page in read_pages(Block(0, str(dump), 0, 1 << 30), site, Counter(), wanted=10)}
    assert titles == {f"Vorlage:{name.replace('_', ' ')}" for name in TEMPLATES}


def test_a_template_that_killed_its_reader_is_left_out(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump.xml", "en")
    work = TemplateReader({"site": read_site_info(dump).to_dict(), "allow_truncated": False})
    record = work(
        Block(0, dump, 0, 1 << 30), str(tmp_path), PageMarker(str(tmp_path / "page.txt"), {100: "worker_died"})
    )
    assert record.rows == {"templates": 1, "redirects": 2}
    reasons = {"not_simple": 3, "too_long": 1, "redirect_elsewhere": 1, "worker_died": 1}
    assert record.drops == {f"templates:{reason}": count for reason, count in reasons.items()} | {
        "pages:other_namespace": 3
    }


@pytest.mark.parametrize("case", ["first-letter", "case-sensitive"])
@pytest.mark.parametrize(
    ("prefix", "one", "other"), [("Template", "Zq", "zq"), ("Vorlage", "Ähn", "ähn"), ("Шаблон", "Ж а", "ж а")]
)
def test_names_differ_by_case_where_the_wiki_says_so(
    tmp_path: Path, case: str, prefix: str, one: str, other: str
) -> None:
    head = HEAD.format(language="en", template=prefix).replace("first-letter", case)
    pages = [
        page(f"{prefix}:{one}", 10, 1, "large"), page(f"{prefix}:{other}", 10, 2, "small"),
        page(f"{prefix}:To {one}", 10, 3, f"#REDIRECT [[{prefix}:{one}]]"),
        page(f"{prefix}:To nbsp", 10, 4, f"#REDIRECT [[{prefix}:Nbsp]]"),
    ]  # fmt: skip
    path, folder = tmp_path / "dump.xml", str(tmp_path / "work")
    path.write_text(f"{head}{''.join(pages)}</mediawiki>")
    site = read_site_info(str(path))

    def run(job: Any, blocks: Any, arguments: Any) -> dict[int, storage.Result]:
        marker = PageMarker(str(tmp_path / "page"))
        return {block.number: job(arguments)(block, folder, marker) for block in blocks}

    options: Any = {"site": site.to_dict(), "allow_truncated": False}
    result = read_templates.build(run, [str(path)], 1 << 30, folder, **options)
    assert result.rows == {"templates": 2, "redirects": 2}
    text = f"a {{{{{one}}}}} b {{{{{other}}}}} c {{{{{prefix}:{other}}}}} d {{{{To {one}}}}} e{{{{To nbsp}}}}f"
    [shown] = extract(text, site, dumped=TemplatePages(folder)).texts
    # A wiki of the other kind has no two such pages: the last counts.
    large, drops = ("large", {}) if case == "case-sensitive" else ("small", {"templates:same_name": 1})
    assert (shown, result.drops) == (f"a {large} b small c small d {large} e f", drops)


# As stages


def files_of(folder: str) -> dict[str, bytes]:
    root = Path(folder)
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != "run.json"
    }


def texts(stage: ExtractPages) -> set[str]:
    paths = stage.manifest().paths(stage.folder, "paragraphs/")
    return {row["text"] for path in paths for row in storage.read_rows(path)}


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_articles_show_the_dumps_templates(language: str, tmp_path: Path) -> None:
    """From the dump to paragraphs, with the same bytes from one process and from two."""
    dump = write_dump(tmp_path / "dump.xml", language, articles=200)
    made = []
    for processes in (1, 2) if language == "en" else (1,):
        corpus = {"dump": dump, "block_size": 4096, "dump_templates": True}
        run = run_of(tmp_path / f"work {processes}", corpus=corpus, machine={"processes": processes})
        stage = ExtractPages(settings=run)
        run_in_process(stage)
        templates = stage.clone(ReadTemplates)
        assert texts(stage) == {SHOWN}
        assert templates.manifest().rows == {"templates": 2, "redirects": 2}
        assert stage.manifest().rows["links"] == 400
        made.append((files_of(templates.folder), files_of(stage.folder)))
    assert made[0] == made[-1]
    pages = TemplatePages(templates.folder)
    assert pages("short motto") == ("", "motto")
    assert pages("just short") == ("a", "")
    assert pages("Motto") is None


@pytest.mark.slow
def test_a_dump_without_templates(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = HEAD.format(language="en", template="Template") + page("A", 0, 1, "a {{b}}, c") + "</mediawiki>"
    (tmp_path / "dump.xml").write_text(text)
    corpus, machine = {"dump": str(tmp_path / "dump.xml"), "dump_templates": True}, {"processes": 1}
    run = run_of(tmp_path / "work", corpus=corpus, machine=machine)
    others = ({}, {"dump_templates": False}, {"profile": "paper"})
    stage, plain, papers = (ExtractPages(settings=changed(run, corpus=values)) for values in others)
    run_in_process(stage)
    run_in_process(plain)
    assert "no template that can be used" in caplog.text
    assert texts(stage) == texts(plain) == {"a, c"}
    assert "dump_templates" not in json.dumps(plain.identity())
    assert stage.folder != plain.folder
    with pytest.raises(ValueError, match="profile paper shows no template"):
        papers.check_machine()
