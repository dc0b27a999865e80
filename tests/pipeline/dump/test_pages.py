"""Reading dumps: every container and schema gives the same pages, and every cut is noticed."""

import bz2
import gzip
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.dump import containers, cutting
from pipeline.dump import pages as dump
from pipeline.dump.containers import TruncatedDump
from pipeline.dump.pages import Page, Rejected
from pipeline.mediawiki.site import SiteInfo
from pipeline.storage.blocks import Block

SITE = SiteInfo("en", "enwiki", "first-letter", ((0, ""), (1, "Talk"), (4, "Wikipedia"), (10, "Template")))
HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    "<siteinfo><dbname>enwiki</dbname><case>first-letter</case><namespaces>"
    '<namespace key="0" case="first-letter" /><namespace key="1" case="first-letter">Talk</namespace>'
    "</namespaces></siteinfo>\n"
)


def page_xml(number: int, text: str = "Some text.", *, title: str = "", ns: int = 0, extra: str = "") -> str:
    return (
        f"<page><title>{title or f'Page {number}'}</title><ns>{ns}</ns><id>{number}</id>{extra}<revision>"
        f"<id>{number}</id><timestamp>2020-01-01T00:00:00Z</timestamp><model>wikitext</model>"
        f'<text xml:space="preserve">{text}</text></revision></page>\n'
    )


def export(*pages: str) -> bytes:
    return (HEAD + "".join(pages) + "</mediawiki>\n").encode()


def written(folder: Path, content: bytes, name: str = "dump.xml") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def parse(xml: str, profile: str = "fixed") -> tuple[Page | Rejected | None, Counter[str]]:
    counts: Counter[str] = Counter()
    return dump.parse_page(xml.strip().encode(), SITE, counts, profile=profile), +counts


def read_all(path: Path, block_size: int, **options: bool) -> tuple[list[Page | Rejected], Counter[str]]:
    counts: Counter[str] = Counter()
    blocks = containers.plan_blocks([str(path)], block_size)
    pages = [page for block in blocks for page in dump.read_pages(block, SITE, counts, **options)]
    return pages, counts


@pytest.fixture(scope="module")
def long_export() -> bytes:
    """Pages of all sizes, 300 of them, with text beyond ASCII."""
    return export(*(page_xml(number, f"Wört {number} 😀 " * (number % 97)) for number in range(1, 301)))


def packed(data: bytes, container: str) -> bytes:
    if container == "gz":  # members, with zeros between them that fill more than a piece of reading
        return gzip.compress(data[:5000], mtime=0) + bytes(2_500_000) + gzip.compress(data[5000:], mtime=0)
    if container == "bz2":
        return bz2.compress(data, 1)
    if container == "multistream":
        cuts = [0, *(data.find(b"<page>", at) for at in range(0, len(data) - 500, 40_000)), len(data)]
        return b"".join(bz2.compress(data[low:high]) for low, high in pairwise(cuts))
    return data


@pytest.mark.parametrize("container", ["xml", "bz2", "multistream", "gz"])
@pytest.mark.parametrize("block_size", [4096, 50_000, 10**9])
def test_containers_and_blocks_give_the_same_pages(
    tmp_path: Path, long_export: bytes, container: str, block_size: int
) -> None:
    pages, counts = read_all(written(tmp_path, packed(long_export, container), container), block_size)
    assert [page.page_id for page in pages] == [number for number in range(1, 301) if number % 97]
    assert counts == {"pages_read": 300, "pages:empty_text": 3, "revisions:superseded": 0}


@settings(max_examples=30)
@given(st.integers(1, 3000), st.sampled_from(["xml", "bz2", "multistream"]))
def test_no_block_size_loses_or_doubles_a_page(
    tmp_path_factory: pytest.TempPathFactory, block_size: int, container: str
) -> None:
    data = export(*(page_xml(number, "x" * (number * 37 % 400)) for number in range(1, 13)))
    path = tmp_path_factory.mktemp("dump") / container
    path.write_bytes(packed(data, container))
    pages, _ = read_all(path, block_size)
    assert [page.page_id for page in pages] == list(range(1, 13))


