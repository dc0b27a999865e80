"""Redirects are followed as plain Python follows them, and links end where their titles do."""

from pathlib import Path
from typing import Any

import pytest

from pipeline import storage
from pipeline.jobs.extract_pages import PageExtractor
from pipeline.jobs.spark_parts import SparkJob
from pipeline.jobs.tables import redirects
from pipeline.jobs.tables.redirects import find_variants, resolve_redirects
from pipeline.mediawiki.conversions import find_conversion
from pipeline.mediawiki.site import SiteInfo
from pipeline.storage.blocks import Block, PageMarker
from tests.support.manifests import write_manifest
from tests.support.oracle_tables import Pages, resolve_titles
from tests.support.stages import run_in_process, run_of
from workflows.stages.tables import ResolveLinks

pytestmark = pytest.mark.slow

PAGES = ["A", "B", "C", "Both"]
REDIRECTS = {
    "to A": "A",
    "to to A": "to A",
    **{f"chain {number}": f"chain {number + 1}" for number in range(40)},
    "chain 40": "B",
    "dead": "Nowhere",
    "to dead": "dead",
    "self": "self",
    "loop 1": "loop 2",
    "loop 2": "loop 3",
    "loop 3": "loop 1",
    "into loop": "loop 2",
    "Both": "C",
}


@pytest.mark.parametrize(("profile", "max_hops"), [("fixed", None), ("paper", 1)])
def test_redirects_equal_the_plain_way(spark: Any, profile: str, max_hops: int | None) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    pages = spark.createDataFrame([(title,) for title in PAGES], "title string")
    redirects = spark.createDataFrame(list(REDIRECTS.items()), "source string, target string")
    rows = resolve_redirects(pages, redirects, max_hops=max_hops).collect()
    both = [{"source": source, "target": target} for source, target in REDIRECTS.items()]
    expected = resolve_titles(Pages([{"title": title} for title in PAGES], both, []), profile)
    found = {row["title"]: row.asDict() for row in rows}
    assert len(rows) == len(found)
    assert found == expected


def test_pages_without_an_id_stop_neither_stage(spark: Any, tmp_path: Path) -> None:
    numbers = ["", "", "0", "-3", "12a", str(2**63), str(2**63), "1" * 30, "7"]
    pages = (
        f"<page><title>Gull {place}</title><id>{number}</id><revision><text>A [[bird]].</text></revision></page>"
        for place, number in enumerate(numbers)
    )
    (tmp_path / "dump.xml").write_text(f"<mediawiki>{''.join(pages)}</mediawiki>")
    site, folders = SiteInfo("en", "enwiki", "first-letter", ()), [str(tmp_path / name) for name in "ab"]
    extract = PageExtractor({"site": site.to_dict(), "profile": "fixed", "allow_truncated": False})
    block = Block(0, str(tmp_path / "dump.xml"), 0, 1 << 30)
    result = extract(block, folders[0], PageMarker(str(tmp_path / "marker")))
    assert (result.rows["pages"], result.drops["rejected:no_id"]) == (1, 8)
    rejected = storage.read_rows(f"{folders[0]}/rejected/block-00000.parquet")
    assert [tuple(row.values())[:3] for row in rejected] == [(0, f"Gull {place}", "no_id") for place in range(8)]
    write_manifest(folders[0], "ExtractPages", **vars(result))
    job = SparkJob(spark, {"ExtractPages": folders[0]}, folders[1], "key", parts=1)
    found = redirects.build(job, profile="fixed", dump="dump.xml", language="en")
    assert (found.rows, found.facts) == ({"titles": 1}, {"statuses": {"page": 1}})


