"""ExtractPages: from the dump to pages, paragraphs with links, redirects, rejected pages and lost templates."""

import functools
from typing import Any

from workflows.base.stage import Result, Stage
from workflows.engines import beam
from workflows.stages.dump import CorpusStage


class ExtractPages(CorpusStage, beam.BeamStage):
    """Pages, paragraphs with their links, redirects, rejected pages and what templates cost."""

    FOLDER = "pages"
    VERSION = 5
    KEEPS = "blocks"

    def requires(self) -> dict[str, Stage]:
        return {"FetchDump": self.fetched()}

    def bytes_parameters(self) -> dict[str, Any]:
        return self.values("profile", "block_size", "allow_truncated")

    def work(self) -> Result:
        from pipeline.jobs import extract_pages

        fetched = self.fetched()
        return extract_pages.build(
            functools.partial(beam.run_beam, self),
            fetched.paths(),
            fetched.indexes(),
            self.block_bytes(),
            site=fetched.manifest().facts["site"],
            profile=self.profile,
            allow_truncated=self.allow_truncated,
            max_rejected=self.max_rejected,
            dump=self.dump,
        )
