"""The places that a dump comes from: local files, a URL, or a wiki's name on a Wikimedia dump site."""

import glob
import hashlib
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DUMP_SITE = "https://dumps.wikimedia.org"
_PROJECTS = "wiki|wiktionary|wikibooks|wikinews|wikiquote|wikisource|wikiversity|wikivoyage"
_WIKI_NAME = re.compile(rf"[a-z][a-z0-9_]*(?:{_PROJECTS})(?:/(\d{{8}}))?")
_JOBS = ("articlesmultistreamdump", "articlesdump")
_ATTEMPTS = 5
_TIMEOUT_SECONDS = 60
_BROKEN_OFF = (OSError, http.client.HTTPException)  # the second in the middle of an answer
_PASSING = (429, 500, 502, 503, 504)  # answers after which it is worth to ask again
_CHUNK = 1 << 20
_MOST_BYTES = 1 << 26  # of a page that says which files there are


@dataclass(frozen=True)
class Source:
    """One file of a dump: its name, the path or URL where it lies, and what is published of it."""

    name: str
    location: str
    size: int | None = None
    sha1: str | None = None


def is_remote(dump: str) -> bool:
    """Return whether the dump has to be downloaded."""
    return dump.startswith(("http://", "https://")) or is_wiki_name(dump)


def is_wiki_name(dump: str) -> bool:
    """Return whether the dump is named by its wiki, with or without a date."""
    return bool(_WIKI_NAME.fullmatch(dump)) and not os.path.isfile(dump)


def natural_key(name: str) -> list[tuple[int, str]]:
    """Sort key under which part 2 comes before part 10, and part 02 before part 2."""
    pieces = re.split(r"(\d+)", name)
    return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in pieces] + [(-1, name)]


def local_sources(dump: str) -> list[Source]:
    """The local files of a path or glob, in the natural order of their names. Raises: ValueError: there is none."""
    paths = [dump] if os.path.isfile(dump) else [path for path in glob.glob(dump) if os.path.isfile(path)]
    paths = [path for path in paths if "multistream-index" not in os.path.basename(path) or path == dump]
    if not paths:
        what = "a folder" if os.path.isdir(dump) else "no such file"
        raise ValueError(
            f"--dump {dump}: {what}; wanted a dump file, a glob of its parts, a URL, or a wiki's name as simplewiki"
        )
    names = Counter(os.path.basename(path) for path in paths)
    for name, count in names.items():
        if count > 1:
            raise ValueError(f"--dump {dump}: {count} files are named {name}; the parts of a dump have different names")
        if not name.isprintable() or name != name.encode("utf-8", "replace").decode():
            raise ValueError(f"--dump {dump}: the file name {name!a} is not plain UTF-8 text; rename it")
    paths.sort(key=lambda path: natural_key(os.path.basename(path)))
    return [Source(os.path.basename(path), os.path.abspath(path), os.path.getsize(path)) for path in paths]


def remote_sources(dump: str, site: str = DUMP_SITE) -> list[Source]:
    """The files behind a URL or a wiki's name; a name without a date means its newest finished dump.

    Raises: ValueError: the site has no such wiki or no finished dump of it.
    """
    if dump.startswith(("http://", "https://")):
        return [Source(os.path.basename(urllib.parse.urlsplit(dump).path) or "dump", dump)]
    wiki, _, date = dump.partition("/")
    listing = "" if date else _get(f"{site}/{wiki}/").decode("utf-8", "replace")
    dates = [date] if date else sorted(set(re.findall(r'href="(\d{8})/"', listing)), reverse=True)
    for candidate in dates:
        try:
            sources = _finished_files(site, wiki, candidate)
        except ValueError:  # a date whose dump has only begun, or is being removed
            if date:
                raise
            continue
        if sources:
            return sources
    raise ValueError(f"--dump {dump}: {site} holds no finished dump of it (looked at {', '.join(dates) or 'none'})")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but none that leaves https: on the way of plain http anybody could change a dump."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if req.type == "https" and not newurl.startswith("https:"):
            raise ValueError(f"{req.full_url}: leads to {newurl}, which is not encrypted; give that URL")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(request: urllib.request.Request) -> Any:
    return urllib.request.build_opener(_Redirects).open(request, timeout=_TIMEOUT_SECONDS)


def _get(url: str) -> bytes:
    try:
        with _open(urllib.request.Request(url)) as response:
            return response.read(_MOST_BYTES)
    except _BROKEN_OFF as error:
        raise ValueError(f"{url}: {error}; check --dump and the network") from error


