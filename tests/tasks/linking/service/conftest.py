"""A linker by a small mention table, without a model."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tasks.linking.linker import Linker


@pytest.fixture(scope="session")
def linker(table: Path) -> "Linker":
    from tests.support.linking import linker_of

    return linker_of(table)
