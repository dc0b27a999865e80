"""From the dump to pages, paragraphs with links, redirects, rejected pages and lost templates.

ReadTemplates comes before ExtractPages where the dump's own templates are shown.
"""

import functools
from typing import Any

from workflows.base.stage import Result, Stage
from workflows.engines import beam
from workflows.engines.disk import Need
from workflows.stages.dump import BlockStage, CorpusStage


class DumpReader(BlockStage, beam.BeamStage):
    """A stage that reads the dump."""

    def bytes_of(self, path: str) -> float:
        from pipeline.dump.containers import packed_size

        return packed_size(path)


class ReadTemplates(DumpReader):
    """The dump's own templates: bodies of text and parameters, and redirects."""

    FOLDER = "templates"
    NEED = Need(written=0.1)
    KEEPS = "blocks"

    def requires(self) -> dict[str, Stage]:
        return {"FetchDump": self.fetched()}

    def bytes_parameters(self) -> dict[str, Any]:
        return self.values("block_size", "allow_truncated")

    def work(self) -> Result:
        from pipeline.jobs import read_templates

        fetched = self.fetched()
        return read_templates.build(
            functools.partial(beam.run_beam, self),
            fetched.paths(),
            fetched.indexes(),
            self.block_bytes(),
            self.folder,
            site=fetched.manifest().facts["site"],
            allow_truncated=self.allow_truncated,
        )


class ExtractPages(CorpusStage, DumpReader):
    """Pages, paragraphs with their links, redirects, rejected pages and what templates cost."""

    FOLDER = "pages"
    VERSION = 7
    NEED = Need(written=1.45)  # of a dump in bzip2
    KEEPS = "blocks"

    def requires(self) -> dict[str, Stage]:
        templates = self.cloned(ReadTemplates) if self.dump_templates else {}
        return {"FetchDump": self.fetched(), **templates}

    def bytes_parameters(self) -> dict[str, Any]:
        return self.values("profile", "block_size", "allow_truncated")

    def check_needs(self) -> None:
        super().check_needs()
        if self.dump_templates and self.profile == "paper":
            raise ValueError("--dump-templates: --profile paper shows no template; use --profile fixed")

    def work(self) -> Result:
        from pipeline.jobs import extract_pages

        fetched = self.fetched()
        return extract_pages.build(
            functools.partial(beam.run_beam, self),
            fetched.paths(),
            fetched.indexes(),
            self.block_bytes(),
            self.folder,
            site=fetched.manifest().facts["site"],
            profile=self.profile,
            allow_truncated=self.allow_truncated,
            max_rejected=self.max_rejected,
            dump=self.dump,
            templates=self.clone(ReadTemplates).folder if self.dump_templates else "",
        )
