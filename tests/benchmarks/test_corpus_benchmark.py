"""The parts of the benchmarks that decide what their figures mean; nothing is measured here."""

import bz2
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.corpus import corpus, dumps, lukes_method, stages
from benchmarks.corpus.corpus_workloads import PlainTokenizer, as_text, sentences
from benchmarks.harness.measure import Moment, folder_mb
from pipeline.mediawiki.site import SiteInfo
from pipeline.sequences.packing import Limits, build_page
from pipeline.sequences.tokenizer import WordTokenizer
from pipeline.sequences.tokenizer_training import train_tokenizer
from pipeline.wikitext.extract import extract
from pipeline.wikitext.paragraphs import Link, Paragraph

SITE = SiteInfo("en", "enwiki", "first-letter", ((0, ""), (6, "File"), (14, "Category")))
HEAD = (
    '<mediawiki xml:lang="en"><siteinfo><dbname>enwiki</dbname><case>first-letter</case><namespaces>'
    '<namespace key="0" case="first-letter" /><namespace key="6">File</namespace></namespaces></siteinfo>\n'
)


def page_xml(title: str, number: int, text: str, redirect: str = "") -> str:
    mark = f'<redirect title="{redirect}" />' if redirect else ""
    return (
        f"  <page><title>{title}</title><ns>0</ns><id>{number}</id>{mark}<revision><id>1</id>"
        f"<model>wikitext</model><format>text/x-wiki</format><text>{text}</text></revision></page>\n"
    )


def write_dump(path: Path, pages: list[str]) -> Path:
    path.write_bytes(bz2.compress((HEAD + "".join(pages) + "</mediawiki>\n").encode()))
    return path


# Made dumps


def test_links_and_redirects_of_a_copy_stay_in_the_copy(tmp_path: Path) -> None:
    text = (
        "[[beta]] [[Beta#Part|b]] [[gone_page]]s [[File:X.png|thumb|of [[Alpha]]]] [[de:Beta]] [[Foo: Bar]] "
        "[[AT&amp;T]] [[#Part]] [[Beta ]]"
    )
    pages = [
        page_xml("Alpha", 7, text),
        page_xml("Beta", 12, "none"),
        page_xml("Foo: Bar", 13, "none"),
        page_xml("Old", 14, "#REDIRECT [[Beta]]", redirect="Beta"),
    ]
    made = dumps.repeated(write_dump(tmp_path / "small.xml.bz2", pages), tmp_path, 2, linked=True)
    xml = bz2.decompress(made.path.read_bytes()).decode()
    assert (made.pages, made.xml_bytes) == (8, len(xml.encode()))
    assert xml.count('<redirect title="Beta (copy 2)" />') == xml.count("#REDIRECT [[Beta (copy 2)]]") == 1
    source = xml[xml.index("<title>Alpha (copy 2)") :].split("<text>")[1].split("</text>")[0]
    found = extract(source.replace("&amp;", "&"), SITE).paragraphs[0]
    assert [link.target for link in found.links] == [
        "Beta (copy 2)",
        "Beta (copy 2)",
        "Gone page (copy 2)",
        "Foo: Bar (copy 2)",
        "AT&T (copy 2)",
        "Beta (copy 2)",
    ]
    assert "[[de:Beta]]" in source
    assert "[[File:X.png|thumb|of [[Alpha (copy 2)]]]]" in source
    assert "[[#Part]]" in source


# LUKE's method


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    folder = tmp_path_factory.mktemp("tokenizer")
    text = "The lowest of the low newer lows don't follow, naïve slow 10,000 owls… Ελλάδα 東京 \U0001d518"
    train_tokenizer([text, text.lower()], folder, 400)
    plain = PlainTokenizer(str(folder))
    return SimpleNamespace(fast=WordTokenizer.load(folder), plain=plain, folder=str(folder))


@given(text=st.text(alphabet="low enrstf ,.'’…1０éΕ東\U0001d518\t", max_size=40), leading=st.booleans())
def test_the_plain_tokenizer_gives_the_ids_of_the_fast_one(
    tokenizer: SimpleNamespace, text: str, leading: bool
) -> None:
    text = text.strip()
    plain = tokenizer.plain
    ids = plain.convert_tokens_to_ids(plain.tokenize(text, add_prefix_space=leading))
    assert [ids] == tokenizer.fast.encode([text], [leading])


