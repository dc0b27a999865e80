"""The compressed forms of the small dump hold it."""

import bz2
import gzip

from tests.support import DATA


def test_compressed_forms_hold_the_dump() -> None:
    xml = (DATA / "wiki-40.xml").read_bytes()
    assert bz2.decompress((DATA / "wiki-40.xml.bz2").read_bytes()) == xml
    assert gzip.decompress((DATA / "wiki-40.xml.gz").read_bytes()) == xml