def test_a_gzip_file_is_one_block_and_damage_in_it_is_noticed_before_the_work(
    tmp_path: Path, long_export: bytes
) -> None:
    whole = gzip.compress(long_export)
    path = written(tmp_path, whole, "dump.gz")
    assert containers.plan_blocks([str(path)], 100) == [Block(0, str(path), 0, len(whole))]
    dump.check_end(str(path))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TruncatedDump, match=r"in the middle, at byte \d+.*corpus\.allow_truncated=true"):
        dump.check_end(str(path))
    path.write_bytes(whole[:-6] + b"\0\0" + whole[-4:])
    with pytest.raises(ValueError, match=r"dump\.gz: damaged"):
        dump.check_end(str(path))


def test_real_dump_against_the_library(shared: Path) -> None:
    """Every block size gives the pages that ElementTree finds in the whole file."""
    from xml.etree import ElementTree

    path = shared / "data/wikipedia/enwiki-2016-206.xml.bz2"
    site = dump.read_site_info(str(path))
    namespace = "{http://www.mediawiki.org/xml/export-0.10/}"
    with bz2.open(path) as stream:
        expected = [
            (int(page.findtext(f"{namespace}id")), page.findtext(f"{namespace}revision/{namespace}text"))
            for page in ElementTree.parse(stream).iter(f"{namespace}page")
            if page.findtext(f"{namespace}ns") == "0"
        ]
    for block_size in (100_000, 1 << 30):
        counts: Counter[str] = Counter()
        blocks = containers.plan_blocks([str(path)], block_size)
        pages = [page for block in blocks for page in dump.read_pages(block, site, counts)]
        assert [(page.page_id, page.text) for page in pages] == expected
        assert counts["pages_read"] == 206


def test_old_schema_has_namespaces_and_redirects_too(shared: Path) -> None:
    path = str(shared / "data/wikipedia/enwiki-2006-old-schema-3MB.xml.bz2")
    site = dump.read_site_info(path)
    counts: Counter[str] = Counter()
    pages = list(dump.read_pages(Block(0, path, 0, 1 << 30), site, counts, allow_truncated=True))
    redirects = [page for page in pages if isinstance(page, Page) and page.redirect]
    assert len(redirects) > 50
    assert counts["pages:other_namespace"] > 0
    assert counts["pages:truncated"] == 1
    with pytest.raises(TruncatedDump, match=r"ends in the middle of a page .*corpus\.allow_truncated=true"):
        list(dump.read_pages(Block(0, path, 0, 1 << 30), site, Counter()))
    with pytest.raises(TruncatedDump, match=r"corpus\.allow_truncated=true"):
        dump.check_end(path)


# XML as other programs write it


PLAIN = page_xml(2, "It is a [[town]].", title="Town")
SLICE = "<page><title>Fake</title><ns>0</ns><id>9</id></page>"


@pytest.mark.parametrize(
    "town",
    [
        PLAIN.replace("<page>", '<page xmlns="http://www.mediawiki.org/xml/export-0.11/">'),
        PLAIN.replace("<page>", "<page id='p2' note='a &lt;page> in a value'>"),
        PLAIN.replace("<page>", "<pages/><page/><pagelist>2</pagelist><page>"),
        PLAIN.replace("<revision>", '<revision xmlns="http://www.mediawiki.org/xml/export-0.11/">'),
        PLAIN.replace("Town", "<![CDATA[Town]]>").replace("It is", "<![CDATA[It]]> is"),
        PLAIN.replace("It is a [[town]].", "<![CDATA[It is]]><!-- </page> --> a [[town]]<![CDATA[.]]>"),
        f"<!-- <page> {SLICE} -->{PLAIN}<!-- </mediawiki> {SLICE}-->",
        f"<!----><?note <page?>{PLAIN}",
        PLAIN.replace(">2<", ">\n  2\n<").replace(">0<", "> 0 <").replace("wikitext", " wikitext "),
    ],
)
def test_pages_of_other_programs_are_read(tmp_path: Path, town: str) -> None:
    path = written(tmp_path, export(page_xml(1, "First."), town, page_xml(3, "Third.")))
    pages, counts = read_all(path, 4096)
    found = [(page.page_id, page.title.strip(), page.text) for page in pages if isinstance(page, Page)]
    assert found == [(1, "Page 1", "First."), (2, "Town", "It is a [[town]]."), (3, "Page 3", "Third.")]
    assert counts["pages_read"] == 3