def test_lukes_method_gives_the_sequences_of_the_pipeline(tokenizer: SimpleNamespace) -> None:
    text = "The newer lows follow the slow owls. Don't follow the lowest of the low! Slow."
    links = (Link(4, 14, "Lows"), Link(26, 35, "Owls"), Link(38, 40, "Do"))
    pages = [[Paragraph("", text, links)] * count for count in (1, 5)] + [[Paragraph("", text, ())]]
    limits = {"max_words": 60, "max_entities": 4, "max_mention_words": 2, "min_sentence_words": 3}
    ids = {"Lows": 7, "Owls": 8}
    for page in pages:
        options: dict[str, Any] = {"language": "en", "profile": "fixed", "entity_id": ids.get}
        ours = build_page(page, tokenizer=tokenizer.fast, limits=Limits(**limits), **options)[0]
        told = [as_text(paragraph, ids.get, sentences(paragraph)) for paragraph in page]
        theirs, tokens = lukes_method.build_page(told, tokenizer.plain, limits)
        assert theirs == [lukes_method.Row(**vars(row)) for row in ours]
        assert tokens >= sum(len(row.word_ids) for row in theirs)
    assert (
        lukes_method.digests([theirs, theirs]) == [lukes_method.digests([[]])[0]] * 2
    )  # the last has no link


def test_rounds_begin_with_an_empty_cache(tokenizer: SimpleNamespace) -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(PlainTokenizer(tokenizer.folder))
        return made[-1]

    limits = {"max_words": 60, "max_entities": 4, "max_mention_words": 2, "min_sentence_words": 1}
    pages = [[lukes_method.Text("low owls", [(1, 0, 3)], [(0, 8)])]]
    found = lukes_method.measure(pages, make, limits, 3)
    assert len(made) == 3
    assert all(tokenizer.memory for tokenizer in made)
    assert {kind: len(seconds) for kind, seconds in found["seconds"].items()} == {"first": 3, "again": 3}


# What of a command belongs to a stage


def test_cpu_seconds_between_two_looks_are_in_proportion() -> None:
    moments = [
        Moment(10.0, 4.0, 100.0, {"main": 50.0}, 9.0),
        Moment(12.0, 8.0, 300.0, {"main": 60.0, "jvm": 70.0}, 5.0),
    ]
    assert [stages.cpu_at(moments, when) for when in (9.0, 10.0, 11.0, 12.0, 20.0)] == [0, 4, 6, 8, 8]
    found = stages.within([moments], 10.5, 12.0)
    sizes = {"tree_pss_mb": 300.0, "rss_mb": {"main": 60.0, "jvm": 70.0}, "scratch_mb": 5.0}
    assert found == {"cpu_seconds": 3.0, **sizes}
    nothing = {"cpu_seconds": None, "tree_pss_mb": None, "rss_mb": {}, "scratch_mb": None}
    assert stages.within([moments], 10.5, 11.0) == nothing


def test_what_lies_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "run" / "blocks").mkdir(parents=True)
    (tmp_path / "run" / "blocks" / "shuffle").write_bytes(bytes(3000))
    (tmp_path / "other").write_bytes(bytes(500))
    assert folder_mb(tmp_path) == 0.0035
    assert folder_mb(tmp_path / "nowhere") == 0


def test_rows_are_counted_where_they_are_read() -> None:
    manifests = {
        "ExtractPages": {
            "rows": {"pages": 5, "redirects": 2, "paragraphs": 40, "links": 90, "rejected": 1},
            "facts": {"pages_read": 9},
        },
        "ResolveRedirects": {"rows": {"titles": 7}},
        "BuildSequences": {"rows": {"sequences": 11, "held_out": 1}},
    }
    assert stages.rows_of("ExtractPages", manifests) == {"rows_read": 9, "rows_written": 48}
    assert stages.rows_of("ResolveRedirects", manifests) == {"rows_read": 7, "rows_written": 7}
    assert stages.rows_of("BuildSequences", manifests) == {"rows_read": 40, "rows_written": 12}


# The report


