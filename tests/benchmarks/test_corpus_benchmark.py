"""The parts of the corpus benchmark that decide what its figures mean; nothing is measured here."""

import bz2
from pathlib import Path
from typing import Any

import pytest

from benchmarks.corpus import corpus, dumps, extract, stages
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
    text = (
        "[[beta]] [[Beta#Part|b]] [[gone_page]]s [[File:X.png|thumb|of [[Alpha]]]] [[de:Beta]] [[Foo: Bar]]"
    )
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


def stage_record(scale: float) -> dict[str, Any]:
    sizes = {"tree_pss_mb": 500.0, "rss_mb": {"main": 100.0, "jvm": 400.0}, "scratch_mb": 20.0, "bytes": 9}
    rows = {"rows_read": 10 * scale, "rows_written": 10 * scale, "manifest_sha256": f"{scale}"}
    return sizes | rows | {"seconds": 1 + scale, "share": 0.1, "cpu_seconds": 2 + 3 * scale}


def run_record(name: str, scale: float, failure: str = "") -> dict[str, Any]:
    whole = {"seconds": len(stages.STAGES) * (1 + scale), "share": 1.0, "cpu_seconds": 1.0, "bytes": 9}
    whole |= {"tree_pss_mb": 500.0, "scratch_mb": 20.0, "rss_mb": {"main": 100.0, "jvm": 300 + 50 * scale}}
    found = {} if failure else {stage: stage_record(scale) for stage in stages.STAGES}
    facts = {"dump": name, "failure": failure, "other_cores": 0.0}
    return {**facts, "stages": {**found, stages.ALL: whole}}


SCALES = {"real": 1, "real-linked-1x": 1, "real-linked-4x": 4, "real-linked-8x": 8}
DUMPS = [{"name": name, "xml_bytes": 10**8 * scale, "copies": scale} for name, scale in SCALES.items()]


@pytest.fixture
def runs() -> corpus.Runs:
    return corpus.Runs(run_record(name, scale) for name, scale in SCALES.items())


def test_growth_is_set_against_the_growth_of_the_dump(runs: corpus.Runs) -> None:
    growth, memory = corpus.growth_rows(runs, DUMPS[1:]), corpus.memory_rows(runs, DUMPS[1:])
    first, whole = growth[0], growth[-1]
    assert (first["1x, s"], first["8x, s"], first["8x over 1x"]) == (2, 9, 4.5)
    assert first["over the dump's growth"] == 4.5 / 8
    assert first["s more a 100 MB of XML"] == pytest.approx(1)
    assert (whole["stage"], whole["8x, s"]) == ("all", 9 * len(stages.STAGES))
    assert memory[1]["last over first"] == pytest.approx(700 / 350)
    assert all(row["passed"] for row in corpus.checks(runs.runs, DUMPS))


def test_runs_that_differ_or_fail_fail_a_check(runs: corpus.Runs) -> None:
    runs.runs += [run_record("real", 3), run_record("real-linked-4x", 4, failure="exit status 30")]
    passed = {(row["dump"], row["check"]): row["passed"] for row in corpus.checks(runs.runs, DUMPS)}
    assert passed["real", "2 runs: the same bytes"] is False
    assert passed["real-linked-4x", "2 runs: the same bytes"] is False
    assert passed["real-linked-8x", "1 runs: the same bytes"] is True


def test_extraction_is_compared_with_and_without_start_up() -> None:
    """The start-up is that of the almost empty dump; where little is left without it, there is no figure."""
    sizes = {extract.EMPTY: 0, extract.SMALL: 6_000_000}
    measured = [dumps.Dump(name, Path(name), size, 2) for name, size in sizes.items()]
    (theirs, ours), (_, two) = extract.PAIRS
    seconds = {theirs: (1.0, 7.0), ours: (1.0, 3.0), two: (2.0, 2.1)}
    output = {"sha256": "a", "rows": {"pages": 2}}
    records = [
        {"dump": dump, "program": name, "failure": "", "cpu_seconds": spent, "wall_seconds": spent,
         "worker_rss_mb": 1.0, "tree_pss_mb": 1.0, "other_cores": 0.0, "output": output}
        for name, both in seconds.items()
        for dump, spent in zip(sizes, both, strict=True)
    ]  # fmt: skip
    results = extract.Results(measured, records)
    speed, walls = extract.ratios(results)
    assert (speed["with start-up"], speed["less start-up"]) == (pytest.approx(7 / 3), 3.0)
    assert (walls["with start-up"], walls["less start-up"]) == (pytest.approx(3 / 2.1), None)
    assert [row["MB/s less start-up"] for row in extract.medians(results)] == [None] * 3 + [1.0, 3.0, None]
    assert all(row["passed"] for row in extract.checks(results))
    records[-1]["output"] = {"sha256": "b", "rows": {"pages": 2}}
    assert [row["passed"] for row in extract.checks(results)] == [True, False]
