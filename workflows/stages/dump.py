"""FetchDump, and what the stages share that cut their work by the dump's size."""

import functools
import os
from typing import Any

from pipeline import storage
from pipeline.dump import fetch
from pipeline.dump.download import is_remote
from workflows.base import terminal
from workflows.base.parameters import AUTO
from workflows.base.settings import BlockSettings, DumpSettings, PagesSettings
from workflows.base.stage import Result, Stage


class FetchDump(DumpSettings, Stage):
    """The files of the dump: found or downloaded, measured, and checked for being complete."""

    FOLDER = "dump"
    KEEPS = "unfinished"  # downloads go on where they stopped

    def bytes_parameters(self) -> dict[str, Any]:
        if is_remote(self.dump):
            return {"dump": self.dump}
        return {"parts": [[source.name, source.size] for source in fetch.find_parts(self.dump)]}

    def is_current(self) -> bool:
        """Local files have to be the ones that were measured."""
        return super().is_current() and (
            is_remote(self.dump) or fetch.is_unchanged(fetch.find_parts(self.dump), self.folder)
        )

    def paths(self) -> list[str]:
        """The dump's files, in their order."""
        if not is_remote(self.dump):
            return [source.location for source in fetch.find_parts(self.dump)]
        return [os.path.abspath(path) for path in self.manifest().paths(self.folder, "parts/")]

    def indexes(self) -> dict[str, str]:
        """The indexes of the dump's gzip files, by the files' paths."""
        made = self.manifest().paths(self.folder, "indexes/")
        found = {os.path.basename(path).removesuffix(".gzi"): os.path.abspath(path) for path in made}
        return {path: found[name] for path in self.paths() if (name := os.path.basename(path)) in found}

    def work(self) -> Result:
        progress = functools.partial(terminal.progress_bar, unit="B")
        return fetch.build(self.dump, self.folder, allow_truncated=self.allow_truncated, progress=progress)


class BlockStage(BlockSettings, Stage):
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


class CorpusStage(PagesSettings, BlockStage):
    """ExtractPages, and what follows from it."""
