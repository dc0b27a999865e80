"""Finding and downloading dumps, against a server on this machine."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import permutations
from pathlib import Path

import pytest

from pipeline.dump import download
from pipeline.dump.download import Source

CONTENT = bytes(range(256)) * 20_000


class Site:
    """A dump site: files by path; `cut` ends the first answer after that many bytes, in a chunk if it `is_chunked`."""

    def __init__(self) -> None:
        self.files = {"/x": CONTENT}
        self.cut: int | None = None
        self.is_chunked = False
        self.ranges: list[str | None] = []
        self.version = '"1"'
        self.url = ""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            data = site.files.get(self.path)
            if data is None:
                self.send_error(404)
                return
            wanted = self.headers.get("Range")
            site.ranges.append(wanted)
            if self.headers.get("If-Range") not in (None, site.version):
                wanted = None
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
            if start >= len(data) > 0:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(data)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206 if wanted else 200)
            cut, site.cut = site.cut, None
            in_chunks = site.is_chunked and cut is not None
            size = ("Content-Length", str(len(data) - start))
            self.send_header(*(("Transfer-Encoding", "chunked") if in_chunks else size))
            self.send_header("ETag", site.version)
            self.end_headers()
            self.wfile.write(f"{len(data):x}\r\n".encode() * in_chunks)
            self.wfile.write(data[start:cut])
            self.close_connection = True

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(download.time, "sleep", lambda seconds: None)
    yield site
    server.shutdown()
    server.server_close()


def test_download_with_progress(site: Site, tmp_path: Path) -> None:
    shown: list[tuple[int, int | None]] = []
    source = Source("x", site.url + "/x", len(CONTENT), hashlib.sha1(CONTENT).hexdigest())
    download.download(source, str(tmp_path / "x"), lambda done, total: shown.append((done, total)))
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert shown[-1] == (len(CONTENT), len(CONTENT))
    assert len(shown) > 1


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_broken_connection_goes_on_where_it_stopped(site: Site, tmp_path: Path, is_chunked: bool) -> None:
    site.cut, site.is_chunked = 2_000_000, is_chunked
    download.download(Source("x", site.url + "/x"), str(tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert site.ranges[0] is None
    start = int(str(site.ranges[1]).removeprefix("bytes=").removesuffix("-"))
    assert 0 < start <= 2_000_000
    assert len(site.ranges) == 2


def attempt(folder: Path, content: bytes, version: str = '"1"') -> None:
    """The files that an interrupted download leaves."""
    (folder / "x.part").write_bytes(content)
    (folder / "x.part.version").write_text(version)


def test_an_earlier_attempt_is_resumed(site: Site, tmp_path: Path) -> None:
    attempt(tmp_path, CONTENT[:1000])
    download.download(Source("x", site.url + "/x", len(CONTENT)), str(tmp_path / "x"))
    assert site.ranges == ["bytes=1000-"]
    assert (tmp_path / "x").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize(("part", "version"), [(b"old" * 1000, '"0"'), (CONTENT, '"1"'), (CONTENT + b"more", '"1"')])
def test_a_part_of_another_version_or_complete_or_too_long(
    site: Site, tmp_path: Path, part: bytes, version: str
) -> None:
    attempt(tmp_path, part, version)
    download.download(Source("x", site.url + "/x"), str(tmp_path / "x"))
    assert (tmp_path / "x").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("size", "sha1", "message"), [(None, "0" * 40, "SHA-1 is .*published is 0000"), (5, None, "5 were announced")]
)
def test_what_does_not_match_is_removed(
    site: Site, tmp_path: Path, size: int | None, sha1: str | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        download.download(Source("x", site.url + "/x", size, sha1), str(tmp_path / "x"))
    assert list(tmp_path.iterdir()) == []


def test_unknown_address(site: Site, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"/nothing: the server answers 404 .*--dump"):
        download.download(Source("x", site.url + "/nothing"), str(tmp_path / "x"))


def status(wiki: str, date: str, state: str = "done") -> bytes:
    names = [f"{wiki}-{date}-pages-articles-multistream{part}.xml.bz2" for part in (10, 2, 1)]
    files = {name: {"url": f"/{wiki}/{date}/{name}", "size": 7, "sha1": "ab"} for name in names}
    files[f"{wiki}-{date}-pages-articles-multistream-index1.txt.bz2"] = {"url": "/x", "size": 1, "sha1": "cd"}
    return json.dumps({"jobs": {"articlesmultistreamdump": {"status": state, "files": files}}}).encode()


def test_a_wikis_name_becomes_its_newest_finished_dump(site: Site) -> None:
    dates = ("20260901", "20261101", "latest")
    site.files["/simplewiki/"] = "".join(f'<a href="{date}/">x</a> ' for date in dates).encode()
    site.files["/simplewiki/20261101/dumpstatus.json"] = status("simplewiki", "20261101", "in-progress")
    site.files["/simplewiki/20260901/dumpstatus.json"] = status("simplewiki", "20260901")
    sources = download.remote_sources("simplewiki", site.url)
    assert [source.name for source in sources] == [
        f"simplewiki-20260901-pages-articles-multistream{part}.xml.bz2" for part in (1, 2, 10)
    ]
    assert sources[0].location == f"{site.url}/simplewiki/20260901/{sources[0].name}"
    assert (sources[0].size, sources[0].sha1) == (7, "ab")
    assert download.remote_sources("simplewiki/20260901", site.url) == sources
    with pytest.raises(ValueError, match=r"simplewiki/20261101: .* no finished dump"):
        download.remote_sources("simplewiki/20261101", site.url)


def jobs_of(job: object) -> dict[str, object]:
    return {"jobs": {"articlesdump": job, "pagepropstable": job}}


def files_of(name: str, url: object = "/aawiki/20260901/a.bz2") -> dict[str, object]:
    return jobs_of({"status": "done", "files": {name: {"url": url, "size": 7}}})


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("<html>no status</html>", "AttributeError"),
        (jobs_of("done"), "AttributeError"),
        (jobs_of({"status": "done"}), "KeyError.'files'"),
        (jobs_of({"status": "done", "files": None}), "TypeError"),
        (jobs_of({"status": "done", "files": {"a.bz2": {}}}), "KeyError.'url'"),
        (files_of("a.bz2", None), "TypeError"),
        (files_of("../../x"), "a file '../../x'"),
        (files_of("a.bz2", "@example.org/a"), "a file 'a.bz2' at 'http.*@example.org/a'"),
    ],
)
def test_a_status_that_no_site_of_wikimedia_has_is_named(site: Site, content: object, found: str) -> None:
    whole = json.dumps(content).encode()
    said = rf"^{site.url}/aawiki/20260901/dumpstatus\.json: .*"
    for text, why in ((whole, found), (whole[:-1], "JSONDecodeError"), (b"\xff\xfe{", "UnicodeDecodeError")):
        site.files["/aawiki/20260901/dumpstatus.json"] = text
        with pytest.raises(ValueError, match=said + why):
            download.table_source("aawiki-20260901-pages-articles.xml.bz2", "page_props", site.url)
        with pytest.raises(ValueError, match=said + why):
            download.remote_sources("aawiki/20260901", site.url)


@pytest.mark.parametrize(
    ("old", "new", "follows"),
    [
        ("https://a.org/x", "https://b.org/x", True),
        ("http://a.org/x", "https://a.org/x", True),
        ("http://a.org/x", "http://b.org/x", True),
        ("https://a.org/x", "http://a.org/x", False),
        ("https://a.org/x", "ftp://a.org/x", False),
        ("https://a.org/x", "HTTP://b.org/x", False),
    ],
)
def test_no_redirect_leaves_https(old: str, new: str, follows: bool) -> None:
    arguments = (download.urllib.request.Request(old), None, 302, "Found", Message(), new)
    if follows:
        assert download._Redirects().redirect_request(*arguments).full_url == new
    else:
        with pytest.raises(ValueError, match=f"^{old}: leads to {new}, which is not encrypted; give that"):
            download._Redirects().redirect_request(*arguments)


@pytest.mark.parametrize(
    ("dump", "remote"),
    [
        ("simplewiki", True),
        ("enwiki/20181220", True),
        ("https://example.org/x.xml.bz2", True),
        ("demo", False),
        ("../enwiki", False),
    ],
)
def test_what_is_downloaded(dump: str, remote: bool) -> None:
    assert download.is_remote(dump) is remote


def test_local_parts_come_in_natural_order(tmp_path: Path) -> None:
    for name in ("d10.xml", "d2.xml", "d1.xml", "d-multistream-index1.xml"):
        (tmp_path / name).write_text("x")
    sources = download.local_sources(str(tmp_path / "d*.xml"))
    assert [source.name for source in sources] == ["d1.xml", "d2.xml", "d10.xml"]
    assert sources[0] == Source("d1.xml", str(tmp_path / "d1.xml"), 1)


@pytest.mark.parametrize(
    "names",
    [
        ["a1²2.xml", "a2²1.xml", "a10.xml"],
        ["part-01.xml", "part-1.xml", "part-001.xml", "part-2.xml"],
        ["d٣.xml", "d3.xml", "d03.xml", "d４.xml"],
        ["p", "p1", "p1p", "p1p2", "p①", "pⅣ"],
        ["x-1-01", "x-01-1", "x-1-1", "x-01-01"],
    ],
)
def test_names_have_one_order_whatever_the_folder_gives(names: list[str]) -> None:
    [order] = {tuple(sorted(each, key=download.natural_key)) for each in permutations(names)}
    numbers = [[int(number) for number in re.findall(r"\d+", name)] for name in order]
    assert numbers == sorted(numbers) or "p" in names


@pytest.mark.parametrize(("dump", "message"), [("nothing.xml", "no such file"), (".", "a folder"), ("x*.y", "no such")])
def test_no_local_file(dump: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        download.local_sources(dump)


def test_parts_need_different_names(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "wiki.xml").write_text("x")
    with pytest.raises(ValueError, match=r"2 files are named wiki\.xml"):
        download.local_sources(str(tmp_path / "*/wiki.xml"))


def test_a_table_of_the_dump_is_found_by_the_name_of_a_part(site: Site) -> None:
    name = "testwiki-20261101-page_props.sql.gz"
    file = {"size": 9, "sha1": "cd", "url": f"/testwiki/20261101/{name}"}
    jobs = {"pagepropstable": {"status": "done", "files": {name: file}}}
    site.files["/testwiki/20261101/dumpstatus.json"] = json.dumps({"jobs": jobs}).encode()
    part = "testwiki-20261101-pages-articles-multistream1.xml-p1p9.bz2"
    found = download.table_source(part, "page_props", site.url)
    assert found == Source(name, f"{site.url}/testwiki/20261101/{name}", 9, "cd")
    jobs["pagepropstable"]["status"] = "waiting"
    site.files["/testwiki/20261101/dumpstatus.json"] = json.dumps({"jobs": jobs}).encode()
    with pytest.raises(ValueError, match=r"20261101: holds no finished page_props; give corpus\.page_props"):
        download.table_source(part, "page_props", site.url)
