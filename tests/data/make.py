"""Makes the compressed forms of wiki-40.xml beside it; the same input gives the same bytes."""

import bz2
import gzip
import io
import re
from pathlib import Path

PAGES_PER_STREAM = 10
HERE = Path(__file__).resolve().parent


def multistream(xml: str) -> tuple[bytes, bytes]:
    """(dump, index) in Wikimedia's layout: siteinfo, streams of some pages each, a closing stream."""
    pages = list(re.finditer(r"(?:  <!--[^\n]*\n)?  <page>.*?</page>\n", xml, re.DOTALL))
    dump = bz2.compress(xml[: pages[0].start()].encode())
    index = []
    for first in range(0, len(pages), PAGES_PER_STREAM):
        group = [page.group() for page in pages[first : first + PAGES_PER_STREAM]]
        for page in group:
            page_id, title = re.search(r"<id>(\d+)</id>", page), re.search(r"<title>(.*?)</title>", page)
            assert page_id
            assert title
            index.append(f"{len(dump)}:{page_id.group(1)}:{title.group(1)}\n")
        dump += bz2.compress("".join(group).encode())
    dump += bz2.compress(xml[pages[-1].end() :].encode())
    return dump, bz2.compress("".join(index).encode())


def gzipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()


def compressed(xml: bytes) -> dict[str, bytes]:
    """The name and bytes of each file that is made from the dump."""
    dump, index = multistream(xml.decode())
    return {
        "wiki-40.xml.bz2": bz2.compress(xml),
        "wiki-40.xml.gz": gzipped(xml),
        "wiki-40-multistream.xml.bz2": dump,
        "wiki-40-multistream-index.txt.bz2": index,
    }


if __name__ == "__main__":
    for name, data in compressed((HERE / "wiki-40.xml").read_bytes()).items():
        (HERE / name).write_bytes(data)
