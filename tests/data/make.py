"""Makes the compressed forms of wiki-40.xml beside it; the same input gives the same bytes."""

import bz2
import gzip
from pathlib import Path

HERE = Path(__file__).resolve().parent


def compressed(xml: bytes) -> dict[str, bytes]:
    """The name and bytes of each file that is made from the dump."""
    return {"wiki-40.xml.bz2": bz2.compress(xml), "wiki-40.xml.gz": gzip.compress(xml, mtime=0)}


if __name__ == "__main__":
    for name, data in compressed((HERE / "wiki-40.xml").read_bytes()).items():
        (HERE / name).write_bytes(data)
