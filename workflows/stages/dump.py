"""From the dump to pages, paragraphs with their links, and redirects."""

import importlib.util
import json
import logging
import os
from collections.abc import Mapping
from typing import Any

from pipeline import storage
from pipeline.dump import containers, download, pages
from workflows.base import terminal
from workflows.base.parameters import AUTO
from workflows.base.settings import DumpSettings, PagesSettings
from workflows.base.stage import Result, Stage

logger = logging.getLogger("workflows")

_DEMO_FILE = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
_LOCATIONS = "locations.json"


def demo_dump() -> str:
    """Where the package gensim keeps its Wikipedia excerpt; the package is not imported.

    Raises:
        ValueError: it is not installed.
    """
    spec = importlib.util.find_spec("gensim")
    for folder in spec.submodule_search_locations or () if spec else ():
        path = os.path.join(folder, _DEMO_FILE)
        if os.path.isfile(path):
            return path
    raise ValueError(
        "--dump demo: comes with gensim 4.4.0 (`pip install --no-deps gensim==4.4.0`); or pass a dump"
    )


class FetchDump(DumpSettings, Stage):
    """The files of the dump: found or downloaded, measured, and looked at for being whole."""

    FOLDER = "dump"
    KEEPS = "unfinished"  # downloads go on where they stopped

    @property
    def _is_remote(self) -> bool:
        return download.is_remote(self.dump)

    def _local_sources(self) -> list[download.Source]:
        return download.local_sources(demo_dump() if self.dump == "demo" else self.dump)

    def bytes_parameters(self) -> dict[str, Any]:
        if self._is_remote:
            return {"dump": self.dump}
        return {"parts": [[source.name, source.size] for source in self._local_sources()]}

    def is_current(self) -> bool:
        """Local files have to be the ones that were measured: by path, size and time of change."""
        if not super().is_current():
            return False
        return self._is_remote or self._locations() == _locate(self._local_sources())

    def _locations(self) -> dict[str, Any]:
        try:
            return json.loads(storage.read_bytes(storage.join(self.folder, _LOCATIONS)))
        except (FileNotFoundError, ValueError):
            return {}

    def paths(self) -> list[str]:
        """The dump's files, in their order."""
        if not self._is_remote:
            return [source.location for source in self._local_sources()]
        return [os.path.abspath(path) for path in self.manifest().paths(self.folder, "parts/")]

    def indexes(self) -> dict[str, str]:
        """The indexes of the dump's gzip files, by the files' paths."""
        made = self.manifest().paths(self.folder, "indexes/")
        found = {os.path.basename(path).removesuffix(".gzi"): os.path.abspath(path) for path in made}
        return {path: found[name] for path in self.paths() if (name := os.path.basename(path)) in found}

    def work(self) -> Result:
        sources = self._download() if self._is_remote else self._local_sources()
        locations = _locate(
            sources
        )  # before the files are read: a change while they are is noticed by the next run
        indexes = [path for source in sources if (path := self._check(source.location))]
        site = pages.read_site_info(sources[0].location)
        parts = [
            {
                "name": source.name,
                "bytes": os.path.getsize(source.location),
                "sha256": storage.file_sha256(source.location),
            }
            for source in sources
        ]
        storage.write_bytes(
            storage.join(self.folder, _LOCATIONS), json.dumps(locations, ensure_ascii=False).encode()
        )
        files = (
            [storage.describe(self.folder, f"parts/{source.name}") for source in sources]
            if self._is_remote
            else []
        )
        files += [storage.describe(self.folder, path) for path in indexes]
        total = sum(os.path.getsize(source.location) for source in sources)
        facts = {"parts": parts, "site": site.to_dict()}
        return Result(tuple(files), rows={"files": len(parts), "bytes": total}, facts=facts)

    def _check(self, path: str) -> str:
        """Look whether a file is a whole dump; a gzip file is read for that, and its index is kept."""
        index = ""
        try:
            pages.read_site_info(path)
            if containers.detect_format(path) == "gz":
                index = f"indexes/{os.path.basename(path)}.gzi"
                storage.make_folder(storage.join(self.folder, "indexes"))
                containers.index_gzip(path, storage.join(self.folder, index))
            pages.check_end(path, storage.join(self.folder, index) if index else "")
        except ValueError as error:
            if isinstance(error, containers.TruncatedDump) and self.allow_truncated:
                logger.warning("%s", error)
                return index
            if self._is_remote:
                os.remove(path)  # so that the next run downloads it anew
            raise
        return index

    def _download(self) -> list[download.Source]:
        sources = []
        for source in download.remote_sources(self.dump):
            name = os.path.basename(source.name)
            path = os.path.join(self.folder, "parts", name)
            if not os.path.exists(path):
                with terminal.progress_bar(f"download {name}", unit="B") as show:
                    download.download(source, path, show)
            sources.append(download.Source(name, os.path.abspath(path), os.path.getsize(path)))
        return sources


def _locate(sources: list[download.Source]) -> dict[str, Any]:
    return {
        source.name: {"path": source.location, "mtime_ns": os.stat(source.location).st_mtime_ns}
        for source in sources
    }


class CorpusStage(PagesSettings, Stage):
    """A stage that cuts its work by the dump's size."""

    def fetched(self) -> FetchDump:
        return self.clone(FetchDump)

    def block_bytes(self) -> int:
        """`--block-size`; auto: 1/64 of the dump between 2 MiB and 16 MiB, as a power of two.

        A block ends with a page that begins in it, so its reader decompresses a bzip2 block (some 250 KB of the file)
        of the next one, too: small blocks are read twice.
        """
        if self.block_size != AUTO:
            return int(self.block_size)
        size = int(self.fetched().manifest().rows["bytes"])
        return min(16 << 20, max(2 << 20, 1 << (size // 64).bit_length()))

    def key(self) -> str:
        """Digest of all that decides the stage's bytes: committed blocks with another key are not reused."""
        return storage.digest(self.identity())

    def result(self, blocks: Mapping[int, storage.Result], **facts: Any) -> Result:
        """All blocks together."""
        merged = storage.merge_blocks(blocks)
        return Result(merged.files, merged.rows, merged.drops, {**merged.facts, **facts})