@pytest.mark.parametrize(
    ("language", "pages", "written"),
    [
        ("zh", ["软件", "电脑"], {"電腦": "电脑", "軟體": "软件", "軟件": "软件"}),
        ("zh", ["計算機"], {"计算机": "計算機"}),
        ("zh", ["軟體", "里程碑"], {"软件": "軟體", "裡程碑": "里程碑", "网络": None}),
        ("gan", ["臺灣"], {"台湾": "臺灣"}),
        ("wuu", ["上海话"], {"上海話": "上海话"}),
        ("zh-yue", ["廣東話"], {"广东话": "廣東話"}),
        ("sr", ["Београд", "Његош"], {"Beograd": "Београд", "Njegoš": "Његош", "SAD": None}),
        ("sr", ["Џез"], {"Džez": "Џез"}),
        ("sh", ["Ljubljana"], {"Љубљана": "Ljubljana", "Љубав": None}),
        ("kk", ["Қазақстан", "Әлем"], {"Qazaqstan": "Қазақстан", "قازاقستان": "Қазақстан", "الەم": "Әлем"}),
        ("ku", ["Kurdistan", "Amed"], {"کوردستان": "Kurdistan", "ئامەد": "Amed"}),
        ("uz", ["Oʻzbekiston", "Toshkent"], {"Ўзбекистон": "Oʻzbekiston", "Тошкент": "Toshkent"}),
        ("tg", ["Душанбе", "Тоҷикистон"], {"Duşanbe": "Душанбе", "Toçikiston": "Тоҷикистон"}),
        ("iu", ["ᓄᓇᕗᑦ", "Iqaluit"], {"Nunavut": "ᓄᓇᕗᑦ", "ᐃᖃᓗᐃᑦ": "Iqaluit"}),
        ("crh", ["Qırım", "Bağçasaray"], {"Къырым": "Qırım", "Багъчасарай": "Bağçasaray"}),
        ("shi", ["Agadir"], {"ⴰⴳⴰⴷⵉⵔ": "Agadir"}),
    ],
)
def test_titles_in_the_other_script_of_a_wiki(
    spark: Any, language: str, pages: list[str], written: dict[str, str | None]
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    conversion = find_conversion(language)
    assert conversion
    titles = resolve_redirects(
        spark.createDataFrame([(title,) for title in pages], "title string"),
        spark.createDataFrame([("to it", pages[0])], "source string, target string"),
    )
    linked = spark.createDataFrame([(title,) for title in [*written, *written, *pages]], "target string")
    rows = find_variants(linked, titles, conversion).collect()
    assert {row["title"]: row["canonical"] for row in rows} == {title: page for title, page in written.items() if page}
    assert {(row["hops"], row["status"]) for row in rows} == {(0, "variant")}


def test_a_page_goes_before_a_redirect_in_another_script(spark: Any) -> None:
    titles = spark.createDataFrame(
        [("裏面", "里子", 1, "redirect"), ("里面", "里面", 0, "page"), ("里子", "里子", 0, "page"),
         ("裡", None, 2, "loop")],
        "title string, canonical string, hops int, status string",
    )  # fmt: skip
    linked = spark.createDataFrame([("裡面",), ("裡",), ("裏",), ("里面",)], "target string")
    conversion = find_conversion("zh")
    assert conversion
    found = find_variants(linked, titles, conversion).collect()
    assert [tuple(row) for row in found] == [("裡面", "里面", 0, "variant")]


def test_wikis_in_one_script_have_no_conversion() -> None:
    assert not any(map(find_conversion, ("en", "ru", "ja", "ar", "zh-classical", "simple")))


ENGLISH = {
    "Ape": "An [[ape]] is a [[great ape]] or a [[Monkey|kin]] in the [[Forest]], [[to ape|aped]]. [[Loop]]",
    "Great ape": "#REDIRECT [[to ape]]",
    "To ape": "#REDIRECT [[Ape#Names]]",
    "Monkey": "A [[great ape]], and no [[Monkeys|monkey]].",
    "Monkeys": "#REDIRECT [[Monkey]]",
    "Loop": "#REDIRECT [[Loop]]",
}
CHINESE = {"电脑": "[[電腦]]是[[机器]]，[[计算机|機]]。", "计算机": "#重定向 [[电脑]]", "机器": "[[電腦]]和[[機器]]。"}


@pytest.mark.parametrize(
    ("language", "profile", "pages", "links", "drops"),
    [
        ("en", "fixed", ENGLISH, {"kin", "Forest", "Loop", "great ape"}, {"links:same_page": 3}),
        ("en", "paper", ENGLISH, {"ape", "great ape", "kin", "Forest", "aped", "Loop", "monkey"}, {}),
        ("zh", "fixed", CHINESE, {"机器", "電腦"}, {"links:same_page": 3, "links:variant": 1}),
    ],
)
def test_links_that_lead_back_are_no_annotations(
    tmp_path: Path, language: str, profile: str, pages: dict[str, str], links: set[str], drops: dict[str, int]
) -> None:
    elements = [
        f"<page><title>{title}</title><ns>0</ns><id>{number}</id><revision><text>{text}</text></revision></page>"
        for number, (title, text) in enumerate(pages.items(), start=1)
    ]
    head = f"<siteinfo><dbname>{language}wiki</dbname><case>first-letter</case></siteinfo>"
    dump = tmp_path / "dump.xml"
    dump.write_text(f'<mediawiki xml:lang="{language}">{head}{"".join(elements)}</mediawiki>', "utf-8")
    corpus = {"dump": str(dump), "profile": profile}
    stage = ResolveLinks(settings=run_of(tmp_path / "work", corpus=corpus, machine={"processes": 1}))
    run_in_process(stage)
    manifest = stage.manifest()
    rows = [row for path in manifest.paths(stage.folder, "links/") for row in storage.read_rows(path)]
    assert {row["mention"] for row in rows} == links
    assert manifest.drops == drops
