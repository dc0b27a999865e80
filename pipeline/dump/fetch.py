"""FetchDump: the dump's files found or downloaded, measured, and checked for being complete."""

import importlib.util
import json
import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager

from pipeline import storage
from pipeline.dump import pages
from pipeline.dump.containers import TruncatedDump
from pipeline.dump.download import Source, download, is_remote, local_sources, remote_sources

logger = logging.getLogger("pipeline")

Progress = Callable[[str], AbstractContextManager[Callable[[int, int | None], None]]]
_DEMO_FILE = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_LOCATIONS = "locations.json"  # where local files lie, which is no part of the manifest


def build(dump: str, folder: str, *, allow_truncated: bool, progress: Progress) -> storage.Result:
    """Fetch and measure the files of a dump.

    `dump` is a file, a glob, a URL, a wiki's name, or demo. Downloads go into the folder. Raises: ValueError: there is
    no such dump, or a file of it is damaged.
    """
    remote = is_remote(dump)
    sources = download_parts(dump, folder, progress) if remote else find_parts(dump)
    # Before the files are read: a change meanwhile is noticed by the next run.
    keep_locations(sources, folder)
    truncated: dict[str, str] = {}
    for source in sources:
        try:
            problem = check_part(source.location, allow_truncated=allow_truncated)
            truncated |= {"truncated": problem} if problem else {}
        except ValueError:
            if remote:
                os.remove(source.location)  # so that the next run downloads it anew
            raise
    parts = [{"name": each.name, "bytes": each.size, "sha256": storage.file_sha256(each.location)} for each in sources]
    fetched = [f"parts/{source.name}" for source in sources] if remote else []
    return storage.Result(
        tuple(storage.describe(folder, path) for path in fetched),
        rows={"files": len(parts), "bytes": sum(source.size or 0 for source in sources)},
        facts={"parts": parts, "site": pages.read_site_info(sources[0].location).to_dict(), **truncated},
    )


def find_parts(dump: str) -> list[Source]:
    """The local files of a dump, which may be the demo's."""
    return local_sources(demo_dump() if dump == "demo" else dump)


def demo_dump() -> str:
    """The path of gensim's excerpt; the package is not imported. Raises: ValueError: it is not installed."""
    spec = importlib.util.find_spec("gensim")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = os.path.join(folder, _DEMO_FILE)
        if os.path.isfile(path):
            return path
    raise ValueError("--dump demo: comes with gensim 4.4.0 (`pip install --no-deps gensim==4.4.0`); or pass a dump")


def download_parts(dump: str, folder: str, progress: Progress) -> list[Source]:
    """The files of a dump that lies elsewhere, downloaded into the folder; those that are there stay.

    What an interrupted download of an older dump has left goes.
    """
    sources, wanted = [], {source.name: source for source in remote_sources(dump)}
    for name in storage.list_files(storage.join(folder, "parts")):
        if name.removesuffix(".version").removesuffix(".part") not in wanted:
            logger.info("%s: of another download, removed", storage.join(folder, "parts", name))
            storage.remove(storage.join(folder, "parts", name))
    for name, source in wanted.items():
        path = os.path.join(folder, "parts", name)
        if not os.path.exists(path):
            with progress(f"download {name}") as show:
                download(source, path, show)
        sources.append(Source(name, os.path.abspath(path), os.path.getsize(path)))
    return sources


def check_part(path: str, *, allow_truncated: bool) -> str:
    """Check that a file is complete; what it lacks is an error, or is told and returned."""
    try:
        pages.read_site_info(path)
        pages.check_end(path)
    except TruncatedDump as error:
        if not allow_truncated:
            raise
        logger.warning("%s", error)
        return str(error)
    return ""


def keep_locations(sources: list[Source], folder: str) -> None:
    """Write down where the files lie, for `is_unchanged`."""
    storage.write_bytes(storage.join(folder, _LOCATIONS), _located(sources))


def is_unchanged(sources: list[Source], folder: str) -> bool:
    """Return whether local files are the ones that were read: by path and time of change."""
    path = storage.join(folder, _LOCATIONS)
    return storage.file_size(path) is not None and storage.read_bytes(path) == _located(sources)


def _located(sources: list[Source]) -> bytes:
    """The path of each file, and the time of its last change."""
    found = {each.name: {"path": each.location, "mtime_ns": os.stat(each.location).st_mtime_ns} for each in sources}
    return json.dumps(found, ensure_ascii=False).encode()
