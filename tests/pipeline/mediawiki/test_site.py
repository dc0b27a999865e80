"""The wiki's values in a dump's head."""

from pathlib import Path

import pytest

from pipeline.dump.pages import read_site_info


@pytest.mark.parametrize(
    ("names", "is_wikimedia"),
    [
        ("<dbname>enwiki</dbname><base>https://fork.example/wiki/Main</base>", True),
        ("<dbname>quaywiki</dbname><base>https://quay.example/wiki/Main</base>", False),
        ("<dbname>mywiki</dbname><base>https://quay.example/wiki/Main</base>", False),
        ("<base>http://en.wikipedia.org/wiki/Main_Page</base>", True),
        ("<base>http://quay.example/wiki/Main</base>", False),
        ("", True),
    ],
)
def test_prefixes_of_other_wikis_come_with_wikimedias(tmp_path: Path, names: str, is_wikimedia: bool) -> None:
    path = tmp_path / "dump.xml"
    path.write_text(
        f'<mediawiki xml:lang="en"><siteinfo>{names}<case>first-letter</case></siteinfo><page></page></mediawiki>'
    )
    site = read_site_info(str(path))
    assert site.is_wikimedia is is_wikimedia
    prefixes = {"de", "wikt", "category"} if is_wikimedia else {"category"}
    assert site.other_prefixes & {"de", "wikt", "category", "star"} == prefixes
    assert bool(site.own_prefixes) is is_wikimedia
