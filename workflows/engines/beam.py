"""Beam jobs of a stage, on this machine or on another runner."""

import logging
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pipeline import storage
from pipeline.jobs.supervisor import run_blocks
from pipeline.storage.blocks import Block, BlockJob
from workflows.base.stage import Stage
from workflows.base.terminal import check_reachable, progress_bar
from workflows.engines.disk import Need, check_stage, sweep_scratch


class BeamStage(Stage):
    """A stage whose work is done by Beam."""

    NEED: ClassVar[Need]

    def bytes_of(self, path: str) -> float:
        """The size of a file of the input."""
        return storage.file_size(path) or 0

    def check_needs(self) -> None:
        """Check that Beam knows the runner that the user wants, and a Dask scheduler answers where one is named."""
        if options := beam_options(self):
            logging.disable(logging.WARNING)  # Beam warns of cloud libraries that nobody needs here
            from pipeline.jobs import beam

            logging.disable(logging.NOTSET)
            beam.user_options(options)
            for option in options:
                if match := re.fullmatch(r"--dask_client_address=(?:tcp://)?([^/]+:\d+)", option):
                    check_reachable(f"machine.beam_options: {option}", match[1])


def run_beam(
    stage: BeamStage, job: type[BlockJob], blocks: Sequence[Block], arguments: Mapping[str, Any]
) -> dict[int, storage.Result]:
    """Run a Beam job over the blocks that the stage's folder does not hold yet.

    Raises: ValueError: there is no room for the work, or the input is at fault.
    """
    sweep_scratch(stage.workdir)
    check_stage(stage, stage.NEED, sum(map(stage.bytes_of, {block.path for block in blocks})))
    key, options = storage.digest(stage.identity()), beam_options(stage)
    with progress_bar(type(stage).__name__, unit="block", total=len(blocks)) as show:
        return run_blocks(
            job, blocks, stage.folder, key, arguments, processes=stage.processes, beam_options=options, progress=show
        )


def beam_options(stage: Stage) -> list[str]:
    """The options of another Beam runner, split as a shell splits words. Raises: ValueError: they cannot be split."""
    try:
        return shlex.split(stage.settings.machine.beam_options)
    except ValueError as error:
        raise ValueError(f"machine.beam_options {stage.settings.machine.beam_options}: {error}") from None
