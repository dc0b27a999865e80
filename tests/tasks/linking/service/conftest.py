"""A linker by a small mention table, without a model."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tasks.linking.linker import Linker


@pytest.fixture(scope="session")
def linker(table: Path) -> "Linker":
    from pipeline.lookup.annotator import Annotator
    from tasks.linking.candidates import CandidateFinder
    from tasks.linking.linker import Linker

    annotator = Annotator.open(table, min_commonness=0.0)
    return Linker(CandidateFinder(annotator.table), annotator)
