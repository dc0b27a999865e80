"""The parts of the benchmarks that decide what their figures mean; nothing is measured here."""

import bz2
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.corpus import corpus_report, dumps, stages
from benchmarks.corpus.corpus_workloads import PlainTokenizer, as_text
from benchmarks.corpus.luke import compare, method, places
from benchmarks.corpus.luke.differences import differences
from benchmarks.harness.measure import Moment
from pipeline import schemas
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.titles import normalize_title
from pipeline.sequences.packing import Limits, build_page
from pipeline.sequences.sentences import split
from pipeline.sequences.tokenizer import WordTokenizer, train_tokenizer
from pipeline.wikitext import extract
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
    made = dumps.repeated(write_dump(tmp_path / "small.xml.bz2", pages), tmp_path / "made", 2, linked=True)
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


def test_a_made_dump_is_taken_again_only_for_the_same_source(tmp_path: Path) -> None:
    source = write_dump(tmp_path / "small.xml.bz2", [page_xml("Alpha", 1, "a")])
    first = dumps.repeated(source, tmp_path / "made", 2)
    stamp = first.path.stat().st_mtime_ns
    assert dumps.repeated(source, tmp_path / "made", 2) == first
    assert first.path.stat().st_mtime_ns == stamp
    write_dump(source, [page_xml("Alpha", 1, "a"), page_xml("Beta", 2, "b")])
    assert dumps.repeated(source, tmp_path / "made", 2).pages == 4


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
        told = [as_text(paragraph, ids.get, split(paragraph.text, "en")) for paragraph in page]
        theirs, tokens = method.build_page(told, tokenizer.plain, limits)
        assert theirs == [method.Row(**vars(row)) for row in ours]
        assert tokens >= sum(len(row.word_ids) for row in theirs)
    assert method.digests([theirs, theirs]) == [method.digests([[]])[0]] * 2  # the last has no link


def test_rounds_begin_with_an_empty_cache(tokenizer: SimpleNamespace) -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(PlainTokenizer(tokenizer.folder))
        return made[-1]

    limits = {"max_words": 60, "max_entities": 4, "max_mention_words": 2, "min_sentence_words": 1}
    pages = [[method.Text("low owls", [(1, 0, 3)], [(0, 8)])]]
    found = method.measure(pages, make, limits, 3)
    assert len(made) == 3
    assert all(tokenizer.memory for tokenizer in made)
    assert {kind: len(seconds) for kind, seconds in found["seconds"].items()} == {"first": 3, "again": 3}


# What of a command belongs to a stage


def test_cpu_seconds_between_two_looks_are_in_proportion() -> None:
    moments = [
        Moment(10.0, 4.0, 100.0, {"main": 50.0}),
        Moment(12.0, 8.0, 300.0, {"main": 60.0, "jvm": 70.0}),
    ]
    assert [stages.cpu_at(moments, when) for when in (9.0, 10.0, 11.0, 12.0, 20.0)] == [0, 4, 6, 8, 8]
    found = stages.within([moments], 10.5, 12.0)
    assert found == {"cpu_seconds": 3.0, "tree_pss_mb": 300.0, "rss_mb": {"main": 60.0, "jvm": 70.0}}
    assert stages.within([moments], 10.5, 11.0) == {"cpu_seconds": None, "tree_pss_mb": None, "rss_mb": {}}


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


# LUKE's builder


def test_links_are_told_by_the_part_of_the_page() -> None:
    text = (
        "A [[one]] <ref>see [[two]]</ref>\n== On [[three]] ==\n* item [[four]]\n{| \n| [[five]]\n|}\n"
        "[[File:X.png|thumb|of [[six]]]] {{box|a=[[seven]]|{{b}}}} <!-- [[eight]] --> ''by [[nine]]''"
    )
    found = {target: part for target, part in places.places(text) if not target.startswith("File")}
    assert found == {
        "one": "running text",
        "two": "reference",
        "three": "heading",
        "four": "list item",
        "five": "table",
        "six": "caption",
        "seven": "template",
        "eight": "comment",
        "nine": "bold or italics",
    }
    parts = places.parts_of("[[a]] <ref>[[A]]</ref> [[b]]", {"A": 1, "B": 2}, str.upper)
    assert list(parts) == [("reference", 1), ("running text", 1), ("not found in the source", 1)]


def export(path: Path, pages: dict[str, list[Any]], redirects: dict[str, str]) -> compare.Database:
    head = {"titles": list(pages), "redirects": redirects, "resolved": {"Older": "Beta"}}
    lines = [head, *([title, paragraphs] for title, paragraphs in pages.items())]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return compare.Database.open(path)


def write_table(path: Path, rows: list[dict[str, Any]], schema: pa.Schema) -> None:
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), path)