def test_pages_inside_cdata_are_text(tmp_path: Path) -> None:
    text = f"Write <page>, </page> or {SLICE}\n</mediawiki>\n" * 60
    pages = "".join(page_xml(number, f"<![CDATA[{text}]]>") for number in range(1, 30))
    for container in ("xml", "bz2", "gz"):
        path = written(tmp_path, packed(export(pages), container), container)
        for block_size in (4096, 10**9):
            found, counts = read_all(path, block_size)
            texts = {page.page_id: getattr(page, "text", "") for page in found}
            assert texts == dict.fromkeys(range(1, 30), text)
            assert counts["pages_read"] == len(found) == 29


def test_cdata_far_behind_the_beginning_is_an_error_and_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "_HEAD_BYTES", 2000)
    monkeypatch.setattr(containers, "_CHUNK", 1000)
    path = written(tmp_path, export(*map(page_xml, range(1, 40)), page_xml(40, f"<![CDATA[{SLICE}]]>")))
    size = path.stat().st_size
    with pytest.raises(ValueError, match=rf"dump.xml: has .* a CDATA.*corpus.block_size={size} "):
        read_all(path, 4096)
    assert len(read_all(path, size)[0]) == 40


def test_an_export_that_ends_inside_cdata_is_cut(tmp_path: Path) -> None:
    with pytest.raises(TruncatedDump, match="ends in the middle of a page"):
        read_all(written(tmp_path, export(page_xml(1, "<![CDATA[a"))), 4096)


@pytest.mark.parametrize(
    ("head", "language"),
    [
        ('<mediawiki version = "0.11"\n xml:lang = "pt-br" >', "pt-br"),
        ('<?xml version="1.0"?><!DOCTYPE mediawiki><mediawiki xml:lang="tt">', "tt"),
        ('<?xml?>\n<!DOCTYPE mediawiki [ <!ELEMENT page ANY> ]>\n<mediawiki xml:lang="tt">', "tt"),
        ('<mediawiki note="a > b" xml:lang="ja">', "ja"),
    ],
)
@pytest.mark.parametrize(
    "siteinfo",
    [
        "<siteinfo ><dbname> </dbname><namespaces><namespace key='10'>Modèle</namespace></namespaces></siteinfo\n>",
        '<siteinfo xmlns="x"><dbname> </dbname><namespace key="10"><![CDATA[Modèle]]></namespace></siteinfo>',
        "<!-- <page> --><siteinfo><dbname> </dbname><namespace key='&#49;0'>Mod&#232;le</namespace></siteinfo>",
    ],
)
def test_heads_of_other_programs_are_read(tmp_path: Path, head: str, language: str, siteinfo: str) -> None:
    path = tmp_path / "dump.xml"
    path.write_text(f"{head}{siteinfo}{PLAIN}</mediawiki >", encoding="utf-8")
    site = dump.read_site_info(str(path))
    assert (site.language, site.namespaces) == (language, ((10, "Modèle"),))
    dump.check_end(str(path))
    assert len(read_all(path, 4096)[0]) == 1


# Pages


def test_newest_revision_wins_and_the_others_are_counted() -> None:
    older = "<revision><id>9</id><timestamp>2001-01-01T00:00:00Z</timestamp><text>old</text></revision>"
    page, counts = parse(page_xml(1, "new", extra=older))
    assert isinstance(page, Page)
    assert page.text == "new"
    assert counts == {"revisions:superseded": 1}


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (page_xml(1, ns=1), "pages:other_namespace"),
        (page_xml(1, "  \n "), "pages:empty_text"),
        (page_xml(1).replace("<text", '<text deleted="deleted"'), "pages:deleted_text"),
        (page_xml(1).replace("wikitext", "Scribunto"), "pages:not_wikitext"),
        ("<page><title>A</title><ns>0</ns><id>1</id></page>", "pages:no_revision"),
        ("<page><title>Talk:A</title><id>1</id></page>", "pages:other_namespace"),
    ],
)
def test_dropped_pages_are_counted(xml: str, reason: str) -> None:
    assert parse(xml) == (None, {reason: 1})


# What stands in a page's place of its number, and is none that a table holds.
NO_IDS = [
    "", "<id/>", "<id> </id>", "<id>00</id>", "<id>-1</id>", "<id>+7</id>", "<id>1.5</id>", "<id>1_0</id>",
    "<id>x</id>", "<id>0x1F</id>", "<id>٣</id>", "<id>²</id>", f"<id>{2**63}</id>", f"<id>{2**64 + 5}</id>",
    f"<id>{'9' * 5000}</id>",
]  # fmt: skip


