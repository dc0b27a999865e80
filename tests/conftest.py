"""Fixtures that several test modules use."""

import os

# Test processes share few cores: a thread each is faster than all threads in each other's way.
os.environ["OMP_NUM_THREADS"] = "1"

from collections.abc import Iterator
from pathlib import Path

import pytest

try:
    from hypothesis import settings
except ModuleNotFoundError:  # a machine that only trains, see properties.py
    pass
else:
    # Machines are slow at times: a test is wrong or right, never late. What CI tries is the same from run to run, so
    # that it judges the change; elsewhere every run tries something new.
    settings.register_profile("project", deadline=None, derandomize=bool(os.environ.get("CI")))
    settings.load_profile("project")

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(__file__).resolve().parent / "data"
# Files of few long tests. Begun first, they leave no test process waiting for another one at the end.
LONG = (
    "test_stages",
    "test_cluster",
    "test_experiments",
    "test_jobs_spark",
    "test_tune",
    "test_report_browser",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the long files; the order is the collection's otherwise."""
    assert all((DATA.parent / f"{name}.py").is_file() for name in LONG), LONG
    items.sort(key=lambda item: item.path.stem not in LONG)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data sets, which lies beside the project or where LUKE_SHARED says."""
    folder = Path(os.environ.get("LUKE_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"real data are not at {folder}; set LUKE_SHARED")
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """One Spark session for a test module's process."""
    from pipeline import spark as engine

    yield engine.session("local[2]", 1 << 30, is_short=True)
    engine.stop()  # a stage may have done so before
