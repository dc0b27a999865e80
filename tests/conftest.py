"""Fixtures that several test modules use."""

import gc
import os

# Test processes share few cores: a thread each is faster than all threads in each other's way.
os.environ["OMP_NUM_THREADS"] = "1"
# Where a test wants several, those that wait sleep: beside other processes they would hold up the one that works.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.hugging_face import REPOSITORIES, Hub, forget, hugging_face

# What is imported lives as long as the tests: Python need not look through it often.
gc.set_threshold(100_000, 50, 100)

try:
    from hypothesis import settings
except ModuleNotFoundError:  # a machine that only trains, see properties.py
    pass
else:
    # Machines are slow at times: a test is wrong or right, never late. What CI tries is the same from run to run, so
    # that it judges the change; elsewhere every run tries something new.
    settings.register_profile("project", deadline=None, derandomize=bool(os.environ.get("CI")))
    settings.load_profile("project")

# Files of few long tests. Begun first, they leave no test process waiting for another one at the end. Those that share
# a Spark session come together, since stages that run in between would stop it.
LONG = tuple(
    ROOT / "tests" / f"{name}.py"
    for name in (
        "workflows/stages/test_stages",
        "workflows/engines/test_cluster",
        "workflows/stages/test_storm",
        "workflows/stages/test_experiments",
        "pipeline/jobs/tables/test_entity_vocab",
        "pipeline/jobs/tables/test_mention_table",
        "pipeline/jobs/tables/test_oracle_tables",
        "pipeline/jobs/tables/test_redirects",
        "pipeline/jobs/test_spark_parts",
        "workflows/stages/test_tuning",
        "workflows/report/test_browser",
        "workflows/base/test_commandline",
        "workflows/stages/test_data_formats",
        "pipeline/jobs/test_supervisor",
        "benchmarks/test_gpu_benchmark",
        "model/pretraining/test_resuming",
        "model/pretraining/test_run",
        "house/test_documentation",
        "house/test_versions",
    )
)


def pytest_configure(config: pytest.Config) -> None:
    """Have Java start quickly for all processes that run the tests: the first one sees to it."""
    if not getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        return
    from tests.support import java

    # Without pytest's cacheprovider there is no such attribute.
    if (name := java.name_of_archive()) and (cache := getattr(config, "cache", None)):
        folder = cache.mkdir(f"java-{name}")
        os.environ.update(java.environment(folder))
        making = ExitStack()
        making.enter_context(java.made(folder))
        config.add_cleanup(making.close)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need real data, and begin with the long files; the order is the collection's otherwise."""
    assert all(path.is_file() for path in LONG), LONG
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.data)
    items.sort(key=lambda item: item.path not in LONG)


def pytest_collection_finish() -> None:
    """Keep what is imported by now from being looked through."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data sets, which lies beside the project or where LUKE_SHARED says."""
    folder = Path(os.environ.get("LUKE_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip(f"real data are not at {folder}; set LUKE_SHARED")
    return folder


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """One Spark session for all tests of this process: a stage that trains, and would end it, leaves it."""
    from pipeline.jobs.spark_session import stop
    from tests.support.stages import spark_session
    from workflows.engines import spark as engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "stop_spark", lambda: None)
        yield spark_session()
    stop()


@pytest.fixture
def users_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a user's configuration of Spark, which is empty."""
    for name in ("SPARK_HOME", "SPARK_EXECUTOR_MEMORY", "SPARK_LOCAL_DIRS", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "conf"
    folder.mkdir()
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stages before training on the hand-written dump, in several blocks, for all test processes: only to read."""
    from tests.support.stages import make_corpus

    return make_corpus(_common_folder(tmp_path_factory))


@pytest.fixture(scope="session")
def demo_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on the demo's dump."""
    from tests.support.stages import make_demo

    return make_demo(_common_folder(tmp_path_factory))


def _common_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all test processes."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture
def count_graphs() -> Iterator[Callable[[], int]]:
    """Count the graphs that torch has compiled since the test began; none of them is broken off."""
    import torch

    counters = torch._dynamo.utils.counters
    torch._dynamo.reset()
    counters.clear()

    def count() -> int:
        assert not counters["graph_break"]
        return int(counters["stats"]["unique_graphs"])

    yield count
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def quick_training() -> Iterator[None]:
    """The recipes of tiny and demo with a few steps, to run every stage in seconds."""
    from dataclasses import replace

    from model.pretraining import recipes
    from tasks.finetuning import registry
    from tests.support.grid import run_here
    from workflows.engines import workers as cells

    with pytest.MonkeyPatch.context() as patch:
        # The demo's needs as many as give the answers that the documentation shows.
        for name, steps, batch_size in (("tiny", 4, 2), ("demo", 12, 32)):
            recipe = recipes.RECIPES[name]
            phases = tuple(replace(phase, steps=steps, warmup_steps=1) for phase in recipe.phases)
            sizes = {"batch_size": batch_size, "micro_batch_size": batch_size}
            short = replace(recipe, phases=phases, **sizes, log_every=2, checkpoint_every=steps // 2)
            patch.setitem(recipes.RECIPES, name, short)
        for task in registry.TASKS.values():
            patch.setitem(task.PRESETS, "tiny", replace(task.PRESETS["tiny"], epochs=1))
        patch.setattr(cells, "run", run_here)
        yield


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Hugging Face on this machine, and an empty cache."""
    from huggingface_hub import constants

    with hugging_face(dict(REPOSITORIES)) as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        files = f"{served.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        forget()
        yield served
    forget()