def test_from_lukes_links_to_ours_every_link_has_a_cause(tmp_path: Path) -> None:
    targets = ["Beta", "Old", "Older", "Beta#Part", " Beta  ", "Category:C", "Gone", "De:Beta"]
    pages = {
        "Alpha": [["x" * 9, [[target, 0, 1] for target in targets]]],
        "Beta": [["Category:C", [["Category:C", 0, 10]]]],
    }
    database = export(tmp_path / "db.jsonl", pages, {"Old": "Beta", "Older": "Old"})
    source = (
        "[[Beta]] [[Old]] [[Older]] [[Beta#Part]] [[ Beta  ]] [[Category:C]] [[Gone]] <ref>[[Beta]]</ref>"
    )
    dump = write_dump(tmp_path / "d.xml.bz2", [page_xml("Alpha", 1, source.replace("<", "&lt;"))])
    kinds = {row["LUKE's links"]: row["links"] for row in compare.link_kinds(database)}
    assert kinds == {
        "end at a page": 1,
        "end at a page through one redirect": 1,
        "end at a page through two or more redirects": 1,
        "with a fragment, of another page": 1,
        "to categories": 2,
        "page missing": 2,
        "with a colon (other languages, other namespaces), no such page": 1,
    }
    titles = [("Beta", "Beta", 0, "page"), ("Old", "Beta", 1, "redirect"), ("Gone", "Gone", 1, "missing")]
    schema = pa.schema(
        [("title", pa.string()), ("canonical", pa.string()), ("hops", pa.int32()), ("status", pa.string())]
    )
    rows = [dict(zip(schema.names, row, strict=True)) for row in titles]
    write_table(tmp_path / "titles-1/titles/a.parquet", rows, schema)
    links = [{"start": 0, "end": 1, "target": target} for target in (*["Beta"] * 6, "Old", "Gone")]
    paragraph = {"page_id": 1, "title": "Alpha", "paragraph": 0, "section": "", "text": "x", "links": links}
    write_table(tmp_path / "pages-1/paragraphs/a.parquet", [paragraph], schemas.PARAGRAPHS.schema)
    for folder in ("titles-1", "pages-1"):
        (tmp_path / folder / "manifest.json").write_text("{}")
    found = compare.steps(database, tmp_path, dump, SITE)
    assert [(row["cause"], row["links"]) for row in found] == [
        ("LUKE's builder", 2),
        ("the #fragment is removed", 1),
        ("titles are normalised as MediaWiki does", 1),
        ("redirects are followed to their end", 1),
        ("only ours: reference", 1),
        ("only ours: running text", 1),
        ("ours", 7),
    ]
    assert compare.category_links(database) == {
        "prefix shown, so blanked": 1,
        "prefix hidden, so kept as text": 1,
    }
    assert normalize_title(" Beta  ", SITE)[0] == "Beta"


def test_overlap_counts_entities_and_equal_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "TOP", (2, 100))
    counts = compare.vocabulary({"A": 1, "C": 9, "Category:X": 20, "No page": 3, "B": 9}, frozenset("ABC"))
    assert list(counts.items()) == [("C", 9), ("B", 9), ("A", 1)]
    assert compare.tied(counts) == 2
    rows = compare.overlap({"C": 9, "A": 4, "B": 3}, counts)
    assert [(row["top"], row["in both"], row["the same count"]) for row in rows] == [(2, 1, 1), (3, 3, 1)]


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
        "bytes": int(5_000_000 * scale),
        "files": {"lookup.tries": 600, "aliases.tries": 1700},
        "manifest_sha256": f"{scale}",
        "rows": {"pages": 10, "names": int(1_000_000 * scale), "aliases": 100},
    }


def run_record(name: str, scale: float, failure: str = "") -> dict[str, Any]:
    whole = {"seconds": 6 + 6 * scale, "share": 1.0, "cpu_seconds": 1.0, "tree_pss_mb": 500.0, "bytes": 9}
    whole["rss_mb"] = {"main": 100.0, "jvm": 300 + 50 * scale}
    found = {} if failure else {stage: stage_record(scale) for stage in stages.STAGES}
    facts = {"dump": name, "profile": "fixed", "failure": failure, "other_cores": 0.0}
    return {**facts, "stages": {**found, stages.ALL: whole}}


SCALES = {"real": 1, "real-linked-1x": 1, "real-linked-2x": 2, "real-linked-4x": 4}
DUMPS = [
    {"name": name, "xml_bytes": 10**8 * scale, "file_bytes": 3 * 10**7, "copies": scale}
    for name, scale in SCALES.items()
]


@pytest.fixture
def runs() -> corpus_report.Runs:
    return corpus_report.Runs(run_record(name, scale) for name, scale in SCALES.items())


