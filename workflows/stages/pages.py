"""ExtractPages: from the dump to pages, paragraphs with links, redirects and rejected pages."""

from collections import Counter
from typing import Any

from pipeline.dump import containers
from workflows.base.stage import Result, Stage, check_share
from workflows.engines import beam
from workflows.stages.dump import CorpusStage, logger


class ExtractPages(CorpusStage, beam.BeamStage):
    """Pages, paragraphs with their links, redirects and rejected pages."""

    FOLDER = "pages"
    VERSION = 4
    KEEPS = "whole"

    def check_needs(self) -> None:
        beam.check_beam_options(self)

    def requires(self) -> dict[str, Stage]:
        return {"FetchDump": self.fetched()}

    def bytes_parameters(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "block_size": self.block_size,
            "allow_truncated": self.allow_truncated,
        }

    def work(self) -> Result:
        fetched = self.fetched()
        blocks = containers.plan_blocks(fetched.paths(), self.block_bytes(), fetched.indexes())
        arguments = {
            "site": fetched.manifest().facts["site"],
            "profile": self.profile,
            "allow_truncated": self.allow_truncated,
        }
        result = self.result(beam.run_beam(self, "extract_pages", blocks, arguments))
        self._check(result)
        return result

    def _check(self, result: Result) -> None:
        read, rows, drops = result.facts["pages_read"], result.rows, Counter(result.drops)
        check_share("pages", {"rejected": rows["rejected"]}, read, self.max_rejected, "--max-rejected")
        if not rows["pages"]:
            raise ValueError(
                f"--dump {self.dump}: no article among its {read:,} pages ({rows['redirects']:,} redirects, "
                f"{drops['pages:other_namespace']:,} in other namespaces); wanted a dump of articles"
            )
        if drops["pages:truncated"] or drops["dump:end_missing"]:
            logger.warning("the dump ends in the middle: %d page was cut", drops["pages:truncated"])
