import bz2
import gzip
import importlib.util
import re
from types import ModuleType
from xml.etree import ElementTree

import pytest

from tests.support import DATA

XML = (DATA / "wiki-40.xml").read_bytes()


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_test_data", DATA / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_compressed_forms_hold_the_dump(make: ModuleType) -> None:
    files = make.compressed(XML)
    assert files == make.compressed(XML)
    for name in ("wiki-40.xml.bz2", "wiki-40-multistream.xml.bz2"):
        assert bz2.decompress((DATA / name).read_bytes()) == bz2.decompress(files[name]) == XML
    assert gzip.decompress((DATA / "wiki-40.xml.gz").read_bytes()) == XML
    index = "wiki-40-multistream-index.txt.bz2"
    assert (DATA / index).read_bytes() == files[index]


def test_index_leads_to_every_page() -> None:
    dump = (DATA / "wiki-40-multistream.xml.bz2").read_bytes()
    lines = bz2.decompress((DATA / "wiki-40-multistream-index.txt.bz2").read_bytes()).decode().splitlines()
    for line in lines:
        offset, page_id, title = line.split(":", 2)
        stream = bz2.BZ2Decompressor().decompress(dump[int(offset) :]).decode()
        assert f"<title>{title}</title>" in stream
        assert f"<id>{page_id}</id>" in stream
    assert len(lines) == XML.count(b"<page>") >= 40


def test_readme_names_every_page() -> None:
    pages = ElementTree.fromstring(XML).findall("{*}page")
    titles = [page.findtext("{*}title") for page in pages]
    rows = re.findall(
        r"^\| \d+ \| \d+ \| `(.*)` \|", (DATA / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert rows == titles
