"""The compressed form of the small dump holds it."""

import bz2

from tests.support import DATA


def test_the_compressed_form_holds_the_dump() -> None:
    assert bz2.decompress((DATA / "wiki-40.xml.bz2").read_bytes()) == (DATA / "wiki-40.xml").read_bytes()