def stage_record(scale: float) -> dict[str, Any]:
    return {
        "seconds": 1 + scale,
        "share": 0.1,
        "cpu_seconds": 2 + 3 * scale,
        "rows_read": 10 * scale,
        "rows_written": 10 * scale,
        "tree_pss_mb": 500.0,
        "rss_mb": {"main": 100 + 50 * scale, "jvm": 400.0},
        "scratch_mb": 20.0 * scale,
        "bytes": int(5_000_000 * scale),
        "manifest_sha256": f"{scale}",
        "rows": {"pages": 10, "links": int(1000 * scale), "titles": int(20 * scale)},
        "text_bytes": int(50_000_000 * scale),
    }


def run_record(name: str, scale: float, failure: str = "") -> dict[str, Any]:
    whole = {
        "seconds": len(stages.STAGES) * (1 + scale),
        "share": 1.0,
        "cpu_seconds": 1.0,
        "tree_pss_mb": 500.0,
        "bytes": 9,
    }
    whole["scratch_mb"] = 20.0 * scale
    whole["rss_mb"] = {"main": 100.0, "jvm": 300 + 50 * scale}
    found = {} if failure else {stage: stage_record(scale) for stage in stages.STAGES}
    facts = {"dump": name, "failure": failure, "other_cores": 0.0}
    return {**facts, "stages": {**found, stages.ALL: whole}}


SCALES = {"real": 1, "real-linked-1x": 1, "real-linked-4x": 4, "real-linked-8x": 8}
DUMPS = [
    {"name": name, "xml_bytes": 10**8 * scale, "file_bytes": 3 * 10**7, "copies": scale}
    for name, scale in SCALES.items()
]


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
    rows = corpus.targets(12.0, "real", growth, [], memory, [], [])
    met = {row["target"]: row["met"] for row in rows}
    assert met["memory of a process, jvm, 8x over 1x, at most"] is False
    assert met["memory of a process, main, 8x over 1x, at most"] is True
    assert met["time at 8x over 1x, BuildMentionTable, over the dump's growth, at most"] is True
    assert met["the full English dump, core-hours, at most"] is None
    assert met["sequences, tokens a second and core, at least"] is None
    assert all(row["passed"] for row in corpus.checks(runs.runs, DUMPS))


def test_the_full_dump_is_carried_over_by_what_drives_a_stage(runs: corpus.Runs) -> None:
    """Three CPU seconds more for 100 MB of XML, 50 MB of text, 1,000 links or 20 titles more."""
    full = corpus.full_dump_rows(DUMPS[1:], runs.median, corpus.driver_amounts(runs, DUMPS[1:]))
    hours = {row["stage"]: row["core-hours"] for row in full}
    assert hours["ExtractPages"] == pytest.approx(3 / 100 * 100_000 / 3600)
    assert hours["BuildMentionTable"] == pytest.approx(3 / 50 * 22_000 / 3600)
    assert hours["ResolveLinks"] == pytest.approx(3 / 1000 * 200e6 / 3600)
    assert hours["all"] == pytest.approx(sum(hours[stage] for stage in stages.STAGES))
    assert full[1]["disk GB"] == pytest.approx(5_000_000 / 100 * 100_000 / 1e9)
    failed = corpus.Runs([run_record("real-linked-1x", 1, failure="killed")])
    assert corpus.full_dump_rows(DUMPS[1:], failed.median, corpus.driver_amounts(failed, DUMPS[1:])) == [
        {"stage": "all", "core-hours": None}
    ]


def test_stages_and_what_is_outside_of_them_make_the_whole(runs: corpus.Runs) -> None:
    *parts, outside, whole = corpus.stage_rows(runs, "real")
    assert [row["stage"] for row in parts] == list(stages.STAGES)
    assert (outside["s"], whole["s"]) == (0, 2 * len(stages.STAGES))


def test_runs_that_differ_or_fail_fail_a_check(runs: corpus.Runs) -> None:
    runs.runs += [run_record("real", 3), run_record("real-linked-4x", 4, failure="exit status 30")]
    passed = {(row["dump"], row["check"]): row["passed"] for row in corpus.checks(runs.runs, DUMPS)}
    assert passed["real", "2 runs: the same bytes"] is False
    assert passed["real-linked-4x", "2 runs: the same bytes"] is False
    assert passed["real-linked-8x", "1 runs: the same bytes"] is True