@pytest.mark.parametrize(
    ("xml", "rejected"),
    [
        (page_xml(7, "a & b"), Rejected(7, "Page 7", "broken_xml")),
        (page_xml(7, "&undefined;"), Rejected(7, "Page 7", "broken_xml")),
        (page_xml(7).replace("<ns>0", "<ns>zero"), Rejected(7, "Page 7", "broken_xml")),
        ("<page><ns>0</ns><id>7</id></page>", Rejected(7, "", "no_title")),
        *((f"<page><title>A</title>{number}</page>", Rejected(0, "A", "no_id")) for number in NO_IDS),
        (f"<page><ns>0</ns><id>{2**70}</id></page>", Rejected(0, "", "no_title")),
    ],
)  # fmt: skip
def test_unreadable_pages_are_rejected_with_their_title(xml: str, rejected: Rejected) -> None:
    assert parse(xml)[0] == rejected


@pytest.mark.parametrize("number", [f"<id>{2**63 - 1}</id>", f"<id>\n{2**63 - 1:040d} </id>"])
def test_the_largest_id_and_revisions_without_one_are_read(number: str) -> None:
    for revision in ("", "<id/>", "<id>none</id>", f"<id>{'9' * 5000}</id>"):
        xml = f"<page><title>A</title>{number}<revision>{revision}<text>B</text></revision></page>"
        assert parse(xml)[0] == Page(2**63 - 1, "A", 0, None, "B")


def test_entities_are_not_expanded() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaa">]>' + page_xml(1, "&a;")
    assert parse(page_xml(1, "&a;"))[0] == Rejected(1, "Page 1", "broken_xml")
    with_doctype = page_xml(1, bomb)
    assert isinstance(parse(with_doctype)[0], Rejected)


def test_namespace_by_prefix_in_the_papers_profile() -> None:
    xml = page_xml(1, title="Talk:A", ns=0)
    assert isinstance(parse(xml)[0], Page)
    assert parse(xml, "paper") == (None, {"pages:other_namespace": 1})


def test_too_large_a_page_hurts_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutting, "MAX_PAGE_BYTES", 100_000)
    monkeypatch.setattr(containers, "_CHUNK", 10_000)
    path = written(tmp_path, export(page_xml(1), page_xml(2, "x" * 1_000_000), page_xml(3)))
    pages, _ = read_all(path, 1 << 20)
    assert [type(page).__name__ for page in pages] == ["Page", "Rejected", "Page"]
    assert pages[1] == Rejected(2, "Page 2", "page_too_large")


@pytest.mark.parametrize("sign", ["x", "日", "😀"])
def test_too_long_a_text_hurts_its_page_alone(monkeypatch: pytest.MonkeyPatch, sign: str) -> None:
    """The newest revision's alone: those before it are not worked on."""
    monkeypatch.setattr(dump, "_MOST_CHARACTERS", 100)
    older = f"<revision><id>1</id><text>{sign * 101}</text></revision>"
    assert isinstance(parse(page_xml(7, sign * 100, extra=older))[0], Page)
    assert parse(page_xml(7, sign * 101))[0] == Rejected(7, "Page 7", "page_too_large")
    assert parse(page_xml(7, sign * 101, ns=1))[1] == {"pages:other_namespace": 1}


def test_a_head_of_many_elements_is_read_in_linear_time(tmp_path: Path) -> None:
    pieces = ("<siteinfo>", "<mediawiki ", "<!--", "<namespace key='1'>", "<![CDATA[", "<!DOCTYPE a [", "<page")
    for piece in pieces:
        path = written(tmp_path, f"<mediawiki>{piece * 100_000}".encode())
        begin = time.process_time()
        with pytest.raises(ValueError, match=r"dump\.xml: (its <siteinfo> is broken|no <page> in its first)"):
            dump.read_site_info(str(path))
        assert time.process_time() - begin < 5, piece