def test_growth_is_set_against_the_growth_of_the_dump(runs: corpus_report.Runs) -> None:
    growth, memory = corpus_report.growth_rows(runs, DUMPS[1:]), corpus_report.memory_rows(runs, DUMPS[1:])
    first, whole = growth[0], growth[-1]
    assert (first["1x, s"], first["4x, s"], first["4x over 1x"]) == (2, 5, 2.5)
    assert first["over the dump's growth"] == 2.5 / 4
    assert first["s more a 100 MB of XML"] == pytest.approx(1)
    assert (whole["stage"], whole["4x, s"]) == ("all", 30)
    assert memory[1]["last over first"] == pytest.approx(500 / 350)
    rows = corpus_report.targets(12.0, "real", growth, memory, [], [])
    met = {row["target"]: row["met"] for row in rows}
    assert met["memory of a process, jvm, 4x over 1x, at most"] is False
    assert met["memory of a process, main, 4x over 1x, at most"] is True
    assert met["time at 4x over 1x, over the dump's growth, at most"] is True
    assert met["sequences, tokens a second and core, at least"] is None
    assert all(row["passed"] for row in corpus_report.checks(runs, DUMPS))


def test_stages_and_what_is_outside_of_them_make_the_whole(runs: corpus_report.Runs) -> None:
    *parts, outside, whole = corpus_report.stage_rows(runs, "real")
    assert [row["stage"] for row in parts] == list(stages.STAGES)
    assert (outside["s"], whole["s"]) == (0, 12)


def test_the_full_dump_is_carried_over_by_what_the_larger_dump_takes_more(runs: corpus_report.Runs) -> None:
    first, *_, whole, itself = corpus_report.full_dump(runs, DUMPS[0], DUMPS[1:])
    assert first["core-hours"] == pytest.approx((14 - 5) / 300e6 * corpus_report.XML_BYTES / 3600)
    assert (first["disk GB"], itself["disk GB"]) == (pytest.approx(5), pytest.approx(30))
    assert whole["core-hours"] == pytest.approx(6 * first["core-hours"])
    lookup, aliases, main, xml = corpus_report.full_dump_memory(runs, DUMPS[0], DUMPS[1:])
    assert lookup["bytes an entry"] == pytest.approx(600 / 1e6)
    assert (aliases["bytes an entry"], aliases["full dump MB"]) == (17, pytest.approx(289))
    assert (main["bytes an entry"], main["full dump MB"]) == (50, pytest.approx(750))
    assert xml["full dump MB"] == pytest.approx(7e7)


def test_runs_that_differ_or_fail_fail_a_check(runs: corpus_report.Runs) -> None:
    runs.runs += [run_record("real", 3), run_record("real-linked-2x", 2, failure="exit status 30")]
    passed = {(row["dump"], row["check"]): row["passed"] for row in corpus_report.checks(runs, DUMPS)}
    assert passed["real", "2 runs: the same manifests"] is False
    assert passed["real-linked-2x", "2 runs: the same manifests"] is False
    assert passed["real-linked-4x", "1 runs: the same manifests"] is True


def test_every_difference_is_told_with_its_numbers() -> None:
    kinds = [{"LUKE's links": "with a fragment, of another page", "links": 3}]
    causes = (
        "the #fragment is removed",
        "redirects are followed to their end",
        "titles are normalised as MediaWiki does",
    )
    found = {
        "kinds": kinds,
        "steps": [{"cause": cause, "links": number} for number, cause in enumerate(causes)],
        "categories": {"prefix shown, so blanked": 4},
        "overlap": [{"in both": 5, "the same count": 2}],
        "entities": {"one hop": 6, "ten hops": 7, "ours": 8},
        "tied": {"one hop": 9},
        "source": {"paragraphs_beyond_bmp": 1, "link_trails": 2},
        "sequences": {"[UNK]": {"sequences": 1234}, "dropped": {}},
    }
    ours = run_record("real", 1)
    ours["stages"]["ExtractPages"] |= {
        "rows": {"paragraphs": 10, "links": 20},
        "drops": {"links:category": 11},
    }
    ours["stages"]["BuildSequences"] |= {"facts": {"sentences_read": 12}, "drops": {}}
    ours["stages"]["BuildEntityVocab"] |= {"rows": {"entities": 13}}
    told = {row["what"]: row["found"] for row in differences(found, [ours], [])}
    assert len(told) == 17
    assert told["fragments"] == "3 links; +0 to entities"
    assert told["category links"] == "4 prefix shown, so blanked; 11 cut here"
    assert "as [UNK]: 1,234 sequences" in told["links to no entity"]
    assert told["both profiles of this project"] == "the profile paper did not run"