def table_source(part: str, table: str, site: str = DUMP_SITE) -> Source:
    """The file of a table of the wiki's database that is of the same dump as `part`, by whose name it is found.

    Raises: ValueError: the site has it not.
    """
    wiki, date = part.split("-")[:2]
    sources = _finished_files(site, wiki, date, jobs=(f"{table.replace('_', '')}table",))
    if len(sources) != 1:
        raise ValueError(
            f"{site}/{wiki}/{date}: holds no finished {table}; give corpus.page_props a file, or none to go on without"
        )
    return sources[0]


def _finished_files(site: str, wiki: str, date: str, jobs: Sequence[str] = _JOBS) -> list[Source]:
    """The files of the first of these jobs that is done. Raises: ValueError: the site does not say it as Wikimedia."""
    url = f"{site}/{wiki}/{date}/dumpstatus.json"
    content = _get(url)
    try:
        entries: list[dict[str, Any]] = [json.loads(content).get("jobs", {}).get(job, {}) for job in jobs]
        done = (entry["files"] for entry in entries if entry.get("status") == "done")
        files: dict[str, Any] = next(done, {})
        named = [(name, files[name]) for name in sorted(files, key=natural_key) if "-index" not in name]
        sources = [Source(name, site + of["url"], of.get("size"), of.get("sha1")) for name, of in named]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{url}: not as Wikimedia writes it ({error!r}); give the files by --dump") from None
    for each in sources:
        # Files are written under their names, and no other host is asked for them.
        if each.name in (".", "..") or "/" in each.name or not each.location.startswith(f"{site}/"):
            raise ValueError(f"{url}: names a file {each.name!r} at {each.location!r}; wanted one of {site}/")
    return sources


def download(source: Source, path: str, progress: Callable[[int, int | None], None] = lambda done, total: None) -> None:
    """Download a file to `path`, going on where an earlier attempt stopped.

    It appears at `path` when it is complete, of the published size and checksum. `progress` gets bytes done and
    bytes in all, None where unknown. Raises: ValueError: the server does not give it, or what it gives has another
    size or checksum.
    """
    part = Path(path + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(_ATTEMPTS):
        try:
            total = _fetch(source, part, progress)
            break
        except _BROKEN_OFF as error:
            problem, is_final = f"{error}; run again to resume the download", attempt == _ATTEMPTS - 1
            if isinstance(error, urllib.error.HTTPError):
                problem = f"the server answers {error.code} {error.reason}; check --dump"
                is_final |= error.code not in _PASSING
            if is_final:
                raise ValueError(f"{source.location}: {problem}") from error
            time.sleep(2**attempt)
    _check(source, part, total)
    os.replace(part, path)
    part.with_name(part.name + ".version").unlink(missing_ok=True)


def _fetch(source: Source, part: Path, progress: Callable[[int, int | None], None]) -> int | None:
    """Append what is missing, if the server still has the same file; returns the size that it names."""
    marker = part.with_name(part.name + ".version")  # which version of the file the bytes in `part` are of
    version = marker.read_text() if marker.exists() and part.exists() else ""
    have = part.stat().st_size if version else 0
    headers = {"Range": f"bytes={have}-", "If-Range": version} if have else {}
    request = urllib.request.Request(source.location, headers=headers)
    try:
        response = _open(request)
    except urllib.error.HTTPError as error:
        if error.code == 416 and (error.headers.get("Content-Range") or "").endswith(f"/{have}"):
            return have  # nothing is missing
        if error.code == 416:
            marker.unlink()
            raise ConnectionError("the server's file is shorter than what came before") from error
        raise
    with response, open(part, "ab" if response.status == 206 else "wb") as stream:
        marker.write_text(response.headers.get("ETag") or response.headers.get("Last-Modified") or "")
        done = have if response.status == 206 else 0
        length = response.headers.get("Content-Length")
        total = done + int(length) if length else source.size
        while chunk := response.read(_CHUNK):
            stream.write(chunk)
            done += len(chunk)
            progress(done, total)
        stream.flush()
        os.fsync(stream.fileno())
    if total is not None and done < total:
        raise ConnectionError(f"the connection broke at byte {done} of {total}")
    return total


def _check(source: Source, part: Path, total: int | None) -> None:
    size, wanted = part.stat().st_size, source.size or total
    problem = f"{size} bytes came, {wanted} were announced" if wanted is not None and size != wanted else ""
    if source.sha1 and not problem:
        with open(part, "rb") as stream:
            found = hashlib.file_digest(stream, "sha1").hexdigest()
        problem = f"SHA-1 is {found}, published is {source.sha1}" if found != source.sha1 else ""
    if problem:
        part.unlink()
        part.with_name(part.name + ".version").unlink(missing_ok=True)
        raise ValueError(f"{source.location}: {problem}; its copy is removed, run again to download it")