# Bad input


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"<!DOCTYPE html><html></html>", "an HTML page, not a dump"),
        (b"PK\x03\x04 a zip file", "wanted a MediaWiki export"),
        (b"<?xml version='1.0'?><rss></rss>", "no <mediawiki> element"),
        (export(), "no <page>"),
        # Other encodings and prefixes, and a head that cannot be read.
        (b'<?xml?><a:mediawiki xmlns:a="x"><a:page></a:page></a:mediawiki>', "wanted a MediaWiki export, its el"),
        (b'<?xml version="1.0" encoding="ISO-8859-1"?><mediawiki><page></page></mediawiki>', "wanted UTF-8"),
        (b"<?xml version='1.0' encoding='utf-16'?><mediawiki><page></page></mediawiki>", "wanted UTF-8"),
        (b"<mediawiki><siteinfo><dbname>x & y</dbname></siteinfo><page></page></mediawiki>", "siteinfo> is broken"),
        (b'<mediawiki><siteinfo><namespace key="a"/></siteinfo><page></page></mediawiki>', "siteinfo> is broken"),
    ],
)
def test_what_is_no_dump_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    path = written(tmp_path, content, "dump.xml.bz2")
    with pytest.raises(ValueError, match=message) as error:
        dump.read_site_info(str(path))
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_missing_file() -> None:
    with pytest.raises(ValueError, match=r"nowhere\.xml: no such dump file"):
        containers.detect_format("nowhere.xml")


@pytest.mark.parametrize("container", ["xml", "bz2", "multistream", "gz"])
@pytest.mark.parametrize("share", [0.3, 0.9, 0.999])
def test_a_cut_dump_is_an_error_or_counted(tmp_path: Path, long_export: bytes, container: str, share: float) -> None:
    data = packed(long_export, container)
    path = written(tmp_path, data[: int(len(data) * share)])
    with pytest.raises(TruncatedDump, match="allow_truncated") as error:
        read_all(path, 50_000)
    assert str(path) in str(error.value)
    with pytest.raises(TruncatedDump, match="allow_truncated"):
        dump.check_end(str(path))
    pages, counts = read_all(path, 50_000, allow_truncated=True)
    ids = [page.page_id for page in pages]
    assert ids == [number for number in range(1, 301) if number % 97][: len(ids)]
    assert counts["pages:truncated"] + counts["dump:end_missing"] >= 1


def test_damage_inside_is_an_error_even_when_cuts_are_allowed(tmp_path: Path, long_export: bytes) -> None:
    for container in ("bz2", "gz"):
        data = bytearray(packed(long_export, container))
        data[len(data) // 2] ^= 16
        with pytest.raises(ValueError, match="damaged"):
            read_all(written(tmp_path, data, container), 50_000, allow_truncated=True)


@pytest.mark.parametrize("container", ["xml", "bz2", "gz"])
def test_blanks_and_padding_behind_the_end_do_no_harm(tmp_path: Path, long_export: bytes, container: str) -> None:
    data = packed(long_export + b"\n" * 10_000, container)
    path = written(tmp_path, data + (b"\0" * 512 if container == "gz" else b""))
    dump.check_end(str(path))
    assert len(read_all(path, 50_000)[0]) == 297


@pytest.mark.parametrize("container", ["bz2", "multistream"])
@pytest.mark.parametrize("allow_truncated", [False, True])
def test_garbage_behind_bzip2_streams_costs_no_page(
    tmp_path: Path, long_export: bytes, container: str, allow_truncated: bool
) -> None:
    path = written(tmp_path, packed(long_export, container) + b"<html>" * 99)
    pages, counts = read_all(path, 50_000, allow_truncated=allow_truncated)
    assert len(pages) == 297
    assert counts == {"pages_read": 300, "pages:empty_text": 3, "revisions:superseded": 0}


@pytest.mark.parametrize(("element", "name"), [("<sitename>Gull &amp; Tern</sitename>", "Gull & Tern"), ("", "")])
def test_the_name_of_the_site_is_kept(tmp_path: Path, element: str, name: str) -> None:
    path = written(tmp_path, export(page_xml(1)).replace(b"<dbname>", f"{element}<dbname>".encode(), 1))
    site = dump.read_site_info(str(path))
    assert site.name == name
    assert SiteInfo.from_dict(site.to_dict()) == site


COMMENTS = [
    "<!-- made by hand -->\n",
    "<?xml version='1.0'?>\n<!-- a -->\n<!--\n<page> </mediawiki> -->",
    "\ufeff<!---->",
]


@pytest.mark.parametrize("comment", COMMENTS)
@pytest.mark.parametrize("container", ["xml", "bz2", "gz"])
def test_comments_before_the_root_element_are_read_over(tmp_path: Path, container: str, comment: str) -> None:
    path = written(tmp_path, packed(comment.encode() + export(page_xml(1), page_xml(2)), container))
    assert dump.read_site_info(str(path)).dbname == "enwiki"
    dump.check_end(str(path))
    assert [page.page_id for page in read_all(path, 10**9)[0]] == [1, 2]
