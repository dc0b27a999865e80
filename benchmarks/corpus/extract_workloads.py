"""`ExtractPages` alone, in a process of its own."""

from benchmarks.harness.workloads import Record, serve
from pipeline.dump.containers import plan_blocks
from pipeline.dump.pages import read_site_info
from pipeline.jobs.extract_pages import PageExtractor
from pipeline.jobs.supervisor import run_blocks


def extract_pages(*, dump: str, folder: str, block_bytes: int, processes: int) -> Record:
    """Run `ExtractPages` as the stage does."""
    blocks = plan_blocks([dump], block_bytes)
    arguments = {"site": read_site_info(dump).to_dict(), "profile": "fixed", "allow_truncated": False}
    run_blocks(PageExtractor, blocks, folder, "benchmark", arguments, processes=processes)
    return {"blocks": len(blocks)}


if __name__ == "__main__":
    serve(extract_pages)
