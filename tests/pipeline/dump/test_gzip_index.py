"""A gzip file's data from anywhere in it, held against the data as a whole."""

import gzip
from io import FileIO
from pathlib import Path

import pytest

from pipeline.dump import gzip_index
from tests.support import DATA

MEMBERS = [
    (DATA / "wiki-40.xml").read_bytes() * 150,
    b"",
    b"a short one",
    (DATA / "wiki-40.xml").read_bytes(),
]
WHOLE = b"".join(MEMBERS)


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Members, with zeros between them that fill more than a piece of reading, and their index of many points."""
    path = str(tmp_path_factory.mktemp("gzip") / "dump.gz")
    packed = [gzip.compress(data, level) for data, level in zip(MEMBERS, (1, 6, 9, 6), strict=True)]
    Path(path).write_bytes(packed[0] + bytes(2_500_000) + b"".join(packed[1:]) + bytes(100))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gzip_index, "_SPACING", 1 << 16)
        gzip_index.index_gzip(path, f"{path}.gzi")
    return path, f"{path}.gzi"


def test_reading_starts_anywhere(dump: tuple[str, str]) -> None:
    path, index = dump
    assert gzip_index.gzip_data_size(index) == len(WHOLE)
    ends = [len(MEMBERS[0]), len(MEMBERS[0]) + len(MEMBERS[2])]
    places = [0, 1, *(end + step for end in ends for step in (-1, 0, 1)), len(WHOLE) - 1]
    places += range(40_000, len(WHOLE), 50_021)  # between points, most of which begin within a byte
    for start in places:
        pieces = list(gzip_index.read_gzip(path, start, index))
        assert b"".join(data for _, data in pieces) == WHOLE[start:], start
        assert pieces[0][0] == start
    assert b"".join(data for _, data in gzip_index.read_gzip(path)) == WHOLE
    assert {gzip_index._find_entry(index, start).bits for start in places} == set(range(8)), "all were tried"


def test_a_piece_of_the_index_is_read(dump: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    _, index = dump
    sizes = []

    class Counted(FileIO):
        def read(self, size: int | None = -1, /) -> bytes:
            sizes.append(size)
            return super().read(size)

    monkeypatch.setattr(gzip_index, "open", lambda path, _: Counted(path), raising=False)
    gzip_index._find_entry(index, len(WHOLE) * 2 // 3)
    assert min(sizes) > 0
    assert 32_768 < sum(sizes) < 40_000
    assert Path(index).stat().st_size > 10 * sum(sizes)


def test_another_file_is_no_index(tmp_path: Path, dump: tuple[str, str]) -> None:
    (tmp_path / "short").write_bytes(b"GZIDX")
    for path in (str(tmp_path / "short"), dump[0]):
        with pytest.raises(ValueError, match="no index of a gzip file; delete it and run FetchDump again"):
            gzip_index.gzip_data_size(path)
