"""A copy of a dump for the corpus benchmark, and the CPU time between two looks; nothing is measured here."""

import bz2
from pathlib import Path

from benchmarks.corpus import dumps, stages
from benchmarks.harness.measure import Moment
from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.extract import extract as extract_text

SITE = SiteInfo("en", "enwiki", "first-letter", ((0, ""), (6, "File"), (14, "Category")))
HEAD = (
    '<mediawiki xml:lang="en"><siteinfo><dbname>enwiki</dbname><case>first-letter</case><namespaces>'
    '<namespace key="0" case="first-letter" /><namespace key="6">File</namespace></namespaces></siteinfo>\n'
)


def page_xml(title: str, number: int, text: str, mark: str = "") -> str:
    head = f"  <page><title>{title}</title><ns>0</ns><id>{number}</id>{mark}<revision><id>1</id>"
    return f"{head}<model>wikitext</model><text>{text}</text></revision></page>\n"


def test_links_and_redirects_of_a_copy_stay_in_the_copy(tmp_path: Path) -> None:
    text = "[[beta]] [[Beta#Part|b]] [[gone_page]]s [[File:X.png|thumb|of [[Alpha]]]] [[de:Beta]] [[Foo: Bar]]"
    pages = [page_xml("Alpha", 7, f"{text} [[AT&amp;T]] [[#Part]] [[Beta ]]"), page_xml("Beta", 12, "none")]
    redirect = page_xml("Old", 14, "#REDIRECT [[Beta]]", '<redirect title="Beta" />')
    pages += [page_xml("Foo: Bar", 13, "none"), redirect]
    source = tmp_path / "small.xml.bz2"
    source.write_bytes(bz2.compress((HEAD + "".join(pages) + "</mediawiki>\n").encode()))
    made = dumps.repeated(source, tmp_path, 2, linked=True)
    xml = bz2.decompress(made.path.read_bytes()).decode()
    assert (made.pages, made.xml_bytes) == (8, len(xml.encode()))
    assert xml.count('<redirect title="Beta (copy 2)" />') == xml.count("#REDIRECT [[Beta (copy 2)]]") == 1
    copied = xml[xml.index("<title>Alpha (copy 2)") :].split("<text>")[1].split("</text>")[0]
    found = extract_text(copied.replace("&amp;", "&"), SITE).paragraphs[0]
    targets = ["Beta", "Beta", "Gone page", "Foo: Bar", "AT&T", "Beta"]
    assert [link.target for link in found.links] == [f"{target} (copy 2)" for target in targets]
    kept = ("[[de:Beta]]", "[[File:X.png|thumb|of [[Alpha (copy 2)]]]]", "[[#Part]]")
    assert all(part in copied for part in kept)


def test_cpu_seconds_between_two_looks_are_in_proportion() -> None:
    later = Moment(12.0, 8.0, 300.0, {"main": 60.0, "jvm": 70.0}, 5.0)
    moments = [Moment(10.0, 4.0, 100.0, {"main": 50.0}, 9.0), later]
    assert [stages.cpu_at(moments, when) for when in (9.0, 10.0, 11.0, 12.0, 20.0)] == [0, 4, 6, 8, 8]
    sizes = {"tree_pss_mb": 300.0, "rss_mb": {"main": 60.0, "jvm": 70.0}, "scratch_mb": 5.0}
    assert stages.within([moments], 10.5, 12.0) == {"cpu_seconds": 3.0, **sizes}
    nothing = {"cpu_seconds": None, "tree_pss_mb": None, "rss_mb": {}, "scratch_mb": None}
    assert stages.within([moments], 10.5, 11.0) == nothing
